"""Check a study: its own keys, and the config of each variant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elmo_framework.config import parse
from elmo_framework.config.load import Config
from elmo_framework.config.plugins import load_plugins
from elmo_framework.console import plural
from elmo_framework.errors import (
    ConfigError,
    DataError,
    Problem,
    RunError,
    allowed,
    dotted,
    shown,
)
from elmo_framework.experiment.check import check_config
from elmo_framework.study.plan import REPLACED, Cell, cells_of, load_configs
from elmo_framework.study.search import Trial
from elmo_framework.study.study import Study, is_study

_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
_SHOWN_PLACES = 3


@dataclass(frozen=True)
class LoadedStudy:
    """A study whose own keys have no problems.

    Attributes:
        study: built.
        cells: of the study, whose configs are not checked.
        source: the file.
    """

    study: Study
    cells: Sequence[Cell]
    source: str

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of runs and of what they are made of."""
        plans, search = [cell.plan for cell in self.cells], self.study.search
        return {
            "runs": len(self.cells) * self.study.num_runs_per_cell,
            "configs": len({plan.config for plan in plans}),
            "variants": len({plan.variant for plan in plans}),
            "fractions": len({plan.fraction for plan in plans}),
            "seeds": len(self.study.seeds),
            **({} if search is None else {"trials": search.num_trials}),
        }


def load_study(
    config: Config, *, external_variables: Mapping[str, str] | None = None
) -> LoadedStudy:
    """Check the keys of a study and read its configs, whose plugins are imported.

    Args:
        config: of the study.
        external_variables: for `std.extVar` in configs that are files.

    Raises:
        RunError: the config is that of one experiment.
        ConfigError: with every problem of the study, but for those inside its configs.
    """
    if "model" in config.raw and not is_study(config.raw):
        raise RunError(f"{config.source}: this is the config of one experiment; run `elmo train`")
    study = parse.parse(Study, config.raw, source=config.source).build()
    configs, unreadable = load_configs(study, external_variables=external_variables)
    for name, raw in configs.items():
        source = f"{config.source}: configs.{name}"
        load_plugins(Config(raw, source, "").plugins, asked_by=f"{source}.plugins")
    problems, cells = [*_study_problems(study), *unreadable], list[Cell]()
    try:
        cells = cells_of(study, configs, source=config.source)
    except ConfigError as error:
        problems += error.problems
    if problems:
        raise ConfigError(config.source, problems)
    return LoadedStudy(study, cells, config.source)


def cell_problems(cells: Sequence[Cell], *, reads_data: bool = False) -> list[Problem]:
    """Return the problems of the configs of some cells, each once with the cells that have it."""
    return _joined(_problems_by_place(cells, reads_data=reads_data))


def _problems_by_place(cells: Sequence[Cell], *, reads_data: bool) -> dict[str, list[Problem]]:
    # A fraction is no problem of its own.
    return {
        place: list(_problems_of(cell, reads_data=reads_data))
        for place, cell in {_place(cell): cell for cell in cells}.items()
    }


def _joined(by_place: Mapping[str, Sequence[Problem]]) -> list[Problem]:
    places: dict[Problem, list[str]] = {}
    for place, problems in by_place.items():
        for problem in problems:
            places.setdefault(problem, []).append(place)
    return [
        Problem(
            f"{_listed(names)}: {problem.path}" if problem.path else _listed(names), problem.message
        )
        for problem, names in places.items()
    ]


def require_sound(study: LoadedStudy, cells: Sequence[Cell], *, reads_data: bool = False) -> None:
    """Check the configs of some cells, with the values of the search.

    Args:
        study: that the cells are of.
        cells: to check.
        reads_data: whether their data are read, to count vocabularies.

    Raises:
        ConfigError: with all problems.
    """
    by_place = _problems_by_place(cells, reads_data=reads_data)
    sound = [cell for cell in cells if not by_place[_place(cell)]]
    if problems := [*_joined(by_place), *search_problems(study.study, sound)]:
        raise ConfigError(study.source, problems)


def _study_problems(study: Study) -> Iterator[Problem]:
    if not study.configs:
        yield Problem("configs", "a study needs at least one config")
    yield from _name_problems("configs", study.configs)
    yield from _name_problems("variants", study.variants)
    for name, each in study.configs.items():
        path = dotted("configs", name, "variants")
        yield from _name_problems(path, each.variants, others=study.variants)
        if each.metric is not None and each.metric[:1] not in ("+", "-"):
            advice = "write '+' before the name when larger is better, '-' when smaller is"
            yield Problem(dotted("configs", name, "metric"), f"is {each.metric!r}; {advice}")
    for key, values in (("seeds", study.seeds), ("fractions", study.fractions or [])):
        if len(set(values)) < len(values):
            yield Problem(key, f"has a value twice: {shown(values)}")
    if study.search is not None and study.search.num_seeds > len(study.seeds):
        message = f"is {study.search.num_seeds}; the study has {plural(len(study.seeds), 'seed')}"
        yield Problem("search.num_seeds", message)
    yield from _comparison_problems(study)


def _comparison_problems(study: Study) -> Iterator[Problem]:
    known = {variant for config in study.configs for variant in study.variants_of(config)}
    for index, pair in enumerate(study.comparisons):
        if pair[0] == pair[1]:
            yield Problem(dotted("comparisons", index), f"compares {pair[0]!r} with itself")
        for variant in set(pair) - known:
            message = f"unknown variant {variant!r}; {allowed(variant, known)}"
            yield Problem(dotted("comparisons", index), message)


def _name_problems(
    path: str, names: Mapping[str, Any], *, others: Mapping[str, Any] = {}
) -> Iterator[Problem]:
    first = {name.casefold(): name for name in others}
    for name in names:
        other = first.setdefault(name.casefold(), name)
        if other != name:
            message = f"differs from {other!r} in case only: some file systems take them for one"
            yield Problem(dotted(path, name), message)
        if not _NAME.fullmatch(name):
            message = "is a part of file names: use letters, digits, '.', '_', '+' and '-'"
            yield Problem(dotted(path, name), message)


def search_problems(study: Study, cells: Sequence[Cell]) -> Iterator[Problem]:
    """Yield what is wrong with the values of a search, for cells that lack other problems."""
    for path, overrides in [] if study.search is None else study.search.examples():
        places: dict[str, list[str]] = {}
        for cell in {_place(cell): cell for cell in cells}.values():
            try:
                trial = cell.of_trial(Trial("example", overrides))
                problems = [*_replaced_by_study(cell, trial), *_problems_of(trial)]
            except ConfigError as error:
                problems = list(error.problems)
            for problem in problems:
                places.setdefault(str(problem), []).append(_place(cell))
        for message, names in places.items():
            yield Problem(dotted("search", path), f"{_listed(names)}: {message}")


def _replaced_by_study(cell: Cell, trial: Cell) -> Iterator[Problem]:
    for key, of_study in REPLACED.items():
        if trial.plan.raw.get(key) != cell.plan.raw.get(key):
            yield Problem(key, f"belongs to the study's `{of_study}`, and not to a search")


def _problems_of(cell: Cell, *, reads_data: bool = False) -> Iterator[Problem]:
    raw = {**cell.plan.raw, "test_data_path": cell.plan.test_data_path}
    counted = raw.get("datasets_for_vocab_creation")
    if isinstance(counted, list) and "test" in counted:
        message = "names the test data, which a study reads for `--final` only"
        yield Problem("datasets_for_vocab_creation", message)
        return
    if raw.get("validation_data_path") is None and not raw.get("validation_fraction"):
        yield Problem("validation_data_path", "is required in a study: it selects and compares")
    try:
        config = Config(raw, cell.plan.source, "")
        yield from check_config(config, reads_data=reads_data).problems
        yield from _metric_problems(cell, raw)
    except ConfigError as error:
        yield from error.problems
    except DataError as error:
        yield Problem("", str(error))


def _metric_problems(cell: Cell, raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the metric of the study, if it is not that of the trainer."""
    trainer = raw.get("trainer", {})
    if not isinstance(trainer, dict) or cell.plan.metric == trainer.get("validation_metric"):
        return
    changed = {**raw, "trainer": {**trainer, "validation_metric": cell.plan.metric}}
    for problem in check_config(Config(changed, cell.plan.source, "")).problems:
        if problem.path == "trainer.validation_metric":
            yield Problem("metric", problem.message)


def _place(cell: Cell) -> str:
    trial = "" if cell.plan.trial is None else f", trial {cell.plan.trial}"
    return f"{cell.plan.config}/{cell.plan.variant}{trial}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_PLACES} more" if len(names) > _SHOWN_PLACES else ""
    return ", ".join(names[:_SHOWN_PLACES]) + more
