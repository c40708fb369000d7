"""A limit to what a model may hold, so that one too large is refused before it is built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from elmo_framework.console import plural

_MOST_TENSORS = 5000
"""More than ten times what the largest model of the papers has; they take about a second."""

_MOST_NUMBERS = 2**40
"""4 TB in float32."""


@contextmanager
def size_budget() -> Iterator[None]:
    """Refuse a model of more parameters than any machine holds, or that takes minutes to build.

    Raises:
        ValueError: in the constructor that goes beyond the limit, which a config path is added to.
    """
    num_tensors = num_numbers = 0

    def count(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal num_tensors, num_numbers
        if parameter is None or isinstance(parameter, nn.UninitializedParameter):
            return
        num_tensors, num_numbers = num_tensors + 1, num_numbers + parameter.numel()
        if num_tensors > _MOST_TENSORS:
            raise ValueError(f"the model has more than {plural(_MOST_TENSORS, 'weight tensor')}")
        if num_numbers > _MOST_NUMBERS:
            raise ValueError(f"the model has more than {plural(_MOST_NUMBERS, 'parameter')}")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()
