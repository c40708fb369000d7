"""The scores of EVALB: examples worked by hand, and a count by brute force."""

from __future__ import annotations

import random

import pytest

from plugins.allennlp_heads.evalb import EvalbScores
from plugins.allennlp_heads.trees import Constituent, Tree, parse_tree

METRIC = EvalbScores()


def counts(predicted: str, gold: str) -> tuple[float, float, float]:
    _, tree = parse_tree(predicted)
    sums = METRIC.count(tree.constituents, parse_tree(gold)[1])
    return sums["correct"], sums["predicted"], sums["gold"]


GOLD = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))"


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        (GOLD, GOLD, (3, 3, 3)),
        # Another label, and a constituent too many.
        ("(TOP (S (NP (DT the) (NN dog)) (NP (VBZ barks)) (. .)))", GOLD, (2, 3, 3)),
        ("(TOP (S (NP (DT the) (NP (NN dog))) (VP (VBZ barks)) (. .)))", GOLD, (3, 4, 3)),
        # Punctuation is deleted: whether the full stop is in the VP does not matter.
        ("(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks) (. .))))", GOLD, (3, 3, 3)),
        # A constituent of punctuation alone is none.
        ("(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (X (. .))))", GOLD, (3, 3, 3)),
        # PRT is ADVP.
        ("(S (VB go) (PRT (RP on)))", "(S (VB go) (ADVP (RP on)))", (2, 2, 2)),
        # Equal constituents are counted one by one.
        ("(S (NP (NP (NN a))) (VB b))", "(S (NP (NN a)) (VB b))", (2, 3, 2)),
        ("(S (NP (NN a)) (VB b))", "(S (NP (NP (NN a))) (VB b))", (2, 2, 3)),
        # No constituents at all.
        ("(NN a)", "(NN a)", (0, 0, 0)),
    ],
)
def test_counts_are_those_worked_by_hand(
    predicted: str, gold: str, expected: tuple[float, float, float]
) -> None:
    assert counts(predicted, gold) == expected


def test_scores_are_of_sums_over_sentences() -> None:
    sums = {"correct": 6.0, "predicted": 8.0, "gold": 12.0, "exact": 1.0, "sentences": 4.0}
    assert METRIC.score(sums) == {
        "evalb_precision": 0.75,
        "evalb_recall": 0.5,
        "evalb_f1_measure": pytest.approx(0.6),
        "evalb_exact_match": 0.25,
    }
    assert set(METRIC.score({}).values()) == {0.0}


def test_counts_equal_those_by_brute_force() -> None:
    generator = random.Random(1)
    for _ in range(300):
        tags = tuple(generator.choice(["NN", "VB", ",", "."]) for _ in range(6))
        predicted, gold = (_constituents(generator) for _ in range(2))
        sums = METRIC.count(predicted, Tree(gold, tags))
        left = [_words(predicted, tags), _words(gold, tags)]
        correct = 0
        rest = list(left[1])
        for each in left[0]:
            if each in rest:
                rest.remove(each)
                correct += 1
        assert (sums["correct"], sums["predicted"], sums["gold"]) == (
            correct,
            len(left[0]),
            len(left[1]),
        )
        assert sums["exact"] == float(sorted(left[0]) == sorted(left[1]))


def _constituents(generator: random.Random) -> tuple[Constituent, ...]:
    labels = ["S", "NP", "ADVP", "PRT", "TOP"]
    spans = (sorted(generator.sample(range(7), 2)) for _ in range(generator.randrange(6)))
    return tuple(Constituent(start, end, generator.choice(labels)) for start, end in spans)


def _words(
    constituents: tuple[Constituent, ...], tags: tuple[str, ...]
) -> list[tuple[str, list[int]]]:
    """Return label and words of each constituent that counts."""
    listed = []
    for start, end, label in constituents:
        words = [index for index in range(start, end) if tags[index] in ("NN", "VB")]
        if words and label != "TOP":
            listed.append(("ADVP" if label == "PRT" else label, words))
    return listed
