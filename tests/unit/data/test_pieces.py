from __future__ import annotations

import json
import pickle
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers

from elmo_framework.data import pieces
from elmo_framework.data.pieces import PieceIndexer, read_pieces, train_pieces
from elmo_framework.errors import DataError, RunError

COUNTS = {"low": 50, "lower": 21, "newest": 63, "widest": 34, "Größe": 2}


def trained(num_pieces: int = 262) -> str:
    return train_pieces(list(COUNTS), np.array(list(COUNTS.values())), num_pieces)


@pytest.fixture(scope="module")
def content() -> str:
    return trained()


def merges_by_definition(vocabulary: dict[str, int], num_merges: int) -> list[list[str]]:
    """Merge the most frequent pair of neighbors, again and again; of equal ones the first by id."""
    words = [(["Ġ", *word], count) for word, count in COUNTS.items() if word.isascii()]
    merges = []
    for _ in range(num_merges):
        pairs = Counter[tuple[str, str]]()
        for parts, count in words:
            for pair in pairwise(parts):
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], *map(vocabulary.__getitem__, pair)))
        merges.append(list(best))
        for parts, _ in words:
            for place in range(len(parts) - 2, -1, -1):
                if tuple(parts[place : place + 2]) == best:
                    parts[place : place + 2] = ["".join(best)]
    return merges


def test_the_most_frequent_pairs_become_pieces(content: str) -> None:
    model = json.loads(content)["model"]
    assert len(model["merges"]) == 262 - 256
    assert model["merges"] == merges_by_definition(model["vocab"], 6)


def test_every_word_is_spelled_by_its_pieces(content: str) -> None:
    indexer = PieceIndexer(content, 20)
    words = ["newest", "new", "Größe", "日本", "", "a\udc80"]
    rows = indexer.ids(words)
    assert rows.shape == (6, 20)
    tokenizer = Tokenizer.from_str(content)
    for word, row in zip(words[:4], rows, strict=False):
        own = row[row > 0]
        assert (row[: len(own)] == own).all()
        assert tokenizer.decode((own - 4).tolist()) == f" {word}"
    assert (rows[:, 0] > 0).all()
    assert rows.max() < indexer.num_ids


def test_boundaries_have_ids_of_their_own(content: str) -> None:
    indexer = PieceIndexer(content, 3)
    rows = indexer.ids(["<S>", "</S>", "<s>"])
    assert (rows[:2] == indexer.boundaries(3)).all()
    assert rows[:2].tolist() == [[1, 0, 0], [2, 0, 0]]
    assert (rows[2] > 3).all()
    assert indexer.boundaries(5).shape == (2, 5)


def test_long_words_are_cut_and_dropped_words_are_no_padding(content: str, tmp_path) -> None:
    long, short = PieceIndexer(content, 9), PieceIndexer(content, 4)
    assert (long.ids(["Größenwahn"])[:, :4] == short.ids(["Größenwahn"])).all()
    strict = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    strict.normalizer = normalizers.Replace(" x", "")
    strict.save(str(tmp_path / "tokenizer.json"))
    rows = read_pieces(tmp_path / "tokenizer.json", max_pieces=2).ids(["x", "b"])
    assert rows.tolist() == [[3, 0], [5, 0]]


def test_equal_keys_mean_equal_ids(content: str) -> None:
    indexer = PieceIndexer(content, 4)
    assert indexer.key == PieceIndexer(content, 4).key
    assert indexer.key not in (PieceIndexer(content, 5).key, PieceIndexer(trained(260), 4).key)
    assert (pickle.loads(pickle.dumps(indexer)).ids(["low"]) == indexer.ids(["low"])).all()


def test_training_depends_on_counts_alone(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_WORDS_PER_TEXT", 7)
    assert trained() == content
    monkeypatch.setattr(pieces, "_MAX_WORDS", sum(COUNTS.values()) // 2)
    assert json.loads(trained())["model"]["merges"][1] == json.loads(content)["model"]["merges"][1]


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pieces.json"
    for text in ("{}", "text", None):
        if text is not None:
            path.write_text(text)
        with pytest.raises(DataError, match="not a file of pieces"):
            read_pieces(path if text else tmp_path / "none", max_pieces=4)


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(RunError, match=r"pip install 'elmo-framework\[pieces\]'"):
        read_pieces(tmp_path / "pieces.json", max_pieces=4)
