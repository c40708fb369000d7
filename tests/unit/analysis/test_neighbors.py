"""Neighbors in context, against cosines that NumPy computes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from elmo_framework.analysis import neighbors
from elmo_framework.analysis.neighbors import (
    Neighbor,
    NeighborSearch,
    Occurrence,
    find_neighbors,
)
from elmo_framework.commands.main import main
from elmo_framework.errors import DataError, RunError
from elmo_framework.layers.encoder_files import open_encoder
from tests.numpy_bilm import NumpyBiLm
from tests.unit.analysis.conftest import LINES

QUERY = "he sat on the bank"


@pytest.fixture
def search(corpus: Path) -> NeighborSearch:
    return NeighborSearch(QUERY, "bank", [corpus], device="cpu")


def expected(
    numpy_bilm: NumpyBiLm, layer: int, *, any_word: bool = False
) -> list[tuple[float, str, int]]:
    """All occurrences but those of the query, each once, nearest first."""
    words = QUERY.split()
    own = numpy_bilm.layers(words)[layer, 1 + words.index("bank")]
    found = []
    for line in dict.fromkeys(LINES):
        if line in (QUERY, ""):
            continue
        vectors = numpy_bilm.layers(line.split())[layer, 1:-1]
        cosines = vectors @ own / np.linalg.norm(vectors, axis=1) / np.linalg.norm(own)
        found += [
            (cosines[place], line, place)
            for place, word in enumerate(line.split())
            if any_word or word == "bank"
        ]
    return sorted(found, key=lambda held: -held[0])


def told(found: list[Neighbor]) -> list[tuple[float, str, int]]:
    return [
        (each.similarity, " ".join(each.occurrence.words), each.occurrence.position)
        for each in found
    ]


@pytest.mark.parametrize("any_word", [False, True])
def test_neighbors_are_those_of_the_numpy_reference(
    any_word: bool, bilm: Path, search: NeighborSearch, numpy_bilm: NumpyBiLm
) -> None:
    layers = (0, 1, 2) if any_word else (1, 2)
    found = find_neighbors(bilm, replace(search, any_word=any_word, num_neighbors=50))
    assert tuple(found.by_layer) == layers
    for layer in layers:
        wanted = expected(numpy_bilm, layer, any_word=any_word)
        got = told(found.by_layer[layer])
        np.testing.assert_allclose([g[0] for g in got], [w[0] for w in wanted], atol=1e-5)
        assert {g[1:] for g in got} == {w[1:] for w in wanted}
        for similarity, *place in got:
            (same,) = [w[0] for w in wanted if [*w[1:]] == place]
            assert similarity == pytest.approx(same, abs=1e-5)


def test_nearest_neighbors_do_not_depend_on_pool_size(
    bilm: Path, search: NeighborSearch, numpy_bilm: NumpyBiLm, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [held[1:] for held in expected(numpy_bilm, 2)[:2]]
    for chunk_words in (1, 1000):
        monkeypatch.setattr(neighbors, "_CHUNK_WORDS", chunk_words)
        found = find_neighbors(bilm, replace(search, num_neighbors=2))
        assert [held[1:] for held in told(found.by_layer[2])] == wanted


def test_each_occurrence_reports_its_file_and_line(bilm: Path, search: NeighborSearch) -> None:
    found = find_neighbors(bilm, search)
    places = {str(each.occurrence): each.place for each in found.by_layer[1]}
    assert places == {
        "the [bank] of the river": f"{search.corpus[0]}:1",
        "a [bank] lends money": f"{search.corpus[0]}:3",
        "[bank] to bank": f"{search.corpus[0]}:5",
        "bank to [bank]": f"{search.corpus[0]}:5",
    }
    assert found.num_compared == 5
    assert found.query == Occurrence(tuple(QUERY.split()), 4)


def test_layers_can_be_chosen(bilm: Path, search: NeighborSearch) -> None:
    assert tuple(find_neighbors(bilm, replace(search, layers=[2, 0, 2])).by_layer) == (0, 2)
    with pytest.raises(RunError) as caught:
        find_neighbors(bilm, replace(search, layers=[3]))
    assert str(caught.value) == "--layer 3: the encoder has the layers 0 to 2"


def test_a_word_that_is_not_in_the_query_is_refused(bilm: Path, search: NeighborSearch) -> None:
    with pytest.raises(RunError) as caught:
        find_neighbors(bilm, replace(search, word="bnak"))
    assert str(caught.value) == (
        "--word 'bnak' is not a word of the query; choose from bank, he, on, sat, the. "
        "Did you mean 'bank'?"
    )


def test_a_position_of_another_word_is_refused(bilm: Path, search: NeighborSearch) -> None:
    for position in (QUERY.split().index(search.word) - 1, 99):
        with pytest.raises(RunError, match=f"position {position} is not one of '{search.word}'"):
            find_neighbors(bilm, replace(search, position=position))


def test_standard_input_is_refused(bilm: Path, search: NeighborSearch) -> None:
    with pytest.raises(RunError, match="looked for in files, not in standard input"):
        find_neighbors(bilm, replace(search, corpus=[Path("-")]))


def test_word_missing_from_the_corpus_is_reported(bilm: Path, search: NeighborSearch) -> None:
    with pytest.raises(DataError) as caught:
        find_neighbors(bilm, replace(search, query="one more", word="more"))
    assert (
        str(caught.value)
        == f"{search.corpus[0]}: there is no sentence with 'more' besides the query"
    )


def test_the_command_prints_sentences_by_layer(
    bilm: Path, corpus: Path, numpy_bilm: NumpyBiLm, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--corpus", str(corpus), "--query", QUERY, "--word", "bank", "-k", "1", "--layer", "2"]
    assert main(["neighbors", str(bilm), *flags, "--device", "cpu"]) == 0
    similarity, line, place = expected(numpy_bilm, 2)[0]
    words = line.split()
    words[place] = "[bank]"
    assert capsys.readouterr().out == (
        "he sat on the [bank]\n\nlayer 2, of 5 occurrences\n"
        f"  {similarity:6.3f}  {corpus}:{LINES.index(line) + 1}  {' '.join(words)}\n"
    )


def test_the_command_prints_json(
    bilm: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--corpus", str(corpus), "--query", QUERY, "--word", "bank", "--format", "json"]
    assert main(["neighbors", str(bilm), *flags, "--device", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["query"] == {"words": QUERY.split(), "position": 4}
    assert [held["layer"] for held in found["layers"]] == [1, 2]
    (first, *_) = found["layers"][0]["neighbors"]
    assert first["occurrence"]["words"][first["occurrence"]["position"]] == "bank"


def test_the_number_of_sentences_can_be_limited(
    numpy_bilm: NumpyBiLm, search: NeighborSearch, tmp_path: Path
) -> None:
    bilm = open_encoder(numpy_bilm.save(tmp_path / "bilm"))
    limited = find_neighbors(bilm, replace(search, max_sentences=1))
    by_lines = find_neighbors(bilm, replace(search, max_lines=1))
    everything = find_neighbors(bilm, search)
    assert limited.num_compared < everything.num_compared
    assert {each.place.rpartition(":")[2] for each in by_lines.by_layer[1]} == {"1"}
    (near,) = {each.place for each in limited.by_layer[1]}
    assert near == min(each.place for each in everything.by_layer[1])
