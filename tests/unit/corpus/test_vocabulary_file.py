from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from elmo_framework.corpus.vocabulary_file import (
    as_counts,
    read_vocabulary_file,
    vocabulary_text,
)
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError
from elmo_framework.tasks.language_modeling.vocabulary import target_vocabulary

SPECIAL = "<S>\n</S>\n<UNK>\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vocab.txt"


def test_a_vocabulary_file_round_trips(path: Path) -> None:
    path.write_text(vocabulary_text(["the", "Ä"]))
    assert read_vocabulary_file(path) == ["the", "Ä"]


def test_filling_lines_hold_no_word(path: Path) -> None:
    path.write_text(f"{SPECIAL}the\n!!!MAXTERMID\na\n!!!MAXTERMID\n")
    assert read_vocabulary_file(path) == ["the", "a"]


def test_words_that_no_line_can_be_are_unknown(path: Path) -> None:
    counts = {"a": 4, "\xa0(2020)": 3, "(2020)": 3, "!!!MAXTERMID": 2, "x\ny": 2, "1\xa0000": 1}
    found = target_vocabulary(Vocabularies({"words": Counter(counts)}), min_count=1, max_size=None)
    assert list(found.items[3:]) == ["a", "(2020)", "1\xa0000"]
    path.write_text(vocabulary_text(found.items[3:]))
    assert read_vocabulary_file(path) == list(found.items[3:])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the\n</S>\n", r"vocab\.txt:1: .* begins with .*'the' in place of <S>"),
        ("<S>\n</S>\n<unk>\na\n", r"vocab\.txt:3: .*'<unk>' in place of <UNK>"),
        ("<S>\n</S>\n", r"vocab\.txt:3: .*'' in place of <UNK>"),
        ("", r"vocab\.txt:1: "),
        (f"{SPECIAL}a\nb\na\n", r"vocab\.txt:6: duplicate word 'a', first in line 4"),
    ],
)
def test_invalid_vocabulary_file_is_refused(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_vocabulary_file(path)


def test_artificial_counts_keep_order_and_all_words() -> None:
    words = ["b", "c", "a"]
    found = target_vocabulary(
        Vocabularies({"words": as_counts(words)}), min_count=1000, max_size=None
    )
    assert list(found.items[3:]) == words
