"""The vectors of a few sentences as JSON lines, for other programs and for looking at them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_framework.console import ProgressBar
from elmo_framework.data.data_loader import Rank
from elmo_framework.data.tokenizer import build_tokenizer
from elmo_framework.embedding.corpus import SentenceFiles
from elmo_framework.embedding.job import EmbeddingJob, VectorReader, standard_input
from elmo_framework.errors import DataError, RunError

_WORDS = 8192
"""Sorted by length, and written together, are the sentences of so many words."""

_SECONDS_WITHOUT_PROGRESS = 5.0


def write_json_lines(
    job: EmbeddingJob, output: TextIO, *, device: torch.device, rank: Rank
) -> None:
    """Write an object for each line of the input, in its order.

    Its `words` are those of the line; its `vectors` are "layers words dim", or "words dim" where a
    word has one vector. A number has as many digits as give the same float again.

    Args:
        job: its sentences, biLM and layers; its `output` and `format` are not used.
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
            for sentences in _blocks(corpus):
                output.writelines(_lines(reader, sentences))
                output.flush()
                progress.advance(len(sentences))


def _blocks(corpus: SentenceFiles) -> Iterator[list[list[str]]]:
    block, num_words = list[list[str]](), 0
    for line in corpus.lines():
        block.append(corpus.words(line))
        num_words += len(block[-1]) + 1
        if num_words >= _WORDS:
            yield block
            block, num_words = [], 0
    if block:
        yield block


def _lines(reader: VectorReader, sentences: list[list[str]]) -> Iterator[str]:
    filled = [number for number, words in enumerate(sentences) if words]
    rows = () if reader.form.rows is None else (reader.form.rows,)
    vectors = dict[int, NDArray[Any]]()
    for index, read in reader.read([sentences[number] for number in filled]):
        vectors[filled[index]] = read
    for number, words in enumerate(sentences):
        numbers = vectors.get(number, np.zeros((*rows, 0, reader.form.dim)))
        yield json.dumps({"words": words, "vectors": _as_lists(numbers)}, ensure_ascii=False) + "\n"


def _as_lists(numbers: NDArray[Any]) -> list[Any]:
    """Return nested lists; `tolist` would show each float32 with the digits of a float64."""
    if numbers.ndim > 1:
        return [_as_lists(row) for row in numbers]
    return [float(str(number)) for number in numbers]
