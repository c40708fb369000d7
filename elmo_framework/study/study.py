"""Study: the top level of the config of a family of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, final

from annotated_types import Ge, Gt, Le, Lt, MinLen

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Default
from elmo_framework.study.executor import Executor
from elmo_framework.study.search import Search

DEFAULT_VARIANT = "default"


def is_study(raw: Mapping[str, Any]) -> bool:
    """Return whether a config is that of a study, and not of one experiment.

    Any key that only studies have makes it one, as the name of another may be misspelled.
    """
    keys = {"configs", "seeds", "variants", "fractions", "search", "comparisons", "executor"}
    return "model" not in raw and not keys.isdisjoint(raw)


@dataclass(frozen=True)
class StudyConfig:
    """One config of a study, with what belongs to it.

    Attributes:
        config: the config of an experiment: an object, or the path of a file.
        variants: further variants, or further overrides of a variant of the study, by name.
        metric: the score that is compared, after `+` when larger is better and `-` when smaller is;
            by default the `validation_metric` of the trainer.
    """

    config: dict[str, Any] | Path
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)
    metric: str | None = None


@final
class Study(Registrable):
    """A family of runs: configs, variants of them, seeds, fractions of the training data.

    Each config is trained in each variant, with each fraction and each seed. An override is a
    nested object, which is merged into the config, or a dotted key as of `-o`, which replaces.

    Args:
        configs: the configs by name.
        variants: overrides by the name of the variant, for all configs; without any, here or at a
            config, its only variant is `default`.
        seeds: the random seeds.
        fractions: parts of the training data (`train_fraction`); by default that of each config.
        search: a search over settings, for each config, variant and fraction. It uses the first
            seed, or the first few; the best settings are trained with the other seeds too.
        comparisons: pairs of variants, better first, whose difference is reported.
        executor: where the runs are trained.
        plugins: modules that register your components.
    """

    def __init__(
        self,
        configs: dict[str, StudyConfig],
        seeds: Annotated[list[Annotated[int, Ge(0), Lt(2**62)]], MinLen(1)],
        executor: Annotated[Executor, Default("local")],
        plugins: Annotated[list[str], Default([])],
        comparisons: Annotated[list[tuple[str, str]], Default([])],
        variants: Annotated[dict[str, dict[str, Any]], Default({})],
        fractions: Annotated[list[Annotated[float, Gt(0), Le(1)]], MinLen(1)] | None = None,
        search: Search | None = None,
    ) -> None:
        self.configs, self.variants = configs, variants
        self.seeds, self.fractions = seeds, fractions
        self.search, self.comparisons = search, comparisons
        self.executor, self.plugins = executor, plugins

    @property
    def num_runs_per_cell(self) -> int:
        """The number of runs of a config in a variant with a fraction, with those of a search."""
        if self.search is None:
            return len(self.seeds)
        num_tried = self.search.num_seeds
        return self.search.num_trials * num_tried + len(self.seeds) - num_tried

    def variants_of(self, config: str) -> list[str]:
        """Return the names of the variants of a config."""
        names = dict.fromkeys([*self.variants, *self.configs[config].variants])
        return list(names) or [DEFAULT_VARIANT]
