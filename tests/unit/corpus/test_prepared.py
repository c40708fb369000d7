from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from elmo_framework.common.errors import DataError
from elmo_framework.corpus import parts
from elmo_framework.corpus.prepared import PreparedPart, Shards
from elmo_framework.data.characters import ElmoCharacterIndexer
from tests.unit.corpus.conftest import Make, many_sentences, read


def test_tokens_in_several_files_are_one_array(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(make(many_sentences(300), "whole") / "training")
    monkeypatch.setattr(parts, "SHARD_BYTES", 400)
    monkeypatch.setattr("elmo_framework.corpus.prepare.BLOCK_BYTES", 500)
    sharded = make(many_sentences(300), "sharded") / "training"
    assert len(list(sharded.glob("tokens-*.bin"))) > 3
    places = np.random.default_rng(0).integers(0, len(whole.ids), (20, 30))
    assert len(read(sharded).ids) == len(whole.ids)
    assert (read(sharded).ids[places] == whole.ids[places]).all()


def test_shards_do_not_lose_a_place_at_their_edges(tmp_path: Path) -> None:
    for name, tokens in (("a", [1, 2, 3]), ("b", [4]), ("c", [5, 6])):
        np.array(tokens, np.int32).tofile(tmp_path / name)
    shards = Shards([tmp_path / name for name in "abc"])
    assert shards[np.array([[5, 0, 2], [3, 4, 1]])].tolist() == [[6, 1, 3], [4, 5, 2]]


def test_the_rows_of_characters_are_those_of_the_words(make: Make) -> None:
    part = PreparedPart.load(make("dög a\n") / "training")
    assert part.characters.tolist() == ElmoCharacterIndexer().ids(part.words).tolist()


@pytest.mark.parametrize("name", ["training/tokens-00000.bin", "words.txt", "characters.bin"])
def test_a_damaged_file_is_named(make: Make, name: str) -> None:
    corpus = make()
    damaged = corpus / name
    content = bytearray(damaged.read_bytes())
    content[5] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(corpus / "training")
    expected = "its content is not what was written; prepare the text again"
    assert str(caught.value) == f"{damaged}: {expected}"


def test_a_shard_that_was_cut_is_named(make: Make) -> None:
    shard = make() / "training/tokens-00000.bin"
    shard.write_bytes(shard.read_bytes()[:-4])
    with pytest.raises(DataError, match=r"tokens-00000\.bin: has 88 of 92 bytes; prepare"):
        read(shard.parent)
    shard.unlink()
    with pytest.raises(DataError, match=r"tokens-00000\.bin: is missing"):
        read(shard.parent)


def test_a_folder_that_is_no_part_is_refused(make: Make, tmp_path: Path) -> None:
    corpus = make()
    with pytest.raises(DataError, match=r"name a part of a corpus.*allowed: held_out, training"):
        read(corpus)
    with pytest.raises(DataError, match="no prepared corpus is here"):
        read(tmp_path / "training")
    with pytest.raises(DataError, match="this part of the corpus has no sentence"):
        read(corpus / "held_out")


def test_a_corpus_of_another_form_is_refused(make: Make) -> None:
    corpus = make()
    held = json.loads((corpus / "corpus.json").read_text())
    (corpus / "corpus.json").write_text(json.dumps({**held, "format": "something else"}))
    with pytest.raises(DataError, match="prepare the text again"):
        read(corpus / "training")
