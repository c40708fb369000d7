"""Models whose ELMo continues from text to text, against the biLM in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.numpy_bilm import NumpyBiLm


def carrying_elmo(bilm: NumpyBiLm, folder: Path) -> dict[str, Any]:
    """Return the embedder of a model: the last layer of a biLM."""
    elmo = {"type": "elmo_token_embedder", "state": "carry", "mix": "layer", "dropout": 0.0}
    return {"token_embedders": {"elmo": {**elmo, "bilm": str(bilm.save(folder / "bilm"))}}}


def check_order_of_reading(
    model: Any, batches: Sequence[Any], rows: Sequence[Sequence[Sequence[str]]], bilm: NumpyBiLm
) -> None:
    """Check the vectors of a model by the order in which AllenNLP reads.

    Args:
        model: with `carrying_elmo`.
        batches: that the model reads one after the other.
        rows: for each row of a batch of AllenNLP, all texts that are in this row.
        bilm: the one of the model.
    """
    found: list[tuple[tuple[str, ...], Tensor]] = []
    model.embedder.register_forward_hook(
        lambda _, inputs, vectors: found.extend(zip(inputs[0].words, vectors, strict=True))
    )
    with torch.no_grad():
        for batch in batches:
            model.eval()(batch)
    expected = []
    for texts in rows:
        state = None
        for words in texts:
            layers, state = bilm.read(list(words), state)
            expected.append((tuple(words), layers[-1, 1:-1]))
    assert sorted(words for words, _ in found) == sorted(words for words, _ in expected)
    for words, vectors in expected:
        assert any(
            own == words and np.allclose(read[: len(words)], vectors, atol=1e-5)
            for own, read in found
        ), words
