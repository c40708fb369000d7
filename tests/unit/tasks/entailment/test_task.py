import pytest

from elmo_framework.data.labels import Classification
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.errors import DataError
from elmo_framework.tasks.entailment.task import EntailmentTask, SentencePair

TASK = EntailmentTask()
PAIR = SentencePair(("A", "dog", "runs"), ("A", "dog"), "yes")


def test_words_of_both_sentences_and_labels_are_counted():
    assert TASK.count([PAIR, SentencePair((), ("x",), None)]) == {
        "words": {"A": 2, "dog": 2, "runs": 1, "x": 1},
        "labels": {"yes": 1},
    }


def test_both_sentences_are_cached():
    assert list(TASK.sentences(PAIR)) == [PAIR.premise, PAIR.hypothesis]
    assert TASK.num_tokens(PAIR) == 6


def test_gold_is_the_label():
    assert TASK.gold(PAIR) == "yes"
    with pytest.raises(DataError, match="an example without a label cannot be scored: 'b'"):
        TASK.gold(SentencePair(("a",), ("b",), None))


def test_an_example_is_made_of_raw_text_or_of_words():
    inputs = {"premise": "a b", "hypothesis": ["c d"]}

    assert TASK.example(inputs, WhitespaceTokenizer()) == SentencePair(("a", "b"), ("c d",), None)


def test_both_sentences_are_needed():
    with pytest.raises(DataError) as raised:
        TASK.example({"premise": "a", "hypotesis": "b"}, WhitespaceTokenizer())

    assert str(raised.value) == (
        "missing key 'hypothesis'; found: hypotesis, premise. Did you mean 'hypotesis'?"
    )


@pytest.mark.parametrize("empty", [" ", []])
def test_sentence_without_words_is_refused(empty):
    with pytest.raises(DataError, match=r"^'hypothesis' has no words$"):
        TASK.example({"premise": "a", "hypothesis": empty}, WhitespaceTokenizer())


def test_a_plain_sentence_is_not_enough():
    with pytest.raises(DataError) as raised:
        TASK.example({"sentence": "a"}, WhitespaceTokenizer())

    assert str(raised.value) == (
        'a plain sentence is not enough; pass {"premise": "...", "hypothesis": "..."}'
    )


def test_prediction_is_shown_as_json_and_in_color():
    prediction = Classification("yes", {"yes": 0.75, "no": 0.25})

    assert TASK.to_json(prediction, PAIR) == {
        "premise": ["A", "dog", "runs"],
        "hypothesis": ["A", "dog"],
        "label": "yes",
        "probabilities": {"yes": 0.75, "no": 0.25},
    }
    arrow = "\N{RIGHTWARDS ARROW}"
    assert TASK.pretty(prediction, PAIR).plain == f"yes 75%  A dog runs {arrow} A dog"
