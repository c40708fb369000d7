"""Gradual unfreezing and discriminative rates of encoders that are trained further."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated, Any

import torch
from annotated_types import Gt, Le
from torch import Tensor, nn

from elmo_framework.config.types import CountOrZero
from elmo_framework.model.model import Model
from elmo_framework.training.optimizer import Optimizer


@dataclass(frozen=True)
class Unfreezing:
    """How the layers of pretrained encoders are trained further (Howard and Ruder 2018).

    The head is always trained, with the rate of the optimizer. In pretraining it is the softmax.

    Attributes:
        epochs_per_layer: gradual unfreezing: the head alone is trained for so many epochs, then the
            top layer too, and so on downwards; 0 trains all layers from the start.
        layer_decay: discriminative rates: the top layer has the rate of the head times this, each
            layer below that of the one above times this. Howard and Ruder divide by 2.6.
    """

    epochs_per_layer: CountOrZero = 1
    layer_decay: Annotated[float, Gt(0), Le(1)] = 1 / 2.6

    def num_trained(self, epoch: int, num_groups: int) -> int:
        """Return how many groups of `grouped_optimizer` are trained in an epoch, from 0."""
        if not self.epochs_per_layer:
            return num_groups
        return min(num_groups, 1 + epoch // self.epochs_per_layer)


def unfreezing_problem(model: Model[Any], trained: Collection[nn.Parameter]) -> str | None:
    """Describe why `trainer.unfreezing` has no effect on a model; None if it has one.

    Args:
        model: has the encoders, frozen or trained.
        trained: its trained parameters.
    """
    if _trained_layers(model, trained):
        return None
    if model.encoder_layers():
        return (
            "has no effect, because trainer.no_grad freezes all layers of all encoders; remove one "
            "of the two"
        )
    return (
        "has no effect, because no encoder is trained with the task; set requires_grad "
        "(elmo_token_embedder) or train_parameters (pretrained_transformer_mismatched) to true, or "
        "remove it"
    )


def grouped_optimizer(
    optimizer: Optimizer,
    model: Model[Any],
    trained: Sequence[nn.Parameter],
    unfreezing: Unfreezing | None,
) -> torch.optim.Optimizer:
    """Create an optimizer whose groups are the head, then the layers of encoders, top first.

    Layers of several encoders are counted from the top of each.

    Args:
        optimizer: creates it.
        model: has the encoders.
        trained: its trained parameters.
        unfreezing: the rates of the layers; None for one group.
    """
    if unfreezing is None:
        return optimizer.create(trained)
    layers = _trained_layers(model, trained)
    in_layers = {id(parameter) for layer in layers for parameter in layer}
    head = [parameter for parameter in trained if id(parameter) not in in_layers]
    created = optimizer.create([{"params": group} for group in (head, *layers)])
    for depth, group in enumerate(created.param_groups):
        group["lr"] *= unfreezing.layer_decay**depth
    return created


def _trained_layers(model: Model[Any], trained: Iterable[nn.Parameter]) -> list[list[Tensor]]:
    """Return the trained parameters of encoders by layer, the top layers of all encoders first."""
    trained_ids = {id(parameter) for parameter in trained}
    tops_first = (reversed(encoder) for encoder in model.encoder_layers())
    layers = [
        [parameter for layer in same for parameter in layer if id(parameter) in trained_ids]
        for same in zip_longest(*tops_first, fillvalue=())
    ]
    return [layer for layer in layers if layer]


def freeze_lower_groups(
    optimizer: torch.optim.Optimizer, unfreezing: Unfreezing | None, epoch: int
) -> None:
    """Drop the gradients of the layers that are not trained yet, so that no update changes them."""
    if unfreezing is None:
        return
    groups = optimizer.param_groups
    for group in groups[unfreezing.num_trained(epoch, len(groups)) :]:
        for parameter in group["params"]:
            parameter.grad = None  # optimizers skip such parameters
