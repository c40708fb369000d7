"""Batches of any task: their interface, and moving them to a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import islice
from typing import Any, Protocol, Self, TypeVar, cast

import torch
from torch import Tensor

BatchT = TypeVar("BatchT")
ItemT = TypeVar("ItemT")


class StaticBatch(ABC):
    """A batch that one copy moves to an accelerator, so that an update with it can be recorded.

    Attributes:
        numbers: on an accelerator, what all tensors of the batch are made of; None on the CPU.
    """

    __slots__ = ()
    numbers: Tensor | None

    @abstractmethod
    def to(self, device: torch.device) -> Self:
        """Return the batch on a device."""

    @abstractmethod
    def unpacked(self, numbers: Tensor) -> Self:
        """Return the batch of other `numbers`, of the same form."""

    @property
    @abstractmethod
    def form(self) -> Hashable | None:
        """Equal for batches with which an update launches the same operations; None if unknown."""


def to_device(batch: BatchT, device: torch.device) -> BatchT:
    """Return the batch on a device: tensors in dataclasses, mappings and tuples of tensors.

    A `StaticBatch` moves itself.
    """
    return cast(BatchT, _moved(batch, device))


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, StaticBatch):
        return value.to(device)
    if is_dataclass(value) and not isinstance(value, type):
        items = {field.name: getattr(value, field.name) for field in fields(value)}
        moved = {name: _moved(item, device) for name, item in items.items()}
        changed = {name: item for name, item in moved.items() if item is not items[name]}
        return replace(value, **changed) if changed else value
    if isinstance(value, Mapping):
        return {key: _moved(item, device) for key, item in value.items()}
    if isinstance(value, tuple) and any(isinstance(item, Tensor) for item in value):
        make = getattr(value, "_make", tuple)
        return make(_moved(item, device) for item in value)
    return value


class Batch(Protocol):
    """The interface of a batch that the trainer uses."""

    @property
    def num_tokens(self) -> int:
        """The number of words, without padding."""

    @property
    def title(self) -> str:
        """The name of this batch in messages."""


def grouped(items: Iterable[ItemT], size: int) -> Iterator[list[ItemT]]:
    """Yield the items in lists of `size`; the last list may be shorter."""
    remaining = iter(items)
    while group := list(islice(remaining, size)):
        yield group
