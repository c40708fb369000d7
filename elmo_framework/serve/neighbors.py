"""Neighbors of a word in a corpus, for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, final

from elmo_framework.analysis.neighbors import NeighborSearch, NoNeighborsError, find_neighbors
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.embedding.corpus import SentenceFiles
from elmo_framework.errors import DataError
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.serve.answers import WordRequest
from elmo_framework.serve.served_run import InputError, require_length

_MAX_SENTENCES = 200
"""Sentences that are compared: about a second of a biLM of the size of `mini`."""

_MAX_LINES = 100_000
"""Lines that are searched, so that a word that is rare does not keep other requests waiting."""

_NUM_NEIGHBORS = 5


@final
@dataclass(frozen=True, eq=False)
class NeighborService:
    """A `Service` of a `Worker`: the nearest uses of a word, by the layers of an encoder.

    Attributes:
        encoder: of the run.
        corpus: one tokenized sentence per line.
        device: `auto`, `cpu` or `cuda`.
        max_words: of one request.
    """

    cost: ClassVar[int] = _MAX_SENTENCES
    encoder: LayerSource
    corpus: Path
    device: str
    max_words: int

    def read(self, values: Sequence[WordRequest]) -> Sequence[WordRequest]:
        for index, request in enumerate(values):
            require_length(len(request.words), self.max_words, index)
            if request.position >= len(request.words):
                last = len(request.words) - 1
                message = f"position is {request.position}; the last word has position {last}"
                raise InputError(message, index)
            if any(word.split() != [word] for word in request.words):
                raise InputError("a word is empty or has spaces", index)
        return values

    def compute(self, inputs: Sequence[WordRequest]) -> Sequence[dict[str, Any]]:
        return [self._neighbors(request) for request in inputs]

    def _neighbors(self, request: WordRequest) -> dict[str, Any]:
        word = request.words[request.position]
        search = NeighborSearch(
            " ".join(request.words),
            word,
            [self.corpus],
            position=request.position,
            num_neighbors=_NUM_NEIGHBORS,
            max_sentences=_MAX_SENTENCES,
            max_lines=_MAX_LINES,
            device=self.device,
        )
        try:
            result = find_neighbors(self.encoder, search)
        except NoNeighborsError:
            return {"word": word, "num_compared": 0, "layers": []}
        layers = [
            {
                "layer": layer,
                "neighbors": [
                    {"similarity": each.similarity, "parts": each.occurrence.parts}
                    for each in neighbors
                ],
            }
            for layer, neighbors in result.by_layer.items()
        ]
        return {"word": word, "num_compared": result.num_compared, "layers": layers}


def check_corpus(path: Path) -> None:
    """Read a corpus once, so that a bad one is known before the first request.

    Raises:
        DataError: it cannot be read, or has no sentence.
    """
    lines = SentenceFiles([path], tokenizer=WhitespaceTokenizer()).lines()
    if not sum(1 for line in lines if line.text):
        raise DataError("no sentences", path=path)
