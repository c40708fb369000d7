"""The thread that computes: it gathers what waits and computes it in batches."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol, TypeAlias, final


class Service(Protocol):
    """Computes a result for each input, on the thread of a `Worker`."""

    @property
    def cost(self) -> int:
        """The number of inputs that one counts for among those that wait."""

    def read(self, values: Sequence[Any]) -> Sequence[Any]:
        """Make inputs of the values of one request; an error concerns this request alone."""

    def compute(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return a result for each input of one or more requests."""


Observer: TypeAlias = Callable[[int, float], None]
"""Called with the number of inputs of each batch and its seconds."""


class OverloadedError(Exception):
    """More inputs wait than the worker accepts."""


class StoppingError(Exception):
    """The worker accepts nothing more."""


@dataclass(eq=False)
class _Job:
    service: Service
    values: Sequence[Any]
    future: Future[Sequence[Any]] = field(default_factory=Future)
    inputs: Sequence[Any] = ()

    @property
    def cost(self) -> int:
        return len(self.values) * self.service.cost


@final
class Worker:
    """Computes on one thread, so that models need not be safe for several.

    Requests that arrive while it computes, for the same service, are the next batch; an idle worker
    starts at once, without waiting for others to join. If a batch fails, each of its requests is
    computed again alone: only those that fail alone get the error.

    Args:
        batch_size: number of inputs after which a batch is complete; a request is never divided.
        max_waiting: number of inputs that may wait; one request may always wait alone.
        observe: called after each batch.
    """

    def __init__(
        self,
        *,
        batch_size: int,
        max_waiting: int,
        observe: Observer = lambda num_inputs, seconds: None,
    ) -> None:
        self._batch_size, self._max_waiting, self._observe = batch_size, max_waiting, observe
        self._jobs = deque[_Job]()
        self._num_waiting = 0
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="worker", daemon=True)
        self._thread.start()

    @property
    def num_waiting(self) -> int:
        """The number of inputs that wait."""
        return self._num_waiting

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def submit(self, service: Service, values: Sequence[Any]) -> Future[Sequence[Any]]:
        """Let the thread compute the results of values.

        Raises:
            OverloadedError: too many inputs wait.
            StoppingError: the worker was closed.
        """
        job = _Job(service, values)
        with self._changed:
            if self._is_closed:
                raise StoppingError
            if self._num_waiting and self._num_waiting + job.cost > self._max_waiting:
                raise OverloadedError
            self._jobs.append(job)
            self._num_waiting += job.cost
            self._changed.notify()
        return job.future

    def close(self, *, timeout: float | None = None) -> None:
        """Compute what waits, accept nothing more, and end the thread.

        Args:
            timeout: seconds to wait for that; the thread ends with the process in any case.
        """
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(timeout)

    def _work(self) -> None:
        while jobs := self._next():
            ready = [job for job in jobs if self._is_read(job)]
            if ready:
                self._compute(ready)

    def _next(self) -> list[_Job]:
        """Return the first job with others of its service; none when the worker is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._is_closed)
            jobs, num_inputs = list[_Job](), 0
            for job in list(self._jobs):
                is_small = not jobs or num_inputs + job.cost <= self._batch_size
                if is_small and (not jobs or job.service is jobs[0].service):
                    self._jobs.remove(job)
                    jobs.append(job)
                    num_inputs += job.cost
            self._num_waiting -= num_inputs
            return jobs

    def _is_read(self, job: _Job) -> bool:
        if not job.future.set_running_or_notify_cancel():
            return False
        try:
            job.inputs = job.service.read(job.values)
        except Exception as error:  # noqa: BLE001 - raised again by the future
            job.future.set_exception(error)
            return False
        return True

    def _compute(self, jobs: Sequence[_Job]) -> None:
        since = time.monotonic()
        inputs = list(chain.from_iterable(job.inputs for job in jobs))
        try:
            results = jobs[0].service.compute(inputs)
        except Exception as error:  # noqa: BLE001 - raised again by the future
            if len(jobs) == 1:
                jobs[0].future.set_exception(error)
                return
            for job in jobs:
                self._compute([job])
            return
        self._observe(len(inputs), time.monotonic() - since)
        end = 0
        for job in jobs:
            start, end = end, end + len(job.inputs)
            job.future.set_result(results[start:end])
