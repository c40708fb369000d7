import subprocess
import sys
from itertools import pairwise
from types import ModuleType, SimpleNamespace

import pytest
from spacy.tokens import Doc

from elmo_framework.config.parse import parse
from elmo_framework.data.tokenizer import (
    AddingTokenizer,
    CharacterTokenizer,
    SpacyTokenizer,
    Tokenizer,
    WhitespaceTokenizer,
)
from elmo_framework.data.tokenizer import _pipeline as pipeline
from elmo_framework.errors import BuildError, DataError, RunError


@pytest.fixture
def module(monkeypatch):
    """Replace modules by attributes, or by None as if they were not installed."""

    def replace(name, **attributes):
        made = None if not attributes else ModuleType(name)
        vars(made).update(attributes) if made else None
        monkeypatch.setitem(sys.modules, name, made)

    pipeline.cache_clear()
    yield replace
    pipeline.cache_clear()


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


def test_combining_marks_belong_to_the_character_before():
    tokenizer = CharacterTokenizer()
    text = "ที่ นี่ e\u0301 \u0301a"

    assert tokenizer.words(text) == ["ที่", "นี่", "e\u0301", "\u0301", "a"]
    assert [text[start:end] for start, end in tokenizer.offsets(text)] == tokenizer.words(text)


def test_words_are_added_before_and_after_each_text():
    adding = {"type": "add_tokens", "tokenizer": "whitespace", "start_tokens": ["<"]}
    tokenizer = parse(Tokenizer, {**adding, "end_tokens": [">", "."]}, source="a").build()

    assert isinstance(tokenizer, AddingTokenizer)
    assert tokenizer.words("a b") == ["<", "a", "b", ">", "."]
    assert tokenizer.sentences("a b\nc") == ["a b", "c"]


def test_spacy_splits_punctuation_and_contractions():
    words = SpacyTokenizer().words(" Dr. Lund  didn't go,\nshe said.")

    assert words == ["Dr.", "Lund", "did", "n't", "go", ",", "she", "said", "."]


def test_half_a_character_is_refused_by_spacy():
    with pytest.raises(DataError) as raised:
        SpacyTokenizer().words("bad \ud83d b")

    assert str(raised.value) == r"lone surrogate '\ud83d' in 'bad \ud83d b'"


def test_only_line_ends_separate_lines():
    text = "a b\u2028c\x85d\x0ce\r\nf\rg\n"

    assert WhitespaceTokenizer().sentences(text) == ["a b\u2028c\x85d\x0ce", "f", "g"]


def test_spacy_gives_words_without_spaces_at_their_ends(monkeypatch):
    """As the package for Thai does, whose words may begin with a no-break space."""
    tokenizer = SpacyTokenizer()
    words = ["\xa0(2020)", "\u3000", "he"]
    vocabulary = tokenizer._pipeline.vocab
    monkeypatch.setattr(tokenizer, "_tokenize", lambda text: Doc(vocabulary, words))

    assert tokenizer.words("") == ["(2020)", "he"]


def test_spacy_gives_words_that_are_alike_as_one_object():
    first, second = SpacyTokenizer().words("Rain"), SpacyTokenizer().words("Rain")

    assert first[0] is second[0]


def test_spacy_splits_sentences():
    sentences = SpacyTokenizer().sentences("It rained. Did it?  Yes!\n")

    assert sentences == ["It rained.", "Did it?", "Yes!"]


def test_spacy_has_rules_for_other_languages():
    assert SpacyTokenizer("it").words("dell'acqua") == ["dell'", "acqua"]


@pytest.mark.parametrize(
    ("language", "text", "sentences", "words"),
    [
        ("zh", "我们在。他 说好。", ["我们在。", "他 说好。"], list("我们在。他说好。")),
        ("ko", "나는 살아요. 네!", ["나는 살아요.", "네!"], ["나는", "살아요", ".", "네", "!"]),
        ("vi", "Ở Hà Nội. À?", ["Ở Hà Nội.", "À?"], ["Ở", "Hà", "Nội", ".", "À", "?"]),
    ],
)
def test_these_languages_need_no_further_package(language, text, sentences, words):
    tokenizer = SpacyTokenizer(language)

    assert tokenizer.sentences(text) == sentences
    assert tokenizer.words(text) == words
    assert [text[start:end] for start, end in tokenizer.offsets(text)] == words


def test_the_package_of_a_language_gives_words_and_offsets(module):
    text = "ab  cd.ef"
    module("pythainlp", tokenize=None)
    module("pythainlp.tokenize", word_tokenize=lambda _: ["a", "b", "  ", "c", "d", ".", "ef"])

    tokenizer = SpacyTokenizer("th")

    assert tokenizer.words(text) == ["a", "b", "c", "d", ".", "ef"]
    assert tokenizer.offsets(text) == [(0, 1), (1, 2), (4, 5), (5, 6), (6, 7), (7, 9)]
    assert tokenizer.sentences(text) == ["ab  cd.", "ef"]


def test_jieba_finds_chinese_words_and_keeps_its_files_in_the_cache(module, monkeypatch, tmp_path):
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path))
    folder, levels = SimpleNamespace(), []
    words = {"作为": ["作为"], "我们在。": ["我们", "在", "。"]}

    def cut(text, *, cut_all):
        return words[text]

    module("jieba", cut=cut, setLogLevel=levels.append, dt=folder)

    assert SpacyTokenizer("zh", segmenter="jieba").words("我们在。") == ["我们", "在", "。"]
    assert folder.tmp_dir == str(tmp_path / "jieba")
    assert (tmp_path / "jieba").is_dir()
    assert levels == [30]
    assert SpacyTokenizer("zh").words("我们") == ["我", "们"]


@pytest.mark.parametrize(
    ("language", "segmenter", "missing", "extra"),
    [
        ("ja", None, "sudachipy", "japanese"),
        ("th", None, "pythainlp", "thai"),
        ("zh", "jieba", "jieba", "chinese"),
    ],
)
def test_missing_package_of_a_language_is_named(module, language, segmenter, missing, extra):
    module(missing)

    with pytest.raises(RunError) as raised:
        SpacyTokenizer(language, segmenter)

    message = f"{missing} is not installed; run: pip install 'elmo-framework[{extra}]'"
    assert str(raised.value) == message


def test_text_too_long_for_sudachi_is_refused(module, monkeypatch):
    class SudachiError(Exception):
        pass

    def refuse(text):
        raise SudachiError("Input is too long")

    module("sudachipy.errors", SudachiError=SudachiError)
    monkeypatch.setattr(
        "elmo_framework.data.tokenizer._pipeline", lambda *_: SimpleNamespace(tokenizer=refuse)
    )

    with pytest.raises(DataError) as raised:
        SpacyTokenizer("ja").words("東京")

    assert str(raised.value) == "Input is too long in '東京'"


def test_a_segmenter_is_for_chinese_only():
    with pytest.raises(ValueError, match="segmenter 'jieba' is for Chinese \\('zh'\\), not 'en'"):
        SpacyTokenizer("en", "jieba")


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
