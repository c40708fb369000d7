"""One update of the parameters: forward and backward passes, clipping and the optimizer's step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from elmo_framework.data.batch import to_device
from elmo_framework.errors import RunError
from elmo_framework.model.model import Model
from elmo_framework.training.evaluator import autocast
from elmo_framework.training.memory import memory_errors
from elmo_framework.training.moving_average import AveragedWeights
from elmo_framework.training.options import GradientDescent
from elmo_framework.training.process_group import ProcessGroup, local_gradients
from elmo_framework.training.sparse_gradients import (
    allow_sparse_gradients,
    clip_norm,
    clip_values,
)
from elmo_framework.training.state import TrainingState
from elmo_framework.training.unfreezing import freeze_lower_groups


class UpdateResult(NamedTuple):
    """The numbers of an update, on the device.

    Attributes:
        loss: mean over the batches.
        gradient_norm: before clipping.
        penalty: added to the loss of the last batch; None without one.
    """

    loss: Tensor
    gradient_norm: Tensor
    penalty: Tensor | None


class Update:
    """Updates the parameters of a model by the gradients of some batches.

    Constructing one is a collective operation: every rank must do it. It also enables sparse
    gradients in the model where they are faster.

    Args:
        options: the `trainer` block of the config.
        model: on its device already.
        optimizer: over the trained parameters.
        average: the moving average of the weights.
        group: the processes that train together.
        device: the device of the model.

    Attributes:
        averages_afterwards: whether gradients are averaged over the processes after the backward
            pass, not during it as DDP does.
    """

    def __init__(
        self,
        options: GradientDescent,
        model: Model[Any],
        optimizer: torch.optim.Optimizer,
        *,
        average: AveragedWeights,
        group: ProcessGroup,
        device: torch.device,
    ) -> None:
        self.options, self.model, self.optimizer = options, model, optimizer
        self.group, self.device = group, device
        self.averages_afterwards = False
        self._average = average
        allow_sparse_gradients(model, optimizer, is_alone=group.is_alone)
        self._trainable: nn.Module = group.trainable(model, reduce_dtype=options.reduce_dtype)
        self._parameters = [each for each in model.parameters() if each.requires_grad]

    def __call__(self, batches: Sequence[Any], progress: TrainingState) -> UpdateResult:
        """Update the parameters by the mean gradient of some batches.

        Args:
            batches: on any device.
            progress: before the update.
        """
        loss, penalty = self.backpropagate(batches, progress)
        if self.averages_afterwards:
            self.average(self.gradients())
        return UpdateResult(loss, self.apply_gradients(progress), penalty)

    def average_afterwards(self) -> None:
        """Average gradients after the backward pass from now on; all processes must call this.

        DDP keeps autograd's last nodes, and their stream, which is not the one that is recorded.
        """
        self.averages_afterwards, self._trainable = True, self.model
        self.group.release()

    def gradients(self) -> list[Tensor | None]:
        """Return the gradient of each parameter."""
        return [each.grad for each in self._parameters]

    def set_gradients(self, gradients: Sequence[Tensor | None]) -> None:
        """Set the gradient of each parameter; `gradients` returned them."""
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient

    def average(self, gradients: Sequence[Tensor | None]) -> None:
        """Average gradients over the processes, in place."""
        existing = [each for each in gradients if each is not None]
        self.group.average(existing, reduce_dtype=self.options.reduce_dtype)

    def apply_gradients(self, progress: TrainingState) -> Tensor:
        """Clip the gradients and update the parameters; return the norm before clipping."""
        freeze_lower_groups(self.optimizer, self.options.unfreezing, progress.epochs)
        gradient_norm = self._clip()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self._average.update()
        return gradient_norm

    def backpropagate(
        self, batches: Sequence[Any], progress: TrainingState
    ) -> tuple[Tensor, Tensor | None]:
        """Backpropagate the mean loss of some batches; return it and the penalty added to it.

        With `averages_afterwards`, gradients are those of this process.
        """
        losses, penalty = [], None
        for index, batch in enumerate(batches):
            is_last = index == len(batches) - 1
            with (
                nullcontext() if is_last else local_gradients(self._trainable),
                memory_errors(batch, step=progress.step + 1),
            ):
                loss, penalty = self._loss(to_device(batch, self.device)), self.model.penalty()
                total = loss if penalty is None else loss + penalty
                if not self.model.learns_without_gradients:
                    torch.autograd.backward(total / len(batches))
            losses.append(loss.detach())
        return torch.stack(losses).mean(), None if penalty is None else penalty.detach()

    def _loss(self, batch: Any) -> Tensor:
        with autocast(self.device, self.options.precision):
            loss: Tensor | None = self._trainable(batch).loss
        if loss is None:
            raise RunError("the training data has no labels, so the loss cannot be computed")
        return loss

    def _clip(self) -> Tensor:
        """Clip the gradients; return their norm before that."""
        largest, largest_value = self.options.grad_norm or math.inf, self.options.grad_clipping
        if largest_value is None:
            return clip_norm(self._parameters, largest, self.optimizer)
        gradient_norm = clip_norm(self._parameters, largest)
        clip_values(self._parameters, largest_value)
        return gradient_norm
