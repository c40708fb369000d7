"""Scores baselines that need no neural network, on the data of an experiment.

    python benchmarks/simple_baselines.py experiments/ner/baseline.jsonnet

They learn from the training examples of the config, with its `train_fraction`, and are scored on
its validation data by the metrics of its task. A trained model that is below one of them has not
been trained well.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from baseline_classifiers import BagOfWords, MajorityLabel, WordClassifier
from baseline_rules import EqualMentions, KnownNames, NearestPhrase
from measuring import say

from elmo_framework import components
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.config.signature import component_class
from elmo_framework.console import render_table
from elmo_framework.errors import ElmoFrameworkError
from elmo_framework.experiment.experiment import Experiment, Split
from elmo_framework.experiment.terms import ExampleTerms
from elmo_framework.model.task import HeadTask
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
    """Print a line for each baseline; return 2 if the config or its data cannot be read."""
    arguments = _arguments()
    components.load()
    lines = []
    try:
        for seed in arguments.seeds or [None]:
            own = [] if seed is None else [f"random_seed={seed}"]
            config = Config.load(arguments.config, overrides=[*arguments.override, *own])
            experiment = parse(Experiment, config.raw, source=config.source).build()
            for result in results(experiment, arguments.splits):
                lines += _lines(result, experiment, arguments.metric)
    except ElmoFrameworkError as error:
        say(f"error: {error}", file=sys.stderr)
        return 2
    say(render_table(("baseline", "seed", "split", "metric", "score", "minutes"), lines))
    return 0


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
            terms[split] = _terms(baseline, examples, task)
        scores = {split: _scores(task, each) for split, each in terms.items()}
        yield Result(baseline.name, scores, terms, (time.monotonic() - began) / 60)


def _terms(baseline: Baseline, examples: Sequence[Any], task: HeadTask[Any, Any]) -> ExampleTerms:
    pairs = zip(baseline.predict(examples), examples, strict=True)
    counts = [
        {"num_examples": 1.0}
        | {
            f"{name}/{key}": value
            for name, metric in task.metrics.items()
            for key, value in metric.count(prediction, task.gold(example)).items()
        }
        for prediction, example in pairs
    ]
    return ExampleTerms.of(counts, examples, task)


def _scores(task: HeadTask[Any, Any], terms: ExampleTerms) -> dict[str, float]:
    sums, scores = terms.sums(), {}
    for name, metric in task.metrics.items():
        own = {
            key.removeprefix(f"{name}/"): sums[key] for key in sums if key.startswith(f"{name}/")
        }
        scores |= metric.score(own)
    return scores


def _lines(result: Result, experiment: Experiment, metric: str | None) -> Iterator[list[str]]:
    name = metric or experiment.trainer.validation_metric[1:]
    for split, scores in result.scores.items():
        score = f"{100 * scores[name]:.2f}" if name in scores else "-"
        seed, minutes = str(experiment.random_seed), f"{result.minutes:.1f}"
        yield [result.name, seed, split, name, score, minutes]


def _arguments() -> Namespace:
    parser = ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the config of an experiment")
    parser.add_argument("-o", "--override", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument(
        "--splits", nargs="+", choices=("validation", "test"), default=["validation"]
    )
    parser.add_argument(
        "--seeds", nargs="+", type=int, help="draw train_fraction with each of them"
    )
    parser.add_argument("--metric", help="the score to print; by default validation_metric")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
