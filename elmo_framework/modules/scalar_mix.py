"""The import path `allennlp.modules.scalar_mix`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor, nn

from elmo_framework.bilm import layer_mix


@final
class ScalarMix(nn.Module):
    """AllenNLP's form of the scalar mix: gamma sum_k s_k t_k of a list of tensors, s = softmax(w).

    The names of the weights are those of AllenNLP: `scalar_parameters.{k}` for w, and `gamma`.

    Args:
        mixture_size: the number of tensors.
        do_layer_norm: whether each tensor is normalized before, over all places of the mask.
        initial_scalar_parameters: w; zeros by default.
        trainable: whether w and gamma are trained.

    Raises:
        ValueError: there are not as many initial weights as tensors.
    """

    def __init__(
        self,
        mixture_size: int,
        do_layer_norm: bool = False,
        initial_scalar_parameters: Sequence[int | float] | None = None,
        trainable: bool = True,
    ) -> None:
        super().__init__()
        weights = [0.0] * mixture_size
        if initial_scalar_parameters is not None:
            weights = [float(weight) for weight in initial_scalar_parameters]
        mix = layer_mix.ScalarMix(num_layers=mixture_size, scalar_mix_parameters=weights)
        self.mixture_size, self.do_layer_norm = mixture_size, do_layer_norm
        self.scalar_parameters, self.gamma = mix.scalar_parameters, mix.gamma
        self.requires_grad_(trainable)

    def forward(self, tensors: Sequence[Tensor], mask: Tensor | None = None) -> Tensor:
        """Mix tensors.

        Args:
            tensors: of the same shape "... dim".
            mask: "...", true at words; needed for `do_layer_norm` and ignored otherwise.

        Raises:
            ValueError: another number of tensors, or no mask where one is needed.
        """
        if len(tensors) != self.mixture_size:
            raise ValueError(f"{len(tensors)} tensors for a mix of {self.mixture_size}")
        shape = tensors[0].shape
        layers = torch.stack([tensor.reshape(1, -1, shape[-1]) for tensor in tensors])
        if self.do_layer_norm:
            if mask is None:
                raise ValueError("do_layer_norm needs a mask")
            layers = layer_mix.normalize_layers(layers, mask.reshape(1, -1).bool())
        weights = torch.cat(list(self.scalar_parameters))
        return layer_mix.mix_layers(layers, weights, self.gamma).view(shape)
