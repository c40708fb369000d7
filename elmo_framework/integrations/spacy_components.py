"""Components of spaCy: vectors in context from an encoder, and entities from a trained tagger."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, Token

from elmo_framework.api.layer_selection import LayerSelection, select_layers
from elmo_framework.api.pretrained import load_encoder
from elmo_framework.data.batch import grouped
from elmo_framework.data.tagging import beginnings, spans
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.load_run import load
from elmo_framework.experiment.predict import fingerprint
from elmo_framework.io.files import digest

_Vector: TypeAlias = Float[NDArray[np.float32], " dim"]

_RECORD = "model.json"


class _Component(ABC):
    """A component that reads the sentences of many documents together.

    A document without sentence boundaries is one sentence. Tokens of white space are not read. What
    is saved is the place of the model and its digest, not its weights.

    Args:
        place: of the model.
        digest: of its files.
    """

    def __init__(self, place: str, digest: str) -> None:
        self._record = {"place": str(place), "digest": digest}
        self._process = os.getpid()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _process=os.getpid())

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        if self._is_forked():
            # It would wait forever for the threads of OpenMP, which only its parent has.
            torch.set_num_threads(1)
        for docs in grouped(stream, batch_size):
            self._annotate(docs)
            yield from docs

    def _is_forked(self) -> bool:
        return self._process != os.getpid()

    @abstractmethod
    def _annotate(self, docs: Sequence[Doc]) -> None: ...

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        return json.dumps(self._record).encode()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> _Component:
        """Check that this is the model that was saved.

        Raises:
            DataError: it is another.
        """
        saved = json.loads(data)
        if saved["digest"] != self._record["digest"]:
            raise DataError(
                f"{self._record['place']}: this model (SHA-256 {self._record['digest'][:12]}) is "
                f"not the one that the pipeline was saved with, {saved['place']} "
                f"({saved['digest'][:12]}); name that one in the config of the component"
            )
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)
        (Path(path) / _RECORD).write_bytes(self.to_bytes())

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> _Component:
        """See `from_bytes`."""
        return self.from_bytes((Path(path) / _RECORD).read_bytes())


@final
class ElmoComponent(_Component):
    """Sets `doc.tensor`, the vectors of tokens in context, and the hooks that read it.

    Args:
        bilm: the folder or the name of a biLM, or another encoder; see `load_encoder`.
        layers: see `PretrainedEncoder.sentences`; the vectors of several are concatenated.
        device: see `load_bilm`.

    Raises:
        DataError: there is no such encoder, or its files are damaged.
        ValueError: unknown `layers`.
    """

    def __init__(
        self, bilm: str, *, layers: LayerSelection = "average", device: str = "auto"
    ) -> None:
        self._encoder, self._layers = load_encoder(bilm, device=device), layers
        fingerprint = self._encoder.source.fingerprint
        assert fingerprint is not None
        super().__init__(bilm, fingerprint.digest)
        self._dim = int(np.prod(self._encoder.sentences([], layers=layers).shape[1:]))

    def _annotate(self, docs: Sequence[Doc]) -> None:
        tensors = [np.zeros((len(doc), self._dim), np.float32) for doc in docs]
        sentences = [
            (tensor, words)
            for doc, tensor in zip(docs, tensors, strict=True)
            for words in _sentences(doc)
        ]
        texts = [[token.text for token in words] for _, words in sentences]
        for places, layers in self._encoder.read_words(texts):
            selected = select_layers(layers, self._layers)
            vectors = np.concatenate([*selected], axis=-1) if selected.ndim > 2 else selected
            for place in places:
                tensor, words = sentences[place]
                tensor[[token.i for token in words]] = vectors
        for doc, tensor in zip(docs, tensors, strict=True):
            # spaCy's stub knows arrays of float64 only.
            doc.tensor = tensor  # type: ignore[assignment]
            if not self._is_forked():  # which sends bytes, without hooks
                set_vector_hooks(doc)


@final
class ElmoNerComponent(_Component):
    """Sets `doc.ents` to the spans that a trained tagger finds.

    Args:
        run: the folder or the archive of the run; see `load`.
        device: `auto`, `cpu` or `cuda`.

    Raises:
        RunError: there is no such run, or its model marks no spans of words.
    """

    def __init__(self, run: str, *, device: str = "auto") -> None:
        self._run = load(run, device=device)
        head = self._run.head()
        labels = head.labels.items if head.labels is not None else ()
        is_tagger = "words" in head.task.input_keys and "O" in labels
        if not is_tagger or not any(True for _ in beginnings(labels)):
            raise RunError(f"{run}: elmo_ner needs a run that tags spans, such as entities")
        assert self._run.run is not None
        weights = self._run.run.weights  # there is no such file before the training ends
        is_finished = weights.is_file()
        super().__init__(run, digest([weights]) if is_finished else fingerprint(self._run.model))

    def _annotate(self, docs: Sequence[Doc]) -> None:
        entities: list[list[Span]] = [[] for _ in docs]
        sentences = [
            (number, words) for number, doc in enumerate(docs) for words in _sentences(doc) if words
        ]
        texts = [{"words": [token.text for token in words]} for _, words in sentences]
        for (number, words), output in zip(sentences, self._run.predict(texts), strict=True):
            for start, end, label in spans(output["tags"]):
                first, last = words[start].i, words[end - 1].i
                entities[number].append(Span(docs[number], first, last + 1, label=label))
        for doc, own in zip(docs, entities, strict=True):
            doc.set_ents(own)


def set_vector_hooks(doc: Doc) -> Doc:
    """Let `vector` and `similarity` of a document and its parts read `doc.tensor`.

    The component `elmo` calls it. Hooks are not among the bytes of a document: call it again after
    `nlp.pipe(n_process=2)` or `Doc.from_bytes`.

    The vector of a document or a span is the mean over its tokens that are not white space.
    """
    own: dict[str, Callable[..., Any]]
    own = {"has_vector": _has_vector, "vector": _vector, "similarity": _similarity}
    doc.user_hooks.update(own)
    doc.user_token_hooks.update(own)
    doc.user_span_hooks.update(own)
    return doc


def _sentences(doc: Doc) -> list[list[Token]]:
    sentences = doc.sents if doc.has_annotation("SENT_START") else [doc]
    return [[token for token in sentence if not token.is_space] for sentence in sentences]


def _vector(item: Doc | Span | Token) -> _Vector:
    tensor = item.doc.tensor
    if isinstance(item, Token):
        return np.asarray(tensor[item.i])
    places = [token.i for token in item if not token.is_space]
    return np.asarray(
        tensor[places].mean(axis=0) if places else np.zeros_like(tensor, shape=tensor.shape[1])
    )


def _has_vector(item: Doc | Span | Token) -> bool:
    return bool(_vector(item).any())


def _similarity(item: Doc | Span | Token, other: Doc | Span | Token) -> float:
    """Return the cosine; 0 where a vector is zeros."""
    one, two = _vector(item), np.asarray(other.vector)
    norms = np.linalg.norm(one) * np.linalg.norm(two)
    return float(one @ two / norms) if norms else 0.0
