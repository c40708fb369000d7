"""A transformer as a token embedder: its layers mixed for the task, or its top layer."""

from __future__ import annotations

from typing import Literal, final

from elmo_framework.bilm.layer_mix import LayerMix, ScalarMix
from elmo_framework.config.types import Count, Dim, DropoutRate, Lazy, ReferencedPath
from elmo_framework.embedders.layer_embedder import LayerEmbedder
from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.layers.cache.cached_layers import CacheDtype
from elmo_framework.layers.transformer_source import TransformerOptions, open_transformer
from elmo_framework.layers.word_pieces import SubTokenMode


@final
@TokenEmbedder.register("pretrained_transformer_mismatched")
class TransformerTokenEmbedder(LayerEmbedder):
    """The vectors of a transformer for each word, whatever the pieces of its tokenizer.

    As ELMo is used: `{ train_parameters: false, last_layer_only: false }`. Then the layers are
    computed once, cached, and mixed for the task as those of a biLM are. The defaults are those of
    AllenNLP: the top layer of a transformer that is trained with the task.

    Args:
        model_name: the folder of a transformer: its configuration, its weights as safetensors and
            its tokenizer. Nothing is downloaded, and no code of the folder is run.
        max_length: the largest number of pieces that are read together, special tokens counted; a
            longer sentence is read in overlapping windows. By default what the model takes.
        train_parameters: whether the transformer is trained with the task, with its own dropout.
        last_layer_only: whether the vectors are those of the top layer, without a mix.
        sub_token_mode: the vector of a word of several pieces: that of the first or the last piece,
            or the mean of all; `avg` is AllenNLP's name of `mean`.
        mix: combines the layers into one vector; `scalar_mix` by default where
            `last_layer_only` is false.
        layers: the layers that are mixed, 0 being that of the embeddings and -1 the top one; all by
            default. Only these are cached.
        dropout: dropout rate of the vectors.
        cache: where the layers of a frozen transformer are kept, as with `elmo_token_embedder`.
        cache_dtype: the type of the cached numbers; `float16` takes half the space, and rounds
            each number to 11 bits.
        precision: of a frozen transformer; `bfloat16` is less exact.
        projection_dim: output dimension of a linear layer after the mix; null for no such layer.
    """

    def __init__(
        self,
        *,
        model_name: ReferencedPath,
        max_length: Count | None = None,
        train_parameters: bool = True,
        last_layer_only: bool = True,
        sub_token_mode: SubTokenMode = "mean",
        mix: Lazy[LayerMix] | None = None,
        layers: list[int] | None = None,
        dropout: DropoutRate = 0.0,
        cache: Literal["disk", "memory", "none"] = "disk",
        cache_dtype: CacheDtype = "float16",
        precision: Literal["float32", "bfloat16"] = "float32",
        projection_dim: Dim | None = None,
    ) -> None:
        if last_layer_only and (mix is not None or layers is not None):
            key = "layers" if mix is None else "mix"
            raise ValueError(
                f"{key} has no effect on the last layer alone; add last_layer_only: false"
            )
        selected = [-1] if last_layer_only else layers
        source = open_transformer(
            model_name,
            TransformerOptions(
                max_length, sub_token_mode, None if selected is None else tuple(selected)
            ),
            requires_grad=train_parameters,
            cache=cache,
            cache_dtype=cache_dtype,
            precision=precision,
        )
        super().__init__(
            source,
            module_name="transformer",
            path=model_name.absolute(),
            mix=None if last_layer_only else _mix(mix, source.num_layers),
            dropout=dropout,
            projection_dim=projection_dim,
        )


def _mix(mix: Lazy[LayerMix] | None, num_layers: int) -> LayerMix:
    return ScalarMix(num_layers=num_layers) if mix is None else mix.build(num_layers=num_layers)
