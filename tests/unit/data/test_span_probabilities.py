"""Marginal probabilities of spans, against sums over all sequences of tags."""

from itertools import pairwise, product

import numpy as np
import pytest

from elmo_framework.data.annotation import Annotation
from elmo_framework.data.span_probabilities import TagScores, label_probabilities
from elmo_framework.data.tagging import allowed_transitions, spans, tag_annotations

TAGS = {
    "IOB1": ("O", "I-A", "B-A", "I-B", "B-B"),
    "BIO": ("O", "B-A", "I-A", "B-B", "I-B"),
    "BIOUL": ("O", "B-A", "I-A", "L-A", "U-A", "U-B"),
}
LENGTH = 4


def random_scores(num_tags: int, seed: int) -> TagScores:
    chance = np.random.default_rng(seed)
    shapes = ((LENGTH, num_tags), (num_tags,), (num_tags, num_tags), (num_tags,))
    return TagScores(*(chance.normal(scale=2, size=shape) for shape in shapes))


def constrained(scores: TagScores, tags, scheme) -> TagScores:
    first, inner, last = (np.where(each, 0, -10_000) for each in allowed_transitions(tags, scheme))
    start, transitions, end = scores.start + first, scores.transitions + inner, scores.end + last
    return TagScores(scores.emissions, start, transitions, end)


def sequences(scores: TagScores, tags):
    """Every sequence of tags with its probability."""
    totals = {}
    for path in product(range(len(tags)), repeat=LENGTH):
        total = scores.start[path[0]] + scores.end[path[-1]]
        total += sum(scores.emissions[place, tag] for place, tag in enumerate(path))
        total += sum(scores.transitions[pair] for pair in pairwise(path))
        totals[tuple(tags[tag] for tag in path)] = np.exp(total)
    return {path: value / sum(totals.values()) for path, value in totals.items()}


@pytest.mark.parametrize("scheme", TAGS)
@pytest.mark.parametrize("is_constrained", [False, True])
def test_span_probabilities_are_sums_over_sequences(scheme, is_constrained):
    tags = TAGS[scheme]
    scores = random_scores(len(tags), seed=3)
    scores = constrained(scores, tags, scheme) if is_constrained else scores
    expected: dict[tuple[int, int, str], float] = {}
    for path, probability in sequences(scores, tags).items():
        for span in spans(path):
            expected[tuple(span)] = expected.get(tuple(span), 0.0) + probability
    places = [(start, end) for start in range(LENGTH) for end in range(start + 1, LENGTH + 1)]

    found = label_probabilities(scores, tags, [Annotation(*each, "A") for each in places], top_k=2)

    for (start, end), probabilities in zip(places, found, strict=True):
        wanted = {label: expected.get((start, end, label), 0.0) for label in "AB"}
        assert probabilities == pytest.approx(wanted, abs=1e-12)


def test_a_label_may_be_called_as_a_tag():
    tags = ("B-A", "B-O", "O")
    scores = random_scores(len(tags), seed=2)
    every = sequences(scores, tags).items()
    expected = sum(probability for path, probability in every if path[1] == "B-O")

    (found,) = label_probabilities(scores, tags, [Annotation(1, 2, "O")])

    assert found == pytest.approx({"O": expected})


def test_sentences_without_spans_need_no_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TagScores, "forward", None)
    assert label_probabilities(random_scores(3, 0), TAGS["BIO"][:3], []) == []


def test_labels_of_words_are_ranked_after_the_predicted_one():
    tags = ("NN", "VB", "JJ")
    scores = random_scores(len(tags), seed=1)
    expected = np.zeros((LENGTH, len(tags)))
    for path, probability in sequences(scores, tags).items():
        for place, tag in enumerate(path):
            expected[place, tags.index(tag)] += probability

    found = label_probabilities(
        scores, tags, tag_annotations(["JJ"] * LENGTH), are_spans=False, top_k=3
    )

    for place, probabilities in enumerate(found):
        first, *others = probabilities
        assert first == "JJ"
        assert probabilities == pytest.approx(dict(zip(tags, expected[place], strict=True)))
        assert [*others] == sorted(others, key=lambda tag: -probabilities[tag])
