"""The biLM of a run, written as files of bilm-tf."""

from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import bilm_files, read_bilm, save_bilm
from elmo_framework.commands.main import main
from elmo_framework.config.parse import parse
from elmo_framework.config.plugins import load_plugins
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.load_run import export_bilm, load
from tests.experiment.jobs import ROOT
from tests.plugin_scope import without_plugins

NAMES = ("options.json", "weights.hdf5", "softmax.safetensors", "vocabulary.txt")


def contents(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in NAMES]


def test_the_bilm_of_a_pretraining_run_is_exported_as_it_is(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "elmo"
    assert main(["export", str(bilm), "--output-dir", str(out)]) == 0
    assert capsys.readouterr().out == "".join(f"{out / name}\n" for name in NAMES)
    assert sorted(path.name for path in out.iterdir()) == sorted(NAMES)
    assert contents(out) == contents(bilm / "bilm")


def test_an_unfinished_run_exports_its_best_weights(
    bilm: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run"
    shutil.copytree(bilm, run, ignore=shutil.ignore_patterns("bilm", "weights.safetensors"))
    export_bilm(run, tmp_path / "out")
    assert f"{run}: not finished yet; these are its best weights so far" in caplog.messages
    assert contents(tmp_path / "out") == contents(bilm / "bilm")


def test_a_bilm_that_was_trained_with_its_task_is_exported(
    bilm: Path, tuned: Path, tmp_path: Path
) -> None:
    assert export_bilm(tuned, tmp_path / "out") == [tmp_path / "out" / name for name in NAMES[:2]]
    exported = read_bilm(bilm_files(tmp_path / "out")).state_dict()
    held = [part for part in load(tuned).model.modules() if isinstance(part, BiLm)]
    for name, values in held[0].state_dict().items():
        assert torch.equal(exported[name], values), name
    before = read_bilm(bilm_files(bilm)).state_dict()
    assert any(not torch.equal(exported[name], before[name]) for name in before)


def test_half_precision_export_can_be_read(bilm: Path, tmp_path: Path) -> None:
    for dtype in ("float32", "float16"):
        flags = ["--output-dir", str(tmp_path / dtype), "--dtype", dtype]
        assert main(["export", str(bilm), *flags]) == 0
    wide, half = (read_bilm(bilm_files(tmp_path / dtype)) for dtype in ("float32", "float16"))
    assert half.description == wide.description
    for name, values in wide.state_dict().items():
        is_bias_of_lstm = name.startswith("context_layers") and name.endswith("bias")
        expected = values if is_bias_of_lstm else values.half().float()
        assert torch.equal(half.state_dict()[name], expected), name
    wide_softmax, half_softmax = (
        load_file(tmp_path / dtype / "softmax.safetensors") for dtype in ("float32", "float16")
    )
    assert all(torch.equal(half_softmax[name], wide_softmax[name].half()) for name in wide_softmax)
    with h5py.File(tmp_path / "float16" / "weights.hdf5") as file:
        assert file["CNN_proj/W_proj"].dtype == file["CNN_proj/b_proj"].dtype == "float16"
        assert file["RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/B"].dtype == "float32"


def test_a_weight_that_half_precision_cannot_hold_is_refused(bilm: Path, tmp_path: Path) -> None:
    held = read_bilm(bilm_files(bilm))
    held.token_encoder.projection.bias[0] = 1e6
    with pytest.raises(DataError) as caught:
        save_bilm(held, tmp_path, dtype=torch.float16)
    assert str(caught.value) == (
        f"{tmp_path / 'weights.hdf5'}: dataset 'CNN_proj/b_proj' holds numbers that torch.float16 "
        "cannot hold"
    )
    assert list(tmp_path.iterdir()) == []


def test_float16_overflow_of_the_softmax_leaves_no_export(bilm: Path, tmp_path: Path) -> None:
    source, out = shutil.copytree(bilm / "bilm", tmp_path / "source"), tmp_path / "out"
    weights = load_file(source / "softmax.safetensors")
    weights["bias"][0] = 1e6
    save_file(weights, source / "softmax.safetensors")
    with pytest.raises(DataError) as caught:
        export_bilm(source, out, dtype=torch.float16)
    assert str(caught.value) == (
        f"{out / 'softmax.safetensors'}: tensor 'bias' holds numbers that torch.float16 cannot hold"
    )
    assert not out.exists()


def test_the_softmax_of_another_bilm_does_not_stay(bilm: Path, tmp_path: Path) -> None:
    export_bilm(bilm, tmp_path / "out")
    alone = tmp_path / "alone"
    save_bilm(read_bilm(bilm_files(bilm)), alone)
    export_bilm(alone, tmp_path / "out", force=True)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(NAMES[:2])


def test_a_run_with_a_frozen_bilm_is_refused(bilm: Path, tagger: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        export_bilm(tagger, tmp_path / "out")
    assert str(caught.value) == (
        f"{tagger}: this run trained no biLM; it reads the frozen one in {bilm / 'bilm'}, "
        "export that; for the model of the run itself, pass --format onnx or --format allennlp"
    )
    assert not (tmp_path / "out").exists()


def test_a_bilm_that_is_there_is_replaced_by_force_alone(bilm: Path, tmp_path: Path) -> None:
    (tmp_path / "weights.hdf5").write_text("mine")
    with pytest.raises(RunError) as caught:
        export_bilm(bilm, tmp_path)
    assert str(caught.value) == (
        f"--output-dir {tmp_path}: files of a biLM are there already (weights.hdf5); pass --force "
        "to replace them, or choose another folder"
    )
    assert (tmp_path / "weights.hdf5").read_text() == "mine"
    export_bilm(bilm, tmp_path, force=True)
    assert contents(tmp_path) == contents(bilm / "bilm")


@pytest.mark.parametrize("has_softmax", [True, False])
def test_the_vocabulary_of_a_corpus_is_left_alone(
    bilm: Path, tmp_path: Path, has_softmax: bool
) -> None:
    source = shutil.copytree(bilm / "bilm", tmp_path / "source")
    if not has_softmax:
        (source / "softmax.safetensors").unlink()
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/vocabulary.txt").write_text("mine")
    with pytest.raises(RunError, match=r"there already \(vocabulary\.txt\); pass --force"):
        export_bilm(source, tmp_path / "corpus")
    assert [path.read_text() for path in (tmp_path / "corpus").iterdir()] == ["mine"]


def test_a_damaged_softmax_is_found_before_anything_is_written(bilm: Path, tmp_path: Path) -> None:
    source = shutil.copytree(bilm / "bilm", tmp_path / "source")
    (source / "softmax.safetensors").write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"softmax\.safetensors: no tensors can be read"):
        export_bilm(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_parts_that_bilm_tf_does_not_know_are_written_as_our_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    raw = {"token_encoder": {"type": "average_character"}, "context_layers": {"type": "gru_cells"}}
    with without_plugins("replacement_parts"):
        monkeypatch.syspath_prepend(ROOT / "tests/fixtures/plugins")
        load_plugins(["replacement_parts"], asked_by="test")
        bilm = parse(BiLm, raw, source="test").build()
        save_bilm(bilm, tmp_path / "bilm")
        written = export_bilm(tmp_path / "bilm", tmp_path / "out", dtype=torch.float16)
    assert [path.name for path in written] == ["bilm.json", "weights.safetensors"]
    assert caplog.messages == [
        f"{tmp_path / 'bilm'}: written as bilm.json, for elmo_framework alone: bilm-tf's files "
        "hold 'char_cnn' (no layer_norm) with 'elmo_lstm', and this biLM has 'average_character' "
        "with 'gru_cells'"
    ]
    weights = load_file(written[1])
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}
    for name, tensor in bilm.state_dict().items():
        torch.testing.assert_close(weights[name].float(), tensor, atol=1e-3, rtol=1e-3)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no folder of a biLM"):
        export_bilm(tmp_path, tmp_path / "out")
