from collections.abc import Callable

import pytest
import torch
from smoke import Case, is_faster
from torch import Tensor

from elmo_framework.kernels.backend import uses_cpu_code

CPU = torch.device("cpu")


def work(clock: list[float], seconds: float, result: float) -> Callable[[], Tensor]:
    def run() -> Tensor:
        clock[0] += seconds
        return torch.tensor([1.0, result])

    return run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    return clock


@pytest.mark.parametrize(
    ("fast", "result", "passes"), [(1, 0.5, True), (4, 0.5, False), (1, 0.51, False)]
)
def test_a_case_passes_if_it_is_faster_and_equal(
    clock: list[float], fast: float, result: float, passes: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case("work", work(clock, fast, result), work(clock, 2, 0.5), 1e-3)
    assert is_faster(case, 3) is passes
    assert f"| work | {1000 * fast:.2f} | 2000.00 | {2 / fast:.2f} |" in capsys.readouterr().out


def test_only_the_plain_path_is_without_compiled_code() -> None:
    def seen(log: list[bool]) -> Callable[[], Tensor]:
        def run() -> Tensor:
            log.append(uses_cpu_code(CPU))
            return torch.ones(1)

        return run

    fast: list[bool] = []
    plain: list[bool] = []
    is_faster(Case("work", seen(fast), seen(plain), 0.0), 1)
    assert set(fast) == {True}
    assert set(plain) == {False}
