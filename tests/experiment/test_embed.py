"""`elmo embed` on whole runs: the command, the mix of a task model, two processes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from elmo_framework import load
from elmo_framework.bilm.files.load import bilm_files, read_bilm
from elmo_framework.commands.main import main
from elmo_framework.embedders.elmo import ElmoTokenEmbedder
from elmo_framework.layers.bilm_source import FrozenBiLm
from tests.experiment.jobs import DATA
from tests.numpy_bilm import NumpyBiLm
from tests.two_processes import in_two_processes

TEXT = str(DATA / "lm_valid.txt")


def test_standard_input_is_embedded(
    bilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(b"Anna left .\n\nyes\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    out = tmp_path / "out.h5"
    assert main(["embed", str(bilm), "-", "--output-file", str(out), "--tokenizer", "spacy"]) == 0
    with h5py.File(out) as file:
        assert [file[key].shape[1] for key in "012"] == [3, 0, 1]


def test_standard_output_has_json_lines_without_an_output_file(
    bilm: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Anna left .\n")))
    assert main(["embed", str(bilm), "-", "--layers", "top"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["words"] == ["Anna", "left", "."]
    assert np.shape(found["vectors"]) == (3, 16)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--resume"], "--resume needs --output-file"),
        (["--format", "npy"], "--format needs --output-file"),
        (["--output-file", "x.jsonl"], "remove --output-file and add > x.jsonl"),
    ],
)
def test_flags_that_standard_output_cannot_obey_are_refused(
    flags: list[str], expected: str, bilm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["embed", str(bilm), TEXT, *flags]) == 2
    assert expected in capsys.readouterr().err


def test_the_mix_is_that_of_the_task_model(bilm: Path, tagger: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Anna left Lisbon .\n")
    out = str(tmp_path / "out.hdf5")
    layers = f"mixed({tagger}:elmo)"
    assert main(["embed", str(bilm), str(text), "--output-file", out, "--layers", layers]) == 0
    modules = load(tagger, device="cpu").model.modules()
    (mix,) = [module.mix for module in modules if isinstance(module, ElmoTokenEmbedder)]
    source = FrozenBiLm(read_bilm(bilm_files(bilm)))
    ((_, layers),) = source.read([["Anna", "left", "Lisbon", "."]])
    with torch.no_grad():
        expected = mix(layers[:, None], torch.ones(1, 6, dtype=torch.bool))[0, 1:-1]
    with h5py.File(out) as file:
        np.testing.assert_allclose(file["0"][...], expected.numpy(), atol=1e-6)


def test_the_mix_for_another_bilm_is_refused(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = NumpyBiLm.random().save(tmp_path / "other")
    words = ["embed", str(other), TEXT, "--output-file", str(tmp_path / "out")]
    assert main([*words, "--layers", f"mixed({tagger})"]) == 2
    assert "this run has learned its mix on another encoder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["out.hdf5", "out"])
def test_two_processes_leave_the_result_of_one(bilm: Path, tmp_path: Path, name: str) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(Path(TEXT).read_text().splitlines(keepends=True)[:40]))
    # 32 batches are a piece of work: there are several for each process.
    flags = ["--max-tokens", "4", "--device", "cpu"]
    command = ["embed", str(bilm), str(text), *flags, "--output-file"]
    assert main([*command, str(tmp_path / f"one-{name}")]) == 0
    words = [*command, str(tmp_path / name)]
    assert in_two_processes(lambda _: sys.exit(main(words))) == [0, 0]
    files = ["", "vectors.npy", "index.npy"] if name == "out" else [""]
    for file in files[-2:]:
        one, two = tmp_path / f"one-{name}" / file, tmp_path / name / file
        assert one.read_bytes() == two.read_bytes()
