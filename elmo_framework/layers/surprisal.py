"""The surprisal of words: layers of sentences and a softmax in, bits out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from elmo_framework.bilm.files.softmax import BiLmSoftmax
from elmo_framework.corpus.vocabulary_file import SPECIAL_WORDS, UNKNOWN_WORD
from elmo_framework.data.characters import BEGIN_SENTENCE, END_SENTENCE

_POSITIONS_AT_ONCE = 4096
"""The softmax is computed when so many predictions are waiting, or at the end."""

_BEGIN, _END, _UNKNOWN = map(SPECIAL_WORDS.index, (BEGIN_SENTENCE, END_SENTENCE, UNKNOWN_WORD))

ReadSentence: TypeAlias = tuple[int, Sequence[str], Float[Tensor, "layers _ dim"]]
"""The number of a sentence, its words, and its layers with both boundaries."""


class Bits(NamedTuple):
    """A sum of surprisals in bits."""

    forward: float
    backward: float

    @property
    def both(self) -> float:
        """The mean of the two directions."""
        return (self.forward + self.backward) / 2


@dataclass(frozen=True, slots=True, eq=False)
class SentenceScore:
    """The surprisals of a sentence: `-log2 p` of each prediction, in bits.

    Both directions predict each word. In addition, the forward direction predicts `</S>` after
    the last word, and the backward direction `<S>` before the first. A sentence without words has
    no predictions.

    Attributes:
        forward: of each word after those before it; "words", float64.
        backward: of each word before those after it; "words", float64.
        is_unknown: whether the softmax does not know a word; "words", bool. Its surprisal is then
            that of `<UNK>`, the class of all unknown words together.
        end: of `</S>`, forward.
        begin: of `<S>`, backward.

    What a source does not predict is NaN: for a causal transformer all that is backward, words
    without pieces, and the end where its tokenizer has no token for it. Sums leave it out, and are
    NaN if nothing is left.
    """

    forward: NDArray[np.float64]
    backward: NDArray[np.float64]
    is_unknown: NDArray[np.bool_]
    end: float = 0.0
    begin: float = 0.0

    @property
    def both(self) -> NDArray[np.float64]:
        """The mean of both directions at each word; "words"."""
        return (self.forward + self.backward) / 2

    @property
    def total(self) -> Bits:
        """The bits of the whole sentence, `</S>` and `<S>` included."""
        words = self.words(0, len(self.forward))
        pairs = zip(words, (self.end, self.begin), strict=True)
        return Bits(*(_sum(np.array(pair)) for pair in pairs))

    @property
    def num_predictions(self) -> tuple[int, int]:
        """How many words and boundaries are predicted, forward and backward."""
        sides = (self.forward, self.end), (self.backward, self.begin)
        forward, backward = (
            int((~np.isnan(words)).sum()) + (len(words) > 0 and not isnan(boundary))
            for words, boundary in sides
        )
        return forward, backward

    def words(self, start: int, end: int) -> Bits:
        """Return the sums over the words from `start` up to `end`, exclusive, from 0."""
        return Bits(_sum(self.forward[start:end]), _sum(self.backward[start:end]))


def _sum(bits: NDArray[np.float64]) -> float:
    """Return the sum of what is predicted; NaN if nothing of some words is."""
    if len(bits) and np.isnan(bits).all():
        return nan
    return float(np.nansum(bits))


def surprisals(
    sentences: Iterable[ReadSentence], softmax: BiLmSoftmax, *, device: torch.device
) -> Iterator[tuple[int, SentenceScore]]:
    """Yield the numbers and the scores of sentences; those without words may come earlier.

    Only the top layer is used: the first half of its vectors predicts the next word, the second
    half the word before. Memory is bounded, whatever the number of sentences and of words.

    Args:
        sentences: read one after the other.
        softmax: of the source of the layers.
        device: computes the softmax.
    """
    waiting, num_waiting = list[ReadSentence](), 0
    for number, words, layers in sentences:
        if not words:
            yield number, SentenceScore(np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool))
            continue
        waiting.append((number, words, layers[-1:]))
        num_waiting += len(words) + 1
        if num_waiting >= _POSITIONS_AT_ONCE:
            yield from _scored(waiting, softmax, device)
            waiting, num_waiting = [], 0
    if waiting:
        yield from _scored(waiting, softmax, device)


def _scored(
    sentences: Sequence[ReadSentence], softmax: BiLmSoftmax, device: torch.device
) -> Iterator[tuple[int, SentenceScore]]:
    ids = [softmax.vocabulary.ids(words) for _, words, _ in sentences]
    tops = [layers[-1].to(device) for _, _, layers in sentences]
    half = tops[0].shape[1] // 2
    forward = softmax.surprisal(
        torch.cat([top[:-1, :half] for top in tops]).float(),
        torch.from_numpy(np.concatenate([[*each, _END] for each in ids])).to(device),
    )
    backward = softmax.surprisal(
        torch.cat([top[1:, half:] for top in tops]).float(),
        torch.from_numpy(np.concatenate([[_BEGIN, *each] for each in ids])).to(device),
    )
    start = 0
    for (number, _, _), words in zip(sentences, ids, strict=True):
        last = start + len(words)
        yield (
            number,
            SentenceScore(
                forward=forward[start:last],
                backward=backward[start + 1 : last + 1],
                is_unknown=words == _UNKNOWN,
                end=float(forward[last]),
                begin=float(backward[start]),
            ),
        )
        start = last + 1
