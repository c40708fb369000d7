"""Training of small models on one batch."""

from __future__ import annotations

from typing import Any

import torch

from elmo_framework.model.model import Model


def fit(model: Model[Any], batch: Any, *, lr: float, num_steps: int) -> None:
    """Train a model by Adam until it knows a batch.

    Args:
        model: in the mode that it is trained in.
        batch: of few examples.
        lr: the learning rate.
        num_steps: the largest number of updates.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(num_steps):
        optimizer.zero_grad()
        loss = model(batch).loss
        assert loss is not None
        if loss.item() < 0.1:
            return
        loss.backward()
        optimizer.step()
