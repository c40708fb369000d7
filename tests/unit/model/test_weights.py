import pytest
import torch
from torch import nn

from elmo_framework.errors import RunError
from elmo_framework.model.weights import load_weights


def test_loaded_weights_equal_the_saved_ones() -> None:
    model, other = nn.Linear(2, 3), nn.Linear(2, 3)
    load_weights(model, other.state_dict(), source="a.safetensors")
    assert torch.equal(model.weight, other.weight)


def test_error_names_first_differences_of_other_weights() -> None:
    deep = nn.Sequential(*(nn.Linear(2, 2) for _ in range(3)))
    weights = {"0.weight": torch.zeros(2, 3), "1.bias": torch.zeros(2), "top": torch.zeros(1)}
    with pytest.raises(RunError) as caught:
        load_weights(deep, weights, source="a.safetensors")
    assert str(caught.value) == (
        "a.safetensors: these weights are of another model than the configuration and the "
        "vocabulary make: missing: 0.bias, 1.weight, 2.weight and 1 more; unexpected: top; "
        "of another shape: 0.weight [2, 3], not [2, 2]"
    )
