"""How fast a biLM of a published size is trained: whole updates on made-up windows.

Words follow Zipf's law, as do the targets; they are drawn as the scripts that measure others draw
them. The time of an update includes putting its batch together. A token is a position of the
input, which is predicted from in both directions.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from math import log
from typing import NamedTuple

import numpy as np
import torch
from clock import device_name, now
from measuring import add_threads_argument, report
from numpy.typing import NDArray
from published_sizes import SIZES, published_size

from elmo_framework.config.parse import parse
from elmo_framework.data.batch import to_device
from elmo_framework.data.characters import ElmoCharacterIndexer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.io.process import keep_freed_memory
from elmo_framework.tasks.language_modeling.batch import (
    CharacterTable,
    WindowBatch,
    WordTables,
    WordWindow,
)
from elmo_framework.tasks.language_modeling.bi_language_model import BiLanguageModel
from elmo_framework.training.evaluator import autocast
from elmo_framework.training.optimizer import adagrad
from elmo_framework.training.sparse_gradients import allow_sparse_gradients, clip_norm

_NUM_SPECIAL = 3
"""What the softmax knows besides the words: `<S>`, `</S>` and `<UNK>`."""
_LARGEST_NORM = 10.0
_MILLISECONDS = 1000


class Phases(NamedTuple):
    """The seconds of one update.

    Attributes:
        batch: putting it together and moving it to the device.
        forward: to the loss.
        backward: to the gradients.
        optimizer: clipping the gradients and changing the weights.
    """

    batch: float
    forward: float
    backward: float
    optimizer: float


def main() -> int:
    """Measure and report."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    torch.manual_seed(0)
    training = Training(arguments)
    measured = [training.update() for _ in range(arguments.warm_up + arguments.steps)]
    phases = np.array(measured[arguments.warm_up :])
    seconds = float(np.median(phases.sum(1)))
    medians = dict(zip(Phases._fields, np.median(phases, 0), strict=True))
    report(
        bench="training_step",
        size=arguments.size,
        precision=arguments.precision,
        device=device_name(training.device),
        torch=torch.__version__,
        threads=arguments.threads,
        step_ms=round(seconds * _MILLISECONDS, 2),
        tokens_per_s=round(arguments.batch * arguments.unroll / seconds, 2),
        loss=training.loss,
        parameters=sum(held.numel() for held in training.model.parameters()),
        **{f"{name}_ms": round(float(v) * _MILLISECONDS, 2) for name, v in medians.items()},
    )
    return 0


class Training:
    """A model with its optimizer and an endless text.

    Args:
        arguments: of the command line.

    Attributes:
        loss: of the last update.
    """

    def __init__(self, arguments: Namespace) -> None:
        self.device = torch.device(arguments.device)
        self._arguments = arguments
        self._chance = np.random.default_rng(0)
        self._words = _random_words(arguments, self._chance)
        self.model = _model(arguments).to(self.device).train()
        self._optimizer = adagrad(lr=0.2, initial_accumulator_value=1.0).create(
            self.model.parameters()
        )
        allow_sparse_gradients(self.model, self._optimizer, is_alone=True)
        self.loss = float("nan")

    def update(self) -> Phases:
        """Make one update on a new batch."""
        forward, backward = self._windows()
        times = [now(self.device)]
        batch: WindowBatch = to_device(self._words.batch(forward, backward), self.device)
        times.append(now(self.device))
        with autocast(self.device, self._arguments.precision):
            loss = self.model(batch).loss
        assert loss is not None
        times.append(now(self.device))
        loss.backward()
        times.append(now(self.device))
        clip_norm(self.model.parameters(), _LARGEST_NORM)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        times.append(now(self.device))
        self.loss = loss.item()
        return Phases(*np.diff(times).tolist())

    def _windows(self) -> tuple[WordWindow, WordWindow]:
        """Return the same words in both directions, with targets of their own."""
        shape = self._arguments.batch, self._arguments.unroll
        words = (self._zipf(shape) % self._arguments.word_pool).astype(np.int32)
        mask = np.ones(shape, dtype=np.bool_)
        turned = np.ascontiguousarray(words[:, ::-1])
        return (
            WordWindow(words, self._zipf(shape).astype(np.int32), mask),
            WordWindow(turned, self._zipf(shape).astype(np.int32), mask),
        )

    def _zipf(self, shape: tuple[int, int]) -> NDArray[np.int64]:
        """Draw words: P(k) = ln((k + 2) / (k + 1)) / ln(V + 1)."""
        num_words = self._arguments.vocabulary
        ranks = np.exp(self._chance.random(shape) * log(num_words + 1)).astype(np.int64) - 1
        return ranks.clip(0, num_words - 1)


def _random_words(arguments: Namespace, chance: np.random.Generator) -> WordTables:
    """Make words of 1 to 11 small letters for the input; targets are numbers already."""
    lengths = chance.integers(1, 12, arguments.word_pool)
    words = [bytes(chance.integers(97, 122, length).tolist()).decode() for length in lengths]
    characters = ElmoCharacterIndexer().ids(words).astype(np.uint16)
    return WordTables(words, CharacterTable(characters), np.arange(arguments.vocabulary))


def _model(arguments: Namespace) -> BiLanguageModel:
    raw = {**published_size(arguments.size), "num_samples": arguments.samples}
    words = Counter(f"word{number}" for number in range(arguments.vocabulary - _NUM_SPECIAL))
    lazy = parse(BiLanguageModel, raw, source=__file__)
    return lazy.build(vocabularies=Vocabularies({"words": words}))


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Measure how fast a biLM is trained.")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--batch", type=int, default=32, help="rows (32)")
    parser.add_argument("--unroll", type=int, default=20, help="steps of a window (20)")
    parser.add_argument("--vocabulary", type=int, default=100_000, help="of the softmax (100000)")
    parser.add_argument("--samples", type=int, default=8192, help="of the softmax (8192)")
    parser.add_argument("--word-pool", type=int, default=6000, help="words of the input (6000)")
    parser.add_argument("--steps", type=int, default=3, help="updates that are measured (3)")
    parser.add_argument("--warm-up", type=int, default=1, help="updates before (1)")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    add_threads_argument(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
