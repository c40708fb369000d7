import io
import json
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

import h5py
import numpy as np
import pytest

import elmo_framework.commands.elmo
import elmo_framework.modules.elmo
from elmo_framework import Elmo, batch_to_ids, load_bilm
from elmo_framework.commands.main import main
from elmo_framework.errors import DataError
from elmo_framework.modules import ElmoEmbedder
from tests.numpy_bilm import NumpyBiLm

SENTENCES = [["a", "b", "c"], ["d"], ["a", "!"]]
TEXT = "a b c\nd\na !\nd\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return NumpyBiLm.random().save(tmp_path / "bilm")


@pytest.fixture
def embedder(folder: Path) -> ElmoEmbedder:
    return ElmoEmbedder(folder / "options.json", folder / "weights.hdf5")


def test_import_paths_are_those_of_allennlp() -> None:
    assert elmo_framework.modules.elmo.Elmo is Elmo
    assert elmo_framework.modules.elmo.batch_to_ids is batch_to_ids
    assert elmo_framework.commands.elmo.ElmoEmbedder is ElmoEmbedder


def test_sentences_have_the_layers_of_the_bilm(folder: Path, embedder: ElmoEmbedder) -> None:
    expected = load_bilm(folder, device="cpu").embed([*SENTENCES, []])
    batch = embedder.embed_batch([*SENTENCES, []])
    one_by_one = [*embedder.embed_sentences(SENTENCES, batch_size=2), embedder.embed_sentence([])]
    for read in (batch, one_by_one):
        assert [each.shape for each in read] == [(3, n, 8) for n in (3, 1, 2, 0)]
        for own, layers in zip(read, expected, strict=True):
            np.testing.assert_allclose(own, layers, atol=1e-5)
    layers, mask = embedder.batch_to_embeddings(SENTENCES)
    assert (layers.shape, mask.sum(1).tolist()) == ((3, 3, 3, 8), [3, 1, 2])
    np.testing.assert_allclose(layers[1, :, :1], expected[1], atol=1e-5)
    assert (layers[1, :, 1:] == 0).all()


def test_rows_continue_with_the_state_carry(folder: Path, embedder: ElmoEmbedder) -> None:
    files = folder / "options.json", folder / "weights.hdf5"
    carrying = ElmoEmbedder(*files, state="carry")
    first, second = (carrying.embed_sentence(["a", "b"]) for _ in range(2))
    np.testing.assert_allclose(first, embedder.embed_sentence(["a", "b"]), atol=1e-5)
    assert abs(first - second).max() > 1e-4


@pytest.mark.parametrize("output_format", ["all", "top", "average"])
@pytest.mark.parametrize("flag", [None, "forget_sentences", "use_sentence_keys"])
def test_a_file_is_that_of_elmo_embed(
    output_format: str, flag: str | None, folder: Path, embedder: ElmoEmbedder, tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_text("a b c\nd\na !\n")
    flags = [] if flag is None else ["--" + flag.replace("_", "-")]
    ours, theirs = tmp_path / "ours.hdf5", tmp_path / "theirs.hdf5"
    line = ["embed", folder, tmp_path / "text.txt", "--output-file", ours, "--layers"]
    assert main([*map(str, line), output_format, "--device", "cpu", *flags]) == 0
    with (tmp_path / "text.txt").open() as file:
        embedder.embed_file(file, theirs, output_format, 2, **({flag: True} if flag else {}))
    with h5py.File(ours) as expected, h5py.File(theirs) as written:
        assert set(written) == set(expected)
        for name, dataset in expected.items():
            if name == "sentence_to_index":
                assert json.loads(written[name][0]) == json.loads(dataset[0])
            else:
                np.testing.assert_allclose(written[name][()], dataset[()], atol=1e-5)


def test_equal_sentences_are_written_once_by_key(
    embedder: ElmoEmbedder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    embedder.embed_file(io.StringIO(TEXT), tmp_path / "v.hdf5", use_sentence_keys=True)
    with h5py.File(tmp_path / "v.hdf5") as file:
        assert set(file) == {"a b c", "d", "a !"}
    assert "line 4: 'd' was written before; skipped" in caplog.text


def test_what_cannot_be_written_is_reported(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    path = tmp_path / "v.hdf5"
    with pytest.raises(DataError, match="2: a blank line has no vectors"):
        embedder.embed_file(io.StringIO("a\n\nb\n"), path)
    with pytest.raises(DataError, match="HDF5 allows no dataset with the name 'a / b'"):
        embedder.embed_file(io.StringIO("a / b\n"), path, use_sentence_keys=True)
    with pytest.raises(DataError, match="1: HDF5 allows no dataset"):
        embedder.embed_file(io.StringIO("n\0ul\n"), path, use_sentence_keys=True)
    with pytest.raises(ValueError, match="output_format is 'al'; choose from all, average, top"):
        embedder.embed_file(io.StringIO("a\n"), path, "al")
    with pytest.raises(ValueError, match="use_sentence_keys writes the sentences"):
        embedder.embed_file(io.StringIO("a\n"), path, "all", 1, True, True)
    with pytest.raises(ValueError, match="batch_size is 0; allowed: 1 or more"):
        list(embedder.embed_sentences([["a"]], batch_size=0))
    assert not path.exists()


def test_full_disk_is_an_error_and_leaves_nothing(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    """HDF5 itself would end the process."""
    before = getrlimit(RLIMIT_FSIZE)
    try:
        setrlimit(RLIMIT_FSIZE, (3000, before[1]))
        with pytest.raises(OSError, match="File too large"):
            embedder.embed_file(io.StringIO(TEXT), tmp_path / "v.hdf5")
    finally:
        setrlimit(RLIMIT_FSIZE, before)
    assert not list(tmp_path.glob("*v.hdf5*"))
