"""The family of poolers, which reduce a sequence to one vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Literal, TypeAlias, final

import torch
from annotated_types import Len
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import MAX_LAYERS, Dim, Local, Width, require_size
from elmo_framework.encoders.encoder import Inputs, Mask
from elmo_framework.model.part import Part
from elmo_framework.nn.attention import masked_softmax
from elmo_framework.nn.feedforward import Activation, activate
from elmo_framework.nn.masking import masked_max, masked_mean, masked_sum

Pooled: TypeAlias = Float[Tensor, "batch output_dim"]
ShortSequences: TypeAlias = Literal["pad", "zero"]


class Pooler(Part, Registrable, ABC):
    """Reduces a sequence to one vector; padding has no effect, an empty sequence gives zeros.

    A member takes `input_dim: Local[int]`, and may take `embedding_dim`, AllenNLP's key.

    Args:
        input_dim: dimension of the input vectors.
        embedding_dim: if set, must equal the dimension of the input.

    Attributes:
        output_dim: dimension of the output vector.
    """

    output_dim: int

    @abstractmethod
    def forward(self, inputs: Inputs, mask: Mask) -> Pooled:
        """Pool sequences."""


@final
@Pooler.register("max")
class MaxPooler(Pooler):
    """Takes the maximum of each dimension over a sequence."""

    def __init__(self, input_dim: Local[int]) -> None:
        super().__init__()
        self.output_dim = input_dim

    def forward(self, inputs: Inputs, mask: Mask) -> Pooled:
        return masked_max(inputs, mask)


@final
@Pooler.register("bag_of_embeddings")
class BagOfEmbeddingsPooler(Pooler):
    """Adds or averages the vectors of a sequence.

    Args:
        averaged: whether the sum is divided by the number of vectors.
    """

    def __init__(
        self, input_dim: Local[int], averaged: bool = False, embedding_dim: int | None = None
    ) -> None:
        super().__init__()
        require_size("embedding_dim", embedding_dim, inferred=input_dim)
        self.output_dim = input_dim
        self.averaged = averaged

    def forward(self, inputs: Inputs, mask: Mask) -> Pooled:
        return masked_mean(inputs, mask) if self.averaged else masked_sum(inputs, mask)


@final
@Pooler.register("concat_pooling")
class ConcatPooler(Pooler):
    """Concatenates the last vector, the maximum and the mean (Howard and Ruder 2018, 3.3)."""

    def __init__(self, input_dim: Local[int]) -> None:
        super().__init__()
        self.output_dim = 3 * input_dim

    def forward(self, inputs: Inputs, mask: Mask) -> Pooled:
        positions = torch.arange(mask.shape[1], device=mask.device)
        is_last = positions == mask.sum(dim=1, keepdim=True) - 1
        last = masked_sum(inputs, is_last)
        return torch.cat([last, masked_max(inputs, mask), masked_mean(inputs, mask)], dim=1)


@final
@Pooler.register("self_attentive")
class SelfAttentivePooler(Pooler):
    """Averages a sequence with self-attention: X^T softmax(X v) (McCann et al. 2017, 5.3)."""

    def __init__(self, input_dim: Local[int]) -> None:
        super().__init__()
        self.output_dim = input_dim
        # The softmax would cancel a bias.
        self.projection = nn.Linear(input_dim, 1, bias=False)

    def forward(self, inputs: Inputs, mask: Mask) -> Pooled:
        weights = masked_softmax(self.projection(inputs).squeeze(2), mask)
        cleared = inputs.masked_fill(~mask[:, :, None], 0)
        return torch.bmm(weights[:, None, :], cleared).squeeze(1)


@final
@Pooler.register("cnn")
class CnnPooler(Pooler):
    """Convolves filters of several widths over a sequence, then takes the maximum of each.

    Args:
        num_filters: number of filters of each width.
        ngram_filter_sizes: the widths of the filters, in words.
        conv_layer_activation: activation after the convolution.
        short_sequences: of a sequence shorter than a filter: `pad` pads it with zeros to the width
            of the filter; `zero` makes the result of the filter 0, as AllenNLP does.
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
        short_sequences: ShortSequences = "pad",
        embedding_dim: int | None = None,
    ) -> None:
        super().__init__()
        require_size("embedding_dim", embedding_dim, inferred=input_dim)
        self.min_windows = 1 if short_sequences == "pad" else 0
        self.activation: Activation = conv_layer_activation
        self.convolutions = nn.ModuleList(
            nn.Conv1d(input_dim, num_filters, kernel_size=width) for width in ngram_filter_sizes
        )
        convolved = num_filters * len(ngram_filter_sizes)
        self.output_dim = convolved if output_dim is None else output_dim
        self.projection = None if output_dim is None else nn.Linear(convolved, output_dim)

    def forward(self, inputs: Inputs, mask: Mask) -> Pooled:
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
        # Windows without padding count; with `pad` the first always does, if there is a vector.
        num_windows = (mask.sum(dim=1) - width + 1).clamp(min=self.min_windows) * mask.any(dim=1)
        windows = torch.arange(values.shape[1], device=mask.device)
        return masked_max(values, windows < num_windows[:, None])
