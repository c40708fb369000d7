"""CoVe: the vectors of the encoder of a translation model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.config.types import CountOrZero, Dim, ExistingPath, Injected, TextPath
from elmo_framework.data.formats.word_vector_files import WordVectorFormat
from elmo_framework.data.text import TextBatch
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.embedding import EmbeddingTokenEmbedder
from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.errors import DataError
from elmo_framework.model.weights import load_pickled
from elmo_framework.nn.recurrent import read_rows

_Layers = Literal["layer1", "layer0", "both"]


@final
@TokenEmbedder.register("cove")
class CoveTokenEmbedder(TokenEmbedder):
    """Two bidirectional LSTM layers over word vectors (McCann et al., 2017), never trained.

        [x ; l_0 ; l_1] with l_0 = biLSTM(x) and l_1 = biLSTM(l_0)

    x is GloVe's vector of a word, zeros where there is none (`max_unseen_words`). By default l_1
    alone is given.

    Args:
        model_file: the published `.pth` file, a state of torch's LSTM.
        pretrained_file: the word vectors that it was trained on: GloVe's, 840B words,
            dimension 300.
        vocabularies: counted in the training data; its words have their vectors.
        pretrained_format: of the word vectors, as for `embedding`.
        max_unseen_words: how many other words of GloVe have their vectors too, the first ones;
            null for all. They are kept with the run and in its checkpoints.
        layers: which layers are given: `layer1`, the upper one, `layer0`, or `both`, the lower
            one first.
        residual_embeddings: whether the word vectors are given too, before the layers.
        embedding_dim: the dimension of the word vectors.
        hidden_size: the dimension of one direction of a layer.
        weights_follow: whether all of it will be loaded from a run, and no file is read.
    """

    def __init__(
        self,
        model_file: ExistingPath,
        pretrained_file: TextPath,
        vocabularies: Injected[Vocabularies],
        pretrained_format: WordVectorFormat | None = None,
        max_unseen_words: CountOrZero | None = 100_000,
        layers: _Layers = "layer1",
        residual_embeddings: bool = False,
        embedding_dim: Dim = 300,
        hidden_size: Dim = 300,
        weights_follow: Injected[bool] = False,
    ) -> None:
        super().__init__()
        self.words = EmbeddingTokenEmbedder(
            embedding_dim,
            vocabularies,
            pretrained_file,
            pretrained_format,
            trainable=False,
            max_unseen_words=max_unseen_words,
            missing="zeros",
            weights_follow=weights_follow,
        )
        self.indexers = self.words.indexers
        self._layers, self._has_words = layers, residual_embeddings
        self.lower, self.upper = (
            nn.LSTM(width, hidden_size, bidirectional=True, batch_first=True)
            for width in (embedding_dim, 2 * hidden_size)
        )
        self.requires_grad_(False)
        if not weights_follow:
            self._load(_read_state(model_file), model_file)
        self.output_dim = 2 * hidden_size * (2 if layers == "both" else 1)
        self.output_dim += embedding_dim if residual_embeddings else 0

    def parameters_from_file(self) -> Iterable[Tensor]:
        return self.parameters()

    @torch.no_grad()
    def forward(self, text: TextBatch) -> Float[Tensor, "batch tokens dim"]:
        words = self.words(text)
        outputs = [words] if self._has_words else []
        lower, _ = read_rows(self.lower, words, text.mask)
        outputs += [lower] if self._layers != "layer1" else []
        if self._layers != "layer0":
            outputs.append(read_rows(self.upper, lower, text.mask)[0])
        return torch.cat(outputs, dim=2)

    def _load(self, state: Mapping[str, Tensor], path: Path) -> None:
        """Load the weights of a two-layer LSTM into two LSTMs, one for each layer.

        Raises:
            DataError: they are not the weights of such an LSTM.
        """
        for layer, lstm in enumerate((self.lower, self.upper)):
            sources = {name: name.replace("_l0", f"_l{layer}") for name in lstm.state_dict()}
            missing = sorted(set(sources.values()) - state.keys())
            if missing:
                raise DataError(f"{missing[0]!r} is missing; expected a two-layer LSTM", path=path)
            try:
                lstm.load_state_dict({name: state[source] for name, source in sources.items()})
            except RuntimeError as error:
                sizes = "embedding_dim and hidden_size"
                raise DataError(f"does not fit {sizes}: {error}", path=path) from error


def _read_state(path: Path) -> Mapping[str, Tensor]:
    try:
        state = load_pickled(path)
    except OSError as error:
        raise DataError(str(error.strerror), path=path) from error
    except ValueError as error:
        raise DataError(f"not a PyTorch state_dict: it {error}", path=path) from error
    if not isinstance(state, Mapping):
        raise DataError(f"expected a state by name, found {type(state).__name__}", path=path)
    return state
