import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_framework.analysis.comparison import (
    ChangeCounts,
    MetricComparison,
    compare,
    compare_scored,
)
from elmo_framework.analysis.scored_run import ScoredRun
from elmo_framework.analysis.statistics import Estimate
from elmo_framework.data.labels import Classification
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.terms import ExampleTerms
from elmo_framework.metrics.span_f1 import SpanF1
from elmo_framework.metrics.squad import Answer, SquadScores
from elmo_framework.tasks.classification.task import ClassifiedText, TextClassificationTask
from elmo_framework.tasks.question_answering.example import PassageQuestion, TokenizedText
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask

FIRST_VERSION = Path(__file__).parents[2] / "fixtures/first_version"
SENTENCES = ["a", "b c", "d e f", "g h i j"]


def config(seed: int, model: str, metric: str) -> dict[str, Any]:
    trainer = {"validation_metric": metric}
    return {"model": {"type": model}, "random_seed": seed, "trainer": trainer}


def classifier(
    labels: str, *, seed: int = 1, gold: str = "xxyy", sentences: Sequence[str] = SENTENCES
) -> ScoredRun:
    """Return a run that predicts labels of one letter."""
    task = TextClassificationTask()
    examples = [ClassifiedText(tuple(s.split()), g) for s, g in zip(sentences, gold, strict=True)]
    predictions = [Classification(label, {"x": 0.6, "y": 0.4, "z": 0.0}) for label in labels]
    counted = [
        {
            f"{name}/{key}": value
            for name, metric in task.metrics.items()
            for key, value in metric.count(prediction, task.gold(example)).items()
        }
        for prediction, example in zip(predictions, examples, strict=True)
    ]
    terms = ExampleTerms.of(counted, examples, task)
    return ScoredRun(f"run-{labels}-{seed}", config(seed, "bcn", "+accuracy"), terms, ())


def tagger(*tags: str) -> ScoredRun:
    """Return a run that tags three sentences, of which the last has no name."""
    gold = ["B-PER O", "B-PER B-LOC", "O O"]
    examples = [TaggedSentence(("w", str(n)), tuple(g.split())) for n, g in enumerate(gold)]
    counted: list[Mapping[str, float]] = [
        {f"span_f1/{k}": v for k, v in SpanF1().count(t.split(), e.tags or ()).items()}
        for t, e in zip(tags, examples, strict=True)
    ]
    terms = ExampleTerms.of(counted, examples, TaggingTask())
    return ScoredRun("tagger", config(1, "crf_tagger", "+f1-measure-overall"), terms, ())


def test_accuracies_and_their_error_reduction():
    result = compare_scored([classifier("xxyx")], [classifier("xyxx")])

    (accuracy,) = result.metrics
    assert (accuracy.metric, accuracy.runs, accuracy.others) == ("accuracy", [0.75], [0.25])
    assert accuracy.difference.value == 0.5
    assert accuracy.error_reduction == pytest.approx(2 / 3)
    assert accuracy.p_randomization == 0.5  # 8 of 16: both of the two changes, or none
    assert accuracy.p_holm == accuracy.difference.p


def test_changes_name_example_class_and_length():
    result = compare_scored([classifier("xxyx")], [classifier("xyxx")])

    shown = [(each.number, each.effect, each.length, each.classes) for each in result.changes]
    assert shown == [(2, 0.25, 2, ["x"]), (3, 0.25, 3, ["y"])]
    assert result.by_class == [ChangeCounts("x", 1, 0, 1), ChangeCounts("y", 1, 0, 1)]
    assert [each.name for each in result.by_length] == ["1 word", "2 words", "3 words", "4 words"]
    assert [each.better for each in result.by_length] == [0, 1, 1, 0]


def test_a_worse_example_is_counted_as_worse():
    result = compare_scored([classifier("xyyy")], [classifier("xxyx")])

    assert result.by_class == [ChangeCounts("x", 0, 1, 1), ChangeCounts("y", 1, 0, 1)]
    assert [each.effect for each in result.changes] == [-0.25, 0.25]


def test_a_false_alarm_in_a_sentence_without_names_is_worse():
    right = tagger("B-PER O", "B-PER B-LOC", "O O")
    wrong = tagger("B-PER O", "B-PER O", "O B-PER")
    result = compare_scored([wrong], [right])

    assert [each.number for each in result.changes] == [2, 3]
    assert all(each.effect < 0 for each in result.changes)
    # The person of the second sentence is found by both, although its place is not.
    assert result.by_class == [ChangeCounts("LOC", 0, 1, 0), ChangeCounts("PER", 0, 0, 2)]


def test_a_smaller_loss_is_better():
    def with_loss(labels: str, losses: Sequence[float]) -> ScoredRun:
        run = classifier(labels)
        columns = [run.terms.values, np.ones((4, 1)), np.array(losses)[:, None]]
        names = (*run.terms.names, "num_examples", "loss")
        return replace(run, terms=replace(run.terms, names=names, values=np.hstack(columns)))

    first, second = with_loss("xxyy", [1, 1, 1, 1]), with_loss("xxyy", [1, 2, 2, 1])
    result = compare_scored([first], [second], metrics=["loss"])
    assert result.metrics[0].error_reduction == pytest.approx(1 / 3)
    assert [each.effect for each in result.changes] == [-0.25, -0.25]
    assert sum(each.better for each in result.by_length) == 2


def test_holm_counts_all_metrics_of_the_table():
    result = compare_scored(
        [classifier("xxyx")], [classifier("xyxx")], metrics=["accuracy", "accuracy*"]
    )

    assert [each.metric for each in result.metrics] == ["accuracy", "accuracy3"]
    p = result.metrics[0].difference.p
    assert p is not None
    assert result.metrics[0].p_holm == min(1.0, 2 * p)


def test_equal_seeds_are_paired_in_any_order():
    runs = [classifier("xxyy", seed=2), classifier("xxyx", seed=1)]
    others = [classifier("xyyy", seed=1), classifier("yyyy", seed=2)]
    result = compare_scored(runs, others)

    assert result.seeds == [1, 2]
    assert [run.seed for run in result.runs] == [1, 2]
    assert result.metrics[0].runs == [0.75, 1.0]
    assert compare_scored(runs, others[:1]).seeds is None
    assert compare_scored(runs[:1], others[:1]).seeds is None


def test_runs_of_a_side_that_differ_in_more_than_seeds_are_named(caplog):
    runs = [classifier("xxyy", seed=seed) for seed in (1, 2)]
    compare_scored(runs, runs)
    assert not caplog.messages
    settings = {"train_data_path": "a/train.txt", "model": {"type": "bcn", "dropout": 0.1}}
    changed = {"train_data_path": "b/train.txt", "model": {"type": "bcn", "dropout": 0.2}}
    first, second = (
        replace(run, config={**run.config, **keys})
        for run, keys in zip(runs, (settings, changed), strict=True)
    )
    compare_scored([first, second], runs)
    assert caplog.messages == ["runs of one side differ in more than their seeds: model.dropout"]


def test_runs_of_one_seed_twice_are_not_paired():
    runs = [classifier("xxyy", seed=1), classifier("xxyx", seed=1)]
    assert compare_scored(runs, runs).seeds is None


def test_default_metrics_are_those_of_all_runs():
    run, other = classifier("xxyy"), classifier("xxyx", seed=2)
    settings = {**other.config, "trainer": {"validation_metric": "-loss"}}
    with pytest.raises(RunError, match="unknown metric 'loss' for these runs"):
        compare_scored([run], [replace(other, config=settings)])


def test_a_component_that_one_run_of_a_side_has_is_named(caplog):
    runs = [classifier("xxyy", seed=seed) for seed in (1, 2)]
    embedders = {"tokens": {"type": "embedding"}}
    configs = (
        {"embedders": embedders},
        {"embedders": {**embedders, "elmo": {"type": "elmo_token_embedder"}}, "later": 1},
    )
    sides = [
        replace(run, config={**run.config, **keys}) for run, keys in zip(runs, configs, strict=True)
    ]
    expected = ["runs of one side differ in more than their seeds: embedders.elmo"]
    for side in (sides, sides[::-1]):
        caplog.clear()
        compare_scored(side, runs)
        assert caplog.messages == expected


def test_several_runs_average_their_effects():
    runs = [classifier("xxyy", seed=1), classifier("xxyx", seed=2)]
    result = compare_scored(runs, [classifier("xxyx", seed=3)])

    assert [(each.number, each.effect) for each in result.changes] == [(4, 0.125)]


def test_an_unknown_metric_lists_what_both_sides_have():
    with pytest.raises(RunError, match=r"unknown metric 'acuracy' .*'accuracy'"):
        compare_scored([classifier("xxyy")], [classifier("xxyy")], metrics=["acuracy"])


def test_runs_of_different_tasks_are_refused():
    with pytest.raises(RunError, match="runs of different tasks: bcn and crf_tagger"):
        compare_scored([classifier("xxyy")], [tagger("O O", "O O", "O O")])
    runs = FIRST_VERSION / "runs"
    with pytest.raises(RunError, match="runs of different tasks: esim and crf_tagger"):
        compare([runs / "snli"], [runs / "ner"])


@pytest.mark.parametrize(
    ("other", "sizes"),
    [
        (classifier("xxyy", gold="xxyz"), "4 and 4 examples"),
        (classifier("xxyy", sentences=["a", "b c", "d e f", "other"]), "4 and 4 examples"),
        (classifier("xxy", gold="xxy", sentences=SENTENCES[:3]), "4 and 3 examples"),
    ],
)
def test_runs_on_different_examples_are_refused(other: ScoredRun, sizes: str):
    with pytest.raises(RunError, match=rf"read different texts or labels .*\({sizes}\)"):
        compare_scored([classifier("xxyy")], [other])


def saved(folder: Path, run: ScoredRun, split: str = "validation") -> Path:
    """Write a run as a study does."""
    path = folder / f"seed-{run.seed}.json"
    folder.mkdir(exist_ok=True)
    path.write_text(json.dumps({"config": "sst", "experiment": run.config}))
    run.terms.save(path.with_name(f"{path.stem}.{split}.npz"))
    return path


def test_records_of_a_study_are_compared_without_runs(tmp_path: Path):
    better, worse = classifier("xxyx", seed=1), classifier("xyxx", seed=2)
    paths = saved(tmp_path / "a", better), saved(tmp_path / "b", worse)
    result = compare([paths[0]], [str(paths[1])])

    assert result.metrics == compare_scored([better], [worse]).metrics
    with pytest.raises(RunError, match="a record has scores of the data of its config only"):
        compare([paths[0]], [paths[1]], file=tmp_path / "x.txt")


def test_records_are_compared_on_their_test_data(tmp_path: Path):
    better, worse = classifier("xxyx", seed=1), classifier("xyxx", seed=2)
    paths = saved(tmp_path / "a", better), saved(tmp_path / "b", better)
    with pytest.raises(RunError, match=r"no scores of test data; run `elmo study \.\.\. --final`"):
        compare([paths[0]], [paths[1]], split="test")
    path, other = saved(tmp_path / "a", worse, "test"), saved(tmp_path / "b", better, "test")
    result = compare([path], [other], split="test")
    assert result.metrics == compare_scored([worse], [better]).metrics


def test_a_record_without_terms_or_config_is_an_error(tmp_path: Path):
    path = saved(tmp_path / "a", classifier("xxyx"))
    path.with_name("seed-1.validation.npz").unlink()
    with pytest.raises(DataError, match="cannot read terms of examples"):
        compare([path], [path])
    path.write_text("{}")
    with pytest.raises(RunError, match=r"seed-1.json: not the record of a run of a study"):
        compare([path], [path])


@pytest.mark.parametrize("key", ["random_seed", "plugins", "model", "trainer"])
def test_a_damaged_config_in_a_record_is_an_error(key: str, tmp_path: Path):
    path = saved(tmp_path / "a", classifier("xxyx"))
    record = json.loads(path.read_text())
    record["experiment"][key] = {"metrics": 3}
    path.write_text(json.dumps(record))
    with pytest.raises(RunError, match=rf"not the record of a run of a study: experiment\.{key}"):
        compare([path], [path])


def test_a_run_counts_once(tmp_path: Path):
    path = saved(tmp_path / "a", classifier("xxyx"))
    with pytest.raises(RunError, match=r"seed-1.json is listed twice"):
        compare([path, path], [path])
    link = tmp_path / "link"
    link.symlink_to(path.parent)
    with pytest.raises(RunError, match=r"seed-1.json is listed twice"):
        compare([path, link / path.name], [path])


def answerer(*probabilities: float) -> ScoredRun:
    """Return a run that finds every answer; the last two of four questions have none."""
    passages = [TokenizedText(f"{n} Anna", (str(n), "Anna"), ((0, 1), (2, 6))) for n in range(4)]
    golds = [("Anna",), ("Anna",), (), ()]
    examples = [
        PassageQuestion(str(number), passage, passage, gold, None)
        for number, (passage, gold) in enumerate(zip(passages, golds, strict=True))
    ]
    answers = [Answer("" if p > 0.5 else "Anna", 0, 0, p, "Anna") for p in probabilities]
    counted = [
        {f"squad/{k}": v for k, v in SquadScores().count(answer, gold).items()}
        for answer, gold in zip(answers, golds, strict=True)
    ]
    terms = ExampleTerms.of(counted, examples, QuestionAnsweringTask())
    return ScoredRun("answerer", config(1, "bidaf", "+f1"), terms, ())


def test_questions_without_an_answer_are_a_class_of_their_own():
    result = compare_scored([answerer(0.1, 0.9, 0.9, 0.9)], [answerer(0.1, 0.2, 0.3, 0.9)])

    assert result.by_class == [ChangeCounts("HasAns", 0, 1, 1), ChangeCounts("NoAns", 1, 0, 1)]


def test_best_thresholds_are_compared_with_an_interval():
    better, worse = answerer(0.1, 0.2, 0.8, 0.9), answerer(0.1, 0.9, 0.3, 0.8)

    (compared,) = compare_scored([better], [worse], metrics=["best_f1"]).metrics

    assert (compared.runs, compared.others) == ([1.0], [0.75])
    low, high = compared.difference.interval
    assert low < 0.25 < high


@pytest.mark.parametrize(
    ("metric", "runs", "shown"),
    [
        ("f1", [0.1, 0.2], (-1.0, 1.0)),
        ("f1", [10.0, 20.0], (-1.5, 1.7)),  # not a ratio
        ("perplexity", [0.1, 0.2], (-1.5, 1.7)),
    ],
)
def test_the_interval_of_a_difference_of_ratios_ends_where_differences_do(
    metric: str, runs: list[float], shown: tuple[float, float]
):
    difference = Estimate(0.1, (-1.5, 1.7), 0.5)
    assert MetricComparison(metric, runs, [0.1], difference, None, None, None).interval == shown
