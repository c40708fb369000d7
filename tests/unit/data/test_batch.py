from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from elmo_framework.data.batch import grouped, to_device


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


def test_the_last_group_may_be_shorter() -> None:
    assert list(grouped(range(5), 2)) == [[0, 1], [2, 3], [4]]
