from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from elmo_framework.errors import DataError, RunError
from elmo_framework.io import files
from elmo_framework.model.weights import converted, load_tensors, load_weights, save_tensors


def test_tensors_are_read_as_they_were_written(tmp_path: Path) -> None:
    tensors = {
        "transposed": torch.arange(6.0).view(2, 3).T,
        "whole": torch.arange(3),
        "half": torch.ones(2, dtype=torch.bfloat16, requires_grad=True),
        "none": torch.empty(0, 4),
    }
    save_tensors(tensors, tmp_path / "a.safetensors")
    found = load_tensors(tmp_path / "a.safetensors")
    assert found.keys() == load_file(tmp_path / "a.safetensors").keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor), name


def test_tied_weights_are_each_written_whole(tmp_path: Path) -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    tied = nn.ModuleDict({"first": first, "second": second})
    parts = {"row": first.weight[0], "rest": first.weight[1:]}
    save_tensors({**tied.state_dict(), **parts}, tmp_path / "a.safetensors")
    found = load_tensors(tmp_path / "a.safetensors")
    assert torch.equal(found["second.weight"], found["first.weight"])
    assert torch.equal(found["row"], found["first.weight"][0])
    assert torch.equal(found["rest"], found["first.weight"][1:])


def test_overflow_of_the_data_type_is_refused(tmp_path: Path) -> None:
    path, infinite = tmp_path / "a.safetensors", torch.tensor([1.1, float("inf")])
    found = converted({"a": infinite}, torch.float16, path=path)
    assert torch.equal(found["a"], infinite.half())
    with pytest.raises(DataError) as caught:
        converted({"a": infinite, "b": torch.tensor([1e6])}, torch.float16, path=path)
    assert str(caught.value) == f"{path}: tensor 'b' holds numbers that torch.float16 cannot hold"


@pytest.mark.parametrize("content", [None, b"", b"damaged", b"whole file, but for its end"])
def test_a_file_that_cannot_be_read_is_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    if content is not None:
        save_file({"a": torch.zeros(8)}, path)
        path.write_bytes(path.read_bytes()[:-1] if content.startswith(b"whole") else content)
    with pytest.raises(DataError, match=f"{path}: no tensors can be read: "):
        load_tensors(path)


def test_full_disk_keeps_the_previous_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.safetensors"
    save_tensors({"a": torch.zeros(8)}, path)

    def full(place: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_synchronize", full)
    with pytest.raises(OSError, match="No space left on device"):
        save_tensors({"a": torch.ones(8)}, path)
    assert torch.equal(load_tensors(path)["a"], torch.zeros(8))
    assert list(tmp_path.iterdir()) == [path]


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
