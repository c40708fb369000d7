import numpy as np
import pytest
import torch

from elmo_framework.bilm.layer_mix import LayerMix, mix_layers, normalize_layers
from elmo_framework.config.parse import parse
from elmo_framework.errors import BuildError

LAYERS = torch.randn(3, 2, 4, 5, generator=torch.Generator().manual_seed(0))
MASK = torch.tensor([[True] * 4, [True] * 2 + [False] * 2])


def build(raw, num_layers: int = 3) -> LayerMix:
    return parse(LayerMix, raw, source="test").build(num_layers=num_layers)


def test_a_fresh_scalar_mix_is_the_average() -> None:
    torch.testing.assert_close(build("scalar_mix")(LAYERS, MASK), LAYERS.mean(dim=0))


def test_scalar_mix_weighs_layers_by_softmax() -> None:
    mix = build("scalar_mix")
    for parameter, value in zip(mix.scalar_parameters, (0.5, -1.0, 2.0), strict=True):
        torch.nn.init.constant_(parameter, value)
    torch.nn.init.constant_(mix.gamma, 3.0)
    shares = torch.tensor([0.5, -1.0, 2.0]).softmax(dim=0)
    expected = 3 * (shares[:, None, None, None] * LAYERS).sum(dim=0)
    torch.testing.assert_close(mix(LAYERS, MASK), expected)


def test_parameters_have_the_names_that_users_know() -> None:
    names = dict(build("scalar_mix").named_parameters())
    assert {name: tuple(value.shape) for name, value in names.items()} == {
        "gamma": (1,),
        **{f"scalar_parameters.{layer}": (1,) for layer in range(3)},
    }


def test_gradients_reach_every_parameter() -> None:
    for raw in ("scalar_mix", {"type": "scalar_mix", "layer_norm": True}, "average", "layer"):
        mix = build(raw)
        mix(LAYERS, MASK).square().sum().backward()
        assert all(parameter.grad.abs().sum() > 0 for parameter in mix.parameters()), raw


def test_the_penalty_is_on_the_raw_weights_and_not_on_gamma() -> None:
    mix = build({"type": "scalar_mix", "l2": 0.1})
    for parameter in mix.parameters():
        torch.nn.init.constant_(parameter, 2.0)
    mix.penalty().backward()
    assert mix.penalty().item() == pytest.approx(0.1 * 3 * 4)
    assert [weight.grad.item() for weight in mix.scalar_parameters] == pytest.approx([0.4] * 3)
    assert mix.gamma.grad is None


def test_weights_that_are_not_trained_cost_no_penalty() -> None:
    frozen = build({"type": "scalar_mix", "l2": 0.1, "scalar_mix_parameters": [1, 2, 3]})
    assert frozen.penalty().item() == 0
    mix = build({"type": "scalar_mix", "l2": 0.1})
    torch.nn.init.constant_(mix.scalar_parameters[0].requires_grad_(False), 2.0)
    assert mix.penalty().item() == 0


def test_configured_weights_and_gamma_are_fixed() -> None:
    mix = build({"type": "scalar_mix", "scalar_mix_parameters": [-9e10, 1, -9e10]})
    assert torch.equal(mix(LAYERS, MASK), LAYERS[1])
    assert not any(parameter.requires_grad for parameter in mix.parameters())


@pytest.mark.parametrize(
    ("given", "shown"), [([1, 2], r"\[1.0, 2.0\]"), ([], r"\[\]")], ids=["two", "none"]
)
def test_configured_weights_need_one_per_layer(given: list[float], shown: str) -> None:
    with pytest.raises(BuildError, match=rf"is {shown} (for|of) 3 layers"):
        build({"type": "scalar_mix", "scalar_mix_parameters": given})


def test_layers_are_normalized_when_asked() -> None:
    mix = build({"type": "scalar_mix", "layer_norm": True})
    expected = normalize_layers(LAYERS, MASK).mean(dim=0)
    torch.testing.assert_close(mix(LAYERS, MASK), expected)


def test_the_average_weighs_all_layers_the_same() -> None:
    mix = build("average")
    torch.nn.init.constant_(mix.gamma, 2.0)
    torch.testing.assert_close(mix(LAYERS, MASK), 2 * LAYERS.mean(dim=0))


@pytest.mark.parametrize("index", [-1, 0, 2])
def test_a_single_layer_is_that_layer_times_gamma(index: int) -> None:
    mix = build({"type": "layer", "index": index})
    torch.nn.init.constant_(mix.gamma, 2.0)
    assert torch.equal(mix(LAYERS, MASK), 2 * LAYERS[index])


@pytest.mark.parametrize("index", [-4, 3])
def test_a_layer_that_is_not_there_is_refused(index: int) -> None:
    with pytest.raises(BuildError, match=f"index is {index} of 3 layers; allowed: -3 to 2"):
        build({"type": "layer", "index": index})


def test_monitored_values_are_the_softmax_weights_and_gamma() -> None:
    mix = build("scalar_mix")
    assert mix.monitored_values() == pytest.approx(
        {"s_0": 1 / 3, "s_1": 1 / 3, "s_2": 1 / 3, "gamma": 1.0}
    )
    assert (
        build("average").monitored_values() == build("layer").monitored_values() == {"gamma": 1.0}
    )


DOUBLES = torch.randn(3, 2, 4, 5, dtype=torch.double, generator=torch.Generator().manual_seed(0))


def test_mix_is_the_softmax_weighted_sum_times_gamma() -> None:
    weights, gamma = np.array([0.3, -1.0, 2.0]), 1.7
    shares = np.exp(weights) / np.exp(weights).sum()
    expected = gamma * sum(s * h for s, h in zip(shares, DOUBLES.numpy(), strict=True))
    mixed = mix_layers(DOUBLES, torch.tensor(weights), torch.tensor([gamma], dtype=torch.double))
    np.testing.assert_allclose(mixed, expected, atol=1e-12)


def test_a_huge_weight_picks_one_layer() -> None:
    weights = torch.tensor([-9e10, 1.0, -9e10], dtype=torch.double)
    assert torch.equal(mix_layers(DOUBLES, weights, torch.ones(1).double()), DOUBLES[1])


def test_layer_norm_covers_all_words_of_the_batch() -> None:
    for layer, normalized in zip(DOUBLES, normalize_layers(DOUBLES, MASK), strict=True):
        words = layer[MASK].numpy()
        expected = (layer.numpy() - words.mean()) / np.sqrt(words.var() + 1e-12)
        np.testing.assert_allclose(normalized, expected, atol=1e-10)


def test_padding_does_not_change_the_normalized_words() -> None:
    filled = DOUBLES.masked_fill(~MASK[:, :, None], 100.0)
    expected = normalize_layers(DOUBLES, MASK)[:, MASK]
    torch.testing.assert_close(normalize_layers(filled, MASK)[:, MASK], expected)


@pytest.mark.parametrize("mask", [MASK, torch.zeros_like(MASK)])
def test_layer_norm_of_zeros_or_no_words_is_finite(mask) -> None:
    assert normalize_layers(torch.zeros_like(DOUBLES), mask).isfinite().all()


def test_gradients_reach_the_layers_the_weights_and_gamma() -> None:
    reached = [DOUBLES.clone(), torch.randn(3).double(), torch.ones(1).double()]
    for tensor in reached:
        tensor.requires_grad_()
    layers, weights, gamma = reached
    mix_layers(normalize_layers(layers, MASK), weights, gamma).square().sum().backward()
    assert all(tensor.grad.abs().sum() > 0 for tensor in reached)


def test_layers_of_float16_are_normalized_in_float32() -> None:
    layers = torch.randn(3, 4, 30, 1024, generator=torch.Generator().manual_seed(0)).half()
    mask = torch.ones(4, 30, dtype=torch.bool)
    torch.testing.assert_close(
        normalize_layers(layers, mask), normalize_layers(layers.float(), mask)
    )
