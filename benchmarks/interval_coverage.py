"""How often the intervals of `elmo compare` contain the true difference, by simulation.

    python benchmarks/interval_coverage.py --trials 2000

Two systems of equal or different quality label sentences. A sentence has a difficulty, which both
systems share in part; a seed has an effect of its own; the rest is noise. A trial draws new
sentences and new seeds. The true difference is that of expected scores over all sentences and
seeds, or for one seed on each side over all sentences.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from elmo_framework.analysis.statistics import Resamples
from elmo_framework.experiment.terms import ExampleTerms, score_function

_WORDS = 5
_ERRORS = np.array([0.35, 0.3])
"""Expected error rates of the two systems."""


@dataclass(frozen=True)
class Setting:
    """Sizes and spreads of a simulation.

    Attributes:
        num_groups: number of sentences.
        num_runs: number of seeds on each side.
        of_seed: standard deviation of the effect of a seed; that of noise is 1.
        of_group: standard deviation of the difficulty of a sentence.
        is_paired: whether both sides have the same seeds.
    """

    num_groups: int
    num_runs: tuple[int, int]
    of_seed: float = 0.1
    of_group: float = 1.0
    is_paired: bool = False


def coverage(
    setting: Setting, *, num_trials: int, num_resamples: int = 1_000, seed: int = 0
) -> float:
    """Return the fraction of trials whose 95 % interval contains the true difference."""
    generator = np.random.default_rng(seed)
    return float(np.mean([_contains(setting, generator, num_resamples) for _ in range(num_trials)]))


def _contains(setting: Setting, generator: np.random.Generator, num_resamples: int) -> bool:
    difficulty = generator.normal(0, setting.of_group, (setting.num_groups, 1))
    sides, expected = [], []
    shared = generator.normal(0, setting.of_seed, max(setting.num_runs))
    for error, size in zip(_ERRORS, setting.num_runs, strict=True):
        own = generator.normal(0, setting.of_seed, size)
        seeds = (shared[:size] + own) / np.sqrt(2) if setting.is_paired else own
        sides.append([_run(setting, error, each, difficulty, generator) for each in seeds])
        fixed = float(seeds[0]) if setting.num_runs == (1, 1) else None
        expected.append(_expected_accuracy(setting, error, fixed))
    first, second = sides
    resamples = Resamples(
        [*first, *second],
        score_function({"model": {"type": "bcn"}}, source="simulation"),
        ["accuracy"],
        num_resamples=num_resamples,
        seed=int(generator.integers(2**32)),
    )
    indices = range(len(first)), range(len(first), len(first) + len(second))
    estimate = resamples.difference("accuracy", *indices, is_paired=setting.is_paired)
    assert estimate.interval is not None
    low, high = estimate.interval
    return bool(low <= expected[0] - expected[1] <= high)


def _run(
    setting: Setting,
    error: float,
    of_seed: float,
    difficulty: np.ndarray,
    generator: np.random.Generator,
) -> ExampleTerms:
    noise = generator.normal(0, 1, (setting.num_groups, _WORDS))
    is_wrong = difficulty + of_seed + noise < _threshold(setting, error)
    correct = (~is_wrong).sum(axis=1)
    columns = np.stack([correct, np.full(setting.num_groups, _WORDS)], axis=1)
    names = ("accuracy/correct", "accuracy/total")
    groups = np.arange(setting.num_groups)
    return ExampleTerms(names, columns.astype(np.float64), groups, groups, "")


def _threshold(setting: Setting, error: float) -> float:
    spread = np.sqrt(1 + setting.of_seed**2 + setting.of_group**2)
    return NormalDist(0, spread).inv_cdf(error)


def _expected_accuracy(setting: Setting, error: float, of_seed: float | None) -> float:
    if of_seed is None:
        return 1 - error
    spread = np.sqrt(1 + setting.of_group**2)
    return 1 - NormalDist(of_seed, spread).cdf(_threshold(setting, error))


SETTINGS = {
    "1 seed, 500 sentences": Setting(500, (1, 1)),
    "1 seed, 20 documents": Setting(20, (1, 1)),
    "5 seeds, 500 sentences": Setting(500, (5, 5)),
    "5 paired seeds, 500 sentences": Setting(500, (5, 5), is_paired=True),
    "3 seeds, 500 sentences": Setting(500, (3, 3)),
    "5 seeds, 20 documents": Setting(20, (5, 5)),
    "5 and 3 seeds, 500 sentences": Setting(500, (5, 3)),
    "5 seeds that differ little": Setting(500, (5, 5), of_seed=0.01),
    "5 seeds that differ much": Setting(500, (5, 5), of_seed=0.5),
    "3 seeds that differ much": Setting(500, (3, 3), of_seed=0.5),
}


def main() -> None:
    """Print the coverage for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2_000)
    arguments = parser.parse_args()
    for name, setting in SETTINGS.items():
        inside = coverage(setting, num_trials=arguments.trials)
        error = np.sqrt(inside * (1 - inside) / arguments.trials)
        sys.stdout.write(f"{name:32} {100 * inside:5.1f} % +- {100 * error:.1f}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
