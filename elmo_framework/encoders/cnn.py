"""Pooling by convolutions and a maximum over time."""

from __future__ import annotations

from typing import Annotated, final

import torch
from annotated_types import Len
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_framework.config.types import MAX_LAYERS, Dim, Local, Width, require_size
from elmo_framework.encoders.pooler import Pooler
from elmo_framework.nn.feedforward import Activation, activate
from elmo_framework.nn.masking import masked_max


@final
@Pooler.register("cnn")
class CnnPooler(Pooler):
    """Convolves filters of several widths over a sequence, then takes the maximum of each.

    A sequence shorter than a filter is padded with zeros to the filter's width.

    Args:
        num_filters: number of filters of each width.
        ngram_filter_sizes: the widths of the filters, in words.
        conv_layer_activation: activation after the convolution.
        output_dim: output dimension of a final linear layer; null for no such layer, so that
            the output has `num_filters` dimensions for each width.
    """

    def __init__(
        self,
        input_dim: Local[int],
        num_filters: Dim,
        ngram_filter_sizes: Annotated[tuple[Width, ...], Len(1, MAX_LAYERS)] = (2, 3, 4, 5),
        conv_layer_activation: Activation = "relu",
        output_dim: Dim | None = None,
        embedding_dim: int | None = None,
    ) -> None:
        super().__init__()
        require_size("embedding_dim", embedding_dim, inferred=input_dim)
        self.activation: Activation = conv_layer_activation
        self.convolutions = nn.ModuleList(
            nn.Conv1d(input_dim, num_filters, kernel_size=width) for width in ngram_filter_sizes
        )
        convolved = num_filters * len(ngram_filter_sizes)
        self.output_dim = convolved if output_dim is None else output_dim
        self.projection = None if output_dim is None else nn.Linear(convolved, output_dim)

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch output_dim"]:
        cleared = inputs * mask[:, :, None]
        pooled = [self._largest(cleared, mask, convolution) for convolution in self.convolutions]
        convolved = torch.cat(pooled, dim=1)
        if self.projection is None:
            return convolved
        projected: Tensor = self.projection(convolved)
        return projected * mask.any(dim=1, keepdim=True)

    def _largest(self, inputs: Tensor, mask: Tensor, convolution: nn.Module) -> Tensor:
        assert isinstance(convolution, nn.Conv1d)
        width = convolution.kernel_size[0]
        padded = F.pad(inputs.transpose(1, 2), (0, max(0, width - inputs.shape[1])))
        values = activate(convolution(padded), self.activation).transpose(1, 2)
        # Windows without padding count; the first one always does, if there is a vector.
        num_windows = (mask.sum(dim=1) - width + 1).clamp(min=1) * mask.any(dim=1)
        windows = torch.arange(values.shape[1], device=mask.device)
        return masked_max(values, windows < num_windows[:, None])
