"""Adagrad's update of parameters on accelerators: one pass over each, whatever PyTorch's version.

PyTorch's own fused Adagrad runs on GPUs only in its latest versions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from elmo_framework.kernels.operators import operator


def update(
    parameters: list[Tensor],
    gradients: list[Tensor],
    squares: list[Tensor],
    *,
    rate: Tensor,
    scale: Tensor | None,
    eps: float,
    weight_decay: float,
) -> None:
    """Compute `a += g^2; w -= rate * g / (sqrt(a) + eps)` for some parameters, in place.

    Args:
        parameters: w.
        gradients: g, before it is divided by `scale` and the decay is added.
        squares: a.
        rate: "": learning rate; on the device, so that a recorded update can change it.
        scale: "": divides the gradients; None for 1.
        eps: added to the root.
        weight_decay: times w, added to g.
    """
    _update(parameters, gradients, squares, rate, scale, eps, weight_decay)


def _plain_update(
    parameters: list[Tensor],
    gradients: list[Tensor],
    squares: list[Tensor],
    rate: Tensor,
    scale: Tensor | None,
    eps: float,
    weight_decay: float,
) -> None:
    if scale is not None:
        gradients = [gradient / scale for gradient in gradients]
    if weight_decay:
        gradients = list(torch._foreach_add(gradients, parameters, alpha=weight_decay))
    torch._foreach_addcmul_(squares, gradients, gradients)
    roots = list(torch._foreach_sqrt(squares))
    torch._foreach_add_(roots, eps)
    changes = list(torch._foreach_div(gradients, roots))
    torch._foreach_sub_(parameters, [change * rate for change in changes])


_update = operator(
    "adagrad(Tensor(a!)[] parameters, Tensor[] gradients, Tensor(b!)[] squares, Tensor rate,"
    " Tensor? scale, float eps, float weight_decay) -> ()",
    _plain_update,
)
