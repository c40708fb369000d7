from typing import Any

import pytest

from elmo_framework.data.labels import Classification
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.errors import DataError
from elmo_framework.tasks.classification.task import ClassifiedText, TextClassificationTask

TASK = TextClassificationTask()
TEXTS = [ClassifiedText(("Good", "fun"), "yes"), ClassifiedText(("Fun",), None)]


def test_words_and_labels_are_counted():
    assert TASK.count(TEXTS) == {"words": {"Good": 1, "fun": 1, "Fun": 1}, "labels": {"yes": 1}}


def test_a_text_is_one_sentence():
    assert list(TASK.sentences(TEXTS[0])) == [("Good", "fun")]
    assert TASK.num_tokens(TEXTS[0]) == 2


def test_gold_is_the_label():
    assert TASK.gold(TEXTS[0]) == "yes"
    with pytest.raises(DataError, match="an example without a label cannot be scored: 'Fun'"):
        TASK.gold(TEXTS[1])


@pytest.mark.parametrize("inputs", [{"sentence": "a b"}, {"text": "a b"}, {"tokens": ["a", "b"]}])
def test_an_example_is_made_of_raw_text_or_of_words(inputs: dict[str, Any]):
    assert TASK.example(inputs, WhitespaceTokenizer()) == ClassifiedText(("a", "b"), None)


def test_prediction_is_shown_as_json_and_in_color():
    prediction = Classification("yes", {"yes": 0.75, "no": 0.25})

    assert TASK.to_json(prediction, TEXTS[0]) == {
        "words": ["Good", "fun"],
        "label": "yes",
        "probabilities": {"yes": 0.75, "no": 0.25},
    }
    assert TASK.pretty(prediction, TEXTS[0]).plain == "yes 75%  Good fun"
