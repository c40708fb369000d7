"""Base of the token embedders that mix the layers of a source."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.bilm.layer_mix import LayerMix
from elmo_framework.bilm.layer_output import LayerOutput, without_boundaries
from elmo_framework.data.text import TextBatch
from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.model.part import Reference, Sentences
from elmo_framework.nn.eager import eager, refuse_export


class LayerEmbedder(TokenEmbedder, ABC):
    """Mixes the layers of a source for the task: gamma sum_j s_j h_j for each word (section 3.2).

    The layers are mixed with the sentence's boundaries in place; then the boundaries go, and
    dropout and the projection follow.

    Attributes:
        source: of the layers.
        mix: of the layers; None where only the last layer is used.

    Args:
        source: of the layers.
        module_name: the name of a trained source in weights files.
        path: of the files of the source.
        mix: combines the layers into one vector; None for the last layer as it is.
        dropout: dropout rate of the vectors.
        projection_dim: output dimension of a linear layer after the mix; None for no such layer.
    """

    def __init__(
        self,
        source: LayerSource,
        *,
        module_name: str,
        path: Path,
        mix: LayerMix | None,
        dropout: float,
        projection_dim: int | None,
    ) -> None:
        super().__init__()
        self.source = source
        self.add_module(module_name, source.module)
        fingerprint = source.fingerprint
        # The source may be shared with another embedder that names other files.
        self.reference = None if fingerprint is None else Reference(path, fingerprint.digest)
        self.num_frozen_parameters = source.num_frozen_parameters
        self.indexers = source.indexers
        self.mix = mix
        self.dropout = nn.Dropout(dropout)
        self.output_dim = projection_dim or source.dim
        self.projection = (
            nn.Identity() if projection_dim is None else nn.Linear(source.dim, projection_dim)
        )

    def parameters_from_file(self) -> Iterable[Tensor]:
        return () if self.source.module is None else self.source.module.parameters()

    def layer_parameters(self) -> Sequence[Sequence[Tensor]]:
        return self.source.layer_parameters()

    def precompute(self, sentences: Sentences, device: torch.device) -> None:
        self.source.precompute(sentences, device)

    def read_ahead(self, text: TextBatch) -> TextBatch:
        return self.source.read_ahead(text)

    def forward(self, text: TextBatch) -> Float[Tensor, "batch tokens dim"]:
        output = self._read(text)
        mixed = output.layers[-1] if self.mix is None else self.mix(output.layers, output.mask)
        words: Tensor = self.projection(self.dropout(without_boundaries(mixed, output.mask)))
        return words.masked_fill(~text.mask[:, :, None], 0)

    __prepare_scriptable__ = refuse_export  # what torch.jit.script asks for

    @eager
    def _read(self, text: TextBatch) -> LayerOutput:
        return self.layers(text)

    def layers(self, text: TextBatch) -> LayerOutput:
        """Return the layers of a batch."""
        return self.source.layers(text)
