import json
from pathlib import Path

import h5py
import pytest

from elmo_framework.bilm.files.load import bilm_files, reference
from elmo_framework.commands.main import main
from tests.numpy_bilm import NumpyBiLm


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return NumpyBiLm.random(cell_clip=None).save(tmp_path / "run" / "bilm")


def test_tensors_and_statistics_are_printed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check-weights", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{folder / 'weights.hdf5'}: no problems\n")
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0 8 \N{MULTIPLICATION SIGN} 28" in lines
    assert "cell_clip none" in lines
    assert "use_skip_connections true" in lines
    assert f"SHA-256 {reference(bilm_files(folder)).digest}" in lines


def test_a_tensor_that_nothing_reads_is_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with h5py.File(NumpyBiLm.random().save(tmp_path) / "weights.hdf5", "a") as file:
        file["global_step"] = [3]
    assert main(["check-weights", str(tmp_path)]) == 0
    (marked,) = [line for line in capsys.readouterr().out.splitlines() if "ignored" in line]
    assert marked.startswith("global_step")


def test_layers_that_the_options_lack_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numpy_bilm = NumpyBiLm.random()
    numpy_bilm.options["lstm"]["n_layers"] = 1
    assert main(["check-weights", str(numpy_bilm.save(tmp_path))]) == 2
    assert "Cell1/LSTMCell/B belongs to a layer that options.json does" in capsys.readouterr().err


def test_the_report_is_printed_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-weights", str(folder.parent), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["weights"] == str(folder / "weights.hdf5")
    assert report["digest"] == reference(bilm_files(folder)).digest
    assert report["clips"]["cell_clip"] == {"limit": None, "share": 0.0}
    assert len(report["layers"]) == 3
    assert {"name": "char_embed", "shape": [261, 3], "is_read": True} in report["tensors"]


def test_a_damaged_file_is_one_message(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = folder / "weights.hdf5"
    weights.write_bytes(weights.read_bytes()[:3000])
    assert main(["check-weights", str(folder)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"error: {weights}: not an HDF5 file, or a damaged one: ")
    assert printed.err.count("\n") == 1
