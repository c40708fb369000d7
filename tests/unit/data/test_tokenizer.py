import subprocess
import sys
from itertools import pairwise

import pytest

from elmo_framework.config.parse import parse
from elmo_framework.data.tokenizer import (
    CharacterTokenizer,
    SpacyTokenizer,
    Tokenizer,
    WhitespaceTokenizer,
)
from elmo_framework.errors import BuildError, DataError


def test_whitespace_separates_words_and_lines_are_sentences():
    tokenizer = WhitespaceTokenizer()

    assert tokenizer.sentences("One two .\n \nThree .\n") == ["One two .", "Three ."]
    assert tokenizer.words(" It  's here .") == ["It", "'s", "here", "."]


@pytest.mark.parametrize("name", ["whitespace", "characters", "spacy"])
def test_offsets_are_the_positions_of_words(name):
    tokenizer = parse(Tokenizer, name, source="a.jsonnet").build()
    text = "  Dr. Lund's  boat,\n24\u201310 \U0001f600 boat boat."

    offsets = tokenizer.offsets(text)

    assert [text[start:end] for start, end in offsets] == tokenizer.words(text)
    assert all(end <= start for (_, end), (start, _) in pairwise(offsets))


def test_a_tokenizer_that_rewrites_words_has_no_offsets(monkeypatch):
    monkeypatch.setattr(WhitespaceTokenizer, "words", lambda _, text: text.lower().split())

    assert WhitespaceTokenizer().offsets("one two") == [(0, 3), (4, 7)]
    with pytest.raises(DataError) as raised:
        WhitespaceTokenizer().offsets("one Two")
    assert str(raised.value) == "the word 'two' of the tokenizer is not in 'one Two'"


def test_each_character_but_space_is_a_word():
    tokenizer = CharacterTokenizer()

    assert tokenizer.sentences("我们\n\n他 们") == ["我们", "他 们"]
    assert tokenizer.words("他 们\u3000!") == ["他", "们", "!"]


def test_spacy_splits_punctuation_and_contractions():
    words = SpacyTokenizer().words(" Dr. Lund  didn't go,\nshe said.")

    assert words == ["Dr.", "Lund", "did", "n't", "go", ",", "she", "said", "."]


def test_half_a_character_is_refused_by_spacy():
    with pytest.raises(DataError) as raised:
        SpacyTokenizer().words("bad \ud83d b")

    assert str(raised.value) == r"lone surrogate '\ud83d' in 'bad \ud83d b'"


def test_spacy_gives_words_that_are_alike_as_one_object():
    first, second = SpacyTokenizer().words("Rain"), SpacyTokenizer().words("Rain")

    assert first[0] is second[0]


def test_spacy_splits_sentences():
    sentences = SpacyTokenizer().sentences("It rained. Did it?  Yes!\n")

    assert sentences == ["It rained.", "Did it?", "Yes!"]


def test_spacy_has_rules_for_other_languages():
    assert SpacyTokenizer("it").words("dell'acqua") == ["dell'", "acqua"]


def test_an_unknown_language_is_refused_with_the_nearest_one():
    with pytest.raises(ValueError, match="unknown spaCy language") as raised:
        SpacyTokenizer("eng")

    assert str(raised.value).startswith("unknown spaCy language 'eng'; choose from af, am, ar, ")
    assert str(raised.value).endswith("Did you mean 'en'?")


def test_a_config_error_names_the_tokenizer():
    lazy = parse(Tokenizer, {"type": "spacy", "language": "zzzz"}, source="a.jsonnet")

    with pytest.raises(BuildError, match="SpacyTokenizer: unknown spaCy language 'zzzz'"):
        lazy.build()


def test_importing_the_tokenizers_does_not_import_spacy():
    code = "import sys, elmo_framework.data.tokenizer; sys.exit('spacy' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
