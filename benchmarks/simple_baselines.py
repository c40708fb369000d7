"""Scores baselines that need no neural network, on the data of an experiment.

    python benchmarks/simple_baselines.py experiments/ner/baseline.jsonnet

They learn from the training examples of the config, with its `train_fraction`, and are scored on
its validation data by the metrics of its task. A trained model that is below one of them has not
been trained well.

    python benchmarks/simple_baselines.py experiments/paper/table1.jsonnet -s DIR --final

With a study, their results are also records in its folder, next to those of its runs: variants of
each config, which its tables and `elmo compare` then show.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from baseline_classifiers import BagOfWords, MajorityLabel, WordClassifier
from baseline_rules import EqualMentions, KnownNames, NearestPhrase
from measuring import say

from elmo_framework import components
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.config.signature import component_class
from elmo_framework.console import render_table
from elmo_framework.errors import ElmoFrameworkError, RunError
from elmo_framework.experiment.environment import describe_environment
from elmo_framework.experiment.experiment import Experiment, Split
from elmo_framework.experiment.terms import ExampleTerms
from elmo_framework.model.task import HeadTask
from elmo_framework.study.check import load_study
from elmo_framework.study.folder import StudyFolder
from elmo_framework.study.record import Record, recorded_versions, write_record
from elmo_framework.study.run_plan import RunPlan
from elmo_framework.tasks.classification.task import ClassifiedText
from elmo_framework.tasks.coreference.example import Document
from elmo_framework.tasks.entailment.task import SentencePair
from elmo_framework.tasks.question_answering.example import PassageQuestion
from elmo_framework.tasks.srl.example import SrlExample
from elmo_framework.tasks.tagging.task import TaggedSentence


class Baseline(Protocol):
    """Predicts what a head predicts, without its network.

    Attributes:
        name: of its row.
    """

    name: str

    def fit(self, examples: Sequence[Any]) -> None:
        """Learn from the training examples."""

    def predict(self, examples: Sequence[Any]) -> list[Any]:
        """Return a prediction for each example, of the type of the task."""


BASELINES: Mapping[type, Sequence[Callable[[], Baseline]]] = {
    TaggedSentence: (KnownNames, WordClassifier),
    ClassifiedText: (MajorityLabel, BagOfWords),
    SentencePair: (MajorityLabel, BagOfWords),
    SrlExample: (WordClassifier,),
    Document: (EqualMentions,),
    PassageQuestion: (NearestPhrase,),
}


@dataclass(frozen=True)
class Result:
    """The result of a baseline.

    Attributes:
        name: of the baseline.
        scores: by split.
        terms: what each example adds to the sums, by split.
        minutes: of learning and predicting.
    """

    name: str
    scores: Mapping[Split, Mapping[str, float]]
    terms: Mapping[Split, ExampleTerms]
    minutes: float


def main() -> int:
    """Print a line for each baseline; return 2 if a config or its data cannot be read."""
    arguments = _arguments()
    components.load()
    try:
        config = Config.load(arguments.config, overrides=arguments.override)
        if "configs" in config.raw:
            lines = _study_lines(config, arguments)
        else:
            lines = _config_lines(config, arguments)
    except ElmoFrameworkError as error:
        say(f"error: {error}", file=sys.stderr)
        return 2
    say(render_table(("config", "baseline", "seed", "split", "metric", "score"), lines))
    return 0


def _config_lines(config: Config, arguments: Namespace) -> list[list[str]]:
    experiment = parse(Experiment, config.raw, source=config.source).build()
    metric = arguments.metric or experiment.trainer.validation_metric
    lines: list[list[str]] = []
    for result in results(experiment, _splits(arguments)):
        lines += _lines(arguments.config.stem, result, experiment.random_seed, metric)
    return lines


def _study_lines(config: Config, arguments: Namespace) -> list[list[str]]:
    """Write a record of each baseline for each config, fraction and seed of a study."""
    if arguments.serialization_dir is None:
        raise RunError("this is a study; pass -s DIR, the folder for its records")
    folder = StudyFolder(arguments.serialization_dir)
    cells = load_study(config).cells
    lines: list[list[str]] = []
    for cell in {(cell.plan.config, cell.plan.fraction): cell for cell in reversed(cells)}.values():
        last: list[Result] = []
        for plan in map(cell.run, cell.seeds):
            experiment = parse(Experiment, dict(plan.raw), source=plan.source).build()
            experiment.paths["test"] = experiment.paths["test"] or plan.test_data_path
            if plan.fraction < 1 or not last:  # otherwise all seeds have the same examples
                last = list(results(experiment, _splits(arguments)))
            for result in last:
                _write(folder, plan, cell.experiment_of(plan), result)
                lines += _lines(plan.config, result, plan.seed, arguments.metric or plan.metric)
    return lines


def _write(
    folder: StudyFolder, plan: RunPlan, experiment: Mapping[str, Any], result: Result
) -> None:
    record = Record(
        config=plan.config,
        variant=result.name,
        seed=plan.seed,
        fraction=plan.fraction,
        metric=plan.metric,
        validation=result.scores["validation"],
        test=result.scores.get("test"),
        training={},
        minutes=round(result.minutes, 3),
        experiment=experiment,
        digests={},
        versions=recorded_versions(describe_environment(torch.device("cpu"))),
    )
    write_record(folder.record(record.name), record)
    for split, terms in result.terms.items():
        terms.save(folder.terms(record.name, split))


def results(experiment: Experiment, splits: Sequence[Split]) -> Iterator[Result]:
    """Fit the baselines of the task of an experiment, and score them.

    Args:
        experiment: its model is not built.
        splits: to score.

    Raises:
        DataError: the data cannot be read, or has no labels.
    """
    task = component_class(experiment.model.factory).task
    training = list(experiment.examples("train"))
    for make in BASELINES.get(task.example_type, ()):
        began = time.monotonic()
        baseline = make()
        baseline.fit(training)
        terms = {}
        for split in splits:
            examples = list(experiment.examples(split))
            terms[split] = terms_of(task, baseline.predict(examples), examples)
        scores = {split: scores_of(task, each) for split, each in terms.items()}
        yield Result(baseline.name, scores, terms, (time.monotonic() - began) / 60)


def terms_of(
    task: HeadTask[Any, Any], predictions: Sequence[Any], examples: Sequence[Any]
) -> ExampleTerms:
    """Return what each prediction adds to the sums of the metrics of a task.

    Raises:
        DataError: an example has no labels.
    """
    counts = [
        {"num_examples": 1.0}
        | {
            f"{name}/{key}": value
            for name, metric in task.metrics.items()
            for key, value in metric.count(prediction, task.gold(example)).items()
        }
        for prediction, example in zip(predictions, examples, strict=True)
    ]
    return ExampleTerms.of(counts, examples, task)


def scores_of(task: HeadTask[Any, Any], terms: ExampleTerms) -> dict[str, float]:
    """Return the scores of the metrics of a task."""
    sums, scores = terms.sums(), {}
    for name in task.metrics:
        own = {
            key.removeprefix(f"{name}/"): sums[key] for key in sums if key.startswith(f"{name}/")
        }
        scores |= task.metrics[name].score(own)
    return scores


def _lines(config: str, result: Result, seed: int, metric: str) -> Iterator[list[str]]:
    name = metric.lstrip("+-")
    for split, scores in result.scores.items():
        score = f"{100 * scores[name]:.2f}" if name in scores else "-"
        yield [config, result.name, str(seed), split, name, score]


def _splits(arguments: Namespace) -> list[Split]:
    return ["validation", "test"] if arguments.final else ["validation"]


def _arguments() -> Namespace:
    parser = ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("config", type=Path, metavar="CONFIG", help="an experiment or a study")
    parser.add_argument("-o", "--override", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument(
        "-s", "--serialization-dir", type=Path, metavar="DIR", help="the folder of the study"
    )
    parser.add_argument("--final", action="store_true", help="score the test data, too")
    parser.add_argument("--metric", help="the score to print (validation_metric, or the study's)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
