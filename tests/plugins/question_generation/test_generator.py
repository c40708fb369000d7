"""The generator, from its shipped configs to questions."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_framework.commands.main import main
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.experiment.assembly import Assembly
from tests.experiment.jobs import train
from tests.experiment.task_check import check_recovery, check_task
from tests.plugins.question_generation.conftest import QUESTIONS, ROOT

pytest.importorskip("sacrebleu")

CONFIGS = "plugins/question_generation"
WORDS = "model.embedder.token_embedders.tokens"
SMALL: dict[str, Any] = {
    "train_data_path": str(QUESTIONS),
    "validation_data_path": str(QUESTIONS),
    "dataset_reader.window": 12,
    "vocabulary.max_vocab_size": {},
    f"{WORDS}.embedding_dim": 16,
    f"{WORDS}.pretrained_file": None,
    f"{WORDS}.trainable": True,
    "model.encoder.hidden_size": 24,
    "model.embedding_dim": 16,
    "model.hidden_dim": 32,
    "model.dropout": 0.0,
    "trainer.num_epochs": 40,
    "trainer.patience": None,
    "trainer.optimizer.lr": 0.02,
}
SHORT = {**SMALL, "trainer.num_epochs": 3}
INPUTS = [
    {"passage": "The keeper, Anna Lund, bought a burner.", "answer": "Anna Lund"},
    {"passage": "Ferries from Turku reach Zembla.", "answer": "Turku", "id": "q2"},
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("questions") / "run"


@pytest.fixture(scope="module")
def run(directory: Path) -> Assembly:
    """A run of the baseline, which has passed the checks of every task."""
    return check_task(f"{CONFIGS}/baseline.jsonnet", directory, SMALL, inputs=INPUTS)


def batch_of(run: Assembly, examples: list[Any]) -> Any:
    return run.head().collator(run.vocabularies)(examples)


def fixture_examples(run: Assembly) -> list[Any]:
    return list(run.experiment.validation_dataset_reader.read(QUESTIONS))


def test_training_data_is_learned(run: Assembly) -> None:
    scores = run.evaluate(QUESTIONS)

    assert scores["bleu"] > 0.95
    assert scores["loss"] < 0.3


def test_questions_are_written_one_per_line(run: Assembly, directory: Path) -> None:
    written = directory.with_name("questions.txt")
    flags = ["--predictions-format", "lines", "--device", "cpu", "--predictions-file"]

    assert main(["evaluate", str(directory), str(QUESTIONS), *flags, str(written)]) == 0

    lines = written.read_text().splitlines()
    assert len(lines) == 6
    assert "who was the keeper ?" in lines


def test_log_probability_is_that_of_the_question_read_again(run: Assembly) -> None:
    head, examples = run.head(), fixture_examples(run)
    with torch.no_grad():
        batch = batch_of(run, examples)
        predictions = head.predict(head.eval()(batch), batch)
        again = [
            replace(example, question=prediction.words)
            for example, prediction in zip(examples, predictions, strict=True)
        ]
        losses = head(batch_of(run, again)).example_losses

    for prediction, loss in zip(predictions, losses.tolist(), strict=True):
        num_steps = len(prediction.words) + 1
        assert prediction.log_probability == pytest.approx(-loss * num_steps, rel=1e-3, abs=1e-4)


def test_word_outside_the_vocabulary_is_copied(run: Assembly) -> None:
    """With a gate that is shut, every word is from the passage."""
    head = run.head()
    gate = head.decoder.gate.bias
    before = gate.detach().clone()
    try:
        gate.data.fill_(-1e4)
        batch = batch_of(run, [run.head().task.example(INPUTS[1], run.input_reader().tokenizer)])
        with torch.no_grad():
            output = head.eval()(batch)
            (prediction,) = head.predict(output, batch)
    finally:
        gate.data.copy_(before)

    assert set(prediction.words) <= {"ferries", "from", "turku", "reach", "zembla", "."}


def test_gradients_reach_every_parameter(run: Assembly) -> None:
    head = run.head()

    head(batch_of(run, fixture_examples(run))).loss.backward()

    without = {name for name, value in head.named_parameters() if not value.grad.any()}
    head.zero_grad()
    assert without == set()


def test_config_with_elmo_trains_and_predicts(tmp_path: Path, bilm: Path) -> None:
    check_task(f"{CONFIGS}/elmo.jsonnet", tmp_path / "run", SHORT, inputs=INPUTS, bilm=bilm)


def test_resume_gives_the_same_weights(tmp_path: Path) -> None:
    check_recovery(f"{CONFIGS}/baseline.jsonnet", tmp_path, SHORT)


def test_training_in_bfloat16_scores_predictions(tmp_path: Path) -> None:
    changes = {**SHORT, "trainer.num_epochs": 1, "trainer.precision": "bfloat16"}

    assert train(f"{CONFIGS}/baseline.jsonnet", tmp_path / "run", changes) == 0

    assert "best_validation_bleu" in json.loads((tmp_path / "run/metrics.json").read_text())


def test_resampling_units_are_passages(run: Assembly) -> None:
    groups = run.score(QUESTIONS).terms.by_group()

    passages = {example.passage for example in fixture_examples(run)}
    assert len(passages) == len(groups) < len(fixture_examples(run))


def test_vocabulary_has_words_of_questions_in_lower_case(run: Assembly) -> None:
    counted = run.vocabularies.counted("question_words")

    assert isinstance(run.vocabularies, Vocabularies)
    assert "who" in counted
    assert "Who" not in counted


def test_predictions_are_json(run: Assembly) -> None:
    (found,) = json.loads(json.dumps(run.predict(INPUTS[:1])))

    assert found["answer"] == "Anna Lund"
    assert found["question"]
    assert found["log_probability"] < 0


def test_package_registers_by_its_entry_point() -> None:
    path = ROOT / "plugins/question_generation/pyproject.toml"
    project = tomllib.loads(path.read_text())["project"]

    expected = {"question_generation": "question_generation"}
    assert project["entry-points"]["elmo_framework.plugins"] == expected
    assert "sacrebleu" in project["dependencies"]
