from pathlib import Path
from typing import get_args

import pytest
import torch

from elmo_framework.bilm.files.load import read_bilm
from elmo_framework.bilm.files.published import (
    PACKAGED,
    PUBLISHED,
    BiLmName,
    file_place,
    resolve_bilm,
)
from elmo_framework.errors import DataError
from elmo_framework.io.download import cached_path
from tests.numpy_bilm import NumpyBiLm


def test_a_config_may_say_every_name() -> None:
    assert {*get_args(BiLmName)} == {*PACKAGED, *PUBLISHED}


def test_names_resolve_to_published_model_files() -> None:
    assert set(PUBLISHED) == {"original", "original-5.5b", "medium", "small"}
    assert file_place("small", "options.json") == (
        "https://allennlp.s3.amazonaws.com/models/elmo/2x1024_128_2048cnn_1xhighway/"
        "elmo_2x1024_128_2048cnn_1xhighway_options.json"
    )
    assert file_place("original-5.5b", "weights.hdf5") == (
        "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway_5.5B/"
        "elmo_2x4096_512_2048cnn_2xhighway_5.5B_weights.hdf5"
    )


@pytest.mark.parametrize("place", ["https://host/weights.hdf5", "weights.hdf5", Path("w.hdf5")])
def test_other_places_are_left_alone(place: str | Path) -> None:
    assert file_place(place, "weights.hdf5") == place


def test_a_folder_goes_before_a_name(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = NumpyBiLm.random().save(tmp_path / "small")
    assert resolve_bilm("small").options.absolute() == folder / "options.json"
    assert Path(file_place("small", "weights.hdf5")).absolute() == folder / "weights.hdf5"


def test_a_file_is_a_file_of_a_bilm_and_not_a_bilm(tmp_path: Path, monkeypatch) -> None:
    packaged = resolve_bilm("mini")
    monkeypatch.chdir(tmp_path)
    Path("mini").touch()
    assert file_place("mini", "weights.hdf5") == "mini"
    assert resolve_bilm("mini") == packaged


def test_a_published_model_is_read_from_the_cache(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path))
    monkeypatch.setenv("ELMO_OFFLINE", "1")
    for url in (file_place("small", "options.json"), file_place("small", "weights.hdf5")):
        path = cached_path(str(url))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"by hand")
    files = resolve_bilm("small")
    assert files.options == cached_path(str(file_place("small", "options.json")))
    assert files.weights == cached_path(str(file_place("small", "weights.hdf5")))
    assert not files.is_generic


def test_sizes_are_read_without_downloading_weights(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path))
    monkeypatch.setenv("ELMO_OFFLINE", "1")
    held = NumpyBiLm.random().save(tmp_path / "numpy")
    path = cached_path(str(file_place("small", "options.json")))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes((held / "options.json").read_bytes())
    with torch.device("meta"):
        assert read_bilm(resolve_bilm("small")).output_dim == 8
    with pytest.raises(DataError, match="not downloaded: --offline or ELMO_OFFLINE is set"):
        resolve_bilm("small")


def test_the_packaged_model_needs_no_download(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("ELMO_OFFLINE", "1")
    monkeypatch.setitem(PACKAGED, "mini", NumpyBiLm.random().save(tmp_path / "package"))
    files = resolve_bilm("mini")
    assert (
        files.options == file_place("mini", "options.json") == tmp_path / "package" / "options.json"
    )
    assert (
        files.weights == file_place("mini", "weights.hdf5") == tmp_path / "package" / "weights.hdf5"
    )
    assert read_bilm(files).output_dim == 8


def test_the_packaged_model_lies_in_the_package() -> None:
    import elmo_framework.bilm

    assert PACKAGED["mini"] == Path(elmo_framework.bilm.__file__).parent / "mini"


def test_an_unknown_name_is_an_error_that_lists_the_names() -> None:
    with pytest.raises(DataError) as caught:
        resolve_bilm("orginal")
    assert str(caught.value) == (
        "'orginal' is neither a folder nor the name of a biLM; "
        "choose from medium, mini, original, original-5.5b, small. Did you mean 'original'?"
    )
