"""Small texts, and batches of them in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_framework.data.data_loader import BatchSource, Rank, SourceContext
from elmo_framework.data.text import Indexer
from elmo_framework.tasks.language_modeling.batch import Window, WindowBatch, WindowCollator
from elmo_framework.tasks.language_modeling.corpus import LanguageModelingExample
from elmo_framework.tasks.language_modeling.windows import WindowLoader

BEGIN, END, UNKNOWN = "<S>", "</S>", "<UNK>"


def examples(sentences: Sequence[str]) -> list[LanguageModelingExample]:
    return [LanguageModelingExample(tuple(sentence.split())) for sentence in sentences]


@dataclass(frozen=True)
class Numbered(Indexer):
    """Numbers words; as characters each has a row of its number twice."""

    words: tuple[str, ...]
    is_row: bool

    @property
    def key(self) -> str:
        return f"numbered {self.is_row}"

    def ids(self, words: Sequence[str]) -> NDArray[np.int64]:
        ids = np.array([self.words.index(word) for word in words], dtype=np.int64)
        return np.stack([ids, ids], axis=1) if self.is_row else ids


class Toy:
    """A text whose batches can be read back as words."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self.sentences = sentences
        found = sorted({word for held in sentences for word in held.split()})
        self.words = (BEGIN, END, *found, UNKNOWN)

    def source(
        self,
        batch_size: int,
        unroll_steps: int,
        *,
        is_training: bool = True,
        aligned: bool = False,
        seed: int = 7,
        rank: Rank | None = None,
        num_train_tokens: int | None = None,
    ) -> BatchSource[WindowBatch]:
        collator = WindowCollator(Numbered(self.words, True), Numbered(self.words, False))
        loader = WindowLoader(
            batch_size=batch_size,
            unroll_steps=unroll_steps,
            aligned=aligned,
            num_train_tokens=num_train_tokens,
        )
        context = SourceContext(
            collate=collator,
            num_tokens=lambda example: len(example.words),
            seed=seed,
            is_training=is_training,
            rank=rank or Rank(),
        )
        return loader.source(examples(self.sentences), context)

    def inputs(self, batch: WindowBatch, window: Window) -> list[list[str]]:
        """Return the words that each row reads, without padding."""
        return [
            [self.words[int(batch.characters[place, 1])] for place in row[mask]]
            for row, mask in zip(window.words, window.mask, strict=True)
        ]

    def targets(self, window: Window) -> list[list[str]]:
        """Return the words that each row predicts, without padding."""
        return [
            [self.words[int(target)] for target in row[mask]]
            for row, mask in zip(window.targets, window.mask, strict=True)
        ]

    def shown(self, batch: WindowBatch) -> dict[str, Any]:
        """Return all of a batch in words."""
        return {
            name: [self.inputs(batch, window), self.targets(window), window.mask.tolist()]
            for name, window in (("forward", batch.forward), ("backward", batch.backward))
        }


def novel(num_sentences: int = 40) -> Toy:
    """A text of different sentences, of 1 to 9 words."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 10, num_sentences)
    return Toy([" ".join(f"s{i}w{k}" for k in range(length)) for i, length in enumerate(lengths)])
