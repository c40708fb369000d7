"""The softmax next to a biLM, for inference: the surprisal of words after a top layer."""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from elmo_framework.bilm.files.load import BiLmFiles, reads_both_sides
from elmo_framework.bilm.files.published import PUBLISHED
from elmo_framework.corpus.vocabulary_file import (
    SPECIAL_WORDS,
    UNKNOWN_WORD,
    read_vocabulary_file,
)
from elmo_framework.data.vocabulary import Vocabulary
from elmo_framework.errors import DataError
from elmo_framework.kernels.product import Product, prepared
from elmo_framework.model.weights import load_tensors

_LOGITS_AT_ONCE, _MIN_POSITIONS = 1 << 22, 64
"""Logits of a block, 16 MiB of float32, which fit into the CPU's cache. Below so many positions a
block would spend its time reading the weight."""


@final
class BiLmSoftmax:
    """The full softmax that both directions of a biLM share.

    Args:
        weight: a row for each word of the vocabulary.
        bias: one number for each word.
        vocabulary: `<S>`, `</S>`, `<UNK>` and the words.
    """

    def __init__(
        self,
        weight: Float[Tensor, "words dim"],
        bias: Float[Tensor, " words"],
        vocabulary: Vocabulary,
    ) -> None:
        self.vocabulary = vocabulary
        self._weight, self._bias = weight, bias
        self._product: Product | None = None
        self._device: torch.device | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> BiLmSoftmax:
        """Return the same softmax, as its weights do not change."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the content of a pickle; the product is prepared again after loading."""
        return {**self.__dict__, "_product": None, "_device": None}

    def surprisal(
        self, vectors: Float[Tensor, "positions dim"], targets: Int[Tensor, " positions"]
    ) -> NDArray[np.float64]:
        """Return `-log2 p(target)` at each position: bits, "positions".

        Args:
            vectors: of the top layer of one direction, before each target in reading order.
            targets: ids of the vocabulary, on the device of the vectors.
        """
        product = self._prepared(vectors.device)
        size = max(_MIN_POSITIONS, _LOGITS_AT_ONCE // len(self.vocabulary))
        parts = [
            _negative_log_likelihood(product(vectors[at : at + size]), targets[at : at + size])
            for at in range(0, len(targets), size)
        ]
        nats = torch.cat(parts) if parts else vectors.new_zeros(0)
        return nats.double().cpu().numpy() / log(2)

    def _prepared(self, device: torch.device) -> Product:
        if self._product is None or device != self._device:
            self._product = prepared(self._weight.to(device), self._bias.to(device))
            self._device = device
        return self._product


def read_softmax(files: BiLmFiles, *, dim: int) -> BiLmSoftmax:
    """Load the softmax of a biLM.

    Args:
        files: of the biLM.
        dim: the dimension of one direction of the biLM.

    Raises:
        DataError: it is missing, damaged, or the softmax of another biLM.
    """
    words = read_softmax_words(files)
    vocabulary = Vocabulary([*SPECIAL_WORDS, *words], name="words", unknown=UNKNOWN_WORD)
    tensors = load_tensors(files.softmax)
    expected = {"weight": [len(vocabulary), dim], "bias": [len(vocabulary)]}
    if {name: list(tensor.shape) for name, tensor in tensors.items()} != expected:
        shapes = {name: list(tensor.shape) for name, tensor in sorted(tensors.items())}
        raise DataError(
            f"not the softmax of this biLM: found {shapes}, expected {expected} for the "
            f"{len(vocabulary):,} lines of {files.vocabulary.name}",
            path=files.softmax,
        )
    return BiLmSoftmax(tensors["weight"].float(), tensors["bias"].float(), vocabulary)


def read_softmax_words(files: BiLmFiles) -> list[str]:
    """Return the words that the softmax of a biLM knows, without the three special ones.

    Raises:
        DataError: the softmax or its vocabulary is missing or damaged; or the model was trained
            to predict masked words, from both sides.
    """
    if reads_both_sides(files):
        raise DataError(
            "this model predicts masked words from both sides, so it has no probabilities of "
            "sentences; use a biLM (model type 'bilm')",
            path=files.weights.parent,
        )
    missing = [path.name for path in (files.softmax, files.vocabulary) if not path.is_file()]
    if missing:
        raise DataError(
            f"this biLM has no {' and no '.join(missing)}, and probabilities need its softmax and "
            "the words of it; pretraining writes both next to the biLM, and `elmo export` copies "
            "them",
            path=files.weights.parent,
        )
    return read_vocabulary_file(files.vocabulary)


def check_softmax_published(location: str) -> None:
    """Refuse a biLM whose softmax was not published, before its weights are downloaded.

    Raises:
        DataError: it is one, by its name.
    """
    if location in PUBLISHED and not Path(location).is_dir():
        raise DataError(f"the softmax of {location!r} was not published, and probabilities need it")


def _negative_log_likelihood(
    logits: Float[Tensor, "positions words"], targets: Int[Tensor, " positions"]
) -> Float[Tensor, " positions"]:
    """Return nats; the logits, which are large, are overwritten."""
    of_targets = logits.gather(1, targets[:, None])
    largest = logits.amax(1, keepdim=True)
    sums = logits.sub_(largest).exp_().sum(1, keepdim=True)
    return (sums.log() + largest - of_targets).squeeze(1)
