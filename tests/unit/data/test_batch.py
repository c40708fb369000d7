from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from elmo_framework.data.batch import StaticBatch, grouped, pinned, to_device


class Pair(NamedTuple):
    first: Tensor
    second: str


@dataclass(frozen=True)
class Held:
    tensor: Tensor
    named: dict[str, Tensor]
    pair: Pair
    several: tuple[Tensor, ...]
    words: tuple[str, ...]


def test_only_tensors_are_moved_to_the_device():
    one = torch.ones(2)
    held = Held(one, {"a": one}, Pair(one, "b"), (one, one), ("c",))

    moved = to_device(held, torch.device("meta"))

    tensors = [moved.tensor, moved.named["a"], moved.pair.first, *moved.several]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert (moved.pair.second, type(moved.pair)) == ("b", Pair)
    assert moved.words is held.words


@dataclass(frozen=True)
class Static(StaticBatch):
    parts: tuple[Tensor, ...]
    numbers: Tensor | None = None
    form: Hashable = None

    def packed(self) -> Static:
        return replace(self, numbers=torch.cat(self.parts))

    def unpacked(self, numbers: Tensor) -> Static:
        return replace(self, parts=tuple(numbers.split(1)), numbers=numbers)


@pytest.fixture
def in_pinned_memory(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Collect what is copied to pinned memory, for which PyTorch needs a GPU."""
    copies: list[Tensor] = []

    def copied(tensor: Tensor) -> Tensor:
        copies.append(tensor.clone())
        return copies[-1]

    monkeypatch.setattr(Tensor, "pin_memory", copied)
    return copies


def test_a_static_batch_is_pinned_as_one_tensor(in_pinned_memory: list[Tensor]) -> None:
    batch = pinned(Static((torch.tensor([1]), torch.tensor([2]))))

    (numbers,) = in_pinned_memory
    assert batch.numbers is numbers
    moved = to_device(batch, torch.device("meta"))
    assert {part.device.type for part in moved.parts} == {"meta"}


def test_all_tensors_of_another_batch_are_pinned(in_pinned_memory: list[Tensor]) -> None:
    one = torch.ones(2)
    batch = pinned(Held(one, {"a": one}, Pair(one, "b"), (one, one), ("c",)))

    tensors = [batch.tensor, batch.named["a"], batch.pair.first, *batch.several]
    assert list(map(id, tensors)) == list(map(id, in_pinned_memory))


def test_the_last_group_may_be_shorter() -> None:
    assert list(grouped(range(5), 2)) == [[0, 1], [2, 3], [4]]
