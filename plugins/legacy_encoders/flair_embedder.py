"""Flair's language models as a token embedder: its layers mixed for the task, or the top one."""

from __future__ import annotations

from typing import Literal, final

from elmo_framework.bilm import LayerMix
from elmo_framework.config import Dim, DropoutRate, Lazy, ReferencedPath
from elmo_framework.embedders import LayerEmbedder, TokenEmbedder
from elmo_framework.layers import CacheDtype

from .flair_source import FlairFormat, Precision


@final
@TokenEmbedder.register("flair")
class FlairTokenEmbedder(LayerEmbedder):
    """Contextual string embeddings (Akbik et al. 2018): frozen, computed once, and cached.

    Args:
        folder: of language models, as `convert_flair.py` writes it.
        mix: combines the layers of the LSTM into one vector; null for the top one, as in Flair.
        dropout: the ratio of a vector's numbers that is dropped in training.
        cache: where layers are kept, as with `elmo_token_embedder`.
        cache_dtype: the type of the cached numbers; `float16` takes half the space, and rounds
            each number to 11 bits.
        precision: of the products; `bfloat16` and `int8` are less exact.
        projection_dim: the width of a linear layer after the mix; null for no such layer.
    """

    def __init__(
        self,
        *,
        folder: ReferencedPath,
        mix: Lazy[LayerMix] | None = None,
        dropout: DropoutRate = 0.0,
        cache: Literal["disk", "memory", "none"] = "disk",
        cache_dtype: CacheDtype = "float16",
        precision: Precision = "float32",
        projection_dim: Dim | None = None,
    ) -> None:
        source = FlairFormat().open(
            folder, cache=cache, cache_dtype=cache_dtype, precision=precision
        )
        super().__init__(
            source,
            module_name="language_models",
            path=folder.absolute(),
            mix=None if mix is None else mix.build(num_layers=source.num_layers),
            dropout=dropout,
            projection_dim=projection_dim,
        )
