"""Counters and times of the server, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from elmo_framework.io.extras import import_extra

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


@final
class ServerMetrics:
    """Counters and histograms of one server.

    Args:
        num_waiting: returns the number of inputs that wait.
    """

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, num_waiting: Callable[[], int]) -> None:
        library = import_extra("prometheus_client", "serve")
        registry = library.CollectorRegistry()
        self._text: Callable[[], bytes] = lambda: library.generate_latest(registry)
        self._requests = library.Counter(
            "elmo_requests", "Requests answered.", ["path", "status"], registry=registry
        )
        self._seconds = library.Histogram(
            "elmo_request_seconds",
            "Time to answer a request.",
            ["path"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._batches = library.Histogram(
            "elmo_batch_inputs", "Inputs computed together.", buckets=_SIZES, registry=registry
        )
        self._computing = library.Counter(
            "elmo_computing_seconds", "Time in which models computed.", registry=registry
        )
        waiting = library.Gauge("elmo_waiting_inputs", "Inputs that wait.", registry=registry)
        waiting.set_function(num_waiting)

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request; `path` is one of few, as each makes a series."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def count_batch(self, num_inputs: int, seconds: float) -> None:
        self._batches.observe(num_inputs)
        self._computing.inc(seconds)

    def text(self) -> bytes:
        return self._text()
