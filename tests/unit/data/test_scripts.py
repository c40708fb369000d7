from __future__ import annotations

import logging
from pathlib import Path

import pytest

from elmo_framework.api.pretrained import load_bilm
from elmo_framework.bilm.files.published import resolve_bilm, script_check
from elmo_framework.data.scripts import ScriptCheck, letters_by_script, vocabulary_scripts

RUSSIAN = ["\u0434\u043e\u0436\u0434\u044c"] * 20  # 100 letters


def test_letters_are_counted_by_their_script():
    assert letters_by_script(["\u00c4a1", "\u03b1.", "\u65e5"]) == {
        "Latin": 2,
        "Greek": 1,
        "Cjk": 1,
    }


def test_scripts_of_a_vocabulary_are_those_of_enough_letters(tmp_path: Path):
    path = tmp_path / "vocabulary.txt"
    path.write_text("<S>\n" + "rain\n" * 30 + "\u03b1\n" + "\u0434\u043e\u0436\u0434\u044c\n" * 3)

    assert vocabulary_scripts(path) == {"Latin", "Cyrillic"}
    assert vocabulary_scripts(tmp_path / "absent") == frozenset()


def test_mostly_another_script_warns_once(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)
    check = ScriptCheck(frozenset({"Latin"}), "mini")

    for _ in range(3):
        check.read([RUSSIAN, ["rain"]])

    (record,) = caplog.records
    assert record.getMessage() == (
        "96 % of the letters are not Latin, which the biLM mini was trained on, most of them "
        "Cyrillic: its vectors for such words mean little; use a biLM of that language"
    )


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"Latin"}, [*RUSSIAN, *["rain"] * 26]),  # the smaller part
        ({"Latin"}, RUSSIAN[:9]),  # too few letters to tell
        ({"Latin"}, ["12", "."] * 100),
        ({"Cyrillic", "Latin"}, RUSSIAN),
        (set(), RUSSIAN),  # the biLM's own script is unknown
    ],
)
def test_other_text_does_not_warn(
    known: set[str], words: list[str], caplog: pytest.LogCaptureFixture
):
    ScriptCheck(frozenset(known), "mini").read([words])

    assert caplog.records == []


def test_published_bilms_are_latin(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    files = resolve_bilm("mini")
    name = "elmo_2x1024_128_2048cnn_1xhighway_weights.hdf5"
    published = type(files)(tmp_path / "options.json", tmp_path / name)

    for each in (files, published):
        script_check(each).read([RUSSIAN])

    assert len(caplog.records) == 2


def test_an_english_bilm_that_reads_russian_warns(caplog: pytest.LogCaptureFixture):
    load_bilm("mini").embed([RUSSIAN])

    assert "most of them Cyrillic" in caplog.text
