"""What a user reads when a batch does not fit into the memory of the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from elmo_framework.errors import RunError, memory_problem

_ADVICE = (
    "lower data_loader.batch_size and raise trainer.num_gradient_accumulation_steps instead, set "
    "trainer.precision to auto, or shorten the rows: unroll_steps of a biLM, the longest examples"
)
_ADVICE_FOR_EVALUATIONS = (
    "lower validation_data_loader.batch_size, or set trainer.precision to auto"
)


@contextmanager
def memory_errors(batch: Any, *, step: int | None) -> Iterator[None]:
    """Name the batch and its size if the GPU has no memory for it.

    Args:
        batch: of training or of an evaluation.
        step: number of the update; None in an evaluation.

    Raises:
        RunError: it has none.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        moment = "evaluation" if step is None else f"step {step}"
        advice = _ADVICE_FOR_EVALUATIONS if step is None else _ADVICE
        raise RunError(
            f"{moment}, on a batch of {batch.num_tokens:,} tokens ({batch.title}): "
            f"{memory_problem(error)}; {advice}"
        ) from error
