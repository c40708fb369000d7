"""ELMo as a token embedder: the layers of a biLM, mixed for the task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, final

import torch
from torch import Tensor

from elmo_framework.bilm.files.load import BiLmFiles, reads_both_sides
from elmo_framework.bilm.files.published import BiLmLocation, resolve_bilm
from elmo_framework.bilm.layer_mix import LayerMix
from elmo_framework.bilm.layer_output import LayerOutput, joined
from elmo_framework.config.types import Default, Dim, DropoutRate, Lazy, ReferencedPath
from elmo_framework.data.text import TextBatch
from elmo_framework.embedders.layer_embedder import LayerEmbedder
from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.bilm_source import open_layers
from elmo_framework.layers.cache.cached_layers import CacheDtype
from elmo_framework.layers.carried_state import CarriedState, require_state
from elmo_framework.layers.documents import document_layers
from elmo_framework.model.part import Documents


@final
@TokenEmbedder.register("elmo_token_embedder")
class ElmoTokenEmbedder(LayerEmbedder):
    """The vectors of a pretrained biLM: gamma sum_j s_j h_j for each word (section 3.2).

    The layers are mixed with the sentence's boundaries in place; then the boundaries go, and
    dropout and the projection follow.

    Args:
        bilm: the folder of a biLM, or of the run that trained it, or the name of one: `mini`,
            which is part of the package, or a published one, which is downloaded once.
        options_file: bilm-tf's `options.json`, with `weight_file` in place of `bilm`.
        weight_file: bilm-tf's `weights.hdf5`.
        mix: combines the layers into one vector.
        dropout: dropout rate of the vectors.
        state: with `reset` every batch starts from zeros, and a sentence's vectors depend on
            nothing else. With `carry` row i of a batch continues row i of the batch before,
            as bilm-tf and AllenNLP do, and the second text of an example continues the first; it
            is never saved with the weights. With `document` the
            sentences of a document are read as running text: each direction continues from the
            sentence that it has read before, the backward one from the next. It is for a frozen
            biLM and for tasks whose examples have documents; a cache has whole documents.
        requires_grad: whether the biLM is trained with the task. A frozen one is shared by all
            that read the same files, and is not part of the model's weights.
        cache: where the layers of a frozen biLM are kept, so that each sentence is computed once:
            before training, all those of the data. With `disk` they serve later runs too, under
            `$ELMO_CACHE_ROOT`, in at most `$ELMO_CACHE_LIMIT` (100GB); with `memory` they last as
            long as the process. It has no effect with `requires_grad` or with `state: carry`,
            where a sentence's layers are not always the same.
        cache_dtype: the type of the cached numbers; `float16` takes half the space, and rounds
            each number to 11 bits.
        precision: of a frozen biLM's products. `bfloat16` and `int8` (CPU only) are faster and
            less exact; docs/performance.md shows by how much.
        projection_dim: output dimension of a linear layer after the mix; null for no such layer.
    """

    def __init__(
        self,
        *,
        bilm: BiLmLocation | None = None,
        options_file: ReferencedPath | None = None,
        weight_file: ReferencedPath | None = None,
        mix: Annotated[Lazy[LayerMix], Default("scalar_mix")],
        dropout: DropoutRate = 0.5,
        state: Literal["reset", "carry", "document"] = "reset",
        requires_grad: bool = False,
        cache: Literal["disk", "memory", "none"] = "disk",
        cache_dtype: CacheDtype = "float16",
        precision: Precision = "float32",
        projection_dim: Dim | None = None,
    ) -> None:
        files = _files(bilm, options_file, weight_file)
        if requires_grad and state == "document":
            raise ValueError("state 'document' is for a frozen biLM; remove requires_grad")
        require_state(state, reads_both_sides=reads_both_sides(files))
        source = open_layers(
            files,
            requires_grad=requires_grad,
            cache="none" if state == "carry" else cache,
            cache_dtype=cache_dtype,
            precision=precision,
        )
        documents = document_layers(source) if state == "document" else None
        super().__init__(
            documents or source,
            module_name="bilm",
            path=files.weights.absolute(),
            mix=mix.build(num_layers=source.num_layers),
            dropout=dropout,
            projection_dim=projection_dim,
        )
        self._carried = CarriedState() if state == "carry" else None
        self._documents = documents

    @property
    def carries_state(self) -> bool:
        return self._carried is not None

    def layers(self, text: TextBatch) -> LayerOutput:
        carried = self._carried
        if carried is None:
            return super().layers(text)
        outputs = []
        for group in text.groups:
            state = carried.rows(len(group.mask), group.mask.device)
            outputs.append(self.source.layers(group, state))
            carried.keep(outputs[-1].state)
        return joined(outputs)

    def precompute_documents(self, documents: Documents, device: torch.device) -> None:
        if self._documents is not None:
            self._documents.precompute_documents(documents, device)

    def train(self, mode: bool = True) -> ElmoTokenEmbedder:
        """Switch to training; layers that are trained with the task have no dropout."""
        super().train(mode)
        if self.source.module is not None:
            self.source.module.eval()
        return self

    def carried_state(self) -> dict[str, Tensor]:
        return {} if self._carried is None else self._carried.tensors()

    def load_carried_state(self, state: Mapping[str, Tensor]) -> None:
        if self._carried is not None:
            self._carried.load(state)


def _files(
    bilm: str | Path | None, options_file: Path | None, weight_file: Path | None
) -> BiLmFiles:
    match bilm, options_file, weight_file:
        case str() | Path(), None, None:
            return resolve_bilm(bilm)
        case None, Path(), Path():
            return BiLmFiles(options_file, weight_file)
    keys = {"bilm": bilm, "options_file": options_file, "weight_file": weight_file}
    names = [name for name, path in keys.items() if path is not None]
    raise ValueError(
        f"given: {', '.join(names) or 'none of the keys of a biLM'}; "
        "allowed: bilm alone, or options_file and weight_file together"
    )
