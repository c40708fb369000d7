from pathlib import Path

import pytest

from elmo_framework.bilm.published import PUBLISHED, find_bilm, options_place, weights_place
from elmo_framework.common.download import cached_path
from tests.numpy_bilm import NumpyBiLm


def test_names_stand_for_the_files_of_the_published_models() -> None:
    assert set(PUBLISHED) == {"original", "original-5.5b", "medium", "small"}
    assert options_place("small") == (
        "https://allennlp.s3.amazonaws.com/models/elmo/2x1024_128_2048cnn_1xhighway/"
        "elmo_2x1024_128_2048cnn_1xhighway_options.json"
    )
    assert weights_place("original-5.5b") == (
        "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway_5.5B/"
        "elmo_2x4096_512_2048cnn_2xhighway_5.5B_weights.hdf5"
    )


@pytest.mark.parametrize("place", ["https://host/weights.hdf5", "weights.hdf5", Path("w.hdf5")])
def test_other_places_are_left_alone(place: str | Path) -> None:
    assert weights_place(place) == place


def test_a_folder_goes_before_a_name(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = NumpyBiLm.random().save(tmp_path / "small")
    assert find_bilm("small").options.absolute() == folder / "options.json"


def test_a_published_model_is_read_from_the_cache(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path))
    monkeypatch.setenv("ELMO_OFFLINE", "1")
    for url in (options_place("small"), weights_place("small")):
        path = cached_path(str(url))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"by hand")
    files = find_bilm("small")
    assert files.options == cached_path(str(options_place("small")))
    assert files.weights == cached_path(str(weights_place("small")))
    assert not files.is_generic
