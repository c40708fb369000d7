"""Readers of sense-tagged text."""

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.errors import DataError
from elmo_framework.tasks.word_senses import SemcorReader, SenseTarget, WsdReader
from tests.unit.tasks.word_senses.data import (
    BANK,
    FIRST_OF_BANK,
    FIRST_OF_DUCK,
    HAPPEN,
    KEYS,
    SHORE,
    XML,
    write_index,
    write_semcor,
    write_test_set,
)


def test_semcor_entry_with_underscore_is_several_words(tmp_path: Path) -> None:
    sentence = list(SemcorReader().read(write_semcor(tmp_path)))[3]
    assert sentence.words == ("It", "took", "place", "there")
    assert sentence.targets == (SenseTarget(1, 3, "take_place", "VERB", (HAPPEN,)),)


def test_first_senses_are_those_of_the_index(tmp_path: Path) -> None:
    reader = SemcorReader(sense_index=write_index(tmp_path))
    firsts = [
        target.first_sense
        for sentence in reader.read(write_semcor(tmp_path))
        for target in sentence.targets
    ]
    assert firsts == [FIRST_OF_BANK] * 3 + [None] * 2


def test_test_set_has_ids_and_all_gold_senses(tmp_path: Path) -> None:
    reader = WsdReader(sense_index=write_index(tmp_path))
    (sentence,) = reader.read(write_test_set(tmp_path))
    assert sentence.words == ("The", "bank", "took", "place", "duck")
    assert sentence.targets == (
        SenseTarget(1, 2, "bank", "NOUN", (BANK, SHORE), FIRST_OF_BANK, "d0.s0.t0"),
        SenseTarget(2, 4, "take_place", "VERB", (HAPPEN,), None, "d0.s0.t1"),
        SenseTarget(4, 5, "duck", "NOUN", ("duck%1:13:00::",), FIRST_OF_DUCK, "d0.s0.t2"),
    )


def test_inputs_have_no_senses_and_need_no_keys(tmp_path: Path) -> None:
    path = write_test_set(tmp_path)
    path.with_name("small.gold.key.txt").unlink()
    (sentence,) = WsdReader().read_inputs(path)
    assert [target.senses for target in sentence.example.targets] == [None] * 3
    assert sentence.fields == {"id": "d0.s0"}
    semcor = list(SemcorReader().read_inputs(write_semcor(tmp_path)))
    assert {target.senses for each in semcor for target in each.example.targets} == {None}


def test_semcor_leaves_objects_with_targets_to_the_task() -> None:
    assert SemcorReader().takes({"tokens": ["bank"]})
    assert not SemcorReader().takes({"tokens": ["bank"], "targets": []})


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"tokens": ["a"], "senses": {"1": [BANK]}}, "the index '1' for 1 tokens"),
        ({"tokens": ["a"], "senses": {"0": ["bank"]}}, "'bank' is not a sense key"),
        ({"tokens": ["a"], "senses": {"0": []}}, "expected lists of sense keys"),
        ({"tokens": ["a"], "senses": []}, "expected an object"),
        ({"tokens": "a", "senses": {}}, "expected a list of strings"),
        ({"tokens": ["a"]}, "missing key 'senses'"),
    ],
)
def test_invalid_semcor_record_is_an_error_with_its_line(
    tmp_path: Path, record: dict[str, Any], message: str
) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text(f'{{"tokens": ["a"], "senses": {{}}}}\n{json.dumps(record)}\n')
    with pytest.raises(DataError, match=message) as raised:
        list(SemcorReader().read(path))
    assert raised.value.line == 2


@pytest.mark.parametrize(
    ("name", "xml", "keys", "message"),
    [
        ("small.xml", XML, KEYS, "expected a file NAME.data.xml"),
        ("small.data.xml", XML, None, "small.gold.key.txt|NAME.gold.key.txt next to it"),
        ("small.data.xml", XML, "d0.s0.t0 x\n", "'d0.s0.t1' has no line in the gold keys"),
        ("small.data.xml", XML, "d0.s0.t0\n", "expected an id and sense keys"),
        ("small.data.xml", XML.replace('pos="VERB"', ""), KEYS, "an instance has no 'pos'"),
        ("small.data.xml", XML[:-20], KEYS, "no element found|mismatched tag|unclosed"),
    ],
)
def test_invalid_test_set_is_an_error(
    tmp_path: Path, name: str, xml: str, keys: str | None, message: str
) -> None:
    (tmp_path / name).write_text(xml)
    if keys is not None:
        (tmp_path / "small.gold.key.txt").write_text(keys)
    with pytest.raises(DataError, match=message):
        list(WsdReader().read(tmp_path / name))


def test_invalid_sense_index_is_an_error_with_its_line(tmp_path: Path) -> None:
    index = tmp_path / "index.sense"
    index.write_text("bank%1:17:01:: 09213434 1\n")
    with pytest.raises(DataError, match="expected a sense key and three numbers"):
        list(SemcorReader(sense_index=index).read(write_semcor(tmp_path)))
