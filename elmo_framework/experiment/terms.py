"""What each example adds to the sums of scores, and scores of saved sums without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias, final
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Float, Int

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.config.plugins import load_plugins
from elmo_framework.config.registry import member_classes
from elmo_framework.errors import DataError, RunError, allowed
from elmo_framework.io.files import replacing
from elmo_framework.metrics.metric import Metric
from elmo_framework.model.head import Head
from elmo_framework.model.task import HeadTask

ScoreFunction: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Computes scores from sums by name: numbers, or arrays for as many results at the same time."""


@final
@dataclass(frozen=True, eq=False)
class ExampleTerms:
    """What each example of a file adds to the sums that scores are computed from.

    The score of any multiset of examples is that of a weighted sum of their terms.

    Attributes:
        names: of the terms, as in `Head.terms`.
        values: the terms of each example, in the order of the file; 0 where it has none.
        groups: the number of the sampling unit of each example (`HeadTask.sampling_unit`), from 0:
            the sentence of a predicate, the premise of a pair, the passage of a question, or the
            document.
        lengths: the number of words of each example.
        digest: SHA-256 of the texts and gold labels of the examples, in order.
    """

    names: tuple[str, ...]
    values: Float[np.ndarray, "examples terms"]
    groups: Int[np.ndarray, " examples"]
    lengths: Int[np.ndarray, " examples"]
    digest: str

    @classmethod
    def of(
        cls,
        terms: Sequence[Mapping[str, float]],
        examples: Sequence[Any],
        task: HeadTask[Any, Any],
    ) -> ExampleTerms:
        """Collect the terms of examples.

        Args:
            terms: of each example.
            examples: in the same order.
            task: of the examples.
        """
        names = tuple(sorted({name for each in terms for name in each}))
        columns = {name: column for column, name in enumerate(names)}
        values = np.zeros((len(terms), len(names)))
        for row, each in zip(values, terms, strict=True):
            row[[columns[name] for name in each]] = list(each.values())
        numbers: dict[Any, int] = {}
        groups = [numbers.setdefault(task.sampling_unit(each), len(numbers)) for each in examples]
        sentences = [[*map(tuple, task.sentences(each))] for each in examples]
        gold = [task.comparable_gold(each) for each in examples]
        return cls(
            names,
            values,
            np.array(groups, dtype=np.int64),
            np.array([sum(map(len, each)) for each in sentences], dtype=np.int64),
            sha256(repr([*zip(sentences, gold, strict=True)]).encode()).hexdigest(),
        )

    @property
    def num_groups(self) -> int:
        return int(self.groups.max(initial=-1)) + 1

    def sums(self) -> dict[str, float]:
        """Return the sums over all examples, for `scores` of the model or a `score_function`."""
        return dict(zip(self.names, self.values.sum(axis=0).tolist(), strict=True))

    def by_group(self) -> Float[np.ndarray, "groups terms"]:
        """Return the sums over the examples of each group."""
        totals = np.zeros((self.num_groups, len(self.names)))
        np.add.at(totals, self.groups, self.values)
        return totals

    def save(self, path: Path) -> None:
        """Write a compressed `.npz` file; equal terms give equal bytes."""
        with replacing(path) as aside, aside.open("wb") as file:
            # Columns compress better than rows: most of them have few distinct values.
            np.savez_compressed(
                file,
                names=np.array(self.names, dtype=np.str_),
                values=np.ascontiguousarray(self.values.T),
                groups=self.groups,
                lengths=self.lengths,
                digest=np.array(self.digest),
            )

    @classmethod
    def load(cls, path: Path) -> ExampleTerms:
        """Read what `save` wrote.

        Raises:
            DataError: the file is missing or damaged.
        """
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return cls(
                    tuple(arrays["names"].tolist()),
                    arrays["values"].T.copy(),
                    arrays["groups"],
                    arrays["lengths"],
                    str(arrays["digest"]),
                )
        except (OSError, EOFError, KeyError, ValueError, BadZipFile) as error:
            raise DataError(f"cannot read terms of examples: {error}", path=path) from error


@dataclass(frozen=True)
class ScoredFile:
    """The predictions of a model for a file, and the sums that its scores are computed from.

    Attributes:
        sums: summed over all batches; `Model.scores` turns them into scores.
        predictions: as the task knows them, each with its example, in the order of the file.
        terms: what each example adds to the sums, in the same order.
    """

    sums: Mapping[str, float]
    predictions: Sequence[tuple[Any, Any]]
    terms: ExampleTerms


def score_function(config: Mapping[str, Any], *, source: str) -> ScoreFunction:
    """Return what computes the official scores of a run from sums; it needs no weights.

    Only the plugins, the type of the model and its metrics are read, so that the files that the
    config names need not exist.

    Args:
        config: the filled config of an experiment.
        source: its file, for messages.

    Raises:
        RunError: the model is not known, or predicts nothing.
        ConfigError: a metric is not known.
    """
    head = head_class(config, source=source)
    metrics = head.all_metrics(list(_metrics(config["model"].get("metrics") or (), source)))
    return lambda sums: head.scores_of(sums, metrics)


def head_class(config: Mapping[str, Any], *, source: str) -> type[Head[Any]]:
    """Return the class of the model of a run, with the arguments and errors of `score_function`."""
    components.load()
    load_plugins(config.get("plugins", ()), asked_by=source)
    name, heads = config["model"]["type"], member_classes(Head)
    if name not in heads:
        raise RunError(f"{source}: model.type: unknown Head {name!r}; {allowed(name, heads)}")
    return heads[name]


def _metrics(raw: Iterable[Any], source: str) -> Iterable[Metric]:
    for each in raw:
        metric: Metric = parse(Metric, each, source=source).build()
        yield metric
