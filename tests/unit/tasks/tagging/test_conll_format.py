import random
from collections import Counter

import pytest

from elmo_framework.tasks.tagging.conll_format import conll_columns
from elmo_framework.tasks.tagging.example import TaggedSentence
from elmo_framework.tasks.tagging.task import TaggingTask
from tests.unit.metrics.conlleval import conlleval


def written(*predictions: tuple[str, str, str | None]) -> str:
    return "".join(
        conll_columns(
            (
                predicted.split(),
                TaggedSentence(tuple(words.split()), None if gold is None else tuple(gold.split())),
            )
            for words, predicted, gold in predictions
        )
    )


def test_a_word_its_gold_tag_and_the_predicted_one_stand_on_a_line():
    found = written(("Oslo is wet", "B-PER O O", "B-LOC O O"), ("Rain", "O", "O"))

    assert found == "Oslo B-LOC B-PER\nis O O\nwet O O\n\nRain O O\n\n"


def test_bioul_is_written_in_bio():
    found = written(("Ann Lee of Oslo", "B-PER L-PER O U-LOC", "U-PER U-PER O O"))

    assert found == "Ann B-PER B-PER\nLee B-PER I-PER\nof O O\nOslo O B-LOC\n\n"


def test_bioes_is_written_in_bio():
    found = written(("Ann Lee of Oslo", "B-PER E-PER O S-LOC", "S-PER S-PER O O"))

    assert found == "Ann B-PER B-PER\nLee B-PER I-PER\nof O O\nOslo O B-LOC\n\n"


def test_broken_tags_of_bio_stay_broken():
    assert written(("a b c", "I-X I-Y B-Y", "O O O")) == "a O I-X\nb O I-Y\nc O B-Y\n\n"


def test_without_gold_tags_there_are_two_columns():
    assert written(("Rain fell", "NN VBD", None)) == "Rain NN\nfell VBD\n\n"


def test_a_word_or_a_tag_with_spaces_is_one_column():
    examples = [(("B-a b", "X"), TaggedSentence(("10 000", "\u3000"), ("U-a b", "X")))]

    assert "".join(conll_columns(examples)) == "10_000 U-a_b B-a_b\n_ X X\n\n"


def test_what_is_written_scores_as_the_predictions_do():
    dice = random.Random(3)
    tags = ["O", *(f"{prefix}-{label}" for prefix in "BIUL" for label in ("PER", "LOC"))]
    metric, sums, predictions = TaggingTask.metrics["span_f1"], Counter[str](), []
    for _ in range(80):
        gold = dice.choices(tags, k=dice.randint(1, 9))
        guess = [dice.choice(tags) if dice.random() < 0.3 else tag for tag in gold]
        sums.update(metric.count(guess, gold))
        predictions.append((guess, TaggedSentence(("w",) * len(gold), tuple(gold))))

    sentences = []
    for block in "".join(conll_columns(predictions)).strip().split("\n\n"):
        _, gold, guess = zip(*(line.split() for line in block.split("\n")), strict=True)
        sentences.append((gold, guess))

    expected = conlleval(sentences)
    assert {name: f"{100 * score:.2f}" for name, score in metric.score(sums).items()} == {
        name: f"{score:.2f}" for name, score in expected.items()
    }


@pytest.mark.parametrize(
    ("gold", "guess", "correct"),
    [
        ("B-PER L-PER O U-LOC", "B-PER L-PER O U-LOC", 4),
        ("B-PER L-PER O O", "B-PER I-PER L-PER O", 3),  # L-PER is I-PER to conlleval
        ("B-PER L-PER O O", "U-PER O O O", 3),  # and U-PER is B-PER
        ("S-PER O B-LOC E-LOC", "B-PER E-PER B-LOC E-LOC", 3),
        ("NN VBZ L NN", "NN VBD L NN", 3),
    ],
)
def test_accuracy_compares_tags_as_conlleval_does(gold, guess, correct):
    metric = TaggingTask.metrics["span_f1"]

    sums = metric.count(guess.split(), gold.split())

    assert metric.score(sums)["accuracy"] == correct / 4
