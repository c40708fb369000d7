import json
import shutil
from math import log
from pathlib import Path

import numpy as np
import pytest

from elmo_framework.api.pretrained import load_bilm
from elmo_framework.bilm.files.import_bilm_tf import import_bilm_tf
from elmo_framework.commands.main import main
from elmo_framework.errors import DataError
from elmo_framework.io.archives import write_archive
from tests.numpy_bilm import NumpyBiLm
from tests.tf_checkpoints import write_checkpoint

FIXTURE = Path("tests/fixtures/bilm_tf").absolute()
THEIRS = [("/RNN/", "/rnn/"), ("MultiRNNCell", "multi_rnn_cell"), ("/Cell", "/cell_")]
THEIRS += [("LSTMCell", "lstm_cell"), ("W_P_0", "projection/kernel"), ("W_0", "kernel")]
THEIRS += [("lstm_cell/B", "lstm_cell/bias")]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return shutil.copytree(FIXTURE, tmp_path / "bilm_tf")


def variables(numpy_bilm: NumpyBiLm) -> dict[str, np.ndarray]:
    renamed = {}
    for name, array in numpy_bilm.weights.items():
        for ours, theirs in THEIRS:
            name = name.replace(ours, theirs)
        renamed[f"lm/{name}"] = array
    return renamed


def message(checkpoint: Path, **options: Path) -> str:
    with pytest.raises(DataError) as caught:
        import_bilm_tf(checkpoint, checkpoint / "bilm", **options)
    assert not (checkpoint / "bilm").exists()
    assert not list(checkpoint.glob(".*"))
    return str(caught.value).replace(f"{checkpoint}/", "")


def test_layers_and_probabilities_are_those_of_bilm_tf(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "bilm"
    arguments = ["-s", str(folder), "--vocab-file", str(checkpoint / "vocab.txt")]
    assert main(["import", str(checkpoint), *arguments]) == 0
    assert capsys.readouterr().out == f"{folder}\n"
    expected = json.loads((FIXTURE / "expected.json").read_text())
    bilm, words = load_bilm(folder, device="cpu"), expected["sentence"]
    np.testing.assert_allclose(bilm.embed([words])[0], expected["layers"], atol=1e-5)
    total = bilm.score([words])[0].total
    losses = [bits * log(2) / (len(words) + 1) for bits in (total.forward, total.backward)]
    np.testing.assert_allclose(losses, expected["losses"], atol=1e-5)


def test_without_a_vocabulary_the_softmax_is_left_out(checkpoint: Path, tmp_path: Path) -> None:
    import_bilm_tf(checkpoint, tmp_path / "bilm")
    files = {path.name for path in (tmp_path / "bilm").iterdir()}
    assert files == {"options.json", "weights.hdf5"}


@pytest.mark.parametrize("num_layers", [1, 2])
def test_names_of_variables_are_translated(num_layers: int, tmp_path: Path) -> None:
    numpy_bilm = NumpyBiLm.random(n_layers=num_layers)
    folder = numpy_bilm.save(tmp_path / "numpy")
    tensors = variables(numpy_bilm)
    if num_layers == 1:  # as TensorFlow names a single layer
        tensors = {name.replace("multi_rnn_cell/cell_0/", ""): tensors[name] for name in tensors}
    tensors |= {f"{name}/Adagrad": np.ones_like(array) for name, array in tensors.items()}
    prefix = write_checkpoint(tmp_path / "ckpt" / "model.ckpt-1", tensors)
    options = folder / "options.json"
    import_bilm_tf(prefix, tmp_path / "bilm", options_file=options)
    vectors = [load_bilm(path).embed([["a", "b"]])[0] for path in (folder, tmp_path / "bilm")]
    np.testing.assert_allclose(*vectors, atol=1e-5)


def test_a_vocabulary_of_another_checkpoint_is_refused(checkpoint: Path) -> None:
    vocabulary = checkpoint / "vocab.txt"
    vocabulary.write_text(vocabulary.read_text() + "more\n")
    expected = (
        "vocab.txt: not the vocabulary of this checkpoint: 37 words for the 36 rows of its softmax"
    )
    assert message(checkpoint, vocabulary_file=vocabulary) == expected


def test_options_of_another_checkpoint_are_refused(checkpoint: Path) -> None:
    options = json.loads((checkpoint / "options.json").read_text())
    options["lstm"]["dim"] = 20
    (checkpoint / "options.json").write_text(json.dumps(options))
    error = message(checkpoint)
    assert error.startswith("model.ckpt-30: options.json and the checkpoint do not fit: dataset ")
    assert "the options ask for" in error


def test_missing_parts_are_named(checkpoint: Path, tmp_path: Path) -> None:
    (checkpoint / "options.json").unlink()
    assert message(checkpoint).startswith("options.json: not the options of a biLM")
    array = np.zeros((2, 2), np.float32)
    for name, problem in {"lm/embedding": "its biLM reads words", "x": "not of bilm-tf"}.items():
        prefix = write_checkpoint(tmp_path / "words" / "ckpt", {name: array})
        with pytest.raises(DataError, match=problem):
            import_bilm_tf(prefix, tmp_path / "bilm")


def test_an_existing_folder_is_not_replaced(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(checkpoint / "model.ckpt-30"), "-s", str(checkpoint)]) == 2
    assert "already exists; choose another folder" in capsys.readouterr().err
    assert (checkpoint / "options.json").is_file()


def test_a_bilm_needs_no_import_and_a_checkpoint_next_to_one_is_imported(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import_bilm_tf(checkpoint, tmp_path / "bilm")
    write_archive({"options.json": checkpoint / "options.json"}, tmp_path / "bilm.tar.gz")
    for name, kind in {"bilm": "biLM", "bilm.tar.gz": "archive"}.items():
        source = tmp_path / name
        assert main(["import", str(source), "-s", str(tmp_path / "again")]) == 2
        assert f"{source}: this {kind} needs no import" in capsys.readouterr().err
    # bilm-tf writes the files of a biLM next to its checkpoint.
    shutil.copy(tmp_path / "bilm" / "weights.hdf5", checkpoint)
    assert main(["import", str(checkpoint), "-s", str(tmp_path / "again")]) == 0
