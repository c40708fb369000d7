import pytest

from elmo_framework.data.inputs import PredictionInput, input_words, only_key, other_fields
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.errors import DataError

TOKENIZER = WhitespaceTokenizer()


def test_raw_text_is_split_and_a_list_of_words_is_not():
    assert input_words({"text": "a b"}, "text", TOKENIZER) == ("a", "b")
    assert input_words({"text": ["a b", "c"]}, "text", TOKENIZER) == ("a b", "c")


@pytest.mark.parametrize("value", [3, None, ["a", 3], {"a": "b"}])
def test_anything_else_is_refused(value: object):
    with pytest.raises(DataError) as raised:
        input_words({"text": value}, "text", TOKENIZER)

    assert str(raised.value) == f"'text' is {value!r}; expected a string or a list of strings"


def test_a_missing_key_is_named_with_those_that_are_there():
    with pytest.raises(DataError) as raised:
        input_words({"premises": "a"}, "premise", TOKENIZER)

    assert str(raised.value) == "missing key 'premise'; found: premises. Did you mean 'premises'?"


def test_other_fields_precede_the_prediction():
    fields = other_fields({"id": 3, "text": "a"}, ("text",))

    output = PredictionInput("a", fields).output({"words": ["a"]})

    assert list(output.items()) == [("id", 3), ("words", ["a"])]


def test_fields_with_the_name_of_a_prediction_are_renamed():
    fields = {"label": "gold", "input_label": "other"}

    assert PredictionInput("a", fields).output({"label": "new"}) == {
        "input_label": "other",
        "label": "new",
        "input_input_label": "gold",
    }


def test_one_of_several_keys_is_found():
    assert only_key({"text": "a", "id": 3}, ("sentence", "text")) == "text"


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        ({}, "none"),
        ({"words": "a"}, "'words'"),
        ({"text": "", "sentence": ""}, "'sentence', 'text'"),
    ],
)
def test_none_or_several_of_them_are_refused(inputs: dict[str, str], found: str):
    with pytest.raises(DataError) as raised:
        only_key(inputs, ("sentence", "text"))

    assert str(raised.value).startswith(f"expected one key with a text, found {found}; ")
