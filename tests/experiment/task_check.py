"""What every shipped config of a task must do, checked on a few examples in seconds.

One line a config: `check_task("experiments/snli/elmo.jsonnet", tmp_path / "run", CHANGES, ...)`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from elmo_framework.commands.main import main
from elmo_framework.config.load import Config
from elmo_framework.errors import RunError, dotted
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.load_run import load
from elmo_framework.experiment.terms import ExampleTerms, score_function
from elmo_framework.model.head import Head
from tests.experiment.jobs import ROOT, evaluations, train

_WITHOUT_OUTPUT = {"loss", "accuracy3", "start_acc", "end_acc"}
"""Scores of the output of a single model, which a vote does not have."""

_ONE_PROCESS = {"trainer.device": "cpu", "trainer.callbacks": []}


def check_task(
    config: str,
    directory: Path,
    changes: Mapping[str, Any],
    *,
    inputs: Sequence[str | Mapping[str, Any]],
    bilm: Path | None = None,
    refused: Collection[str] = (),
) -> Assembly:
    """Train a config on fixtures: the loss falls, and the run scores and predicts when loaded.

    Args:
        config: its path from the root of the project.
        directory: of the run.
        changes: what makes it small, by dotted key; the data of validation should be that of
            training, as its loss must fall.
        inputs: what is predicted for.
        bilm: the run of a biLM, which takes the place of each one that the config names.
        refused: the formats of predictions that are for other models of the task.

    Returns:
        the run, for what a task checks besides.
    """
    small = {**_ONE_PROCESS, **changes, **_bilms(config, bilm)}
    assert train(config, directory, small) == 0
    losses = [line["loss"] for line in evaluations(directory) if "loss" in line]
    assert losses[-1] < losses[0]
    run = load(directory, device="cpu")
    _check_scores(run, directory)
    _check_terms(run, directory)
    _check_ensemble(run, directory)
    _check_formats(run, directory, refused)
    _check_file(run, directory)
    together = run.predict(inputs)
    assert len(together) == len(inputs)
    assert load(directory, device="cpu").predict(inputs) == together
    if not _mixes_sentences(config):
        _check_alone(run, inputs, together)
    return run


def check_recovery(
    config: str, directory: Path, changes: Mapping[str, Any], *, bilm: Path | None = None
) -> None:
    """Interrupt the training of a config once, go on, and find the weights of one that ran on."""
    small = {**_ONE_PROCESS, **changes, **_bilms(config, bilm)}
    stop = {"type": "signal_once", "step": 2, "name": "SIGINT"}
    stopped = {**small, "trainer.callbacks": [stop]}
    assert train(config, directory / "whole", small) == 0
    assert train(config, directory / "cut", stopped) == 130
    assert train(config, directory / "cut", stopped, "--recover") == 0
    whole, cut = (load_file(directory / name / "weights.safetensors") for name in ("whole", "cut"))
    assert whole.keys() == cut.keys()
    assert [name for name in whole if not whole[name].equal(cut[name])] == []


def _check_scores(run: Assembly, directory: Path) -> None:
    """The loaded weights have the scores that they were chosen by."""
    recorded = json.loads((directory / "metrics.json").read_text())
    scores = run.evaluate(run.experiment.paths["validation"])
    best = {name: recorded[f"best_validation_{name}"] for name in scores}
    assert scores == pytest.approx(best, rel=1e-5, abs=1e-7)


def _check_terms(run: Assembly, directory: Path) -> None:
    """The terms of examples, saved, give all scores without the model."""
    data = run.experiment.paths["validation"]
    scores, path = run.evaluate(data), directory.with_name(f"{directory.name}-terms.npz")
    run.score(data).terms.save(path)
    config = json.loads((directory / "filled_config.json").read_text())
    score = score_function(config, source="test")
    terms = ExampleTerms.load(path)
    of_groups = dict(zip(terms.names, terms.by_group().sum(axis=0), strict=True))
    exact = {name: pytest.approx(value, rel=1e-12) for name, value in scores.items()}
    for sums in (terms.sums(), of_groups):
        assert score(sums) == {**exact, "loss": pytest.approx(scores["loss"], rel=1e-6)}


def _check_ensemble(run: Assembly, directory: Path) -> None:
    """An ensemble of equal runs predicts and scores as one of them, without a loss."""
    data, task = run.experiment.paths["validation"], run.head().task
    alone = run.score(data)
    expected = run.model.scores(alone.sums)
    has_mean = type(run.head()).mean_output is not Head.mean_output
    for combine in ("mean", "vote") if has_mean else ("vote",):
        ensemble = load([directory, directory], combine=combine, device="cpu").score(data)
        pairs = zip(ensemble.predictions, alone.predictions, strict=True)
        assert all(task.as_gold(one) == task.as_gold(other) for (one, _), (other, _) in pairs)
        scores = score_function(run.run.read(run.run.config), source="test")(ensemble.terms.sums())
        assert scores.items() <= expected.items()
        assert expected.keys() - scores.keys() <= _WITHOUT_OUTPUT
        assert combine == "vote" or expected.keys() - scores.keys() == {"loss"}
    if not has_mean:
        with pytest.raises(RunError, match="has no scores to average; combine the runs by vote"):
            load([directory, directory], device="cpu")


def _check_formats(run: Assembly, directory: Path, refused: Collection[str]) -> None:
    """Predictions for the data of validation can be written for each official scorer."""
    data = str(run.experiment.paths["validation"])
    for name in run.head().task.formats:
        written = directory.with_name(f"{directory.name}-{name}")
        flags = ["--predictions-format", name, "--device", "cpu"]
        code = main(["evaluate", str(directory), data, "--predictions", str(written), *flags])
        assert code == (2 if name in refused else 0), name
        assert written.exists() is (name not in refused), name
        assert name in refused or written.read_text().strip(), name


def _check_file(run: Assembly, directory: Path) -> None:
    """`elmo predict` reads the data of validation as `elmo evaluate` does, without its labels."""
    data, task = run.experiment.paths["validation"], run.head().task
    output = directory.with_name(f"{directory.name}-predicted")
    flags = ["--output-file", str(output), "--device", "cpu"]
    assert main(["predict", str(directory), str(data), *flags]) == 0
    predicted = {_compared(json.loads(line)) for line in output.read_text().splitlines()}
    scored = [task.to_json(*pair) for pair in run.score(data).predictions]
    assert {_compared(prediction) for prediction in scored} <= predicted


def _compared(prediction: dict[str, Any]) -> str:
    """Return what is predicted but numbers; of roles, which are one example each, the words."""
    keys = ("words", "premise", "hypothesis", "document", "id", "tags", "label", "clusters")
    return json.dumps([prediction[key] for key in keys if key in prediction])


def _check_alone(
    run: Assembly, inputs: Sequence[str | Mapping[str, Any]], together: list[dict[str, Any]]
) -> None:
    """Another batch changes nothing but the last bits."""
    alone = [prediction for held in inputs for prediction in run.predict([held])]
    near = [
        pytest.approx(leaf, abs=1e-4) if isinstance(leaf, float) else leaf
        for leaf in _leaves(together)
    ]
    assert list(_leaves(alone)) == near


def _mixes_sentences(config: str) -> bool:
    """Tell whether ELMo's layers are normalized over a batch: a sentence depends on the others."""
    return '"layer_norm": true' in json.dumps(Config.load(ROOT / config).raw)


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the numbers and strings of a JSON value, with the keys before them."""
    match value:
        case list() | tuple():
            for held in value:
                yield from _leaves(held)
        case dict():
            for key, held in value.items():
                yield key
                yield from _leaves(held)
        case _:
            yield value


def _bilms(config: str, bilm: Path | None) -> dict[str, str]:
    places = _named("bilm", Config.load(ROOT / config).raw)
    assert bilm is not None or not (found := list(places)), f"a bilm is needed for {found}"
    return {place: str(bilm) for place in places}


def _named(key: str, raw: object, path: str = "") -> Iterator[str]:
    """Yield the dotted paths of all values of one name in a config."""
    held = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for name, value in held:
        where = dotted(path, name)
        if name == key:
            yield where
        else:
            yield from _named(key, value, where)
