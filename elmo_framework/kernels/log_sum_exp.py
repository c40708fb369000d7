"""The normalizer of a softmax over many classes, whose logits are never in memory at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_framework.kernels.operators import operator
from elmo_framework.kernels.product import product, weight_gradient

_MAX_LOGITS = 1 << 28
"""Maximum number of logits in memory without Triton: 1 GiB of float32."""


def log_sum_exp(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor | None = None,
    ids: Tensor | None = None,
) -> Tensor:
    """Return `ln sum_k exp(w_k h + b_k)` in float32, over the classes k that are not the target.

    Args:
        inputs: "positions dim": h.
        weight: "classes dim": w, in the type of the inputs.
        bias: "classes": b, in float32.
        targets: "positions": the id of each position's target; None counts every class.
        ids: "classes": the ids of the classes.
    """
    result: Tensor
    if torch.is_grad_enabled():
        result = _LogSumExp.apply(inputs, weight, bias, targets, ids)  # type: ignore[no-untyped-call]
    else:
        result = _log_sum_exp(inputs, weight, bias, targets, ids)
    return result


class _LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor | None,
        ids: Tensor | None,
    ) -> Tensor:
        result: Tensor = _log_sum_exp(inputs, weight, bias, targets, ids)
        ctx.save_for_backward(inputs, weight, bias, targets, ids, result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors[:2]
        of_logits, of_bias = _of_logits(*ctx.saved_tensors, gradient.contiguous())
        of_inputs, of_weight = product(of_logits, weight.T), weight_gradient(of_logits, inputs)
        return of_inputs, of_weight, of_bias, None, None


def _plain_log_sum_exp(
    inputs: Tensor, weight: Tensor, bias: Tensor, targets: Tensor | None, ids: Tensor | None
) -> Tensor:
    size = max(1, _MAX_LOGITS // len(weight))
    parts = [slice(at, at + size) for at in range(0, len(inputs), size)]
    of_parts = [None if targets is None else targets[part] for part in parts]
    return torch.cat(
        [
            _logits(inputs[part], weight, bias, of_part, ids).logsumexp(1)
            for part, of_part in zip(parts, of_parts, strict=True)
        ]
    )


def _plain_of_logits(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor | None,
    ids: Tensor | None,
    sums: Tensor,
    gradient: Tensor,
) -> tuple[Tensor, Tensor]:
    logits = _logits(inputs, weight, bias, targets, ids)
    of_logits = logits.sub_(sums[:, None]).exp_().mul_(gradient[:, None])
    return of_logits.to(inputs.dtype), of_logits.sum(0)


def _logits(
    inputs: Tensor, weight: Tensor, bias: Tensor, targets: Tensor | None, ids: Tensor | None
) -> Tensor:
    logits = product(inputs, weight).to(bias.dtype).add_(bias)
    if targets is None or ids is None:
        return logits
    # Not minus infinity, whose difference from itself is not a number.
    return logits.masked_fill_(targets[:, None] == ids, torch.finfo(logits.dtype).min)


_KERNELS = "triton_tiles"
_log_sum_exp = operator(
    "log_sum_exp(Tensor inputs, Tensor weight, Tensor bias, Tensor? targets, Tensor? ids)"
    " -> Tensor",
    _plain_log_sum_exp,
    _KERNELS,
)
_of_logits = operator(
    "log_sum_exp_backward(Tensor inputs, Tensor weight, Tensor bias, Tensor? targets, Tensor? ids,"
    " Tensor sums, Tensor gradient) -> (Tensor, Tensor)",
    _plain_of_logits,
    _KERNELS,
)
