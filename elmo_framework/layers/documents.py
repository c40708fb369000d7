"""Documents as running text: the state flows from sentence to sentence.

A document is read as one long sentence, in which `</S>` and `<S>` are between its sentences. So the
forward direction continues from the sentence before, and the backward direction from the sentence
after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, final
from weakref import WeakValueDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_framework.bilm.layer_output import NUM_BOUNDARIES, LayerOutput, LayerState, framed_mask
from elmo_framework.data.batch import to_device
from elmo_framework.data.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_framework.data.sentences import padded_batches
from elmo_framework.data.text import TextBatch, collate_text
from elmo_framework.errors import DataError
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.model.part import Documents

_MAX_TOKENS = 4096
"""Of documents that are read together; a longer one is read by itself."""

_in_use: WeakValueDictionary[int, DocumentLayers] = WeakValueDictionary()
"""By the identity of the source, which they keep alive."""


def running_text(sentences: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the words of a document as those of one long sentence.

    `</S>` and `<S>` are between two sentences. Sentences without words are left out.
    """
    filled = [words for words in sentences if words]
    steps = chain.from_iterable((END_SENTENCE, BEGIN_SENTENCE, *words) for words in filled)
    return tuple(steps)[NUM_BOUNDARIES:]


def read_documents(
    source: LayerSource,
    documents: Sequence[Sequence[Sequence[str]]],
    *,
    max_tokens: int = _MAX_TOKENS,
    device: torch.device,
) -> Iterator[tuple[int, Float[Tensor, "layers tokens dim"]]]:
    """Compute the layers of the sentences of documents, each document as running text.

    Peak memory grows with `max_tokens`, not with the length of a document.

    Args:
        source: a frozen biLM.
        documents: the sentences of each.
        max_tokens: the largest number of steps that are read at once.
        device: computes the layers.

    Yields:
        The number of a sentence, counted through all documents, and its layers, on the CPU, with
        `<S>` and `</S>`; a sentence without words has neither. The sentences of a document are in
        their order.
    """
    texts = [running_text(sentences) for sentences in documents]
    first = [0, *accumulate(map(len, documents))]
    is_long = [len(text) + NUM_BOUNDARIES > max_tokens for text in texts]
    short = [number for number, text in enumerate(texts) if text and not is_long[number]]
    read = source.read([texts[number] for number in short], max_tokens=max_tokens, device=device)
    for index, layers in read:
        number = short[index]
        yield from _sentences(iter([layers]), documents[number], first[number])
    nothing = torch.zeros(source.num_layers, 0, source.dim)
    for number, text in enumerate(texts):
        if is_long[number]:
            parts = source.read_long(text, max_tokens=max_tokens, device=device)
            yield from _sentences(parts, documents[number], first[number])
        elif not text:
            yield from _sentences(iter([nothing]), documents[number], first[number])


def _sentences(
    parts: Iterator[Tensor], sentences: Sequence[Sequence[str]], first: int
) -> Iterator[tuple[int, Tensor]]:
    """Cut the layers of a document into those of its sentences."""
    layers = next(parts)
    for number, words in enumerate(sentences, start=first):
        length = _num_steps(words)
        while layers.shape[1] < length:
            layers = torch.cat([layers, next(parts)], dim=1)
        yield number, layers[:, :length]
        layers = layers[:, length:]


@final
class DocumentLayers(LayerSource):
    """Gives the layers of sentences in their documents; `document_layers` makes it.

    The layers of a document are those of its running text, which is what a cache has.

    Args:
        source: a frozen biLM, or its cache.
    """

    def __init__(self, source: LayerSource) -> None:
        super().__init__(
            num_layers=source.num_layers,
            dim=source.dim,
            fingerprint=source.fingerprint,
            num_frozen_parameters=source.num_frozen_parameters,
            variant=source.variant,
        )
        self._source = source

    def __deepcopy__(self, memo: dict[int, Any]) -> DocumentLayers:
        return self

    def compute(self, text: TextBatch, state: LayerState | None = None) -> LayerOutput:
        """Return the layers of sentences.

        Raises:
            DataError: the batch has no documents.
        """
        if text.places is None:
            raise _no_documents()
        mask, dtype = framed_mask(text.mask), torch.get_default_dtype()
        layers = torch.zeros(
            self.num_layers, *mask.shape, self.dim, dtype=dtype, device=mask.device
        )
        rows = dict[tuple[tuple[str, ...], ...], list[int]]()
        for row, place in enumerate(text.places):
            rows.setdefault(place.sentences, []).append(row)
        documents = sorted(rows, key=lambda sentences: -sum(map(len, sentences)))
        texts = {document: running_text(document) for document in documents}
        for group in padded_batches(
            documents, lambda each: len(texts[each]), max_tokens=_MAX_TOKENS
        ):
            batch = to_device(collate_text([texts[each] for each in group]), mask.device)
            read = self._source.compute(batch).layers
            for number, document in enumerate(group):
                starts = _starts(document)
                for row in rows[document]:
                    start, words = starts[text.places[row].number], text.words[row]
                    length = _num_steps(words)
                    layers[:, row, :length] = read[:, number, start : start + length]
        return LayerOutput(layers, mask, {})

    def precompute_documents(self, documents: Documents, device: torch.device) -> None:
        """Compute the layers of documents, where they can be kept.

        Raises:
            DataError: the examples of the data have no documents.
        """
        texts = list(map(running_text, documents()))
        if not texts:
            raise _no_documents()
        self._source.precompute(lambda: texts, device)

    def forget_words(self) -> None:
        self._source.forget_words()


def document_layers(source: LayerSource) -> DocumentLayers:
    """Return the layers of documents of a source; the same object while it is in use."""
    if (layers := _in_use.get(id(source))) is None:
        layers = _in_use[id(source)] = DocumentLayers(source)
    return layers


def _starts(sentences: Sequence[Sequence[str]]) -> list[int]:
    """Return the first step of each sentence in the layers of its document."""
    return [0, *accumulate(map(_num_steps, sentences))]


def _num_steps(words: Sequence[str]) -> int:
    """Return the length of a sentence in the layers of its document."""
    return len(words) + NUM_BOUNDARIES if words else 0


def _no_documents() -> DataError:
    return DataError(
        "state is 'document', and the examples of this task are single sentences; use state "
        "'reset', or a task of documents, such as coreference"
    )
