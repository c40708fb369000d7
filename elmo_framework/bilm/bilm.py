"""The bidirectional language model: a token encoder and context layers in two directions."""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.bilm.context_layers import ContextLayers
from elmo_framework.bilm.layer_output import LayerOutput, LayerState
from elmo_framework.bilm.token_encoder import TokenEncoder
from elmo_framework.config.registry import Registrable
from elmo_framework.config.resolve import filled
from elmo_framework.config.types import Lazy
from elmo_framework.data.characters import PADDING_ID
from elmo_framework.data.text import SubwordIndexer
from elmo_framework.model.part import parameters_by_layer
from elmo_framework.nn.eager import eager, refuse_export
from elmo_framework.nn.masking import moved_mask


@final
class BiLm(nn.Module, Registrable):
    """A biLM: h_0 = [x; x] and h_j = [forward_j; backward_j] for each word (section 3.1).

    Both directions read the same word vectors x and share nothing else. With context layers that
    read both sides of a word at once, h_0 = x and h_j is their output.

    Args:
        token_encoder: gives each word a vector without context.
        context_layers: read those vectors in each direction.

    Attributes:
        num_layers: the context layers of one direction, and the token encoder's.
        output_dim: the dimension of a layer, both directions together.
        description: the configuration, every default written out.
    """

    def __init__(
        self, *, token_encoder: Lazy[TokenEncoder], context_layers: Lazy[ContextLayers]
    ) -> None:
        super().__init__()
        self.token_encoder = token_encoder.build()
        self.context_layers = context_layers.build(input_dim=self.token_encoder.output_dim)
        words, context = self.token_encoder.output_dim, self.context_layers.output_dim
        if words != context:
            raise ValueError(
                f"the token encoder's vectors are {words} wide and each direction's context layers "
                f"{context}, but the layers of a biLM are equally wide: "
                "give both the same projection_dim"
            )
        self.num_layers = self.context_layers.num_layers + 1
        num_directions = 1 if self.context_layers.is_bidirectional else 2
        self.output_dim = num_directions * self.context_layers.output_dim
        self.description: dict[str, Any] = {
            "token_encoder": filled(token_encoder),
            "context_layers": filled(context_layers),
        }

    def layer_parameters(self) -> list[list[nn.Parameter]]:
        """Return the parameters of the token encoder, then those of each context layer."""
        words = list(self.token_encoder.parameters())
        return [words, *parameters_by_layer(self.context_layers)]

    __prepare_scriptable__ = refuse_export  # what torch.jit.script asks for

    @eager
    def forward(
        self, characters: Int[Tensor, "batch tokens characters"], state: LayerState | None = None
    ) -> LayerOutput:
        """Read sentences.

        Args:
            characters: the ids of `token_encoder.indexer`, without boundaries; a sentence's words
                come first, and one without words is padding as a whole.
            state: the last state of the same rows; zeros when None.
        """
        framed = with_boundaries(characters, self.token_encoder.indexer)
        mask = (framed != PADDING_ID).any(dim=2)
        return self.contextualize(self.encode(framed) * mask[:, :, None], mask, state)

    def contextualize(
        self,
        words: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        state: LayerState | None = None,
    ) -> LayerOutput:
        """Read word vectors, those of the boundaries among them.

        Args:
            words: vectors of `encode`, zero at padding.
            mask: true at words and boundaries; one on the CPU is not waited for.
            state: see `forward`.
        """
        on_device = moved_mask(mask, words.device)
        if self.context_layers.is_bidirectional:
            context = self.context_layers.read(words, mask, direction="forward").layers
            return LayerOutput(torch.cat([words[None], context]), on_device, {})
        layers, states = self.context_layers.read_both(words, mask, state or {})
        return LayerOutput(layers, on_device, states)

    def encode(
        self, characters: Int[Tensor, "batch tokens characters"]
    ) -> Float[Tensor, "batch tokens dim"]:
        """Give each word its vector without context; equal words are computed once."""
        distinct, places = torch.unique(characters.flatten(0, 1), dim=0, return_inverse=True)
        vectors = self.token_encoder(distinct)
        return functional.embedding(places.view(characters.shape[:2]), vectors)


def with_boundaries(
    characters: Int[Tensor, "batch tokens characters"], indexer: SubwordIndexer
) -> Int[Tensor, "batch tokens+2 characters"]:
    """Put `<S>` before each sentence and `</S>` right after its last word."""
    rows = torch.from_numpy(indexer.boundaries(characters.shape[2]))
    begin, end = rows.to(characters.device)
    lengths = (characters != PADDING_ID).any(dim=2).sum(dim=1)
    framed = functional.pad(characters, (0, 0, 1, 1), value=PADDING_ID)
    steps = torch.arange(framed.shape[1], device=characters.device)
    is_begin = (steps == 0) & (lengths > 0)[:, None]
    is_end = (steps == lengths[:, None] + 1) & (lengths > 0)[:, None]
    framed = torch.where(is_begin[:, :, None], begin, framed)
    return torch.where(is_end[:, :, None], end, framed)
