"""Read sentences, and compute the vectors that a job writes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO, final

import torch
from numpy.typing import NDArray

from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.data.data_loader import Rank
from elmo_framework.data.formats.text_files import STANDARD_INPUT, spooled
from elmo_framework.embedding.job import EmbeddingJob
from elmo_framework.embedding.layer_selector import layer_selector
from elmo_framework.embedding.vector_file_format import VectorShape
from elmo_framework.errors import RunError
from elmo_framework.io.outputs import is_stream
from elmo_framework.layers.bilm_source import open_layers


@final
class VectorReader:
    """Computes the vectors that a job writes.

    Args:
        job: its biLM, layers and tokenizer.
        device: computes them.

    Attributes:
        digest: of the biLM.
        layers: the selected layers, as the user wrote them.
        form: of the vectors of a word.

    Raises:
        DataError: the biLM does not exist.
        RunError: the biLM does not have these layers.
    """

    def __init__(self, job: EmbeddingJob, device: torch.device) -> None:
        source = open_layers(resolve_bilm(job.bilm), precision=job.precision)
        assert source.fingerprint is not None
        self.digest = source.fingerprint.digest
        self._source, self._max_tokens, self._device = source, job.max_tokens, device
        num_layers, dim = source.num_layers, source.dim
        self._selection = layer_selector(
            job.layers,
            num_layers=num_layers,
            bilm=job.bilm,
            digest=self.digest,
            run_bilms=job.run_bilms,
            packages=job.packages,
        )
        self.layers = self._selection.name
        self.form = VectorShape(self._selection.rows, dim, job.dtype)

    def read(self, sentences: Sequence[Sequence[str]]) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the index and the vectors of each sentence, in the order they are computed in.

        Vectors are "rows words dim", or "words dim" where a word has one.
        """
        self._source.forget_words()
        for index, layers in self._source.read(
            sentences, max_tokens=self._max_tokens, device=self._device
        ):
            vectors = self._selection.select(layers).numpy()
            yield index, vectors.astype(self.form.dtype)


def standard_input(
    job: EmbeddingJob, rank: Rank
) -> AbstractContextManager[BinaryIO] | AbstractContextManager[None]:
    """Return standard input as a file, if it is embedded.

    Raises:
        RunError: several processes would read it, or one of the files is a pipe.
    """
    for path in job.sentences:
        if is_stream(path):
            raise RunError(f"{path} is a pipe, which can be read once only; name a file, or -")
    if STANDARD_INPUT not in job.sentences:
        return nullcontext()
    if rank.world_size > 1:
        raise RunError("several processes cannot share standard input; name a file")
    return spooled(sys.stdin.buffer)
