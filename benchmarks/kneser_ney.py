"""The perplexity of 5-grams on the held-out part of a corpus, to compare that of a biLM with.

The model is the interpolated modified Kneser-Ney of Chen and Goodman (1998). For k = 1 to n

    P_k(w | h) = (c(h w) - D_k(c(h w)) + P_(k-1)(w | h') * sum over v of D_k(c(h v))) / c(h .)

where h has k - 1 words, h' is h without its first one, c(h .) is the sum of c(h v) over all words
v, and P_0 = 1 / (number of words). P_k is P_(k-1) where h was never seen. For k = n, c(h w) is how
often the k-gram comes in the training part; below, how many different words stand before it. Only
a k-gram that begins with the boundary, which no word stands before, is counted as it comes. With
n_i the number of k-grams whose c is i, and Y = n_1 / (n_1 + 2 n_2), the discounts of each order are

    D(1) = 1 - 2 Y n_2 / n_1,  D(2) = 2 - 3 Y n_3 / n_2,  D(3 or more) = 3 - 4 Y n_4 / n_3,

and D(0) = 0; 0.5, 1 and 1.5 stand in for them where some n_i is 0 or a discount is not between 0
and the count: a vocabulary that is cut may leave no rare words to take them from.

What is predicted is what a biLM predicts: each word of a sentence and the boundary at its far end,
the words that the vocabulary lacks as `<UNK>`, over all words of the softmax. The first word is
predicted from the near boundary, and nothing from the sentence before, while a row of a biLM goes
on from sentence to sentence. The backward model is counted on the reversed sentences.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from measuring import report, timed
from numpy.typing import NDArray

from elmo_framework import console
from elmo_framework.bilm.context_layers import Direction
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary
from elmo_framework.errors import ElmoFrameworkError
from elmo_framework.metrics.ratios import perplexity
from elmo_framework.tasks.language_modeling.corpus import TokenIdCorpus
from elmo_framework.tasks.language_modeling.reader import PreparedCorpusReader
from elmo_framework.tasks.language_modeling.task import LanguageModelingTask
from elmo_framework.tasks.language_modeling.vocabulary import TargetIndexer, target_vocabulary

_DIRECTIONS: tuple[Direction, Direction] = ("forward", "backward")
_FALLBACK = (0.0, 0.5, 1.0, 1.5)
_NOWHERE = -1
"""The number of an n-gram that was never counted, or begins before its sentence."""


def main() -> int:
    """Count, predict and report."""
    arguments = _arguments()
    reader = PreparedCorpusReader(max_instances=arguments.max_instances)
    try:
        training = PreparedCorpusReader().read(arguments.corpus / "training")
        held_out = reader.read(arguments.corpus / "held_out")
    except ElmoFrameworkError as error:
        console.info(f"error: {error}")
        return 2
    measured = {
        direction: _measured(training, held_out, direction, arguments.order)
        for direction in _DIRECTIONS
    }
    losses = zip(*(measure.losses for measure in measured.values()), strict=True)
    report(
        bench="kneser_ney",
        words=training.num_words,
        vocabulary=len(words_of(training)),
        sentences=held_out.num_sentences,
        predictions=held_out.num_predictions,
        count_s=round(sum(measure.count_s for measure in measured.values()), 1),
        predict_s=round(sum(measure.predict_s for measure in measured.values()), 1),
        rows=[_row(order, *both) for order, both in enumerate(losses, start=1)],
    )
    return 0


class Measure(NamedTuple):
    """What was measured of one direction.

    Attributes:
        losses: by order, in nats.
        count_s: seconds for the model.
        predict_s: seconds for the losses.
    """

    losses: list[float]
    count_s: float
    predict_s: float


def _measured(
    training: TokenIdCorpus, held_out: TokenIdCorpus, direction: Direction, order: int
) -> Measure:
    """Count a model and let it predict; nothing of it is kept for the other direction."""
    vocabulary = words_of(training)
    text = Text.of(training, vocabulary, direction)
    model, count_s = timed(lambda: KneserNey.of(text, order=order, num_words=len(vocabulary)))
    wanted = Text.of(held_out, vocabulary, direction)
    losses, predict_s = timed(lambda: list(model.losses(wanted)))
    return Measure(losses, count_s, predict_s)


def words_of(training: TokenIdCorpus) -> Vocabulary:
    """Return the words that the softmax of a biLM knows after training on a corpus."""
    counted = Vocabularies(LanguageModelingTask().count(training))
    return target_vocabulary(counted, min_count=1, max_size=None)


@final
@dataclass(frozen=True)
class Text:
    """Sentences one after the other, each between its boundaries, in reading order.

    Attributes:
        words: their ids in the softmax.
        places: where each stands in its sentence; all but those at 0 are predicted.
    """

    words: NDArray[np.int32]
    places: NDArray[np.int32]

    @classmethod
    def of(cls, corpus: TokenIdCorpus, vocabulary: Vocabulary, direction: Direction) -> Text:
        """Return the sentences of a corpus as one direction reads them."""
        targets = TargetIndexer(vocabulary).ids(corpus.words).astype(np.int32)
        words = targets[corpus.ids[np.arange(len(corpus.ids))]]
        lengths = np.diff(corpus.offsets)
        if direction == "backward":
            words, lengths = words[::-1].copy(), lengths[::-1]
        begins = (np.cumsum(lengths) - lengths).astype(np.int32)
        return cls(words, np.arange(len(words), dtype=np.int32) - np.repeat(begins, lengths))


@final
@dataclass(frozen=True)
class Level:
    """All n-grams of one length; each has a number, its place in the order of the keys.

    Attributes:
        keys: number of the n-gram without its last word * number of all words + last word; sorted.
        counts: how often each comes.
        continuations: how many words stand before it, or its count where no word can.
        num_words: of the vocabulary.
        num_contexts: how many n-grams are one word shorter.
    """

    keys: NDArray[np.int64]
    counts: NDArray[np.int32]
    continuations: NDArray[np.int32]
    num_words: int
    num_contexts: int

    def find(self, contexts: NDArray[np.int64], words: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the numbers of n-grams, given as the number of the context and the last word."""
        wanted = contexts * self.num_words + words
        places = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[places] == wanted, places, _NOWHERE)

    def interpolate(
        self,
        counts: NDArray[np.int32],
        contexts: NDArray[np.int64],
        found: NDArray[np.int64],
        lower: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return P_k of words in contexts.

        Args:
            counts: what c is: `counts` or `continuations`.
            contexts: the numbers of the contexts.
            found: the numbers of the n-grams.
            lower: P_(k-1).
        """
        discounts = np.array(discounts_of(counts))
        owners = self.keys // self.num_words
        totals = np.bincount(owners, counts, self.num_contexts)
        masses = np.bincount(owners, discounts[np.minimum(counts, 3)], self.num_contexts)
        is_seen = (contexts != _NOWHERE) & (totals[contexts] > 0)
        inside, own = contexts[is_seen], found[is_seen]
        held = np.where(own == _NOWHERE, 0, counts[own])
        result = lower.copy()
        result[is_seen] = (
            held - discounts[np.minimum(held, 3)] + masses[inside] * lower[is_seen]
        ) / totals[inside]
        return result


@final
@dataclass(frozen=True)
class KneserNey:
    """The models of all orders up to one, which share their lower orders.

    Attributes:
        levels: the n-grams by their length, from 1.
        num_words: of the vocabulary.
    """

    levels: tuple[Level, ...]
    num_words: int

    @classmethod
    def of(cls, text: Text, *, order: int, num_words: int) -> KneserNey:
        """Count a text: a sort of 8 bytes a word for each order."""
        return cls(tuple(_levels(text, order, num_words)), num_words)

    def probabilities(self, text: Text) -> Iterator[NDArray[np.float64]]:
        """Yield of each order the probability of every word, those at place 0 to be left out."""
        lower = np.full(len(text.words), 1 / self.num_words)
        contexts = np.zeros(len(text.words), np.int64)
        for level in self.levels:
            found = level.find(contexts, text.words)
            yield level.interpolate(level.counts, contexts, found, lower)
            lower = level.interpolate(level.continuations, contexts, found, lower)
            contexts = np.where(text.places == 0, _NOWHERE, np.roll(found, 1))

    def losses(self, text: Text) -> Iterator[float]:
        """Yield of each order the mean of -log P over all predictions, in nats."""
        for probabilities in self.probabilities(text):
            yield float(-np.log(probabilities[text.places > 0]).mean())


def discounts_of(counts: NDArray[np.int32]) -> tuple[float, float, float, float]:
    """Return what is taken from the counts 0, 1, 2, and all above."""
    _, *numbers, _ = np.bincount(np.minimum(counts, 5), minlength=6).tolist()
    if not all(numbers):
        return _FALLBACK
    one, two, three, four = numbers
    share = one / (one + 2 * two)
    first = 1 - 2 * share * two / one
    second, third = 2 - 3 * share * three / two, 3 - 4 * share * four / three
    return (0.0, first, second, third) if 0 <= second <= 2 and 0 <= third <= 3 else _FALLBACK


def _levels(text: Text, order: int, num_words: int) -> Iterator[Level]:
    """Yield the n-grams by their length; five ids do not fit 64 bits, so each length is numbered.

    A length is yielded once the next one has been counted, which tells what stands before it.
    """
    numbers, num_contexts = text.words, 1
    keys = np.arange(num_words)
    counts = np.bincount(text.words[text.places > 0], minlength=num_words).astype(np.int32)
    for length in range(2, order + 1):
        ends = np.flatnonzero(text.places >= length - 1)
        joined = numbers[ends - 1].astype(np.int64) * num_words + text.words[ends]
        longer, inverse, longer_counts = np.unique(joined, return_inverse=True, return_counts=True)
        some_end = np.empty(len(longer), np.int64)
        some_end[inverse] = ends
        before = np.bincount(numbers[some_end], minlength=len(keys)).astype(np.int32)
        yield Level(keys, counts, np.where(before, before, counts), num_words, num_contexts)
        numbers = np.full(len(text.words), _NOWHERE, np.int32)
        numbers[ends] = inverse
        num_contexts, keys, counts = len(keys), longer, longer_counts.astype(np.int32)
    yield Level(keys, counts, counts, num_words, num_contexts)


def _row(order: int, forward: float, backward: float) -> dict[str, Any]:
    return {
        "config": f"{order}-gram",
        "forward_perplexity": round(perplexity(forward), 3),
        "backward_perplexity": round(perplexity(backward), 3),
        "perplexity": round(perplexity((forward + backward) / 2), 3),
    }


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Measure the perplexity of Kneser-Ney n-grams.")
    parser.add_argument("corpus", type=Path, help="what `elmo prepare` made")
    parser.add_argument("--order", type=int, default=5, help="the longest n-grams (5)")
    parser.add_argument(
        "--max-instances",
        type=int,
        help="how many held-out sentences, as `max_instances` of the reader chooses them (all)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
