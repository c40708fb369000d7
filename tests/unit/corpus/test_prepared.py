from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_framework.corpus import manifest
from elmo_framework.corpus.prepared import ConcatenatedShards, PreparedSplit
from elmo_framework.data.characters import ElmoCharacterIndexer
from elmo_framework.errors import DataError
from elmo_framework.io.files import digest
from tests.unit.corpus.conftest import Make, many_sentences, read


def test_tokens_in_several_files_are_one_array(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(make(many_sentences(300), "whole") / "training")
    monkeypatch.setattr(manifest, "SHARD_BYTES", 400)
    monkeypatch.setattr("elmo_framework.corpus.tokenized_blocks.BLOCK_BYTES", 500)
    sharded = make(many_sentences(300), "sharded") / "training"
    assert len(list(sharded.glob("tokens-*.bin"))) > 3
    places = np.random.default_rng(0).integers(0, len(whole.ids), (20, 30))
    assert len(read(sharded).ids) == len(whole.ids)
    assert (read(sharded).ids[places] == whole.ids[places]).all()


def test_shards_do_not_lose_a_place_at_their_edges(tmp_path: Path) -> None:
    for name, tokens in (("a", [1, 2, 3]), ("b", [4]), ("c", [5, 6])):
        np.array(tokens, np.int32).tofile(tmp_path / name)
    shards = ConcatenatedShards([tmp_path / name for name in "abc"])
    assert shards[np.array([[5, 0, 2], [3, 4, 1]])].tolist() == [[6, 1, 3], [4, 5, 2]]


def test_the_rows_of_characters_are_those_of_the_words(make: Make) -> None:
    part = PreparedSplit.load(make("dög a\n") / "training")
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
    expected = "its content has changed; prepare the text again"
    assert str(caught.value) == f"{damaged}: {expected}"


def test_truncated_shard_is_named(make: Make) -> None:
    shard = make() / "training/tokens-00000.bin"
    shard.write_bytes(shard.read_bytes()[:-4])
    with pytest.raises(DataError, match=r"tokens-00000\.bin: has 88 of 92 bytes; prepare"):
        read(shard.parent)
    shard.unlink()
    with pytest.raises(DataError, match=r"tokens-00000\.bin: is missing"):
        read(shard.parent)


def test_folder_other_than_a_part_is_refused(make: Make, tmp_path: Path) -> None:
    corpus = make()
    with pytest.raises(DataError, match=r"not a part of a corpus.*choose from held_out, training"):
        read(corpus)
    with pytest.raises(DataError, match="not a prepared corpus"):
        read(tmp_path / "training")
    with pytest.raises(DataError, match="this part of the corpus has no sentences"):
        read(corpus / "held_out")


def test_a_corpus_of_another_form_is_refused(make: Make) -> None:
    corpus = make()
    held = json.loads((corpus / "corpus.json").read_text())
    (corpus / "corpus.json").write_text(json.dumps({**held, "format": "something else"}))
    with pytest.raises(DataError, match="prepare the text again"):
        read(corpus / "training")


def changed(corpus: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change what the manifest says."""
    path = corpus / "corpus.json"
    written = json.loads(path.read_text())
    change(written)
    path.write_text(json.dumps(written))
    return path


ENTRY = {"name": "x", "num_bytes": 1, "sha256": "0"}


@pytest.mark.parametrize(
    "entry",
    [
        3,
        {},
        {"name": "x"},
        {**ENTRY, "num_bytes": "1"},
        {**ENTRY, "name": "training/../../outside.txt"},
        {**ENTRY, "name": "/etc/hostname"},
    ],
)
def test_entry_outside_the_corpus_is_named(make: Make, entry: object) -> None:
    path = changed(make(), lambda written: written["files"].append(entry))
    with pytest.raises(DataError) as caught:
        PreparedSplit.load(path.parent / "training")
    expected = "expected the name, size and digest of a file in this folder, found "
    assert str(caught.value) == f"{path}: {expected}{entry!r}"


@pytest.mark.parametrize("key", ["settings", "counts", "files"])
@pytest.mark.parametrize("value", [None, 3, "x"])
def test_a_manifest_without_its_parts_is_refused(make: Make, key: str, value: object) -> None:
    path = changed(make(), lambda written: written.update({key: value}))
    with pytest.raises(DataError, match="settings, counts or files are damaged; prepare the text"):
        PreparedSplit.load(path.parent / "training")


def forged(corpus: Path, name: str, content: bytes) -> Path:
    """Replace a file, with its size and digest in the manifest."""
    (corpus / name).write_bytes(content)
    entry = {"num_bytes": len(content), "sha256": digest([corpus / name])}

    def forge(written: dict[str, Any]) -> None:
        next(held for held in written["files"] if held["name"] == name).update(entry)

    changed(corpus, forge)
    return corpus / "training"


TOKENS = "training/tokens-00000.bin"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            TOKENS,
            np.array([0, 10**6, 1], "<i4").tobytes(),
            "a token id is out of range for 8 words",
        ),
        (TOKENS, np.array([0, -1, 1], "<i4").tobytes(), "a token id is out of range for 8 words"),
        (TOKENS, b"", ""),
        (TOKENS, b"123", ""),
        ("training/offsets.bin", np.array([0, 10**9], "<i8").tobytes(), "does not cover"),
        ("training/offsets.bin", np.array([5, 3, 23], "<i8").tobytes(), "does not cover"),
        ("words.txt", b"\xff\n", ""),
        ("words.txt", b"one\n", "counts.bin has 8 words, words.txt 1"),
        ("characters.bin", np.full(400, 999, "<u2").tobytes(), "characters.bin has an id above"),
        ("characters.bin", b"12", ""),
        ("vocabulary.txt", b"<S>\n</S>\n<UNK>\nunicorn\n", "'unicorn' is not in words.txt"),
    ],
)
def test_files_that_contradict_each_other_are_refused(
    make: Make, name: str, content: bytes, said: str
) -> None:
    """The digests are right: of a corpus that someone else has made."""
    part = forged(make(), name, content)
    with pytest.raises(
        DataError, match=r"the files contradict each other \(.*prepare the text"
    ) as caught:
        PreparedSplit.load(part)
    assert said in str(caught.value)
