import pytest
import torch
from torch import nn

from elmo_framework.errors import RunError
from elmo_framework.model.weights import load_weights


def test_a_model_has_the_weights_that_it_is_given() -> None:
    model, other = nn.Linear(2, 3), nn.Linear(2, 3)
    load_weights(model, other.state_dict(), source="a.safetensors")
    assert torch.equal(model.weight, other.weight)


def test_weights_of_another_model_are_named_the_first_of_each_kind() -> None:
    deep = nn.Sequential(*(nn.Linear(2, 2) for _ in range(3)))
    weights = {"0.weight": torch.zeros(2, 3), "1.bias": torch.zeros(2), "top": torch.zeros(1)}
    with pytest.raises(RunError) as caught:
        load_weights(deep, weights, source="a.safetensors")
    assert str(caught.value) == (
        "a.safetensors: these weights are of another model than the configuration and the "
        "vocabulary make: missing: 0.bias, 1.weight, 2.weight and 1 more; unexpected: top; "
        "of another shape: 0.weight [2, 3], not [2, 2]"
    )
