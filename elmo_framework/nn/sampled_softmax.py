"""Softmax over a large vocabulary: sampled in training, full in evaluation."""

from __future__ import annotations

from functools import partial
from math import log
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from elmo_framework.kernels.backend import autocast_dtype, uses_cpu_code
from elmo_framework.kernels.log_sum_exp import log_sum_exp
from elmo_framework.kernels.product import training_product, weight_gradient
from elmo_framework.nn.part import TensorPart

_MAX_LOGITS, _MAX_LOGITS_OF_ACCELERATORS = 1 << 26, 1 << 28
"""Maximum numbers of logits of the full softmax in memory: 256 MiB and 1 GiB of float32.

Each block of positions reads all weights, which takes most of the time on an accelerator."""


def log_uniform(num_classes: int) -> Float[Tensor, " classes"]:
    """Return `P(k) = ln((k + 2) / (k + 1)) / ln(V + 1)`, Zipf's law for classes by frequency."""
    # Not with PyTorch: on the device `meta` it imports its compiler for this.
    ranks = np.arange(1, num_classes + 1)
    return torch.tensor(np.log1p(1 / ranks) / log(num_classes + 1), dtype=torch.float32)


def draw_candidates(
    probabilities: Float[Tensor, " classes"], num_samples: int
) -> tuple[Int[Tensor, " samples"], Float[Tensor, ""]]:
    """Draw classes with replacement until `num_samples` are distinct.

    This needs no rejection. Let draws happen at random times, one per second on average. The
    draws of class k are then a Poisson process of rate P(k), independent of the other classes:
    its first draw has an exponentially distributed time, and the number of repeated draws until
    the last class is complete has a Poisson distribution. So the classes and the number of draws
    have exactly the distribution of sequential draws, reading the classes once.

    Returns:
        The distinct classes, and the number of draws with replacement until so many were distinct.
    """
    moments = torch.empty_like(probabilities).exponential_() / probabilities
    first, ids = moments.topk(num_samples, largest=False)
    repeats = torch.poisson((probabilities[ids] * (first[-1] - first)).sum())
    return ids, num_samples + repeats


def log_expected_count(
    probabilities: Float[Tensor, "*shape"], num_draws: Float[Tensor, ""], num_samples: int
) -> Float[Tensor, "*shape"]:
    """Return `ln Q`, `Q = 1 - (1 - P)^T`: the expected count of a class in T draws.

    Without repeated draws, `Q = P T`, as in TensorFlow.
    """
    without_repeats = probabilities * num_draws
    counts = -torch.expm1(num_draws * torch.log1p(-probabilities))
    return torch.where(num_draws == num_samples, without_repeats, counts).log()


class SampledSoftmax(TensorPart):
    """The negative log-likelihood of classes under `softmax(W h + b)`.

    In training the normalization runs over the true class and candidates drawn from a
    log-uniform distribution, each logit less the logarithm of its expected count (Jean et al.
    2015, TensorFlow's `sampled_softmax_loss`); in evaluation it runs over all classes. Classes
    must come by falling frequency.

    Args:
        input_dim: dimension of `h`.
        num_classes: number of classes.
        num_samples: number of candidates; None, or at least `num_classes`, means the full softmax
            in training too.

    Attributes:
        has_sparse_gradients: whether the gradient of W is sparse, with the sampled rows only.
    """

    probabilities: Tensor

    def __init__(self, input_dim: int, num_classes: int, num_samples: int | None) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.num_samples = num_samples if num_samples and num_samples < num_classes else None
        self.weight = nn.Parameter(torch.empty(num_classes, input_dim))
        self.bias = nn.Parameter(torch.zeros(num_classes))
        nn.init.normal_(self.weight, std=input_dim**-0.5)
        self.register_buffer("probabilities", log_uniform(num_classes), persistent=False)

    @property
    def is_sampling(self) -> bool:
        """Whether `forward` returns the sampled loss, which is not a likelihood."""
        return self.training and self.num_samples is not None

    def forward(
        self,
        inputs: Float[Tensor, "groups positions dim"],
        targets: Int[Tensor, "groups positions"],
    ) -> Float[Tensor, "groups positions"]:
        """Return the loss at each position; in training each group has its own candidates."""
        if self.training and self.num_samples is not None:
            return self._sampled(inputs, targets, self.num_samples)
        return self._full(inputs.flatten(0, 1), targets.flatten()).view_as(targets)

    def _sampled(
        self,
        inputs: Float[Tensor, "groups positions dim"],
        targets: Int[Tensor, "groups positions"],
        num_samples: int,
    ) -> Float[Tensor, "groups positions"]:
        drawn = [draw_candidates(self.probabilities, num_samples) for _ in range(len(targets))]
        ids = torch.stack([classes for classes, _ in drawn])
        rows_of_groups = torch.cat([targets, ids], 1)
        expected = torch.stack(
            [
                log_expected_count(self.probabilities[classes], num_draws, num_samples)
                for classes, (_, num_draws) in zip(rows_of_groups, drawn, strict=True)
            ]
        )
        # One gather for all rows, so that the backward pass fills one gradient of W's size.
        weight = F.embedding(rows_of_groups, self.weight, sparse=self.has_sparse_gradients)
        bias = F.embedding(rows_of_groups, self.bias[:, None]).squeeze(2)
        bias = bias - expected
        num_positions = targets.shape[1]
        true = _wide((inputs * weight[:, :num_positions]).sum(2)) + bias[:, :num_positions]
        rows = weight[:, num_positions:], bias[:, num_positions:]
        others = [_normalizer(*group) for group in zip(inputs, *rows, targets, ids, strict=True)]
        return torch.logaddexp(true, torch.stack(others)) - true

    def _full(
        self, inputs: Float[Tensor, "positions dim"], targets: Int[Tensor, " positions"]
    ) -> Float[Tensor, " positions"]:
        """Compute as many positions at a time as fit into memory, in the backward pass too."""
        if not (uses_cpu_code(inputs) or torch.is_grad_enabled()):
            return self._in_tiles(inputs, targets)
        max_logits = _MAX_LOGITS if uses_cpu_code(inputs) else _MAX_LOGITS_OF_ACCELERATORS
        size = max(1, max_logits // self.num_classes)
        if len(targets) <= size:
            return self._whole(inputs, targets)
        losses = partial(checkpoint, self._whole, use_reentrant=False, preserve_rng_state=False)
        starts = range(0, len(targets), size)
        return torch.cat([losses(inputs[at : at + size], targets[at : at + size]) for at in starts])

    def _in_tiles(
        self, inputs: Float[Tensor, "positions dim"], targets: Int[Tensor, " positions"]
    ) -> Float[Tensor, " positions"]:
        """Compute all positions at once, as their logits are never in memory together."""
        narrow = autocast_dtype(inputs) or inputs.dtype
        inputs, weight = inputs.to(narrow), self.weight.to(narrow)
        true = (_wide(inputs) * _wide(weight[targets])).sum(1) + self.bias[targets]
        return log_sum_exp(inputs, weight, self.bias) - true

    def _whole(
        self, inputs: Float[Tensor, "positions dim"], targets: Int[Tensor, " positions"]
    ) -> Float[Tensor, " positions"]:
        logits = _wide(F.linear(inputs, self.weight, self.bias))
        return logits.logsumexp(1) - logits.gather(1, targets[:, None]).squeeze(1)


def _normalizer(
    inputs: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, ids: Tensor
) -> Tensor:
    """Return `ln sum_k exp(w_k h + b_k)` over the candidates k that are not the target of h."""
    if uses_cpu_code(inputs):
        result: Tensor = _LogSumExp.apply(  # type: ignore[no-untyped-call]
            inputs, weight, bias, targets, ids
        )
        return result
    if narrow := autocast_dtype(inputs):
        inputs, weight = inputs.to(narrow), weight.to(narrow)
    return log_sum_exp(inputs, weight, bias, targets, ids)


class _LogSumExp(torch.autograd.Function):
    """`_normalizer` on the CPU.

    The logits are large; only their exponentials are saved for the backward pass.
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, ids: Tensor
    ) -> Tensor:
        is_narrow = autocast_dtype(inputs) == torch.bfloat16
        ctx.precision = "bfloat16" if is_narrow else "float32"
        logits = _wide(training_product(inputs, weight, bias, precision=ctx.precision))
        _ignore_hits(logits, targets, ids)
        largest = logits.amax(dim=1, keepdim=True)
        sums = logits.sub_(largest).exp_().sum(dim=1, keepdim=True)
        ctx.save_for_backward(inputs, weight, logits, sums)
        return (sums.log() + largest).squeeze(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight, exponentials, sums = ctx.saved_tensors
        # The gradient of the logits is their exponentials times a factor for each position. Scaling
        # the inputs instead saves a pass over the logits.
        factors = gradient[:, None] / sums
        of_inputs = training_product(exponentials, weight.T, precision=ctx.precision)
        of_weight = weight_gradient(exponentials, inputs * factors, ctx.precision)
        of_bias = factors.squeeze(1) @ exponentials
        return of_inputs.mul_(factors), of_weight, of_bias, None, None


def _ignore_hits(logits: Tensor, targets: Tensor, ids: Tensor) -> None:
    """Mask each position's target among its candidates, which are distinct."""
    order = ids.argsort()
    places = torch.searchsorted(ids[order], targets).clamp_(max=len(ids) - 1)
    candidates = order[places]
    is_hit = (ids[candidates] == targets)[:, None]
    unmasked = logits.gather(1, candidates[:, None])
    lowest = torch.finfo(logits.dtype).min
    logits.scatter_(1, candidates[:, None], unmasked.masked_fill(is_hit, lowest))


def _wide(logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Convert logits to at least float32, whatever the precision of the product."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
