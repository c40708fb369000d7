"""The cells of a study: its configs in each variant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from elmo_framework.config.load import Config
from elmo_framework.config.overrides import with_merged
from elmo_framework.config.parse import parse
from elmo_framework.config.resolve import filled
from elmo_framework.config.types import Lazy
from elmo_framework.errors import ConfigError, Problem, dotted
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.references import external_models
from elmo_framework.study.run_plan import RunPlan
from elmo_framework.study.search import Trial
from elmo_framework.study.study import Study

REPLACED = {"random_seed": "seeds", "train_fraction": "fractions"}
"""Keys of a config that keys of the study replace."""

_METRIC = "-loss"
"""The default of `trainer.validation_metric`."""


@dataclass(frozen=True)
class Cell:
    """A config of a study in one variant, with one fraction of the training data.

    Attributes:
        plan: of its run with the first seed.
        seeds: of the study.
    """

    plan: RunPlan
    seeds: tuple[int, ...]

    @cached_property
    def parsed(self) -> Lazy[Experiment]:
        """The checked config.

        Raises:
            ConfigError: the config does not describe an experiment.
        """
        return parse(Experiment, dict(self.plan.raw), source=self.plan.source)

    @cached_property
    def experiment(self) -> dict[str, Any]:
        """The config with all defaults."""
        return filled(self.parsed)

    @cached_property
    def bilms(self) -> frozenset[str]:
        """The biLMs that the model reads, whose layers may have to be computed first."""
        return frozenset(str(each.bilm_place) for each in external_models(self.parsed))

    def of_trial(self, trial: Trial) -> Cell:
        """Return this cell with the settings of a trial.

        Raises:
            ConfigError: the config has no such keys.
        """
        try:
            raw = with_merged(self.plan.raw, trial.overrides)
        except ConfigError as error:
            place = f"trial {trial.name} of {self.plan.config}/{self.plan.variant}"
            problems = [Problem(f"{place}: {each.path}", each.message) for each in error.problems]
            raise ConfigError(self.plan.source, problems) from None
        plan = replace(self.plan, raw=raw, trial=trial.name, overrides=dict(trial.overrides))
        return replace(self, plan=plan)

    def run(self, seed: int) -> RunPlan:
        return replace(self.plan, seed=seed, raw={**self.plan.raw, "random_seed": seed})

    def experiment_of(self, plan: RunPlan) -> dict[str, Any]:
        """Return the config of a run of this cell with all defaults."""
        return {**self.experiment, "random_seed": plan.seed}


def load_configs(
    study: Study, *, external_variables: Mapping[str, str] | None = None
) -> tuple[dict[str, dict[str, Any]], list[Problem]]:
    """Return the configs of a study by name, and the problem of each file that cannot be read."""
    configs: dict[str, dict[str, Any]] = {}
    problems: list[Problem] = []
    for name, each in study.configs.items():
        if not isinstance(each.config, Path):
            configs[name] = each.config
            continue
        try:
            configs[name] = Config.load(each.config, external_variables=external_variables).raw
        except ConfigError as error:
            problems.append(Problem(dotted("configs", name, "config"), str(error)))
    return configs, problems


def cells_of(study: Study, configs: Mapping[str, Mapping[str, Any]], *, source: str) -> list[Cell]:
    """Return the cells of a study.

    Args:
        study: checked by `study_problems`.
        configs: of `load_configs`.
        source: the file of the study.

    Raises:
        ConfigError: with every override that changes nothing, and what cannot be compared.
    """
    cells: list[Cell] = []
    problems: list[Problem] = []
    for name, base in configs.items():
        for variant in study.variants_of(name):
            place = f"variant {variant!r} of config {name!r}"
            try:
                raw = _with_variant(study, name, variant, base)
            except ConfigError as error:
                problems += [
                    Problem(f"{place}: {each.path}", each.message) for each in error.problems
                ]
                continue
            problems += [
                Problem(f"{place}: {key}", f"has no effect: the study's `{of_study}` replace it")
                for key, of_study in REPLACED.items()
                if getattr(study, of_study) and raw.get(key) != base.get(key)
            ]
            cells += _cells(study, name, variant, raw, source)
    problems += _incomparable(study, cells)
    if problems:
        raise ConfigError(source, problems)
    return cells


def _incomparable(study: Study, cells: Sequence[Cell]) -> Iterator[Problem]:
    """Yield where variants have other metrics, and comparisons of variants without a fraction."""
    for name in study.configs:
        metrics = {cell.plan.metric for cell in cells if cell.plan.config == name}
        if len(metrics) > 1:
            listed = ", ".join(map(repr, sorted(metrics)))
            message = f"the variants have different ones, {listed}; set the one that compares them"
            yield Problem(dotted("configs", name, "metric"), message)
    for index, pair in enumerate(study.comparisons):
        places = [
            {(cell.plan.config, cell.plan.fraction) for cell in cells if cell.plan.variant == each}
            for each in pair
        ]
        if all(places) and places[0].isdisjoint(places[1]):
            message = f"{pair[0]!r} and {pair[1]!r} have no config with the same train_fraction"
            yield Problem(dotted("comparisons", index), message)


def _with_variant(
    study: Study, config: str, variant: str, base: Mapping[str, Any]
) -> dict[str, Any]:
    for variants in (study.variants, study.configs[config].variants):
        base = with_merged(base, variants.get(variant, {}))
    return dict(base)


def _cells(
    study: Study, config: str, variant: str, raw: dict[str, Any], source: str
) -> Iterator[Cell]:
    trainer = raw.get("trainer")
    trainer = trainer if isinstance(trainer, dict) else {}
    metric = study.configs[config].metric or trainer.get("validation_metric", _METRIC)
    test_data_path = raw.get("test_data_path")
    # Without its test data a run cannot read them, for vocabularies, layers or digests either.
    raw = {**raw, "test_data_path": None, "evaluate_on_test": False}
    fractions: Sequence[Any] = study.fractions or [raw.get("train_fraction", 1.0)]
    for fraction in fractions:
        plan = RunPlan(
            config=config,
            variant=variant,
            seed=study.seeds[0],
            # What is no number is a problem of the config, which the check reports.
            fraction=fraction if isinstance(fraction, int | float) else 1.0,
            metric=str(metric),
            raw={**raw, "train_fraction": fraction, "random_seed": study.seeds[0]},
            test_data_path=test_data_path,
            source=source,
        )
        yield Cell(plan, tuple(study.seeds))
