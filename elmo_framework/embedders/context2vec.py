"""context2vec: a vector for the context of a word."""

from __future__ import annotations

from typing import Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_framework.config.types import ReferencedPath
from elmo_framework.data.text import TextBatch
from elmo_framework.embedders.context2vec_network import (
    Context2vecNetwork,
    read_files,
    read_network,
)
from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.io.files import digest
from elmo_framework.model.part import Reference


@final
@TokenEmbedder.register("context2vec")
class Context2vecTokenEmbedder(TokenEmbedder):
    """The context of each word as context2vec sees it (Melamud et al., 2016), never trained.

        c_k = MLP([l2r(<BOS> w_1 ... w_k-1) ; r2l(<EOS> w_n ... w_k+1)])

    The word itself has no part in c_k; its own vector, that of the model's targets with the
    length 1, can be appended to it. Words are lowercased. The weights are not saved with a run;
    loading the run reads them again.

    Args:
        model_file: the `.params` file of a model; the files that it names are next to it.
        vectors: which are given: that of the context, that of the word as a target, or both in
            this order.
    """

    def __init__(
        self,
        model_file: ReferencedPath,
        vectors: Literal["context", "target", "both"] = "both",
    ) -> None:
        super().__init__()
        self._files = read_files(model_file)
        self.reference = Reference(
            model_file, digest([model_file, self._files.model, self._files.words])
        )
        self._vectors = vectors
        self._network: Context2vecNetwork | None = None
        self.output_dim = self._files.output_dim * (2 if vectors == "both" else 1)

    @torch.no_grad()
    def forward(self, text: TextBatch) -> Float[Tensor, "batch tokens dim"]:
        if self._network is None:
            self._network = read_network(self._files)
        ids = self._network.ids(text)
        parts = []
        if self._vectors != "target":
            parts.append(self._network.contexts(ids, text.mask))
        if self._vectors != "context":
            parts.append(self._network.targets(ids, text.mask))
        return torch.cat(parts, dim=2)
