"""Which function computes an operator on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from elmo_framework.kernels import operators


@pytest.fixture(autouse=True)
def _no_answer_is_kept() -> Iterator[None]:
    operators.has_triton.cache_clear()
    yield
    operators.has_triton.cache_clear()


def plain() -> None:
    """Stand in for the plain function of an operator."""


def use_triton(monkeypatch: pytest.MonkeyPatch, *, error: Exception | None = None) -> object:
    """Pretend that Triton is installed; return what it pretends to have compiled."""

    def probe() -> None:
        if error is not None:
            raise error

    kernels = SimpleNamespace(probe=probe, example=lambda: None)
    monkeypatch.setattr(operators, "find_spec", lambda _: SimpleNamespace())
    monkeypatch.setattr(operators, "import_module", lambda _: kernels)
    return kernels.example


def test_kernels_are_those_of_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, tensors = use_triton(monkeypatch), (torch.ones(1), [torch.ones(1)], None, 0.1)
    assert operators.choose(plain, "kernels", "example", tensors) is kernel


@pytest.mark.parametrize("wide", [torch.ones(1).double(), [torch.ones(1).double()]])
def test_float64_is_computed_by_plain_functions(
    wide: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_triton(monkeypatch)
    assert operators.choose(plain, "kernels", "example", (torch.ones(1), wide)) is plain


def test_triton_that_cannot_compile_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    use_triton(monkeypatch, error=RuntimeError("Failed to find C compiler.\nmore"))
    for _ in range(2):
        assert operators.choose(plain, "kernels", "example", (torch.ones(1),)) is plain
    assert caplog.text.count("Triton cannot compile kernels here, which is slower: Failed to") == 1
    assert "more" not in caplog.text


def test_without_triton_functions_are_plain(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(operators, "find_spec", lambda name: find_spec("no such module"))
    assert operators.choose(plain, "kernels", "example", (torch.ones(1),)) is plain
    assert not caplog.records


def test_an_operator_without_a_kernel_for_its_arguments_is_plain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registered = dict[str, Any]()
    library = SimpleNamespace(
        define=lambda schema: None,
        impl=lambda name, function, key: registered.update({key: function}),
    )
    monkeypatch.setattr(operators, "_LIBRARY", library)
    monkeypatch.setattr(operators, "PLAIN", {})
    monkeypatch.setattr(operators, "choose", lambda *_: lambda number: "kernel")
    operators.operator(
        "window_maxima(int number) -> int", lambda number: "plain", has_kernel=lambda n: n < 3
    )
    assert [registered["CUDA"](number) for number in (2, 3)] == ["kernel", "plain"]
