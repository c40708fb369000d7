"""What a run leaves behind, and what can be done with it."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from elmo_framework import load
from elmo_framework.commands.main import main
from elmo_framework.data.data_loader import BucketDataLoader
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.errors import DataError, RunError
from elmo_framework.io.files import digest
from elmo_framework.io.outputs import Output, check_outputs
from elmo_framework.tasks.tagging.task import TaggingTask
from tests.experiment.jobs import (
    DATA,
    TAGGING,
    arguments,
    evaluations,
    numbers,
    pretrain,
    tagging_with,
    train,
)

NER = "experiments/ner/elmo.jsonnet"


def test_a_run_holds_all_that_is_promised(tagger: Path) -> None:
    assert {path.name for path in tagger.iterdir()} - {".lock"} == {
        "README.md",
        "checkpoints",
        "config.json",
        "config.jsonnet",
        "filled_config.json",
        "log",
        "metadata.json",
        "metrics.json",
        "metrics.jsonl",
        "steps.jsonl",
        "vocabulary",
        "weights.safetensors",
    }


def test_the_filled_config_has_defaults_and_absolute_paths(tagger: Path) -> None:
    filled = json.loads((tagger / "filled_config.json").read_text())
    assert filled["trainer"]["optimizer"]["betas"] == [0.9, 0.999]
    assert Path(filled["train_data_path"]).is_absolute()


def test_metadata_records_data_and_bilm_digests_and_libraries(tagger: Path, bilm: Path) -> None:
    metadata = json.loads((tagger / "metadata.json").read_text())
    train_path = DATA / "train.txt"
    assert metadata["digests"]["data"][str(train_path)] == digest([train_path])
    options, weights = bilm / "bilm/options.json", bilm / "bilm/weights.hdf5"
    assert metadata["digests"]["bilm"] == {
        "embedder.token_embedders.elmo": digest([options, weights])
    }
    assert {"torch", "numpy", "jsonnet"} <= metadata["libraries"].keys()


def test_metrics_name_the_best_evaluation_and_the_layer_weights(tagger: Path) -> None:
    metrics = json.loads((tagger / "metrics.json").read_text())
    best = max(evaluations(tagger), key=lambda line: line["f1-measure-overall"])
    assert metrics["best_validation_f1-measure-overall"] == best["f1-measure-overall"]
    mix = "embedder.token_embedders.elmo.mix"
    weights = [metrics[f"{mix}.s_{layer}"] for layer in range(3)]
    assert sum(weights) == pytest.approx(1)
    assert metrics[f"{mix}.gamma"] != 1.0


def test_a_frozen_bilm_is_in_no_file_of_the_run(tagger: Path, bilm: Path) -> None:
    saved = [tagger / "weights.safetensors", *(tagger / "checkpoints").rglob("*.safetensors")]
    assert not [name for path in saved for name in load_file(path) if "context_layers" in name]


def test_a_tuned_bilm_is_changed_and_saved_with_the_run(bilm: Path, tuned: Path) -> None:
    weights = load_file(tuned / "weights.safetensors")
    inner = {name: held for name, held in weights.items() if ".bilm." in name}
    pretrained = load_file(bilm / "weights.safetensors")
    assert inner
    moved = [
        name
        for name, held in inner.items()
        if not held.equal(pretrained[name[name.index("bilm.") :]])
    ]
    assert moved
    metrics = json.loads((tuned / "metrics.json").read_text())
    scores = load(tuned).evaluate(DATA / "valid.txt")
    assert scores["loss"] == pytest.approx(metrics["best_validation_loss"], rel=1e-5)
    assert scores["accuracy"] == metrics["best_validation_accuracy"]


def test_a_loaded_run_scores_as_it_did_in_training(tagger: Path) -> None:
    metrics = json.loads((tagger / "metrics.json").read_text())
    scores = load(tagger).evaluate(DATA / "valid.txt")
    assert scores["f1-measure-overall"] == metrics["best_validation_f1-measure-overall"]
    assert scores["loss"] == pytest.approx(metrics["best_validation_loss"], rel=1e-5)


def test_an_unfinished_run_evaluates_with_its_best_weights(tagger: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(tagger, run, ignore=shutil.ignore_patterns("weights.safetensors"))
    assert load(run).evaluate(DATA / "valid.txt") == load(tagger).evaluate(DATA / "valid.txt")


def test_the_same_sentence_gets_the_same_tags_in_any_company(tagger: Path) -> None:
    run = load(tagger)
    alone = run.predict(["Anna Kovacs moved to Lisbon."])
    company = run.predict(["It rained.", "Anna Kovacs moved to Lisbon.", "No one came to us."])
    assert alone[0] == company[1]
    assert alone[0]["words"] == ["Anna", "Kovacs", "moved", "to", "Lisbon", "."]


def test_every_file_of_a_run_is_protected(tagger: Path, bilm: Path) -> None:
    paths = [*tagger.iterdir(), *bilm.iterdir(), *(bilm / "bilm").iterdir()]
    for path in paths:
        with pytest.raises(RunError, match=r"is a part of the (run|biLM)"):
            check_outputs([Output(path, "--output-file", force=True)], [])


def test_evaluate_scores_several_files(tagger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(DATA / "valid.txt"), str(DATA / "test.txt")]
    assert main(["evaluate", str(tagger), *files, "--format", "json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert list(scores) == files
    assert numbers(scores[files[0]]) == load(tagger).evaluate(files[0])
    assert scores[files[0]]["span_f1"]["micro"]["support"] > 0


def test_evaluate_writes_scores_and_predictions(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, scores = tmp_path / "predictions.jsonl", tmp_path / "scores.json"
    valid = str(DATA / "valid.txt")
    options = ["--predictions", str(lines), "--output-file", str(scores)]
    assert main(["evaluate", str(tagger), valid, *options]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert next(name for name in names if name.startswith("f1-measure")) == "f1-measure-overall"
    predictions = [json.loads(line) for line in lines.read_text().splitlines()]
    assert len(predictions) == 40
    assert all(len(held["tags"]) == len(held["words"]) for held in predictions)
    assert numbers(json.loads(scores.read_text())[valid]) == load(tagger).evaluate(valid)


def test_scores_are_there_when_predictions_cannot_be_written(
    tagger: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(predictions: object) -> Iterator[str]:
        yield "half"
        raise DataError("two examples have one id")

    monkeypatch.setitem(TaggingTask.formats, "conll", refused)
    tags, scores = tmp_path / "tags.txt", tmp_path / "scores.json"
    flags = ["--predictions-file", str(tags), "--output-file", str(scores), "--format", "json"]
    data = str(DATA / "valid.txt")
    assert main(["evaluate", str(tagger), data, *flags, "--predictions-format", "conll"]) == 2
    told = capsys.readouterr()
    assert json.loads(told.out) == json.loads(scores.read_text()) != {}
    assert "two examples have one id" in told.err
    assert not tags.exists()


def test_a_format_of_predictions_needs_their_file(
    tagger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(DATA / "valid.txt")
    assert main(["evaluate", str(tagger), data, "--predictions-format", "conll"]) == 2
    assert capsys.readouterr().err == (
        "error: --predictions-format conll needs --predictions-file, which names what is written\n"
    )


def test_predictions_are_in_the_order_of_the_file(tagger: Path) -> None:
    run = load(tagger)
    run.experiment.validation_data_loader = BucketDataLoader(batch_size=7, bucketing=True)
    examples = list(run.experiment.validation_dataset_reader.read(DATA / "valid.txt"))

    scored = run.score(DATA / "valid.txt")

    assert [example for _, example in scored.predictions] == examples
    tags = [held["tags"] for held in run.predict([{"words": list(e.words)} for e in examples])]
    assert [list(prediction) for prediction, _ in scored.predictions] == tags
    assert run.model.scores(scored.sums) == run.evaluate(DATA / "valid.txt")


def test_predict_takes_sentences_and_objects(
    tagger: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = 'It rained.\n\n{"tokens": ["Mr.", "Lund", "left"]}\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert main(["predict", str(tagger)]) == 0
    words = [json.loads(line)["words"] for line in capsys.readouterr().out.splitlines()]
    assert words == [["It", "rained", "."], ["Mr.", "Lund", "left"]]


def test_predict_writes_a_file(tagger: Path, tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.jsonl"
    source.write_text("Anna left .\n")
    options = ["--output-file", str(output), "--tokenizer", "whitespace"]
    assert main(["predict", str(tagger), str(source), *options]) == 0
    assert json.loads(output.read_text())["words"] == ["Anna", "left", "."]


def test_predict_takes_a_tokenizer_as_a_config_writes_it(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    german = {"type": "spacy", "language": "de"}
    assert load(tagger).predict(["Am 3. Mai."], tokenizer=german)[0]["words"] == [
        "Am",
        "3.",
        "Mai",
        ".",
    ]
    source = tmp_path / "in.txt"
    source.write_text("Am 3. Mai.\n")
    assert main(["predict", str(tagger), str(source), "--tokenizer", json.dumps(german)]) == 0
    assert json.loads(capsys.readouterr().out)["words"] == ["Am", "3.", "Mai", "."]
    wrong = json.dumps({**german, "languag": "fr"})
    assert main(["predict", str(tagger), str(source), "--tokenizer", wrong]) == 2
    assert "languag: unknown key of SpacyTokenizer" in capsys.readouterr().err


def test_predict_takes_a_tokenizer_by_name_or_as_it_is(tagger: Path) -> None:
    run = load(tagger)
    by_name = run.predict(["It rained."], tokenizer="whitespace")
    assert by_name == run.predict(["It rained."], tokenizer=WhitespaceTokenizer())
    assert by_name[0]["words"] == ["It", "rained."]


@pytest.mark.parametrize("name", ["baseline", "elmo"])
def test_a_run_is_used_in_the_precision_of_its_training(
    name: str, bilm: Path, tmp_path: Path
) -> None:
    changes = TAGGING if name == "baseline" else tagging_with(bilm)
    bfloat16 = {"trainer.precision": "bfloat16", "trainer.num_epochs": 1}
    config = f"experiments/ner/{name}.jsonnet"
    assert train(config, tmp_path / "run", {**changes, **bfloat16}) == 0
    run = load(tmp_path / "run")
    precisions: list[torch.dtype | None] = []
    run.model.register_forward_pre_hook(
        lambda *_: precisions.append(
            torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
        )
    )
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    scores = run.evaluate(DATA / "valid.txt")
    assert scores["loss"] == pytest.approx(metrics["best_validation_loss"], rel=1e-6)
    run.predict([{"tokens": ["Anna", "left"]}])
    assert set(precisions) == {torch.bfloat16}


def test_evaluate_gives_the_perplexities_of_a_bilm(bilm: Path) -> None:
    scores = load(bilm).evaluate(DATA / "lm_valid.txt")
    product = scores["forward_perplexity"] * scores["backward_perplexity"]
    assert scores["perplexity"] == pytest.approx(product**0.5)


def test_two_pretrainings_are_the_same(bilm: Path, tmp_path: Path) -> None:
    again = load_file(pretrain(tmp_path / "again") / "weights.safetensors")
    once = load_file(bilm / "weights.safetensors")
    assert all(once[name].equal(again[name]) for name in once)


def test_the_test_data_is_scored_at_the_end_when_asked_for(bilm: Path, tmp_path: Path) -> None:
    asked = {"evaluate_on_test": True, "test_data_path": str(DATA / "test.txt")}
    assert train(NER, tmp_path / "run", tagging_with(bilm, **asked)) == 0
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    scores = load(tmp_path / "run").evaluate(DATA / "test.txt")
    assert metrics["test_f1-measure-overall"] == scores["f1-measure-overall"]


def test_two_places_have_two_mixes_from_one_pass(
    bilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from elmo_framework.bilm.bilm import BiLm

    calls: list[int] = []
    contextualize = BiLm.contextualize

    def counted(self: BiLm, *arguments: Any, **options: Any) -> Any:
        calls.append(1)
        return contextualize(self, *arguments, **options)

    monkeypatch.setattr(BiLm, "contextualize", counted)
    output = {"type": "elmo_token_embedder", "bilm": str(bilm), "cache": "none"}
    changes = tagging_with(
        bilm,
        **{
            "model.output_embedder": output,
            "model.embedder.token_embedders.elmo.cache": "none",
            "trainer.num_epochs": 1,
        },
    )
    assert train(NER, tmp_path / "run", changes) == 0
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    assert len(calls) == 40 // 8 + 1 + 40 // 8  # training, rehearsal, validation: one pass a batch
    places = ("embedder.token_embedders.elmo", "output_embedder")
    first, second = (metrics[f"{place}.mix.gamma"] for place in places)
    assert first != second


@pytest.mark.parametrize("layer_norm", [False, True])
def test_an_elmo_mix_can_be_the_only_embedder(bilm: Path, tmp_path: Path, layer_norm: bool) -> None:
    mix = {"type": "scalar_mix", "layer_norm": layer_norm}
    changes = tagging_with(
        bilm,
        **{
            "model.embedder.token_embedders": {
                "elmo": {"type": "elmo_token_embedder", "bilm": str(bilm), "mix": mix}
            },
            "model.initializer": None,  # of the characters, which are left out
        },
    )
    for name in [name for name in changes if name.startswith("model.embedder.token_embedders.")]:
        changes.pop(name)
    assert train(NER, tmp_path / "run", changes) == 0
    encoder = load(tmp_path / "run").model.get_submodule("encoder")
    assert encoder.input_dim == 2 * 8  # ELMo's alone


def test_training_on_a_share_uses_as_many_sentences(bilm: Path, tmp_path: Path) -> None:
    changes = tagging_with(bilm, train_fraction=0.5, **{"trainer.num_epochs": 1})
    assert train(NER, tmp_path / "run", changes) == 0
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    assert metrics["training_steps"] == 3  # 20 of 40 sentences in batches of 8


def test_torch_is_left_as_it_was(tagger: Path) -> None:
    before = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()
    load(tagger).predict(["It rained."])
    assert before == (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads())


def test_lone_surrogate_is_refused_in_files_but_not_in_python(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"tokens": ["Anna"]}\n{"tokens": ["\\ud800", "left"]}\n')
    assert main(["predict", str(tagger), str(source), "--pretty"]) == 2
    said = capsys.readouterr().err
    assert f"{source}:2: 'tokens' has the lone surrogate '\\ud800'" in said
    assert load(tagger).predict([{"tokens": ["\ud800"]}])[0]["words"] == ["\ud800"]


def test_no_file_of_a_run_holds_the_value_of_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.jsonnet"
    config.write_text(f"local key = std.extVar('KEY'); import '{DATA / 'baseline.jsonnet'}'")
    words = arguments(str(config), tmp_path / "run", TAGGING, "--ext-var", "KEY=hush")
    words += ["--overrides", '{"trainer.num_epochs": std.length(std.extVar("KEY")) / 4}']
    monkeypatch.setattr(sys, "argv", ["elmo", *words])
    assert main(words) == 0
    command = json.loads((tmp_path / "run/metadata.json").read_text())["command"]
    assert command == ["elmo", *words[:-3], "KEY=...", *words[-2:]]
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(files) > 9
    assert not [path for path in files if b"hush" in path.read_bytes()]
