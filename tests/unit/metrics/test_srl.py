"""Cases worked by hand from the definition of srl-eval.pl."""

import random
from itertools import product

import pytest

from elmo_framework.data.tagging import spans
from elmo_framework.metrics.srl import SrlEval, arguments

METRIC = SrlEval()


def tags(text: str) -> list[str]:
    """`A0 A0 . V` are the tags of two words of A0, one outside and the predicate."""
    labels = text.split()
    return [
        "O" if label == "." else f"{'I' if before == label else 'B'}-{label}"
        for before, label in zip([".", *labels], labels, strict=False)
    ]


def scores(prediction: str, gold: str) -> dict[str, float]:
    return METRIC.score(METRIC.count([(0, tags(prediction))], [(0, tags(gold))]))


def overall(prediction: str, gold: str) -> tuple[float, float, float]:
    found = scores(prediction, gold)
    names = ("precision-overall", "recall-overall", "f1-measure-overall")
    return tuple(found[name] for name in names)


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        ("V A0 A0 .", "V A0 A0 .", (1, 1, 1)),
        ("V A0 A0 A1", "V A0 A0 .", (0.5, 1, 2 / 3)),
        ("V A0 A0 .", "V A0 A0 A1", (1, 0.5, 2 / 3)),
        ("V A0 . .", "V A0 A0 .", (0, 0, 0)),  # exact ends
        ("V A1 A1 .", "V A0 A0 .", (0, 0, 0)),  # and the label
        ("V . . .", "V . . .", (0, 0, 0)),  # nothing to find
        (". . . .", "V A0 . .", (0, 0, 0)),
        (". A0 . .", "V A0 . .", (1, 1, 1)),  # V does not count
    ],
)
def test_argument_is_correct_if_label_and_span_are(prediction, gold, expected):
    assert overall(prediction, gold) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        ("A1 V C-A1 .", "A1 V C-A1 .", (1, 1, 1)),  # one argument, not two
        ("A1 V . .", "A1 V C-A1 .", (0, 0, 0)),  # one piece of it is wrong altogether
        ("A1 V C-A1 C-A1", "A1 V C-A1 .", (0, 0, 0)),
        ("A1 V A1 .", "A1 V C-A1 .", (0, 0, 0)),  # two arguments for one
        ("C-A1 V . .", "A1 V . .", (1, 1, 1)),  # goes on with nothing: an argument itself
        ("C-A1 V A1 .", "A1 V . .", (0.5, 1, 2 / 3)),  # what comes later is another one
        ("A1 V C-A0 .", "A1 V A0 .", (1, 1, 1)),  # nothing of A0 is there to go on with
        ("A1 V A1 C-A1", "A1 V A1 C-A1", (1, 1, 1)),  # goes on with the last A1
        ("A1 C-A1 V C-A1", "A1 C-A1 V C-A1", (1, 1, 1)),  # pieces side by side stay pieces
        ("A1 A1 V C-A1", "A1 C-A1 V C-A1", (0, 0, 0)),
        ("R-A0 A0 V .", "R-A0 A0 V .", (1, 1, 1)),
        ("A0 A0 V .", "R-A0 R-A0 V .", (0, 0, 0)),  # R-A0 is a label of its own
        ("A0 V R-A0 C-R-A0", "A0 V R-A0 C-R-A0", (1, 1, 1)),
    ],
)
def test_continuations_join_the_last_argument_of_their_label(prediction, gold, expected):
    assert overall(prediction, gold) == pytest.approx(expected)


def test_each_label_and_the_predicate_have_scores():
    found = scores("V A0 A1 C-V", "V A0 A2 C-V")

    assert found["f1-measure-A0"] == found["f1-measure-V"] == 1
    assert found["precision-A1"] == found["recall-A2"] == 0
    assert found["precision-overall"] == found["recall-overall"] == 0.5
    assert "f1-measure-C-V" not in found


def test_predicates_that_are_not_in_the_data_are_ignored():
    prediction = [(0, tags("V A0 .")), (2, tags("A0 A1 V"))]

    found = METRIC.score(METRIC.count(prediction, [(0, tags("V A0 ."))]))

    assert found["precision-overall"] == 1


def test_arguments_of_a_missing_predicate_are_missed():
    gold = [(0, tags("V A0 .")), (2, tags("A0 . V"))]

    found = METRIC.score(METRIC.count([(0, tags("V A0 ."))], gold))

    assert (found["precision-overall"], found["recall-overall"]) == (1, 0.5)


def test_sentence_without_predicates_counts_nothing():
    assert METRIC.count([(None, tags("A0 . A1"))], [(None, tags(". . ."))]) == {}


def test_inside_tag_without_beginning_starts_an_argument():
    sums = METRIC.count([(0, ["O", "I-A0", "I-A1"])], [(0, ["O", "B-A0", "B-A1"])])

    assert METRIC.score(sums)["f1-measure-overall"] == 1


def test_scores_of_summed_examples_are_exact():
    pairs = [("V A0 . A1", "V A0 A1 ."), ("V . A0 A0", "V . A0 A0"), (". . . .", "V A2 . .")]
    total: dict[str, float] = {}
    for prediction, gold in pairs:
        for name, value in METRIC.count([(0, tags(prediction))], [(0, tags(gold))]).items():
            total[name] = total.get(name, 0) + value

    found = METRIC.score(total)

    assert found["precision-overall"] == pytest.approx(2 / 3)
    assert found["recall-overall"] == 0.5


def test_joined_arguments_equal_a_backward_search():
    labels = ["A0", "C-A0", "A1", "C-A1"]
    for chosen in product(labels, repeat=5):
        pieces = [(place, place + 1, label) for place, label in enumerate(chosen)]
        heads: dict[int, list[tuple[int, int]]] = {}
        for place, label in enumerate(chosen):
            own = label.removeprefix("C-")
            before = [p for p in heads if p < place and chosen[p].removeprefix("C-") == own]
            head = max(before) if label != own and before else place
            heads.setdefault(head, []).append((place, place + 1))
        expected = [(tuple(held), chosen[p].removeprefix("C-")) for p, held in heads.items()]

        assert arguments(pieces) == expected


def test_counts_equal_a_comparison_of_every_pair():
    generator = random.Random(1)
    choices = [".", "A0", "A1", "C-A0", "C-A1", "R-A0", "V"]
    for _ in range(300):
        texts = [" ".join(generator.choices(choices, k=6)) for _ in range(2)]
        found, gold = (arguments(spans(tags(text))) for text in texts)
        correct = sum(one == other and one[1] != "V" for one in found for other in gold)
        num_found, num_gold = (sum(label != "V" for _, label in held) for held in (found, gold))
        precision = correct / num_found if num_found else 0
        recall = correct / num_gold if num_gold else 0

        assert overall(*texts)[:2] == pytest.approx((precision, recall))
