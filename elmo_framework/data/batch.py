"""Batches of any task: their interface, and moving them to a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import islice
from typing import Any, Protocol, Self, TypeVar, cast

import torch
from torch import Tensor

from elmo_framework.data.text import TextBatch
from elmo_framework.kernels.backend import uses_cpu_code

BatchT = TypeVar("BatchT")
ItemT = TypeVar("ItemT")


class StaticBatch(ABC):
    """A batch that one copy moves to an accelerator, so that an update with it can be recorded.

    Attributes:
        numbers: what all tensors of the batch are made of on an accelerator, before and after they
            are copied there; None for a batch of the CPU.
    """

    __slots__ = ()
    numbers: Tensor | None

    @abstractmethod
    def packed(self) -> Self:
        """Return the batch with its `numbers`, on the CPU."""

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
    if isinstance(value, StaticBatch):
        return _static(value, device)
    return _mapped(value, lambda tensor: tensor.to(device, non_blocking=True))


def _mapped(value: Any, function: Callable[[Any], Any], kind: type = Tensor) -> Any:
    """Apply a function to the objects of a kind in dataclasses, mappings and tuples."""
    if isinstance(value, kind):
        return function(value)
    if is_dataclass(value) and not isinstance(value, type):
        items = {field.name: getattr(value, field.name) for field in fields(value)}
        mapped = {name: _mapped(item, function, kind) for name, item in items.items()}
        changed = {name: item for name, item in mapped.items() if item is not items[name]}
        return replace(value, **changed) if changed else value
    if isinstance(value, Mapping):
        return {key: _mapped(item, function, kind) for key, item in value.items()}
    if isinstance(value, tuple) and any(isinstance(item, kind) for item in value):
        make = getattr(value, "_make", tuple)
        return make(_mapped(item, function, kind) for item in value)
    return value


def _static(batch: StaticBatch, device: torch.device) -> StaticBatch:
    if uses_cpu_code(device):
        return batch
    numbers = batch.numbers
    if numbers is None:
        numbers = batch.packed().numbers
        assert numbers is not None
    elif numbers.device == device:
        return batch
    return batch.unpacked(numbers.to(device, non_blocking=True))


def map_texts(batch: BatchT, function: Callable[[TextBatch], TextBatch]) -> BatchT:
    """Return a batch with a function applied to its texts."""
    return cast(BatchT, _mapped(batch, function, TextBatch))


def pinned(batch: BatchT) -> BatchT:
    """Return a batch in pinned memory, from which a GPU copies without waiting."""
    if isinstance(batch, StaticBatch):
        numbers = batch.packed().numbers
        assert numbers is not None
        return cast(BatchT, replace(cast(Any, batch), numbers=numbers.pin_memory()))
    return cast(BatchT, _mapped(batch, Tensor.pin_memory))


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
