import pytest
import torch

from elmo_framework.modules import ScalarMix

TENSORS = [torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2)]
MASK = torch.tensor([[True, True, True], [True, False, False]])


def test_the_mix_is_the_weighted_sum() -> None:
    mix = ScalarMix(2, initial_scalar_parameters=[1.0, -1.0])
    mix.gamma.data.fill_(3)
    first, second = torch.tensor([1.0, -1.0]).softmax(0)
    torch.testing.assert_close(mix(TENSORS), 3 * (first * TENSORS[0] + second * TENSORS[1]))
    flat = [tensor.view(6, 4) for tensor in TENSORS]
    torch.testing.assert_close(mix(flat), mix(TENSORS).view(6, 4))


def test_initial_weights_may_be_whole_numbers() -> None:
    numbers = ScalarMix(2, initial_scalar_parameters=[1, -1])
    expected = ScalarMix(2, initial_scalar_parameters=[1.0, -1.0])
    torch.testing.assert_close(numbers(TENSORS), expected(TENSORS))


def test_layer_norm_is_over_the_words_of_the_mask() -> None:
    expected = 0
    for tensor in TENSORS:
        words = tensor[MASK]
        expected = expected + (tensor - words.mean()) / words.var(correction=0).sqrt() / 2
    torch.testing.assert_close(ScalarMix(2, do_layer_norm=True)(TENSORS, MASK), expected)
    with pytest.raises(ValueError, match="do_layer_norm needs a mask"):
        ScalarMix(2, do_layer_norm=True)(TENSORS)


def test_names_of_weights_are_those_of_allennlp() -> None:
    assert list(ScalarMix(2).state_dict()) == [
        "gamma",
        "scalar_parameters.0",
        "scalar_parameters.1",
    ]


def test_all_weights_are_trained_or_none() -> None:
    for trainable in (True, False):
        mix = ScalarMix(2, initial_scalar_parameters=[0.0, 1.0], trainable=trainable)
        assert {parameter.requires_grad for parameter in mix.parameters()} == {trainable}


def test_a_wrong_number_of_tensors_or_weights_is_reported() -> None:
    with pytest.raises(ValueError, match="1 tensors for a mix of 2"):
        ScalarMix(2)(TENSORS[:1])
    with pytest.raises(ValueError, match="it takes one number for each"):
        ScalarMix(2, initial_scalar_parameters=[1.0])
