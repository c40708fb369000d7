"""Test data that `test_fraction` holds out of the training data."""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.commands.main import main
from elmo_framework.config.parse import parse
from elmo_framework.errors import DataError
from elmo_framework.experiment import load
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.metrics.srl import Proposition
from elmo_framework.model.task import HeadTask
from elmo_framework.tasks.classification import ClassifiedText, TextClassificationTask
from elmo_framework.tasks.coreference.example import Document
from elmo_framework.tasks.coreference.task import CoreferenceTask
from elmo_framework.tasks.entailment.task import EntailmentTask, SentencePair
from elmo_framework.tasks.question_answering.example import PassageQuestion, TokenizedText
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask
from elmo_framework.tasks.srl.example import SrlExample
from elmo_framework.tasks.srl.task import SrlTask

NUM_SENTENCES = 40


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    lines = (
        json.dumps({"tokens": [f"w{number}", "runs"], "tags": [f"B-T{number % 2}", "O"]})
        for number in range(NUM_SENTENCES)
    )
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def config(path: Path, **changes: Any) -> dict[str, Any]:
    return {
        "dataset_reader": "tagging_json",
        "train_data_path": str(path),
        "validation_data_path": str(path),
        "model": {
            "type": "simple_tagger",
            "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 2}}},
        },
        "trainer": {"num_epochs": 1},
        "test_fraction": 0.3,
        **changes,
    }


def experiment(path: Path, **changes: Any) -> Experiment:
    return parse(Experiment, config(path, **changes), source="test").build()


def words(experiment: Experiment, split: Any) -> list[str]:
    return [example.words[0] for example in experiment.examples(split)]


def test_seed_and_train_fraction_do_not_change_test_data(data: Path) -> None:
    whole = experiment(data)
    test = words(whole, "test")
    assert 0 < len(test) < NUM_SENTENCES / 2
    for seed in range(5):
        less = experiment(data, random_seed=seed, train_fraction=0.5)
        assert words(less, "test") == test
        assert set(words(less, "train")) < set(words(whole, "train"))
        assert len(words(less, "train")) == round((NUM_SENTENCES - len(test)) / 2)
    assert sorted([*words(whole, "train"), *test]) == sorted(words(whole, "validation"))


def test_vocabularies_count_only_the_rest(data: Path) -> None:
    held_out = experiment(data, test_fraction=0.3)
    counted = held_out.count_vocabularies().counted("words")
    assert sorted({*counted} - {"runs"}) == sorted(words(held_out, "train"))


def test_labels_of_held_out_data_are_counted_on_request(data: Path) -> None:
    held_out = words(experiment(data), "test")[0]
    lines = data.read_text().splitlines()
    rare = [line.replace("B-T", "B-RARE") if f'"{held_out}"' in line else line for line in lines]
    data.write_text("".join(f"{line}\n" for line in rare))
    by_default = experiment(data).count_vocabularies().labels().items
    counted = {"datasets_for_vocab_creation": ["train", "test"]}
    on_request = experiment(data, **counted).count_vocabularies().labels().items
    assert not any("RARE" in label for label in by_default)
    assert any("RARE" in label for label in on_request)


def test_test_data_are_read_by_the_validation_reader(data: Path) -> None:
    reader = {"type": "tagging_json", "max_instances": 7}
    assert len(words(experiment(data, validation_dataset_reader=reader), "test")) < len(
        words(experiment(data), "test")
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_data_path": "other.jsonl"}, "test_data_path exclude each other; set one to null"),
        ({"validation_fraction": 0.1}, "validation_fraction and validation_data_path exclude"),
        ({"validation_data_path": None, "validation_fraction": 0.7}, "leave no training data"),
        ({"test_fraction": None, "evaluate_on_test": True}, "test_data_path or a test_fraction"),
        (
            {
                "dataset_reader": "language_modeling",
                "model": {"type": "bilm", "context_layers": "elmo_lstm"},
            },
            "elmo prepare --held-out",
        ),
    ],
)
def test_contradictory_config_is_refused(data: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        experiment(data, **changes)


def test_three_parts_of_one_file_have_no_example_in_common(data: Path) -> None:
    parts = experiment(data, validation_data_path=None, validation_fraction=0.3)
    names: list[Any] = ["train", "validation", "test"]
    assert all(words(parts, name) for name in names)
    together = [word for name in names for word in words(parts, name)]
    assert sorted(together) == [f"w{number}" for number in sorted(range(NUM_SENTENCES), key=str)]
    assert words(parts, "test") == words(experiment(data), "test")


@pytest.mark.parametrize(("fraction", "part"), [(1e-9, "test"), (0.9999, "train")])
def test_empty_part_is_an_error(data: Path, fraction: float, part: str) -> None:
    with pytest.raises(DataError, match=r"leaves no (test|training) data"):
        words(experiment(data, test_fraction=fraction), part)


def answer(passage: str, question: str) -> PassageQuestion:
    split: Callable[[str], TokenizedText] = lambda text: TokenizedText(  # noqa: E731
        text, tuple(text.split()), tuple((0, 1) for _ in text.split())
    )
    return PassageQuestion(question, split(passage), split(question), None, None)


def roles(predicate: int) -> SrlExample:
    return SrlExample(("she", "came", "and", "went"), (Proposition(predicate, ("O",) * 4),))


def document(*sentences: str, key: str = "", part: str | None = None) -> Document:
    return Document(tuple(tuple(text.split()) for text in sentences), None, key, part)


def pair(premise: str, hypothesis: str) -> SentencePair:
    return SentencePair(tuple(premise.split()), tuple(hypothesis.split()), None)


A, B = ("a", "good", "film"), ("a", "film")


@pytest.mark.parametrize(
    ("task", "together", "apart"),
    [
        (EntailmentTask(), [pair("it rains", "wet"), pair("it rains", "dry")], pair("no", "wet")),
        (QuestionAnsweringTask(), [answer("p", "who"), answer("p", "why")], answer("q", "who")),
        (SrlTask(), [roles(1), roles(3)], SrlExample(("she", "came"), None)),
        (
            CoreferenceTask(),
            [document("a b", key="nw/x", part="000"), document("c", key="nw/x", part="001")],
            document("a b", key="nw/y"),
        ),
        (CoreferenceTask(), [document("a b", "c"), document("a b")], document("a", "b c")),
        (
            TextClassificationTask(),
            [ClassifiedText(A, "4"), ClassifiedText(B, "2", whole=A)],
            ClassifiedText(B, "2"),
        ),
    ],
)
def test_examples_of_one_text_are_in_one_part(
    task: HeadTask[Any, Any], together: Sequence[Any], apart: Any
) -> None:
    assert len({task.sampling_unit(example) for example in together}) == 1
    assert task.sampling_unit(apart) != task.sampling_unit(together[0])


def test_evaluate_scores_and_predicts_the_test_data(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, run = tmp_path / "config.json", tmp_path / "run"
    changes = {"validation_data_path": None, "validation_fraction": 0.3}
    path.write_text(json.dumps(config(data, evaluate_on_test=True, **changes)))
    assert main(["train", str(path), "-s", str(run)]) == 0
    metrics = json.loads((run / "metrics.json").read_text())
    predictions = tmp_path / "predictions.jsonl"
    flags = ["--format", "json", "--predictions-file", str(predictions)]
    capsys.readouterr()
    assert main(["evaluate", str(run), "--test", *flags]) == 0
    scores = json.loads(capsys.readouterr().out)["test"]
    assert scores == {
        name.removeprefix("test_"): value
        for name, value in metrics.items()
        if name.startswith("test_")
    }
    by_word = defaultdict(list)
    for line in predictions.read_text().splitlines():
        by_word[json.loads(line)["words"][0]].append(line)
    assembly = load(run)
    assert list(by_word) == words(assembly.experiment, "test")
    validation = assembly.score(None, split="validation")
    scored = [example.words[0] for _, example in validation.predictions]
    assert scored == words(assembly.experiment, "validation")
    loss = assembly.model.scores(validation.sums)["loss"]
    assert loss == pytest.approx(metrics["best_validation_loss"])


def test_evaluate_needs_a_file_or_test(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "runs/none"]) == 2
    assert main(["evaluate", "runs/none", "--test", str(data)]) == 2
    assert "pass FILE, or --test" in capsys.readouterr().err
