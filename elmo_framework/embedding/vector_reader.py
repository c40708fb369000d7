"""Read sentences, and compute the vectors that a job writes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_framework.data.data_loader import Rank
from elmo_framework.data.formats.text_files import STANDARD_INPUT, spooled
from elmo_framework.embedding.job import EmbeddingJob
from elmo_framework.embedding.layer_selector import layer_selector, mixed_target
from elmo_framework.embedding.vector_file_format import VectorShape
from elmo_framework.errors import DataError, RunError, shown
from elmo_framework.io.outputs import is_stream
from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.layers.bilm_source import FrozenBiLm
from elmo_framework.layers.documents import read_documents
from elmo_framework.layers.encoder_files import open_encoder
from elmo_framework.layers.layer_source import LayerSource, batch_tokens
from elmo_framework.layers.sentence_pool import pooled, pooled_dim
from elmo_framework.layers.transformer_files import is_transformer
from elmo_framework.layers.transformer_source import TransformerOptions


@final
class VectorReader:
    """Computes the vectors that a job writes.

    Args:
        job: its encoder, layers and tokenizer.
        device: computes them.

    Attributes:
        digest: of the encoder.
        variant: the options of a transformer; see `LayerSource`.
        layers: the selected layers, as the user wrote them.
        shape: of the vectors of a word.
        max_tokens: in a batch.

    Raises:
        DataError: the encoder does not exist.
        RunError: the encoder does not have these layers, or does not read documents.
    """

    def __init__(self, job: EmbeddingJob, device: torch.device) -> None:
        source = _open(job, _options(job))
        assert source.fingerprint is not None
        self.digest = source.fingerprint.digest
        self._selection = layer_selector(
            job.layers,
            source=source,
            bilm=job.bilm,
            run_bilms=job.run_bilms,
            packages=job.packages,
        )
        if self._selection.variant != source.variant:
            source = _open(job, TransformerOptions.of_variant(self._selection.variant))
        self.variant = source.variant
        self._reads_documents = job.state == "document"
        if self._reads_documents and not isinstance(source, FrozenBiLm):
            raise RunError(f"--state document: only a biLM reads documents, and {job.bilm} is none")
        self._source, self._device = source, device
        self.max_tokens = job.max_tokens or batch_tokens(device)
        self.layers, self._pool = self._selection.name, job.pool
        dim = pooled_dim(source.dim, job.pool)
        is_pooled = job.pool != "none"
        # int8 is made of finished vectors, each with the scale of its largest number.
        dtype = "float32" if job.dtype == "int8" else job.dtype
        self.shape = VectorShape(self._selection.rows, dim, dtype, is_pooled=is_pooled)
        self._is_narrow = job.dtype != "float32"
        # Fewer and narrower numbers are copied from an accelerator.
        is_whole = uses_cpu_code(device) or self._selection.is_mix or self._reads_documents
        self._reduce = None if is_whole else self._selected_on_device

    def read(
        self, documents: Sequence[Sequence[Sequence[str]]]
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the vectors of each sentence, in the order they are computed in.

        The index of a sentence is counted through all documents. With state `document` the
        sentences of a document are in their order. Sentences without words are left out.

        Vectors are "rows words dim", or "words dim" where a word has one; pooled ones are those of
        one word.

        Raises:
            DataError: a number is too large for float16, or none for int8.
        """
        self._source.forget_words()
        sentences = list(chain.from_iterable(documents))
        if self._reads_documents:
            read = read_documents(
                self._source, documents, max_tokens=self.max_tokens, device=self._device
            )
        else:
            read = self._source.read(
                sentences, max_tokens=self.max_tokens, device=self._device, reduce=self._reduce
            )
        for index, layers in read:
            if not sentences[index]:
                continue
            selected = self._selection.of_layers(layers) if self._reduce is None else layers
            vectors = pooled(selected[..., 1:-1, :].numpy(), self._pool)  # without <S> and </S>
            with np.errstate(over="ignore"):  # it is reported
                numbers = vectors.astype(self.shape.dtype)
            if self._is_narrow and not np.isfinite(numbers).all():
                raise DataError(
                    f"the sentence that begins with {shown(sentences[index][0])} has numbers that "
                    "float16 and int8 cannot hold; pass --dtype float32"
                )
            yield index, numbers

    def _selected_on_device(self, layers: Tensor) -> Tensor:
        """Select the layers of a batch; those that are not pooled later are rounded, too."""
        selected = self._selection.of_layers(layers)
        return selected if self.shape.is_pooled else selected.to(getattr(torch, self.shape.dtype))


def _options(job: EmbeddingJob) -> TransformerOptions:
    """Return the options of a transformer that the flags state.

    Raises:
        RunError: they are given without a transformer, or for a mix, whose run has its own.
    """
    values = {"--max-length": job.max_length, "--sub-token-mode": job.sub_token_mode}
    if flag := next((name for name, value in values.items() if value is not None), None):
        if mixed_target(job.layers):
            raise RunError(f"--layers {job.layers} has the options of its run; remove {flag}")
        if not is_transformer(Path(job.bilm)):
            raise RunError(
                f"{flag} is for transformers, and {job.bilm} is not the folder of one; remove it"
            )
    return TransformerOptions(job.max_length, job.sub_token_mode or "mean")


def _open(job: EmbeddingJob, options: TransformerOptions) -> LayerSource:
    try:
        return open_encoder(job.bilm, precision=job.precision, options=options)
    except ValueError as error:
        raise RunError(f"{job.bilm}: {error}") from error


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
