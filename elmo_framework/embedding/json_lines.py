"""Vectors as JSON lines, in the order of the input."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import chain
from typing import Any, TextIO

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_framework.console import ProgressBar
from elmo_framework.data.data_loader import Rank
from elmo_framework.data.tokenizer import build_tokenizer
from elmo_framework.embedding.corpus import SentenceFiles
from elmo_framework.embedding.job import EmbeddingJob
from elmo_framework.embedding.vector_reader import VectorReader, standard_input
from elmo_framework.errors import DataError, RunError

_WORDS_PER_BLOCK = 8192
"""Sorted by length, and written together, are the sentences of so many words."""

_SECONDS_WITHOUT_PROGRESS = 5.0


def write_json_lines(
    job: EmbeddingJob, output: TextIO, *, device: torch.device, rank: Rank
) -> None:
    """Write an object for each line of the input, in its order.

    Its `words` are those of the line; its `vectors` are "layers words dim", or "words dim" where a
    word has one vector; those of a pooled sentence have no axis of words. A number has as many
    digits as give the same float again.

    Args:
        job: its sentences, encoder and layers; its `output` and `format` are not used.
        output: receives the lines.
        device: computes the vectors.
        rank: of this process.

    Raises:
        DataError: the input cannot be read, or has no line.
        RunError: there are several processes, or no such layers.
    """
    if rank.world_size > 1:
        raise RunError("several processes cannot share standard output; pass --output-file")
    tokenizer = build_tokenizer(job.tokenizer)
    with standard_input(job, rank) as stream:
        corpus = SentenceFiles(job.sentences, tokenizer=tokenizer, standard_input=stream)
        total = sum(1 for _ in corpus.lines())
        if not total:
            raise DataError("no lines to embed", path=job.sentences[0])
        reader = VectorReader(job, device)
        # A terminal shows the lines themselves.
        delay = math.inf if output.isatty() else _SECONDS_WITHOUT_PROGRESS
        with ProgressBar("embedding", total=total, unit="sentence", delay=delay) as progress:
            for documents in _blocks(corpus, by_document=job.state == "document"):
                output.writelines(_lines(reader, documents))
                output.flush()
                progress.advance(sum(map(len, documents)))


def _blocks(corpus: SentenceFiles, *, by_document: bool) -> Iterator[list[list[list[str]]]]:
    """Yield the documents of so many words; without documents, each line is one."""
    block, num_words = list[list[list[str]]](), 0
    for line in corpus.lines():
        words = corpus.words(line)
        if by_document and block and block[-1][-1] and line.number > 1:
            block[-1].append(words)
        else:
            if num_words >= _WORDS_PER_BLOCK:
                yield block
                block, num_words = [], 0
            block.append([words])
        num_words += len(words) + 1
    if block:
        yield block


def _lines(reader: VectorReader, documents: list[list[list[str]]]) -> Iterator[str]:
    """Yield the lines of documents in their order, each as soon as those before it are there."""
    shape = reader.shape
    rows = () if shape.rows is None else (shape.rows,)
    blank = np.zeros((*rows, int(shape.is_pooled), shape.dim))
    read, vectors = reader.read(documents), dict[int, NDArray[Any]]()
    for number, words in enumerate(chain.from_iterable(documents)):
        while words and number not in vectors:
            index, own = next(read)
            vectors[index] = own
        numbers = vectors.pop(number) if words else blank
        if shape.is_pooled:
            numbers = numbers.squeeze(-2)
        yield json.dumps({"words": words, "vectors": as_lists(numbers)}, ensure_ascii=False) + "\n"


def as_lists(numbers: NDArray[Any]) -> list[Any]:
    """Return nested lists; `tolist` would show each float32 with the digits of a float64."""
    if numbers.ndim > 1:
        return [as_lists(row) for row in numbers]
    return [float(str(number)) for number in numbers]
