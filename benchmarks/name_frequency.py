"""Compares taggers on frequent and on rare names, from the records of a study.

    python benchmarks/name_frequency.py STUDY/results/ner mini none --vectors glove.6B.50d.txt

The lines of a file of GloVe are sorted by frequency. A sentence belongs to the rarest word of its
names: `--ranks` are the limits of the classes. Runs of one seed are compared, and the spans of all
seeds are counted together. The interval is that of a bootstrap over sentences, for these runs. The
data of the records must be where the records say.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Literal

import numpy as np
from measuring import say

from elmo_framework import components
from elmo_framework.analysis.statistics import Estimate, Resamples
from elmo_framework.config.parse import parse
from elmo_framework.errors import ElmoFrameworkError, RunError
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.terms import ExampleTerms, score_function
from elmo_framework.study.record import Record, read_records
from elmo_framework.tasks.tagging.task import TaggedSentence

_OUTSIDE = "O"
_SPLITS: Sequence[Literal["validation", "test"]] = ("validation", "test")


@dataclass(frozen=True)
class Row:
    """The scores of two variants on the sentences of a class.

    Attributes:
        title: which words the names have.
        num_names: in one pass over the data.
        score: of the first variant, in [0, 1].
        other: of the second.
        difference: of the two, with its interval.
    """

    title: str
    num_names: int
    score: float
    other: float
    difference: Estimate


def rows(
    pairs: Sequence[tuple[Record, Record]],
    folder: Path,
    ranks: Mapping[str, int],
    limits: Sequence[int],
) -> Iterator[Row]:
    """Yield a row for each class, and one for all sentences with names.

    Args:
        pairs: the records of each seed: of the variant, and of the one it is compared with.
        folder: the `results` folder of their study.
        ranks: of the words, lower case, from 0.
        limits: of the classes, ascending.
    """
    (record, _), (ours, theirs) = pairs[0], zip(*pairs, strict=True)
    experiment = parse(Experiment, record.experiment, source=record.name).build()
    classes = np.array(
        [rarest(each, ranks, limits) for split in _SPLITS for each in experiment.examples(split)]
    )
    parts = [_summed(ours, theirs, folder, split) for split in _SPLITS]
    sides = [_joined(side) for side in zip(*parts, strict=True)]
    score, metric = score_function(record.experiment, source=record.name), record.metric[1:]
    for title, chosen in _selected(classes, limits):
        selections = [_selection(side, chosen) for side in sides]
        resamples = Resamples(selections, score, [metric])
        sums = selections[0].sums()
        gold = sum(value for name, value in sums.items() if name.startswith("span_f1/gold/"))
        yield Row(
            title,
            round(gold / len(pairs)),
            *(float(value) for value in resamples.observed[metric]),
            resamples.difference(metric, [0], [1], is_paired=True),
        )


def rarest(sentence: TaggedSentence, ranks: Mapping[str, int], limits: Sequence[int]) -> int:
    """Return the class of the rarest word of the names of a sentence; -1 if it has no names."""
    tags = sentence.tags or ()
    words = [w for w, tag in zip(sentence.words, tags, strict=True) if tag != _OUTSIDE]
    return max((bisect_right(limits, ranks.get(w.lower(), inf)) for w in words), default=-1)


def word_ranks(path: Path) -> dict[str, int]:
    """Return the line of each word in a file of vectors, from 0."""
    with path.open(encoding="utf-8") as file:
        return {line.partition(" ")[0]: number for number, line in enumerate(file)}


def _selected(classes: np.ndarray, limits: Sequence[int]) -> Iterator[tuple[str, np.ndarray]]:
    yield "all names", classes >= 0
    for number in range(len(limits) + 1):
        start = f"from {limits[number - 1]:,}" if number else "all words"
        end = f" below {limits[number]:,}" if number < len(limits) else " or not in the file"
        yield start + end, classes == number


def _summed(
    ours: Sequence[Record], theirs: Sequence[Record], folder: Path, split: str
) -> list[ExampleTerms]:
    """Return the terms of each example, summed over the runs of each variant."""
    sides = [
        [ExampleTerms.load(folder / f"{record.name}.{split}.npz") for record in records]
        for records in (ours, theirs)
    ]
    if len({(each.digest, each.names) for side in sides for each in side}) > 1:
        raise RunError(f"the runs were scored on different {split} data")
    return [
        replace(side[0], values=np.sum([each.values for each in side], axis=0)) for side in sides
    ]


def _joined(parts: Sequence[ExampleTerms]) -> ExampleTerms:
    """Return the terms of several files as those of one; each has groups of its own."""
    starts = np.cumsum([0, *(part.num_groups for part in parts[:-1])])
    return replace(
        parts[0],
        values=np.concatenate([part.values for part in parts]),
        groups=np.concatenate([p.groups + n for p, n in zip(parts, starts, strict=True)]),
        lengths=np.concatenate([part.lengths for part in parts]),
    )


def _selection(terms: ExampleTerms, chosen: np.ndarray) -> ExampleTerms:
    _, groups = np.unique(terms.groups[chosen], return_inverse=True)
    values, lengths = terms.values[chosen], terms.lengths[chosen]
    return replace(terms, values=values, groups=groups, lengths=lengths)


def paired(records: Sequence[Record], variant: str, other: str) -> list[tuple[Record, Record]]:
    """Return the records of the seeds that both variants have.

    Raises:
        RunError: there are none with scores of test data.
    """
    seeds: list[dict[int, Record]] = [
        {each.seed: each for each in records if each.variant == name and each.test is not None}
        for name in (variant, other)
    ]
    pairs = [(seeds[0][seed], seeds[1][seed]) for seed in sorted(seeds[0].keys() & seeds[1])]
    if not pairs:
        raise RunError(f"no seed of {variant!r} and {other!r} has scores of test data")
    return pairs


def main() -> int:
    """Print a table in Markdown."""
    arguments = _arguments()
    components.load()
    try:
        pairs = paired(read_records(arguments.folder), arguments.variant, arguments.other)
        ranks, folder = word_ranks(arguments.vectors), arguments.folder
        table = list(rows(pairs, folder.parent, ranks, sorted(arguments.ranks)))
    except (ElmoFrameworkError, OSError) as error:
        say(f"error: {error}", file=sys.stderr)
        return 2
    say(f"| words of the names | names | {arguments.variant} | {arguments.other} | difference |")
    say("| --- | --- | --- | --- | --- |")
    for row in table:
        low, high = (100 * end for end in row.difference.interval or (-inf, inf))
        difference = f"{100 * row.difference.value:+.1f} ({low:+.1f} to {high:+.1f})"
        scores = f"{100 * row.score:.1f} | {100 * row.other:.1f}"
        say(f"| {row.title} | {row.num_names} | {scores} | {difference} |")
    return 0


def _arguments() -> Namespace:
    parser = ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("folder", type=Path, help="records of a config: STUDY/results/CONFIG")
    parser.add_argument("variant", help="the name of a variant")
    parser.add_argument("other", help="the variant that it is compared with")
    parser.add_argument("--vectors", type=Path, required=True, help="sorted by frequency")
    parser.add_argument("--ranks", type=int, nargs="+", default=[100_000], help="(100000)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
