"""An encoder that is served: the vectors of sentences."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.api.encoder import PretrainedEncoder
from elmo_framework.api.layer_selection import select_layers
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.embedding.json_lines import as_lists
from elmo_framework.errors import shown
from elmo_framework.layers.sentence_pool import pooled, pooled_dim
from elmo_framework.serve.answers import EmbeddingRequest, Input
from elmo_framework.serve.served_run import InputError, TooLongError, require_length


class RequestedSentence(NamedTuple):
    """A sentence with the request that it is part of, which says what its vectors are.

    Attributes:
        value: a text, or an object with `tokens`.
        request: its layers, pooling and encoding.
    """

    value: Input
    request: EmbeddingRequest


class _Words(NamedTuple):
    words: Sequence[str]
    request: EmbeddingRequest


@final
@dataclass(frozen=True, eq=False)
class ServedEncoder:
    """A `Service` of a `Worker`: the vectors that an encoder gives the words of sentences.

    Attributes:
        name: in URLs.
        encoder: of the sentences.
        tokenizer: splits texts into words.
        max_words: of one sentence.
        max_numbers: of the vectors of a request.
    """

    cost: ClassVar[int] = 1
    name: str
    encoder: PretrainedEncoder
    tokenizer: Tokenizer
    max_words: int
    max_numbers: int

    def warm_up(self) -> None:
        """Prepare the weights, and load libraries, which takes seconds."""
        self.encoder.embed([["A", "sentence", "."]])

    def num_layers(self, request: EmbeddingRequest) -> int:
        """Return how many layers a request asks for.

        Raises:
            ValueError: the encoder does not have them.
        """
        return select_layers(
            np.empty((self.encoder.num_layers, 1), np.float32), request.layers
        ).size

    def read(self, values: Sequence[RequestedSentence]) -> Sequence[_Words]:
        """Tokenize the sentences of a request.

        Raises:
            InputError: one of them is no sentence, or has too many words.
        """
        sentences, num_numbers = list[_Words](), 0
        for index, (value, request) in enumerate(values):
            words = self._words(value, index)
            num_vectors = len(words) if request.pool == "none" else 1
            per_vector = self.num_layers(request) * pooled_dim(self.encoder.dim, request.pool)
            num_numbers += num_vectors * per_vector
            if num_numbers > self.max_numbers:
                raise TooLongError(
                    f"the vectors of this request have more than {self.max_numbers:,} numbers; "
                    "send fewer words at once, choose one layer, or pool the words",
                    index,
                )
            sentences.append(_Words(words, request))
        return sentences

    def compute(self, inputs: Sequence[_Words]) -> Sequence[dict[str, Any]]:
        """Embed sentences of similar length together; return the results in their order.

        All layers of only one batch of sentences are in memory together.
        """
        results: list[dict[str, Any]] = [{} for _ in inputs]
        for indices, layers in self.encoder.read_words([words for words, _ in inputs]):
            for index in indices:
                words, request = inputs[index]
                vectors = self._vectors(layers, request)
                results[index] = {"words": words, **_encoded(vectors, request)}
        return results

    def description(self) -> dict[str, Any]:
        """Return what a client needs to know."""
        return {
            "name": self.name,
            "num_layers": self.encoder.num_layers,
            "dim": self.encoder.dim,
        }

    def _words(self, value: Input, index: int) -> Sequence[str]:
        if isinstance(value, str):
            words = self.tokenizer.words(value)
        elif value.keys() == {"tokens"} and _are_words(value["tokens"]):
            words = value["tokens"]
        else:
            message = f"expected a sentence, or its words as 'tokens' alone; found {shown(value)}"
            raise InputError(message, index)
        require_length(len(words), self.max_words, index)
        return words

    def _vectors(
        self, layers: NDArray[np.float32], request: EmbeddingRequest
    ) -> NDArray[np.float32]:
        """Return the selected layers of the words, or of the sentence where they are pooled."""
        vectors = pooled(select_layers(layers, request.layers), request.pool)
        return vectors if request.pool == "none" else vectors.squeeze(-2)


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _encoded(vectors: NDArray[np.float32], request: EmbeddingRequest) -> dict[str, Any]:
    if request.encoding_format == "float":
        return {"vectors": as_lists(vectors)}
    in_c_order = vectors.astype("<f4").tobytes()
    return {"shape": vectors.shape, "vectors": b64encode(in_c_order).decode()}
