"""Baselines that count words: the most frequent label, and linear classifiers of scikit-learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, pairwise, product
from typing import Any, TypeAlias

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from elmo_framework.data.labels import Classification
from elmo_framework.data.tagging import beginnings, convert, scheme_of
from elmo_framework.errors import DataError
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.classification.task import ClassifiedText
from elmo_framework.tasks.entailment.task import SentencePair
from elmo_framework.tasks.srl.example import SrlExample
from elmo_framework.tasks.tagging.task import TaggedSentence

Features: TypeAlias = list[str]

_SEED = 1
_BOUNDARY = ("<s>", "<s>")
_OFFSETS = (-2, -1, 0, 1, 2)
_FAR = 10
"""Words that are farther from the predicate are all at this distance."""


class MajorityLabel:
    """Gives each example the most frequent label of the training data."""

    name = "majority"

    def fit(self, examples: Sequence[Any]) -> None:
        """Count the labels."""
        counts = Counter(each.label for each in examples if each.label is not None)
        total = counts.total()
        label = min(counts, key=lambda label: (-counts[label], label))
        probabilities = {name: count / total for name, count in sorted(counts.items())}
        self._prediction = Classification(label, probabilities)

    def predict(self, examples: Sequence[Any]) -> list[Classification]:
        """Return the same for each."""
        return [self._prediction] * len(examples)


def _two_or_more(labels: Sequence[str]) -> Sequence[str]:
    if len(set(labels)) == 1:
        raise DataError(f"the training examples all have the label {labels[0]!r}")
    return labels


class BagOfWords:
    """Classifies texts and pairs of sentences by logistic regression over their words.

    A text is the tf-idf of its words and bigrams, with sublinear counts. A pair has the words and
    bigrams of the hypothesis, the words and bigrams of the hypothesis that the premise lacks, each
    pair of a word of the premise and one of the hypothesis that are not in both, and the rounded
    share of the hypothesis that the premise has. In lower case.
    """

    name = "bag_of_words"

    def fit(self, examples: Sequence[Any]) -> None:
        """Fit the weights."""
        labeled = [each for each in examples if each.label is not None]
        is_pair = isinstance(labeled[0], SentencePair)
        self._features = _pair_features if is_pair else _text_features
        self._model = _pair_model() if is_pair else _text_model()
        labels = [each.label for each in labeled]
        self._model.fit(list(map(self._features, labeled)), _two_or_more(labels))

    def predict(self, examples: Sequence[Any]) -> list[Classification]:
        """Return the labels with their probabilities."""
        rows = self._model.predict_proba(list(map(self._features, examples)))
        names = [str(name) for name in self._model.classes_]
        return [
            Classification(names[int(row.argmax())], dict(zip(names, row.tolist(), strict=True)))
            for row in rows
        ]


def _text_model() -> Pipeline:
    vectorizer = TfidfVectorizer(analyzer=list, sublinear_tf=True)
    return make_pipeline(vectorizer, LogisticRegression(C=3, max_iter=300))


def _pair_model() -> Pipeline:
    return make_pipeline(_one_hot(), LogisticRegression(C=0.1, max_iter=100))


def _one_hot() -> CountVectorizer:
    return CountVectorizer(analyzer=list, binary=True)


def _text_features(example: ClassifiedText) -> Features:
    return list(_ngrams(example.words))


def _pair_features(example: SentencePair) -> Features:
    premise, hypothesis = set(_ngrams(example.premise)), set(_ngrams(example.hypothesis))
    absent = hypothesis - premise
    features = [f"hypothesis {ngram}" for ngram in hypothesis]
    features += [f"new {ngram}" for ngram in absent]
    pairs = product(_words(premise - hypothesis), _words(absent))
    features += [f"{first} > {second}" for first, second in pairs]
    words = set(_words(hypothesis))
    features.append(f"overlap {round(10 * len(words & premise) / max(1, len(words)))}")
    return features


def _ngrams(words: Sequence[str]) -> Iterator[str]:
    lowered = [word.lower() for word in words]
    yield from lowered
    yield from map(" ".join, pairwise(lowered))


def _words(ngrams: set[str]) -> Iterator[str]:
    return (ngram for ngram in ngrams if " " not in ngram)


class WordClassifier:
    """Tags words by a linear classifier over them and their neighbors, each word independently.

    Features are the word, its shape, prefix and suffix, and the two words before and after it. For
    semantic roles they are also the predicate, the distance from it and the words next to it, and
    pairs of these. Spans are tagged as BIO; a sequence that is not valid is read as the scorer of
    CoNLL reads it.
    """

    name = "word_classifier"

    def fit(self, examples: Sequence[TaggedSentence | SrlExample]) -> None:
        """Fit the weights."""
        sequences = list(_sequences(examples))
        tags = [tag for _, _, own in sequences for tag in own]
        begun = Counter(tag for _, _, own in sequences for tag in beginnings(own))
        self._scheme = scheme_of(tags, begun)
        if self._scheme is not None:
            tags = [tag for _, _, own in sequences for tag in convert(own, "BIO")]
        self._model = make_pipeline(
            _one_hot(),
            SGDClassifier(loss="log_loss", alpha=1e-5, max_iter=20, tol=None, random_state=_SEED),
        )
        rows = (
            row for words, predicate, _ in sequences for row in _word_features(words, predicate)
        )
        self._model.fit(rows, _two_or_more(tags))

    def predict(self, examples: Sequence[Any]) -> list[Any]:
        """Return the tags of sentences, or the propositions of predicates."""
        sequences = [list(_sequences([example])) for example in examples]
        rows = [
            row
            for own in sequences
            for words, place, _ in own
            for row in _word_features(words, place)
        ]
        tags = iter(map(str, self._model.predict(rows) if rows else ()))
        predictions: list[Any] = []
        for example, own in zip(examples, sequences, strict=True):
            tagged = [
                Proposition(place, self._in_scheme(list(islice(tags, len(words)))))
                for words, place, _ in own
            ]
            is_srl = isinstance(example, SrlExample)
            predictions.append(tuple(tagged) if is_srl else tagged[0].tags)
        return predictions

    def _in_scheme(self, tags: Sequence[str]) -> tuple[str, ...]:
        return tuple(tags if self._scheme is None else convert(tags, self._scheme))


def _sequences(
    examples: Iterable[TaggedSentence | SrlExample],
) -> Iterator[tuple[Sequence[str], int | None, Sequence[str]]]:
    for example in examples:
        if isinstance(example, TaggedSentence):
            yield example.words, None, example.tags or ()
        else:
            for predicate, tags in example.propositions or ():
                yield example.words, predicate, tags


def _word_features(words: Sequence[str], predicate: int | None) -> list[Features]:
    padded = [*_BOUNDARY, *words, *_BOUNDARY]
    lowered = [word.lower() for word in padded]
    rows = []
    for position in range(len(words)):
        center = position + len(_BOUNDARY)
        word = padded[center]
        near = [f"{offset}={lowered[center + offset]}" for offset in _OFFSETS]
        forms = [f"word={word}", f"shape={_shape(word)}", f"suffix={word[-3:]}", f"in={word[:3]}"]
        shapes = [f"shape{offset}={_shape(padded[center + offset])}" for offset in (-1, 1)]
        names = [*near, *forms, *shapes]
        if predicate is not None:
            names += _predicate_features(lowered, center, predicate + len(_BOUNDARY))
        rows.append(names)
    return rows


def _predicate_features(lowered: Sequence[str], center: int, predicate: int) -> list[str]:
    distance = max(-_FAR, min(_FAR, center - predicate))
    word = lowered[predicate]
    inside = lowered[min(center, predicate) + 1 : max(center, predicate)]
    own = [f"at={distance}", f"of={word}", f"before={lowered[predicate - 1]}"]
    own += [f"after={lowered[predicate + 1]}", f"comma={',' in inside}"]
    near = [f"{offset}={lowered[center + offset]}" for offset in (-1, 0, 1)]
    return [
        *own,
        f"of={word} at={distance}",
        *(f"at={distance} {each}" for each in near),
        *(f"of={word} side={center > predicate} {each}" for each in near),
    ]


def _shape(word: str) -> str:
    kinds = (
        "A" if c.isupper() else "a" if c.islower() else "0" if c.isdigit() else c for c in word
    )
    return "".join(kind for kind, _ in groupby(kinds))
