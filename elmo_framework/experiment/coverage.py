"""How many words of the data have a vector in the files that a model starts from."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

from elmo_framework.experiment.experiment import Experiment, Split
from elmo_framework.model.model import Covering, Model

_log = logging.getLogger(__name__)


def word_coverage(
    experiment: Experiment, model: Model[Any]
) -> dict[str, dict[str, dict[str, float]]]:
    """Measure for each embedder with a file, and each data set, the share of words it knows.

    Returns:
        by the embedder's name and the data set: `running_words`, the share of all words, and
        `distinct_words`. Empty where no embedder reads a file.

    Raises:
        DataError: some of the data cannot be read.
    """
    parts = {
        name: part
        for name, part in model.named_modules()
        if isinstance(part, Covering) and part.knows("") is not None
    }
    if not parts:
        return {}
    counts: dict[str, Counter[str]] = {
        split: _count(experiment, model, split) for split in experiment.used_splits
    }
    shares = {
        name: {split: _shares(part, counted) for split, counted in counts.items()}
        for name, part in parts.items()
    }
    for name, by_split in shares.items():
        _log.info("%s has vectors for %s", name, ", ".join(map(_shown, by_split.items())))
    return shares


def _count(experiment: Experiment, model: Model[Any], split: Split) -> Counter[str]:
    counted: Counter[str] = Counter()
    for example in experiment.examples(split):
        for words in model.task.sentences(example):
            counted.update(words)
    return counted


def _shares(part: Covering, counted: Counter[str]) -> dict[str, float]:
    known = Counter({word: count for word, count in counted.items() if part.knows(word)})
    return {
        "running_words": known.total() / max(counted.total(), 1),
        "distinct_words": len(known) / max(len(counted), 1),
    }


def _shown(item: tuple[str, Mapping[str, float]]) -> str:
    split, shares = item
    return (
        f"{100 * shares['running_words']:.1f} % of the words of {split} "
        f"({100 * shares['distinct_words']:.1f} % of the distinct ones)"
    )
