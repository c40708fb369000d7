"""The tagger with everything that can stand in its configuration, on fixtures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.commands.main import main
from tests.experiment.jobs import DATA, ROOT, TAGGING
from tests.experiment.task_check import check_task
from tests.unit.embedders.published_files import write_context2vec, write_cove

FIXTURES = ROOT / "tests/fixtures"
SMALL = {
    **TAGGING,
    "train_data_path": str(FIXTURES / "ner/train.txt"),
    "validation_data_path": str(FIXTURES / "ner/train.txt"),
}
INPUTS = ["Maria Lund left Oslo.", {"tokens": ["Rain"]}]
EMBEDDER = "model.embedder.token_embedders"


def vectors(folder: Path) -> Path:
    """Word vectors as text, four numbers a word."""
    path = folder / "vectors.txt"
    path.write_text("Oslo 1 2 3 4\nleft 0.1 -0.2 0.3 0.4\n. 0 0 1 0\n")
    return path


def test_the_baseline(tmp_path: Path) -> None:
    check_task("experiments/ner/baseline.jsonnet", tmp_path / "run", SMALL, inputs=INPUTS)


def test_elmo_at_the_input(tmp_path: Path, bilm: Path) -> None:
    config = "experiments/ner/elmo.jsonnet"
    check_task(config, tmp_path / "run", SMALL, inputs=INPUTS, bilm=bilm)


def test_a_language_model_between_two_encoders(tmp_path: Path, bilm: Path) -> None:
    config = "experiments/ner/taglm.jsonnet"
    small = {**SMALL, "model.output_encoder.hidden_size": 8}
    run = check_task(config, tmp_path / "run", small, inputs=INPUTS, bilm=bilm)

    mix = run.model.get_submodule("output_embedder.mix")
    assert not any(parameter.requires_grad for parameter in mix.parameters())
    assert run.model.get_submodule("output_encoder").input_dim == 2 * 8 + 2 * 8


def test_every_embedder_in_one_list(tmp_path: Path, bilm: Path) -> None:
    write_cove(tmp_path / "cove.pth", embedding_dim=4, hidden_size=3)
    words, params = str(vectors(tmp_path)), str(write_context2vec(tmp_path))
    small: dict[str, Any] = {
        **SMALL,
        f"{EMBEDDER}.tokens.embedding_dim": 4,
        f"{EMBEDDER}.tokens.pretrained_file": words,
        f"{EMBEDDER}.context2vec": {"type": "context2vec", "model_file": params},
        f"{EMBEDDER}.cove": {
            "type": "cove",
            "model_file": str(tmp_path / "cove.pth"),
            "pretrained_file": words,
            "embedding_dim": 4,
            "hidden_size": 3,
            "layers": "both",
            "residual_embeddings": True,
        },
    }
    config, directory = "experiments/ner/elmo.jsonnet", tmp_path / "run"

    run = check_task(config, directory, small, inputs=INPUTS, bilm=bilm)

    assert run.model.get_submodule("encoder").input_dim == (4 + 8) + 16 + 8 + (4 + 12)
    coverage = json.loads((directory / "metadata.json").read_text())["word_coverage"]
    assert set(coverage) == {
        EMBEDDER.replace("model.", "") + "." + name for name in ("tokens", "cove.words")
    }


def test_the_simple_tagger_on_sentences_of_ones_own(tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("The###DT rain###NN fell###VBD\nRain###NN fell###VBD\n")
    config = tmp_path / "config.jsonnet"
    config.write_text(
        json.dumps(
            {
                "dataset_reader": {"type": "sequence_tagging"},
                "train_data_path": str(data),
                "validation_data_path": str(data),
                "model": {
                    "type": "simple_tagger",
                    "embedder": {
                        "token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 6}}
                    },
                },
                "trainer": {"optimizer": {"type": "adam", "lr": 0.1}, "num_epochs": 8},
            }
        )
    )

    run = check_task(str(config), tmp_path / "run", {}, inputs=[{"words": ["The", "rain"]}])

    assert run.predict([{"words": ["The", "rain"]}])[0]["tags"] == ["DT", "NN"]


def test_predictions_are_written_for_the_scorer(tagger: Path, tmp_path: Path) -> None:
    output, data = tmp_path / "tags.txt", DATA / "valid.txt"
    flags = ["--predictions-file", str(output), "--predictions-format", "conll"]

    assert main(["evaluate", str(tagger), str(data), *flags]) == 0

    rows = [line.split() for line in output.read_text().splitlines() if line]
    words = [line.split()[0] for line in data.read_text().splitlines() if line.strip()]
    assert [row[0] for row in rows] == words[: len(rows)]
    assert len(rows) > 100
    assert {len(row) for row in rows} == {3}
    assert {tag[0] for row in rows for tag in row[1:]} <= set("BIO")


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_format_that_the_task_lacks_is_refused_at_once(
    command: str, tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    names = {"evaluate": "--predictions-file", "predict": "--output-file"}
    flags = [names[command], str(output), "--predictions-format", "squad"]

    assert main([command, str(tagger), str(DATA / "valid.txt"), *flags]) == 2

    assert capsys.readouterr().err == (
        "error: unknown format 'squad' for predictions of this run; choose from "
        "brat, conll, conllu, csv, jsonl, tsv.\n"
    )
    assert not output.exists()


def test_predictions_can_be_read_by_people(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"tokens": ["Anna", "[left]", "x" * 200]}) + "\n")

    assert main(["predict", str(tagger), str(source), "--pretty"]) == 0

    shown = capsys.readouterr().out
    assert "[left]" in shown
    assert shown.count("\n") == 1
    assert "\x1b" not in shown


def test_predictions_without_gold_tags_have_two_columns(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"tokens": ["Anna", "left"]}\n')

    assert main(["predict", str(tagger), str(source), "--predictions-format", "conll"]) == 0

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [len(row) for row in rows] == [2, 2, 0]
