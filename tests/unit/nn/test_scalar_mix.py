import numpy as np
import pytest
import torch

from elmo_framework.nn.scalar_mix import mix_layers, normalize_layers

LAYERS = torch.randn(3, 2, 4, 5, dtype=torch.double, generator=torch.Generator().manual_seed(0))
MASK = torch.tensor([[True] * 4, [True] * 2 + [False] * 2])


def test_mix_is_the_softmax_weighted_sum_times_gamma() -> None:
    weights, gamma = np.array([0.3, -1.0, 2.0]), 1.7
    shares = np.exp(weights) / np.exp(weights).sum()
    expected = gamma * sum(s * h for s, h in zip(shares, LAYERS.numpy(), strict=True))
    mixed = mix_layers(LAYERS, torch.tensor(weights), torch.tensor([gamma], dtype=torch.double))
    np.testing.assert_allclose(mixed, expected, atol=1e-12)


def test_a_huge_weight_picks_one_layer() -> None:
    weights = torch.tensor([-9e10, 1.0, -9e10], dtype=torch.double)
    assert torch.equal(mix_layers(LAYERS, weights, torch.ones(1).double()), LAYERS[1])


def test_layer_norm_covers_all_words_of_the_batch() -> None:
    for layer, normalized in zip(LAYERS, normalize_layers(LAYERS, MASK), strict=True):
        words = layer[MASK].numpy()
        expected = (layer.numpy() - words.mean()) / np.sqrt(words.var() + 1e-12)
        np.testing.assert_allclose(normalized, expected, atol=1e-10)


def test_padding_does_not_change_the_normalized_words() -> None:
    filled = LAYERS.masked_fill(~MASK[:, :, None], 100.0)
    expected = normalize_layers(LAYERS, MASK)[:, MASK]
    torch.testing.assert_close(normalize_layers(filled, MASK)[:, MASK], expected)


@pytest.mark.parametrize("mask", [MASK, torch.zeros_like(MASK)])
def test_layer_norm_of_zeros_or_no_words_is_finite(mask) -> None:
    assert normalize_layers(torch.zeros_like(LAYERS), mask).isfinite().all()


def test_gradients_reach_the_layers_the_weights_and_gamma() -> None:
    reached = [LAYERS.clone(), torch.randn(3).double(), torch.ones(1).double()]
    for tensor in reached:
        tensor.requires_grad_()
    layers, weights, gamma = reached
    mix_layers(normalize_layers(layers, MASK), weights, gamma).square().sum().backward()
    assert all(tensor.grad.abs().sum() > 0 for tensor in reached)
