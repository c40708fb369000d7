"""Batches made ahead of time by a thread, while the model computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, final

from elmo_framework.data.batch import BatchT
from elmo_framework.data.data_loader import BatchSource

_NUM_AHEAD = 2


@dataclass(frozen=True)
class _Position:
    """Where a source is after a batch."""

    num_batches: int
    num_tokens: int | None
    num_left: int
    state: Mapping[str, Any]

    @classmethod
    def of(cls, source: BatchSource[Any]) -> _Position:
        return cls(source.num_batches, source.num_tokens, source.num_left, source.state_dict())


@final
class PrefetchedSource(BatchSource[BatchT]):
    """The batches of a source, made by a thread before they are wanted.

    The position is that of the last batch that was delivered, not of the last that was made, so
    training resumes exactly.

    Args:
        source: makes batches without the global random generators.
        prepare: changes each batch in the thread, for example to copy it to pinned memory.
    """

    def __init__(
        self, source: BatchSource[BatchT], prepare: Callable[[BatchT], BatchT] = lambda batch: batch
    ) -> None:
        self._source, self._prepare = source, prepare
        self._position = _Position.of(source)
        self._is_ahead = False

    @property
    def num_batches(self) -> int:
        return self._position.num_batches

    @property
    def num_tokens(self) -> int | None:
        return self._position.num_tokens

    @property
    def num_left(self) -> int:
        return self._position.num_left

    def batches(self) -> Iterator[BatchT]:
        if self._is_ahead:
            self._source.load_state_dict(self._position.state)
        self._is_ahead = True
        made = self._made()
        with ThreadPoolExecutor(1, "batches") as thread:
            pending = deque(thread.submit(next, made, None) for _ in range(_NUM_AHEAD))
            while (item := pending.popleft().result()) is not None:
                pending.append(thread.submit(next, made, None))
                batch, self._position = item
                yield batch
        self._is_ahead = False

    def _made(self) -> Iterator[tuple[BatchT, _Position]]:
        for batch in self._source.batches():
            yield self._prepare(batch), _Position.of(self._source)

    def state_dict(self) -> dict[str, Any]:
        return dict(self._position.state)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._source.load_state_dict(state)
        self._position, self._is_ahead = _Position.of(self._source), False

    def load_state_of_others(self, state: Mapping[str, Any], num_processes: int) -> None:
        self._source.load_state_of_others(state, num_processes)
        self._position, self._is_ahead = _Position.of(self._source), False
