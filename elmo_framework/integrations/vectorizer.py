"""A transformer of scikit-learn: texts in, one vector per text out."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from elmo_framework.api.arguments import WordSplitter, split_texts
from elmo_framework.api.encoder import PretrainedEncoder
from elmo_framework.api.layer_selection import LayerSelection, select_layers
from elmo_framework.api.pretrained import load_encoder
from elmo_framework.data.sentences import sentence_digest
from elmo_framework.errors import DataError, RunError
from elmo_framework.io.extras import import_extra
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.layers.pool import Pool
from elmo_framework.layers.sentence_pool import pooled

_MAX_BYTES = 1 << 29

_Rows = Float[NDArray[np.float32], "layers+1 dim"]
"""The pooled layers of a text, and below them their pooled average."""


@final
class _Memory:
    """The pooled layers of texts, computed once in a process; digests stand for the texts.

    Beyond `_MAX_BYTES` the oldest are forgotten.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], _Rows] = {}
        self._num_bytes, self._lock = 0, threading.Lock()
        self._in_use = deque[LayerSource](maxlen=1)

    def rows(
        self, encoder: PretrainedEncoder, sentences: Sequence[Sequence[str]], pool: Pool
    ) -> list[_Rows]:
        """Return the rows of each sentence; threads wait for each other."""
        with self._lock:
            self._in_use.append(encoder.source)  # so that the next estimator finds it loaded
            source = encoder.source.fingerprint, encoder.source.variant, pool
            keys = [(source, sentence_digest(words)) for words in sentences]
            rows = {key: self._rows[key] for key in keys if key in self._rows}
            missing = [index for index, key in enumerate(keys) if key not in rows]
            for places, layers in encoder.read_words([sentences[index] for index in missing]):
                # The average is a row by itself: the maximum of a mean is not the mean of maxima.
                both = np.concatenate([layers, layers.mean(axis=0, keepdims=True)])
                key = keys[missing[places[0]]]
                rows[key] = self._rows[key] = pooled(both, pool)[:, 0]
                self._num_bytes += rows[key].nbytes
            self._forget()
            return [rows[key] for key in keys]

    def _forget(self) -> None:
        while self._num_bytes > _MAX_BYTES:
            self._num_bytes -= self._rows.pop(next(iter(self._rows))).nbytes


_memory = _Memory()

try:
    _base = import_extra("sklearn", "sklearn").base
    _bases: tuple[Any, ...] = _base.TransformerMixin, _base.BaseEstimator
except RunError:  # the constructor raises it
    _bases = ()


@final
class ElmoVectorizer(*_bases):  # type: ignore[misc]
    """Turns texts into vectors, for a classifier of scikit-learn (extra `sklearn`).

        model = make_pipeline(ElmoVectorizer("mini"), LogisticRegression(max_iter=1000))
        GridSearchCV(model, {"elmovectorizer__layers": ["average", "top", 0, [0, 1, 2]]})

    Nothing is trained. A process computes the layers of a text once, also for copies of the
    estimator with other `layers`, as far as 512 MiB hold them. A pickle records the place of the
    encoder and its digest, not its weights.

    Args:
        bilm: the folder or the name of a biLM, or another encoder; see `load_encoder`.
        layers: see `PretrainedEncoder.sentences`; the vectors of several are concatenated.
        pool: `mean`, `max` or `first_last`; see `PretrainedEncoder.sentences`.
        tokenizer: see `PretrainedEncoder.sentences`.
        device: see `load_bilm`.

    Attributes:
        num_features_: the dimension of the vectors.
        digest_: of the files of the encoder.

    Raises:
        RunError: scikit-learn is not installed.
    """

    def __init__(
        self,
        bilm: str | Path = "mini",
        *,
        layers: LayerSelection = "average",
        pool: Pool = "mean",
        tokenizer: WordSplitter = "spacy",
        device: str = "auto",
    ) -> None:
        if not _bases:
            import_extra("sklearn", "sklearn")
        self.bilm, self.layers, self.pool = bilm, layers, pool
        self.tokenizer, self.device = tokenizer, device

    def fit(self, texts: Iterable[str | Sequence[str]], y: object = None) -> ElmoVectorizer:
        """Check the parameters and load the encoder.

        Raises:
            DataError: there is no such encoder, or its files are damaged.
            ValueError: unknown `layers` or `pool`, or `texts` has several columns.
            TypeError: `texts` is one string.
        """
        _listed(texts)
        encoder = self._encoder()
        empty = encoder.sentences([], pool=self.pool, layers=self.layers)
        self.num_features_ = int(np.prod(empty.shape[1:]))
        self.digest_ = _digest(encoder)
        return self

    def fit_transform(
        self, texts: Iterable[str | Sequence[str]], y: object = None
    ) -> Float[NDArray[np.float32], "texts dim"]:
        """Call `fit` and `transform`, also with an iterator, which can be read once only."""
        texts = list(texts) if isinstance(texts, Iterator) else texts
        return self.fit(texts, y).transform(texts)

    def transform(
        self, texts: Iterable[str | Sequence[str]]
    ) -> Float[NDArray[np.float32], "texts dim"]:
        """Return the vectors of texts, which are strings or lists of words.

        Raises:
            DataError: another encoder is at its place now than in `fit`.
            TypeError: a text is neither a string nor a list of words.
            ValueError: `texts` has several columns.
        """
        import_extra("sklearn.utils.validation", "sklearn").check_is_fitted(self, "digest_")
        sentences, encoder = split_texts(_listed(texts), self.tokenizer), self._encoder()
        if _digest(encoder) != self.digest_:
            raise DataError(
                f"{self.bilm}: another encoder is here now (SHA-256 {_digest(encoder)[:12]}) than "
                f"in `fit` ({self.digest_[:12]}); put it back, or fit again"
            )
        vectors = np.empty((len(sentences), self.num_features_), np.float32)
        for number, rows in enumerate(_memory.rows(encoder, sentences, self.pool)):
            vectors[number] = self._selected(rows)
        return vectors

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return `elmo0`, `elmo1` and so on."""
        import_extra("sklearn.utils.validation", "sklearn").check_is_fitted(self, "digest_")
        return np.array([f"elmo{number}" for number in range(self.num_features_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.transformer_tags.preserves_dtype = []  # the result is float32
        return tags

    def _encoder(self) -> PretrainedEncoder:
        return load_encoder(self.bilm, device=self.device)

    def _selected(self, rows: _Rows) -> Float[NDArray[np.float32], " dim"]:
        is_average = isinstance(self.layers, str) and self.layers == "average"
        return rows[-1] if is_average else select_layers(rows[:-1], self.layers).ravel()


def _digest(encoder: PretrainedEncoder) -> str:
    assert encoder.source.fingerprint is not None
    return encoder.source.fingerprint.digest


def _listed(texts: Iterable[str | Sequence[str]]) -> list[str | Sequence[str]]:
    if isinstance(texts, str | bytes):
        raise TypeError("expected a list of texts, not a string; pass [text]")
    if getattr(texts, "ndim", 1) != 1:
        raise ValueError("expected one text per example, not a table; pass one of its columns")
    return list(texts)
