from collections import Counter
from pathlib import Path

import pytest

from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError


def test_saved_vocabularies_are_loaded(tmp_path: Path):
    counts = {"words": Counter({"Zoë": 3, "a\u2028b": 3, '"': 1}), "labels": Counter({"O": 0})}

    Vocabularies(counts).save(tmp_path)
    loaded = Vocabularies.load(tmp_path)

    assert loaded.names == ["labels", "words"]
    assert list(loaded.counted("words").items()) == [("Zoë", 3), ("a\u2028b", 3), ('"', 1)]


@pytest.mark.parametrize("line", ["nonsense", "5", '["a", null]', '["a"]', "[[], 1]", '"ab"'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str):
    path = tmp_path / "labels.jsonl"
    path.write_text(f'["O", 3]\n{line}\n')

    with pytest.raises(DataError) as raised:
        Vocabularies.load(tmp_path)

    assert str(raised.value) == f"{path}:2: expected [item, count], found {line!r}"


def test_file_that_is_not_text_is_named(tmp_path: Path):
    (tmp_path / "labels.jsonl").write_bytes(b"\xff\n")

    with pytest.raises(DataError, match=r"labels\.jsonl:1: not valid UTF-8 text"):
        Vocabularies.load(tmp_path)


def test_folder_of_allennlp_keeps_its_order(tmp_path):
    (tmp_path / "non_padded_namespaces.txt").write_text("*labels\n*tags\n")
    (tmp_path / "tokens.txt").write_text("@@UNKNOWN@@\nthe\nan\n")
    (tmp_path / "token_characters.txt").write_text("@@UNKNOWN@@\ne\n@@NEWLINE@@\n")
    (tmp_path / "labels.txt").write_text("O\nU-X\nB-X\n")
    vocabularies = Vocabularies.load(tmp_path)

    assert vocabularies.words().items[2:] == ("the", "an")
    assert vocabularies.characters().items[2:] == ("e", "\n")
    assert vocabularies.labels().items == ("O", "U-X", "B-X")
    assert list(vocabularies.counted("beginnings")) == ["U-X", "B-X"]
    assert min(vocabularies.counted("words").values()) > 1000  # no minimum leaves them out


def test_pattern_of_allennlp_without_a_star_is_a_whole_name(tmp_path):
    (tmp_path / "non_padded_namespaces.txt").write_text("tags\n")
    (tmp_path / "tags.txt").write_text("A\nB\n")
    (tmp_path / "pos_tags.txt").write_text("@@UNKNOWN@@\nC\n")
    vocabularies = Vocabularies.load(tmp_path)

    assert [*vocabularies.counted("tags")] == ["A", "B"]
    assert [*vocabularies.counted("pos_tags")] == ["C"]


def test_words_in_the_form_of_special_items_are_unknown():
    counts = Counter({"a": 3, "@@PADDING@@": 2, "@@UNKNOWN@@": 1})
    words = Vocabularies({"words": counts}).words()

    assert words.items == ("@@PADDING@@", "@@UNKNOWN@@", "a")
    assert words.ids(["@@PADDING@@", "@@UNKNOWN@@", "b", "a"]).tolist() == [1, 1, 1, 2]
    assert "@@PADDING@@" not in words
