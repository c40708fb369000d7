"""The thread that computes: batches of several requests, and errors of one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from elmo_framework.serve.worker import OverloadedError, StoppingError, Worker


class Doubling:
    """Doubles numbers once it may; remembers what was computed together."""

    def __init__(self, cost: int = 1) -> None:
        self.cost = cost
        self.batches: list[list[int]] = []
        self.started, self.may_go_on = threading.Event(), threading.Event()
        self.may_go_on.set()

    def read(self, values: Sequence[str]) -> Sequence[int]:
        return [int(value) for value in values]

    def compute(self, inputs: Sequence[int]) -> Sequence[int]:
        self.started.set()
        assert self.may_go_on.wait(10)
        self.batches.append(list(inputs))
        if 13 in inputs:
            raise ArithmeticError("13")
        return [2 * number for number in inputs]


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker(batch_size=4, max_waiting=6)
    yield worker
    worker.close()


@pytest.fixture
def busy(worker: Worker) -> Iterator[Callable[[], Doubling]]:
    """A service that computes its first input until the returned function is called."""
    service = Doubling()
    service.may_go_on.clear()
    worker.submit(service, ["0"])
    assert service.started.wait(10)

    def release() -> Doubling:
        service.may_go_on.set()
        return service

    release.service = service  # type: ignore[attr-defined]
    yield release
    release()


def test_waiting_requests_are_computed_together(worker: Worker, busy) -> None:
    futures = [worker.submit(busy.service, values) for values in (["1", "2"], ["3"], ["4", "5"])]
    assert worker.num_waiting == 5
    service = busy()
    assert [future.result(10) for future in futures] == [[2, 4], [6], [8, 10]]
    assert service.batches == [[0], [1, 2, 3], [4, 5]]  # at most 4, no request divided
    assert worker.num_waiting == 0


def test_an_idle_worker_starts_at_once(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts: list[object] = []
    wait = threading.Condition.wait

    def noted(self: threading.Condition, timeout: float | None = None) -> bool:
        if threading.current_thread().name == "worker":
            timeouts.append(timeout)
        return wait(self, timeout)

    monkeypatch.setattr(threading.Condition, "wait", noted)
    assert worker.submit(Doubling(), ["1"]).result(10) == [2]
    assert not [timeout for timeout in timeouts if timeout is not None]


def test_only_the_request_that_fails_gets_the_error(worker: Worker, busy) -> None:
    good, bad, also_good = (worker.submit(busy.service, [each]) for each in ("1", "13", "2"))
    unreadable = worker.submit(busy.service, ["x"])
    busy()
    assert (good.result(10), also_good.result(10)) == ([2], [4])
    with pytest.raises(ArithmeticError):
        bad.result(10)
    with pytest.raises(ValueError, match="invalid literal"):
        unreadable.result(10)


def test_services_are_not_mixed(worker: Worker, busy) -> None:
    other = Doubling()
    futures = [worker.submit(each, ["1"]) for each in (busy.service, other, busy.service)]
    service = busy()
    assert [future.result(10) for future in futures] == [[2]] * 3
    assert (service.batches, other.batches) == ([[0], [1, 1]], [[1]])


def test_a_full_queue_refuses_and_recovers(worker: Worker, busy) -> None:
    waiting = worker.submit(busy.service, ["1"] * 6)
    with pytest.raises(OverloadedError):
        worker.submit(busy.service, ["1"])
    busy()
    waiting.result(10)
    assert worker.submit(Doubling(), ["7"]).result(10) == [14]


def test_costly_inputs_fill_the_queue_sooner(worker: Worker, busy) -> None:
    costly = Doubling(cost=5)
    waiting = [worker.submit(costly, ["1"]), worker.submit(busy.service, ["1"])]
    with pytest.raises(OverloadedError):
        worker.submit(busy.service, ["1"])
    busy()
    assert [future.result(10) for future in waiting] == [[2], [2]]
    assert worker.num_waiting == 0


def test_an_input_that_costs_more_than_may_wait_is_computed_alone(worker: Worker) -> None:
    assert worker.submit(Doubling(cost=50), ["1"]).result(10) == [2]


def test_a_request_larger_than_the_queue_is_computed_alone(worker: Worker) -> None:
    assert worker.submit(Doubling(), ["1"] * 7).result(10) == [2] * 7


def test_closing_waits_no_longer_than_its_timeout(worker: Worker, busy) -> None:
    worker.close(timeout=0.01)
    assert worker.is_alive
    with pytest.raises(StoppingError):
        worker.submit(busy.service, ["1"])


def test_closing_computes_what_waits_and_refuses_the_rest(worker: Worker, busy) -> None:
    waiting = [worker.submit(busy.service, [each]) for each in "12"]
    closing = threading.Thread(target=worker.close)
    closing.start()
    busy()
    closing.join(10)
    assert [future.result(0) for future in waiting] == [[2], [4]]
    assert not worker.is_alive
    with pytest.raises(StoppingError):
        worker.submit(busy.service, ["1"])


def test_a_cancelled_request_is_not_computed(worker: Worker, busy) -> None:
    assert worker.submit(busy.service, ["1"]).cancel()
    service = busy()
    worker.close()
    assert service.batches == [[0]]
