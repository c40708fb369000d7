"""The distribution of words that are written or copied, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

NUM_WORDS, ENCODED, EMBEDDING, HIDDEN = 6, 5, 4, 3
NUM_UNKNOWN = 2
SOURCE = [[2, 6, 2, 7, 6], [3, 5, 6, 0, 0]]
LENGTHS = [5, 3]


def sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-values))


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def affine(layer: torch.nn.Linear, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    moved = vectors @ layer.weight.numpy().T
    return moved if layer.bias is None else moved + layer.bias.numpy()


def reference(decoder, encoded, source, words):
    """The distributions after each of `words`, for one passage without padding."""
    hidden, cell = np.split(np.tanh(affine(decoder.initial, encoded.mean(axis=0))), 2)
    context, found = np.zeros(ENCODED), []
    lstm = decoder.lstm
    for word in words:
        y = decoder.embedding.weight.numpy()[word]
        gates = np.concatenate([y, context]) @ lstm.weight_ih.numpy().T + lstm.bias_ih.numpy()
        gates = gates + hidden @ lstm.weight_hh.numpy().T + lstm.bias_hh.numpy()
        i, f, g, o = np.split(gates, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        keys = np.tanh(affine(decoder.attended, encoded) + affine(decoder.attending, hidden))
        weights = softmax(affine(decoder.attention, keys)[:, 0])
        context = weights @ encoded
        output = np.tanh(affine(decoder.projection, np.concatenate([hidden, context])))
        gate = sigmoid(affine(decoder.gate, np.concatenate([context, hidden, y])))[0]
        p = np.zeros(NUM_WORDS + NUM_UNKNOWN)
        p[:NUM_WORDS] = gate * softmax(affine(decoder.vocabulary, output))
        for place, index in enumerate(source):
            p[index] += (1 - gate) * weights[place]
        found.append(p)
    return found


@torch.no_grad()
def test_copy_distribution_equals_the_numpy_reference():
    from plugins.question_generation.decoder import CopyDecoder

    torch.manual_seed(4)
    decoder = CopyDecoder(NUM_WORDS, ENCODED, EMBEDDING, HIDDEN, dropout=0.5).double().eval()
    encoded = torch.randn(2, 5, ENCODED).double()
    mask = torch.arange(5) < torch.tensor(LENGTHS)[:, None]
    written = [[2, 4, 1], [3, 1, 5]]
    state, keys = decoder.start(encoded, mask), decoder.keys(encoded)

    for position in range(3):
        last = torch.tensor([words[position] for words in written])
        log_p, state = decoder.step(
            last, state, encoded, keys, mask, torch.tensor(SOURCE), NUM_UNKNOWN
        )
        for row, length in enumerate(LENGTHS):
            alone = encoded[row, :length].numpy()
            expected = reference(decoder, alone, SOURCE[row][:length], written[row])[position]
            assert expected.sum() == pytest.approx(1)
            np.testing.assert_allclose(log_p[row].exp().numpy(), expected, atol=1e-11)
