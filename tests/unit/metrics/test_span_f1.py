import random
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from elmo_framework.data.tagging import convert
from elmo_framework.metrics.span_f1 import SpanF1
from tests.unit.metrics.conlleval import conlleval, label_scores

Sentence = tuple[Sequence[str], Sequence[str]]
TAGS = ["O", *(f"{prefix}-{label}" for prefix in "BI" for label in ("PER", "LOC", "C-X"))]


AVERAGES = ("f1-measure-macro", "f1-measure-weighted")


def scored(sentences: Sequence[Sentence]) -> dict[str, float]:
    """Score pairs of gold and predicted tags, without the averages that conlleval lacks."""
    metric, sums = SpanF1(), Counter[str]()
    for gold, prediction in sentences:
        sums.update(metric.count(prediction, gold))
    return without_averages(metric.score(sums))


def without_averages(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: score for name, score in scores.items() if name not in AVERAGES}


def printed(scores: Mapping[str, float], *, scale: float) -> dict[str, str]:
    """Scores as conlleval prints them."""
    return {name: f"{scale * score:.2f}" for name, score in scores.items()}


def random_sentences(seed: int) -> list[Sentence]:
    """Gold tags at random, malformed as often as not; most of the predicted tags are right."""
    dice = random.Random(seed)
    sentences = []
    for _ in range(60):
        gold = dice.choices(TAGS, k=dice.randint(1, 9))
        guess = [dice.choice(TAGS) if dice.random() < 0.3 else tag for tag in gold]
        sentences.append((gold, guess))
    return sentences


def test_span_is_correct_if_its_words_and_label_are():
    scores = scored(
        [
            (["B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "I-PER", "O", "B-PER"]),
            (["B-LOC", "I-LOC"], ["B-LOC", "O"]),
            (["O", "B-LOC"], ["O", "B-LOC"]),
        ]
    )

    expected = {
        "accuracy": 6 / 8,
        "precision-overall": 2 / 4,
        "recall-overall": 2 / 4,
        "f1-measure-overall": 1 / 2,
        "precision-PER": 1 / 2,
        "recall-PER": 1.0,
        "f1-measure-PER": 2 / 3,
        "precision-LOC": 1 / 2,
        "recall-LOC": 1 / 3,
        "f1-measure-LOC": 2 / 5,
    }
    assert scores == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_scores_equal_conlleval_to_the_last_digit(seed):
    sentences = random_sentences(seed)

    expected = conlleval(sentences)

    assert printed(scored(sentences), scale=100) == printed(expected, scale=1)
    in_per_cent = {name: 100 * score for name, score in scored(sentences).items()}
    assert in_per_cent == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_scores_of_valid_tags_equal_conlleval(seed):
    sentences = [
        (convert(gold, "IOB1"), convert(guess, "IOB1")) for gold, guess in random_sentences(seed)
    ]

    assert printed(scored(sentences), scale=100) == printed(conlleval(sentences), scale=1)


def test_scores_are_rounded_as_by_conlleval():
    sums = {"correct/X": 1, "predicted/X": 800, "gold/X": 1}

    scores = printed(without_averages(SpanF1().score(sums)), scale=100)

    assert scores["precision-X"] == "0.12"
    expected = label_scores("X", 1, 800, 1) | label_scores("overall", 1, 800, 1)
    assert {**scores, "accuracy": "0.00"} == {**printed(expected, scale=1), "accuracy": "0.00"}


@pytest.mark.parametrize("seed", range(3))
def test_overall_scores_equal_seqeval(seed):
    sentences = random_sentences(seed)
    golds, guesses = ([list(tags) for tags in column] for column in zip(*sentences, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from seqeval import metrics

        expected = {
            "precision-overall": metrics.precision_score(golds, guesses),
            "recall-overall": metrics.recall_score(golds, guesses),
            "f1-measure-overall": metrics.f1_score(golds, guesses),
            "accuracy": metrics.accuracy_score(golds, guesses),
        }

    scores = scored(sentences)

    assert {name: scores[name] for name in expected} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("scheme", ["IOB1", "BIOUL"])
def test_span_scores_do_not_depend_on_the_scheme(scheme):
    sentences = random_sentences(0)
    converted = [(convert(gold, scheme), convert(guess, scheme)) for gold, guess in sentences]

    found, expected = scored(converted), scored(sentences)

    assert found.keys() == expected.keys()
    assert {**found, "accuracy": 0} == {**expected, "accuracy": 0}


@pytest.mark.parametrize("sentences", [[], [(["O", "O"], ["O", "O"])]])
def test_scores_without_spans_are_zero(sentences):
    scores = scored(sentences)

    names = ["precision-overall", "recall-overall", "f1-measure-overall"]
    assert [scores[name] for name in names] == [0.0, 0.0, 0.0]
    assert scores["accuracy"] == float(bool(sentences))


def test_label_called_overall_is_not_counted_twice():
    scores = scored([(["B-overall", "B-X", "B-X"], ["B-overall", "O", "O"])])

    assert scores["recall-overall"] == pytest.approx(1 / 3)
    assert scores["precision-overall"] == 1.0
    assert "recall-X" in scores


@pytest.mark.parametrize(
    ("gold", "prediction"),
    [(["U-X", "O", "O"], ["I-X", "O", "O"]), (["U-X", "O", "U-Y"], ["I-X", "O", "U-Y"])],
)
def test_a_tag_is_right_whatever_the_other_words_have(gold, prediction):
    scores = scored([(gold, prediction)])

    assert (scores["accuracy"], scores["f1-measure-overall"]) == (1.0, 1.0)


def test_tags_without_spans_have_an_accuracy():
    scores = scored([(["NN", "VBZ", "PRP$"], ["NN", "VB", "PRP$"])])

    assert scores["accuracy"] == 2 / 3
    assert scores["f1-measure-overall"] == 0.0


def test_overall_comes_first_and_labels_by_support():
    gold = ["B-RARE", "B-A", "B-Z", "B-Z", "B-B", "B-B"]

    names = list(scored([(gold, ["B-UNSEEN", *gold[1:]])]))

    assert [name.removeprefix("recall-") for name in names if name.startswith("recall")] == [
        *("overall", "B", "Z", "A", "RARE", "UNSEEN")
    ]


def test_sums_of_parts_give_the_score_of_the_whole():
    sentences = random_sentences(1)
    metric = SpanF1()
    halves = [Counter[str](), Counter[str]()]
    for number, (gold, guess) in enumerate(sentences):
        halves[number % 2].update(metric.count(guess, gold))

    assert without_averages(metric.score(halves[1] + halves[0])) == scored(sentences)


@pytest.mark.parametrize(
    ("gold", "prediction", "correct", "predicted"),
    [
        ("B-PER I-PER O", "I-PER I-PER O", 1, 1),  # an I without a B begins a span
        ("B-PER I-PER O", "O I-PER O", 0, 1),  # which is another span when it begins later
        ("B-PER I-LOC O", "B-PER I-LOC O", 2, 2),  # another label begins a span
        ("B-PER I-PER I-PER", "B-PER I-LOC I-PER", 0, 3),  # and so does going back
        ("B-PER B-PER O", "B-PER I-PER O", 0, 1),  # neighbors are not one span
        ("I-PER B-PER O", "B-PER B-PER O", 2, 2),  # IOB1 and BIO can be mixed
        ("B-PER L-PER U-LOC", "B-PER I-PER B-LOC", 2, 2),  # and so can BIOUL
        ("B-PER L-PER L-PER", "B-PER I-PER B-PER", 2, 2),  # after an L a span has ended
        ("U-PER I-PER O", "B-PER B-PER O", 2, 2),  # and after a U
        ("O B-PER O", "O B-per O", 0, 1),  # labels differ by case
        ("O B-A-B I-A-B", "O B-A-B I-A-C", 0, 2),  # a label goes from the first hyphen on
        ("O O O", "X I Y-PER", 0, 0),  # what is not a span tag is outside
    ],
)
def test_invalid_tags_are_read_as_by_conlleval(gold, prediction, correct, predicted):
    scores = scored([(gold.split(), prediction.split())])

    expected = correct / predicted if predicted else 0.0
    assert scores["precision-overall"] == pytest.approx(expected)


def test_span_ends_with_its_sentence():
    scores = scored([(["O", "B-PER"], ["O", "I-PER"]), (["I-PER"], ["I-PER"])])

    assert scores["precision-overall"] == scores["recall-overall"] == 1.0
    expected = conlleval([(["O", "B-PER"], ["O", "I-PER"]), (["I-PER"], ["I-PER"])])
    assert printed(scores, scale=100) == printed(expected, scale=1) | {"accuracy": "66.67"}
