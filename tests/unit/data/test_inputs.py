import pytest

from elmo_framework.common.errors import DataError
from elmo_framework.data.inputs import given_words, only_key, require_known
from elmo_framework.data.tokenizer import WhitespaceTokenizer

TOKENIZER = WhitespaceTokenizer()


def test_raw_text_is_split_and_a_list_of_words_is_not():
    assert given_words({"text": "a b"}, "text", TOKENIZER) == ("a", "b")
    assert given_words({"text": ["a b", "c"]}, "text", TOKENIZER) == ("a b", "c")


@pytest.mark.parametrize("value", [3, None, ["a", 3], {"a": "b"}])
def test_anything_else_is_refused(value: object):
    with pytest.raises(DataError) as raised:
        given_words({"text": value}, "text", TOKENIZER)

    assert str(raised.value) == f"'text' is {value!r}; expected a string or a list of strings"


def test_a_missing_key_is_named_with_those_that_are_there():
    with pytest.raises(DataError) as raised:
        given_words({"premises": "a"}, "premise", TOKENIZER)

    assert (
        str(raised.value) == "there is no key 'premise'; found: premises. Did you mean 'premises'?"
    )


def test_a_key_that_means_nothing_is_refused():
    require_known({"text": "a"}, ("text", "id"))
    with pytest.raises(DataError) as raised:
        require_known({"text": "a", "idd": 3}, ("text", "id"))

    assert str(raised.value) == (
        "'idd' is no key of an input; allowed: id, text. Did you mean 'id'?"
    )


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

    assert str(raised.value).startswith(f"expected one key that holds a text, found {found}; ")
