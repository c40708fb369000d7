"""Heads on a transformer: trained, evaluated, moved, checked, and its layers used elsewhere."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from safetensors.torch import load_file

from elmo_framework import load
from elmo_framework.commands.main import main
from elmo_framework.data.text import collate_text
from elmo_framework.layers.transformer_source import Transformer
from elmo_framework.study import read_records
from tests.experiment.jobs import DATA, TAGGING, evaluations, train
from tests.experiment.studies import study, tagger, write
from tests.tiny_transformers import save_transformer

NER = "experiments/ner/baseline.jsonnet"
BERT = "model.embedder.token_embedders.bert"
VALID = str(DATA / "valid.txt")
SENTENCE = ["Anna Kovacs moved to Lisbon ."]


def tagging(folder: Path, **keys: Any) -> dict[str, Any]:
    embedder = {"type": "pretrained_transformer_mismatched", "model_name": str(folder), **keys}
    return {**TAGGING, BERT: embedder, "trainer.num_epochs": 1}


FROZEN = {"train_parameters": False, "last_layer_only": False, "sub_token_mode": "last"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformer, and the run of a tagger on its frozen layers."""
    root = tmp_path_factory.mktemp("transformer")
    save_transformer(root / "bert", "bert")
    assert train(NER, root / "run", tagging(root / "bert", **FROZEN)) == 0
    return root


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Its length is how often the transformer was run."""
    passes, hidden = [], Transformer._hidden

    def counted(self: Transformer, *arguments: Any) -> torch.Tensor:
        passes.append(1)
        return hidden(self, *arguments)

    monkeypatch.setattr(Transformer, "_hidden", counted)
    return passes


def test_second_run_never_runs_the_transformer(root: Path, tmp_path: Path, passes) -> None:
    assert train(NER, tmp_path / "again", tagging(root / "bert", **FROZEN)) == 0
    assert passes == []
    assert evaluations(tmp_path / "again") == evaluations(root / "run")


def test_moved_run_finds_the_transformer(root: Path, tmp_path: Path) -> None:
    expected = load(root / "run").predict(SENTENCE)
    for name in ("run", "bert"):
        shutil.copytree(root / name, tmp_path / name)
    for path in (tmp_path / "run").glob("*.json"):
        path.write_text(path.read_text().replace(str(root), str(tmp_path / "gone")))
    assert load(tmp_path / "run").predict(SENTENCE) == expected
    (tmp_path / "bert").rename(tmp_path / "elsewhere")
    assert load(tmp_path / "run", bilm=tmp_path / "elsewhere").predict(SENTENCE) == expected


def test_other_transformer_in_its_place_is_refused(root: Path, tmp_path: Path, capsys) -> None:
    other = save_transformer(tmp_path / "other", "bert", seed=1)
    assert main(["evaluate", str(root / "run"), VALID, "--bilm", str(other)]) == 2
    assert "is not the one that the run" in capsys.readouterr().err


@pytest.mark.parametrize("encoder", ["bert", "bilm"])
def test_unfreezing_resumes_exactly_in_each_phase(
    encoder: str, root: Path, bilm: Path, tmp_path: Path
) -> None:
    changes = tagging(root / "bert")
    if encoder == "bilm":
        elmo = {"type": "elmo_token_embedder", "bilm": str(bilm), "requires_grad": True}
        changes[BERT] = elmo
    changes |= {
        "dataset_reader.max_instances": 16,
        "trainer.num_epochs": 4,  # the head alone, and three layers
        "trainer.unfreezing": {"epochs_per_layer": 1, "layer_decay": 0.5},
        "trainer.callbacks": [],
    }
    assert train(NER, tmp_path / "whole", changes) == 0
    stops = [1, 3, 5, 7]  # in the middle of each epoch
    changes["trainer.callbacks"] = [
        {"type": "signal_once", "step": step, "name": "SIGTERM"} for step in stops
    ]
    assert train(NER, tmp_path / "parts", changes) == 130
    recovered = [train(NER, tmp_path / "parts", changes, "--recover") for _ in stops]
    assert recovered == [130, 130, 130, 0]
    assert evaluations(tmp_path / "parts") == evaluations(tmp_path / "whole")
    whole, parts = (
        load_file(tmp_path / name / "checkpoints/step-000000008/model.safetensors")
        for name in ("whole", "parts")
    )
    assert any(".transformer.encoder." in name or ".bilm." in name for name in whole)
    assert all(torch.equal(parts[name], value) for name, value in whole.items())


def test_unfreezing_needs_a_trained_encoder(root: Path, tmp_path: Path, capsys) -> None:
    changes = {**tagging(root / "bert", **FROZEN), "trainer.unfreezing": {}}
    assert train(NER, tmp_path / "run", changes) == 2
    assert "trainer.unfreezing: has no effect" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_study_has_a_transformer_next_to_a_bilm(root: Path, bilm: Path, tmp_path: Path) -> None:
    frozen = {"bert": tagging(root / "bert", **FROZEN)[BERT]}
    elmo = {"elmo": {"type": "elmo_token_embedder", "bilm": str(bilm)}}
    variants = {
        name: {"model": {"embedder": {"token_embedders": embedder}}}
        for name, embedder in (("bert", frozen), ("bilm", elmo), ("both", frozen | elmo))
    }
    raw = study(configs={"ner": {"config": tagger(), "variants": variants}})
    assert main(["study", str(write(tmp_path, raw)), "-s", str(tmp_path / "study")]) == 0
    records = {record.variant: record for record in read_records(tmp_path / "study/results")}
    encoders = {name: len(record.digests["bilm"]) for name, record in records.items()}
    assert encoders == {"bert": 1, "bilm": 1, "both": 2}
    assert len({record.validation["loss"] for record in records.values()}) == 3
    report = "\n".join(path.read_text() for path in (tmp_path / "study").glob("*.md"))
    assert all(name in report for name in variants)


def test_learned_mix_is_written_with_the_options_of_the_run(root: Path, tmp_path: Path) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "out.hdf5"
    text.write_text("Anna Kovacs moved .\n")
    mixed = f"mixed({root / 'run'})"
    words = ["embed", str(root / "bert"), str(text), "--output-file", str(out), "--layers", mixed]
    assert main(words) == 0
    run = load(root / "run")
    embedder = run.model.get_submodule(BERT.removeprefix("model."))
    embedder.dropout.p = 0.0
    expected = embedder(collate_text([["Anna", "Kovacs", "moved", "."]])).detach()[0]
    with h5py.File(out) as file:
        np.testing.assert_allclose(file["0"], expected, atol=5e-3)


def test_neighbors_and_pools_take_a_transformer(root: Path, tmp_path: Path, capsys) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the dog ran\na dog sat\nno cat\n")
    words = ["neighbors", str(root / "bert"), "--corpus", str(text), "--format", "json"]
    assert main([*words, "--query", "my dog", "--word", "dog"]) == 0
    layers = json.loads(capsys.readouterr().out)["layers"]
    assert [len(layer["neighbors"]) for layer in layers] == [2, 2]
    assert main(["embed", str(root / "bert"), str(text), "--pool", "mean", "--layers", "top"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {np.array(line["vectors"]).shape for line in lines} == {(16,)}


def checked(folder: Path, capsys: pytest.CaptureFixture[str], **keys: Any) -> str:
    words = tagging(folder, **keys)
    overrides = [word for key in words for word in ("-o", f"{key}={json.dumps(words[key])}")]
    assert main(["check", NER, *overrides]) == 2
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    return errors


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda folder: shutil.rmtree(folder), "does not exist"),
        (lambda folder: (folder / "config.json").unlink(), "it has no config.json"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "no tokenizer: none of"),
        (
            lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
            "no model.safetensors but pytorch_model.bin, which is not read",
        ),
    ],
)
def test_check_reports_a_bad_folder_with_its_key(
    damage: Callable[[Path], None], expected: str, in_root, tmp_path: Path, capsys
) -> None:
    folder = save_transformer(tmp_path / "bert", "bert")
    damage(folder)
    errors = checked(folder, capsys)
    assert expected in errors
    assert BERT in errors
    assert str(folder) in errors


def test_check_reports_wrong_options_together(in_root, root: Path, capsys) -> None:
    errors = checked(root / "bert", capsys, sub_token_mode="middle", max_lenght=3)
    assert "sub_token_mode" in errors
    assert "did you mean 'max_length'" in errors.lower()
    assert f"{BERT}: " in checked(root / "bert", capsys, max_length=100)


def test_missing_extra_is_one_line(in_root, root: Path, capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    errors = checked(root / "bert", capsys)
    assert "pip install 'elmo-framework[transformers]'" in errors


def test_score_writes_the_forward_direction(tmp_path: Path, capsys) -> None:
    folder = save_transformer(tmp_path / "gpt2", "gpt2")
    text = tmp_path / "text.txt"
    text.write_text("the dog ran\na dog\n")
    assert main(["score", str(folder), str(text), "--format", "jsonl"]) == 0
    captured = capsys.readouterr()
    rows = [json.loads(line) for line in captured.out.splitlines()]
    assert [row["word"] for row in rows] == ["the", "dog", "ran", "a", "dog"]
    assert [row["position"] for row in rows] == [1, 2, 3, 1, 2]
    assert all(row["forward"] > 0 and row["backward"] is row["both"] is None for row in rows)
    mean = sum(row["forward"] for row in rows) / 5
    assert f"sentence ends not predicted: forward {mean:.3f}" in captured.err
    assert "backward" not in captured.err
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"sentence_good": "the dog", "sentence_bad": "the dog ran"}\n')
    assert main(["score", str(folder), str(pairs), "--pairs", "--format", "jsonl"]) == 0
    captured = capsys.readouterr()
    row = json.loads(captured.out)
    assert (row["forward_correct"], row["backward_correct"]) == (1, None)
    assert "more probable: forward 100.00%" in captured.err
    assert main(["score", str(folder), str(text), "--state", "document"]) == 2
    assert "carries no state" in capsys.readouterr().err


def test_score_refuses_an_encoder_without_next_words(root: Path, tmp_path: Path, capsys) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the dog ran\n")
    assert main(["score", str(root / "bert"), str(text)]) == 2
    assert "has no probability of the next word" in capsys.readouterr().err


def test_evaluate_names_the_command_that_scores(root: Path, tmp_path: Path, capsys) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Anna left\n")
    assert main(["evaluate", str(root / "bert"), str(text)]) == 2
    assert "bert is a transformer; `elmo score` scores text with it" in capsys.readouterr().err


def test_report_shows_neighbors_by_the_transformer_of_the_run(root: Path, tmp_path: Path) -> None:
    text, page = tmp_path / "text.txt", tmp_path / "page.html"
    text.write_text("the dog ran\na dog sat\nno cat\n")
    words = ["report", str(root / "run"), "--output-file", str(page), "--corpus", str(text)]
    assert main([*words, "--query", "my dog", "--word", "dog"]) == 0
    assert "ran" in page.read_text()
