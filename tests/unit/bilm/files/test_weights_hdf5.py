import json
import logging
import random
from contextlib import suppress
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

import h5py
import numpy as np
import pytest
import torch

from elmo_framework.bilm.files.weights_hdf5 import (
    list_datasets,
    names_read,
    read_bilm_tf,
    write_bilm_tf,
)
from elmo_framework.errors import ConfigError, DataError
from tests.numpy_bilm import NumpyBiLm, random_weights, small_options

SETTINGS = [
    {},
    {"use_skip_connections": False},
    {"cell_clip": None, "proj_clip": None},
    {"n_layers": 1, "n_highway": 0},
    {"n_layers": 3, "n_highway": 1, "activation": "tanh"},
    {"filters": [[1, 5]], "projection_dim": 6},
    {"projection_dim": 7},
    {"projection_dim": 9, "dim": 9},
]


@pytest.fixture
def folder(numpy_bilm: NumpyBiLm, tmp_path: Path) -> Path:
    return numpy_bilm.save(tmp_path)


def read(folder: Path):
    return read_bilm_tf(options_file=folder / "options.json", weight_file=folder / "weights.hdf5")


def write(bilm, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    write_bilm_tf(bilm, options_file=folder / "options.json", weight_file=folder / "weights.hdf5")
    return folder


def datasets(folder: Path) -> dict[str, np.ndarray]:
    found = {}
    with h5py.File(folder / "weights.hdf5") as file:
        file.visititems(
            lambda name, item: found.update({name: item[()]} if hasattr(item, "shape") else {})
        )
    return found


def change_options(folder: Path, **changes) -> None:
    path = folder / "options.json"
    options = json.loads(path.read_text())
    path.write_text(json.dumps({**options, **changes}))


def message(folder: Path, error: type[Exception] = DataError) -> str:
    with pytest.raises(error) as caught:
        read(folder)
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize("changes", SETTINGS)
def test_a_file_that_is_read_and_written_keeps_every_bit(changes: dict, tmp_path: Path) -> None:
    numpy_bilm = NumpyBiLm.random(**changes)
    bilm = read(numpy_bilm.save(tmp_path / "before"))
    after = write(bilm, tmp_path / "after")
    written = datasets(after)
    assert written.keys() == numpy_bilm.weights.keys()
    for name, values in numpy_bilm.weights.items():
        assert written[name].dtype == np.float32
        np.testing.assert_array_equal(written[name], values)
    assert json.loads((after / "options.json").read_text()) == numpy_bilm.options


def test_a_bilm_that_is_written_and_read_keeps_every_bit(bilm, tmp_path: Path) -> None:
    bilm.float()
    again = read(write(bilm, tmp_path / "after"))
    assert again.description == bilm.description
    assert list(again.state_dict()) == list(bilm.state_dict())
    for name, values in bilm.state_dict().items():
        assert torch.equal(again.state_dict()[name], values), name


def test_projection_of_equal_widths_is_read_if_present(tmp_path: Path) -> None:
    numpy_bilm = NumpyBiLm.random(filters=[[1, 4]], projection_dim=4)
    without = read(numpy_bilm.save(tmp_path))
    numpy_bilm.weights["CNN_proj/W_proj"] = np.ones((4, 4), np.float32)
    numpy_bilm.weights["CNN_proj/b_proj"] = np.ones(4, np.float32)
    assert without.token_encoder.projection is None
    assert read(numpy_bilm.save(tmp_path)).token_encoder.projection is not None


@pytest.mark.parametrize("kind", ["f2", "f8", "i4"])
def test_numbers_of_other_types_are_read(folder: Path, kind: str) -> None:
    with h5py.File(folder / "weights.hdf5", "a") as file:
        held = file["CNN_proj/b_proj"][()].astype(kind)
        del file["CNN_proj/b_proj"]
        file["CNN_proj/b_proj"] = held
    projection = read(folder).token_encoder.projection
    np.testing.assert_array_equal(projection.bias.detach().numpy(), held.astype(np.float32))


def test_compressed_datasets_are_read(folder: Path) -> None:
    plain, name = read(folder), "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_0"
    with h5py.File(folder / "weights.hdf5", "a") as file:
        held = file[name][()]
        del file[name]
        file.create_dataset(name, data=held, compression="gzip", chunks=(3, 5))
    for one, other in zip(plain.parameters(), read(folder).parameters(), strict=True):
        assert torch.equal(one, other)


def test_single_layer_is_read_under_its_short_bilm_tf_name(
    tmp_path: Path,
) -> None:
    numpy_bilm = NumpyBiLm.random(n_layers=1)
    long = read(numpy_bilm.save(tmp_path)).state_dict()
    weights = numpy_bilm.weights
    numpy_bilm.weights = {
        name.replace("MultiRNNCell/Cell0/", ""): values for name, values in weights.items()
    }
    bilm = read(numpy_bilm.save(tmp_path))
    assert "RNN_0/RNN/LSTMCell/W_0" in list_datasets(tmp_path / "weights.hdf5")
    for name, values in bilm.state_dict().items():
        assert torch.equal(values, long[name]), name
    assert datasets(write(bilm, tmp_path / "after")).keys() == weights.keys()


def test_datasets_are_listed_with_those_that_nothing_reads(folder: Path) -> None:
    with h5py.File(folder / "weights.hdf5", "a") as file:
        file["more/of/it"] = np.zeros((2, 3))
    listed = list_datasets(folder / "weights.hdf5")
    assert listed["more/of/it"] == (2, 3)
    assert listed.keys() - names_read(read(folder)) == {"more/of/it"}


def test_reading_draws_no_random_numbers(folder: Path) -> None:
    before = torch.get_rng_state()
    read(folder)
    assert torch.equal(torch.get_rng_state(), before)


def test_missing_options_have_the_defaults_of_bilm_tf(tmp_path: Path) -> None:
    options = small_options(n_layers=1, n_highway=0, use_skip_connections=False)
    for key in ("n_layers", "cell_clip", "proj_clip", "use_skip_connections"):
        del options["lstm"][key]
    for key in ("n_highway", "activation", "n_characters"):
        del options["char_cnn"][key]
    del options["bidirectional"]
    weights = random_weights(small_options(n_layers=1, n_highway=0))
    assert read(NumpyBiLm(options, weights).save(tmp_path)).description == {
        "token_encoder": {
            "type": "char_cnn",
            "embedding_dim": 3,
            "filters": [[1, 2], [2, 3], [3, 4]],
            "num_highway": 0,
            "projection_dim": 4,
            "activation": "relu",
            "max_characters_per_token": 12,
            "layer_norm": False,
        },
        "context_layers": {
            "type": "elmo_lstm",
            "cell_size": 7,
            "projection_dim": 4,
            "num_layers": 1,
            "cell_clip": None,
            "projection_clip": None,
            "use_skip_connections": False,
            "dropout": 0.0,
        },
    }


def test_keys_that_are_not_about_the_shape_are_ignored(folder: Path) -> None:
    plain = read(folder).description
    change_options(folder, dropout=0.1, n_epochs=10, reverse=True, unroll_steps=20)
    assert read(folder).description == plain


@pytest.mark.parametrize("n_characters", [261, 262])
def test_both_numbers_of_characters_are_read(
    n_characters: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    read(NumpyBiLm.random(n_characters=n_characters).save(tmp_path))
    assert not caplog.records


def test_another_number_of_characters_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        read(NumpyBiLm.random(n_characters=300).save(tmp_path))
    assert "n_characters is 300; read as 262" in caplog.text


def test_under_the_meta_device_no_weights_are_read(folder: Path) -> None:
    (folder / "weights.hdf5").unlink()
    with torch.device("meta"):
        assert all(parameter.is_meta for parameter in read(folder).parameters())


def test_a_missing_dataset_is_named(folder: Path) -> None:
    with h5py.File(folder / "weights.hdf5", "a") as file:
        del file["CNN_high_1/b_carry"]
    assert message(folder) == "weights.hdf5: dataset 'CNN_high_1/b_carry' is missing"


def test_a_group_in_place_of_a_dataset_is_refused(folder: Path) -> None:
    with h5py.File(folder / "weights.hdf5", "a") as file:
        del file["char_embed"]
        file.create_group("char_embed")
    assert message(folder) == "weights.hdf5: dataset 'char_embed' is missing"


def test_a_dataset_of_another_shape_is_named_with_both_shapes(folder: Path) -> None:
    change_options(folder, lstm={**small_options()["lstm"], "dim": 8})
    assert message(folder) == (
        "weights.hdf5: dataset 'RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0' has the shape (8, 28); "
        "the options ask for (8, 32)"
    )


@pytest.mark.parametrize("fill", [np.inf, -np.inf, np.nan])
def test_numbers_that_are_not_finite_are_refused(folder: Path, fill: float) -> None:
    with h5py.File(folder / "weights.hdf5", "a") as file:
        file["CNN_proj/b_proj"][1] = fill
    expected = "weights.hdf5: dataset 'CNN_proj/b_proj' holds numbers that are not finite"
    assert message(folder) == expected


def test_a_truncated_file_is_refused(folder: Path) -> None:
    weights = folder / "weights.hdf5"
    weights.write_bytes(weights.read_bytes()[:5000])
    assert message(folder).startswith("weights.hdf5: not an HDF5 file, or a damaged one: ")


def test_text_in_place_of_numbers_is_refused(folder: Path) -> None:
    with h5py.File(folder / "weights.hdf5", "a") as file:
        del file["CNN_proj/b_proj"]
        file["CNN_proj/b_proj"] = ["a", "b", "c", "d"]
    expected = "weights.hdf5: dataset 'CNN_proj/b_proj' cannot be read: "
    assert message(folder).startswith(expected)


def test_a_missing_weight_file_is_refused(folder: Path) -> None:
    (folder / "weights.hdf5").unlink()
    assert message(folder).startswith("weights.hdf5: not an HDF5 file, or a damaged one: ")


@pytest.mark.parametrize("content", [b"{", b"\xff", b"", b"[1]", b"Infinity"])
def test_options_that_are_not_json_are_refused(folder: Path, content: bytes) -> None:
    (folder / "options.json").write_bytes(content)
    assert message(folder).startswith("options.json: not the options of a biLM: ")


def test_a_missing_option_is_named(folder: Path) -> None:
    lstm = {key: value for key, value in small_options()["lstm"].items() if key != "dim"}
    change_options(folder, lstm=lstm)
    assert message(folder) == (
        "options.json: 'lstm.dim' is missing: no 'dim' among cell_clip, n_layers, proj_clip, "
        "projection_dim, use_skip_connections"
    )


def test_options_of_a_word_based_language_model_are_refused(folder: Path) -> None:
    path = folder / "options.json"
    path.write_text(json.dumps({"lstm": small_options()["lstm"]}))
    expected = "options.json: 'char_cnn.embedding.dim' is missing: no 'char_cnn' among lstm"
    assert message(folder) == expected


def test_an_option_of_the_wrong_kind_is_refused(folder: Path) -> None:
    change_options(folder, lstm={**small_options()["lstm"], "cell_clip": "three"})
    assert "context_layers.cell_clip" in message(folder, ConfigError)


def test_section_that_is_not_an_object_is_refused(folder: Path) -> None:
    change_options(folder, lstm=3)
    expected = "options.json: cannot read 'lstm.projection_dim': expected an object, found 3"
    assert message(folder) == expected


def test_one_direction_alone_is_refused(folder: Path) -> None:
    change_options(folder, bidirectional=False)
    assert message(folder) == "options.json: 'bidirectional' is false; a biLM reads both ways"


def test_a_failed_write_leaves_the_old_file(bilm, folder: Path, monkeypatch) -> None:
    before = (folder / "weights.hdf5").read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(h5py.Group, "create_dataset", fail)
    with pytest.raises(OSError, match="No space left"):
        write(bilm, folder)
    assert (folder / "weights.hdf5").read_bytes() == before
    assert not list(folder.glob(".*"))


def test_weights_of_another_file_are_not_read(folder: Path, tmp_path: Path) -> None:
    """A folder of someone else must not make a file of this machine a part of a model."""
    weights, other = folder / "weights.hdf5", tmp_path / "other.hdf5"
    weights.rename(other)
    with h5py.File(weights, "w") as file, h5py.File(other, "r") as source:
        for name in source:
            file[name] = h5py.ExternalLink(str(other), name)
    with pytest.raises(DataError, match=r"dataset 'CNN_proj/W_proj' is kept in another file$"):
        read(folder)
    raw = tmp_path / "raw"
    raw.write_bytes(bytes(10**6))
    with h5py.File(other, "r") as source, h5py.File(weights, "w") as file:
        for name in source:
            source.copy(name, file)
        shape = file["char_embed"].shape
        del file["char_embed"]
        file.create_dataset("char_embed", shape, "f4", external=[(str(raw), 0, 10**6)])
    with pytest.raises(DataError, match=r"dataset 'char_embed' is kept in another file$"):
        read(folder)
    with h5py.File(weights, "r+") as file:
        layout = h5py.VirtualLayout(shape, "f4")
        layout[:] = h5py.VirtualSource(str(other), "char_embed", shape)
        del file["char_embed"]
        file.create_virtual_dataset("char_embed", layout)
    with pytest.raises(DataError, match=r"dataset 'char_embed' is kept in another file$"):
        read(folder)


@pytest.mark.parametrize("error", [RuntimeError, OSError, KeyError])
def test_a_damaged_structure_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error("wrong B-tree signature")

    monkeypatch.setattr(h5py.Group, "get", fail)
    monkeypatch.setattr(h5py.Group, "visititems", fail)
    for use in (lambda: read(folder), lambda: list_datasets(folder / "weights.hdf5")):
        with pytest.raises(DataError, match=r"cannot be read: .*wrong B-tree signature"):
            use()


def test_no_damaged_byte_ends_in_another_error(folder: Path) -> None:
    weights = folder / "weights.hdf5"
    content = weights.read_bytes()
    for seed in range(12):
        chance = random.Random(seed)
        damaged = bytearray(content)
        for place in chance.choices(range(len(content) // 2), k=8):
            damaged[place] = chance.choice([0, 255])
        weights.write_bytes(damaged)
        with suppress(DataError):
            read(folder)
        with suppress(DataError):
            list_datasets(weights)


def test_a_file_that_may_not_be_so_large_is_an_error(folder: Path, tmp_path: Path) -> None:
    """HDF5 would end the process."""
    bilm, before = read(folder), getrlimit(RLIMIT_FSIZE)
    (tmp_path / "copy").mkdir()
    setrlimit(RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write(bilm, tmp_path / "copy")
    finally:
        setrlimit(RLIMIT_FSIZE, before)
    assert list((tmp_path / "copy").iterdir()) == []
