"""`elmo check`: everything that is wrong with a config, before anything runs."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

from elmo_framework.commands.command import ConfigCommand, ResultFormat
from elmo_framework.config.arguments import Argument
from elmo_framework.config.load import Config
from elmo_framework.console import plural, render_table
from elmo_framework.errors import ConfigError, ElmoFrameworkError, Problem, RunError

if TYPE_CHECKING:
    from elmo_framework.experiment.check import CheckResult
    from elmo_framework.experiment.model_report import ModelReport, PartSize


@final
@dataclass(frozen=True, kw_only=True)
class Check(ConfigCommand):
    """List all problems of a config, and the sizes of its model if it can be built.

    Of a study, the config of each variant is checked.

    Attributes:
        data: read the data too: count words and labels, and make the batches of what is scored.
        serialization_dir: the folder of a study, to count the runs that are done.
    """

    name = "check"
    epilog = """examples:
  elmo check experiments/demo/elmo.jsonnet
  elmo check experiments/demo/elmo.jsonnet -o model.encoder.hidden_size=300
  elmo check experiments/demo/elmo.jsonnet --data --format json
  elmo check experiments/demo/study.jsonnet -s runs/study

Without --data nothing is read but the config; sizes are then those for a vocabulary of 10,000
words and 21 labels.
"""

    data: bool = False
    serialization_dir: Annotated[Path | None, Argument("DIR", flags=("-s",))] = None
    format: ResultFormat = "text"

    def run(self) -> int:
        with _without_garbage_collection():
            return self._run()

    def _run(self) -> int:
        if self.format == "json":
            written = self._as_json()
            print(json.dumps(written, indent=2, ensure_ascii=False))
            return 2 if written["problems"] else 0
        config = self.read_config()
        if _is_study(config):
            counts, states = self._check_study(config)
            print(f"{self.config}: no problems\n\n{_listed(counts)}")
            if states:
                listed = ", ".join(f"{number} {state}" for state, number in states.items())
                print(f"{self.serialization_dir}: {listed}")
            return 0
        result = self._check(config)
        if not result.problems:
            print(f"{self.config}: no problems\n")
        if result.report is not None:
            print(_as_text(result.report))
        result.unwrap()
        return 0

    def _check_study(self, config: Config) -> tuple[dict[str, int], dict[str, int]]:
        """Check a study; return the numbers of its runs and their parts, and of runs by state.

        Raises:
            ConfigError: with the problems of all variants.
        """
        from elmo_framework.study.check import load_study, require_sound
        from elmo_framework.study.folder import StudyFolder
        from elmo_framework.study.state import StudyState

        loaded = load_study(config, external_variables=dict(self.ext_var))
        require_sound(loaded, loaded.cells, reads_data=self.data)
        if self.serialization_dir is None:
            return loaded.counts, {}
        state = StudyState(loaded.study, loaded.cells, StudyFolder(self.serialization_dir))
        return loaded.counts, {str(key): num for key, num in state.num_runs_by_state().items()}

    def _check(self, config: Config) -> CheckResult:
        from elmo_framework.experiment.check import check_config

        if self.serialization_dir is not None:
            message = f"--serialization-dir is for studies; {self.config} is a single experiment"
            raise RunError(message)
        return check_config(config, reads_data=self.data)

    def _as_json(self) -> dict[str, Any]:
        """Return the problems and the report; an error that ends the check is a problem too."""
        source, report = str(self.config), {}
        problems: tuple[Problem, ...]
        try:
            config = self.read_config()
            if _is_study(config):
                counts, states = self._check_study(config)
                report = {**counts, **({"states": states} if states else {})}
                return {"source": source, "problems": [], **report}
            result = self._check(config)
            problems = result.problems
            report = {} if result.report is None else _as_json(result.report)
        except ConfigError as error:
            source, problems = error.source, error.problems
        except ElmoFrameworkError as error:
            problems = (Problem("", str(error)),)
        return {"source": source, "problems": [vars(problem) for problem in problems], **report}


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Keep the collector off, which takes a tenth of a check: imports make objects that stay."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _is_study(config: Config) -> bool:
    from elmo_framework.study.study import is_study

    return is_study(config.raw)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(plural(number, noun.removesuffix("s")) for noun, number in counts.items())


def _as_text(report: ModelReport) -> str:
    dims = [
        (each.name or "(model)", each.kind, _or_dash(each.input_dim), f"{each.output_dim:,}")
        for each in report.dims
    ]
    parts = [*report.parts, _total(report)]
    tables = [
        render_table(("component", "class", "input_dim", "output_dim"), dims),
        render_table(
            ("part", "parameters", "trainable"),
            [(each.name, f"{each.total:,}", f"{each.trainable:,}") for each in parts],
        ),
    ]
    vocabulary = "vocabulary" if report.is_counted else "assumed vocabulary"
    for title, sizes in (("frozen biLM of", report.frozen), (vocabulary, report.vocabularies)):
        if sizes:
            rows = [(name, f"{number:,}") for name, number in sizes.items()]
            tables.append(render_table((title, "size"), rows))
    if report.vocabularies and not report.is_counted:
        tables.append("pass --data to count the vocabularies of the data")
    return "\n\n".join(tables)


def _as_json(report: ModelReport) -> dict[str, Any]:
    _, parameters, trainable = _total(report)
    return {
        "components": [
            {
                "name": each.name,
                "class": each.kind,
                "input_dim": each.input_dim,
                "output_dim": each.output_dim,
            }
            for each in report.dims
        ],
        "parts": [
            {"name": each.name, "parameters": each.total, "trainable": each.trainable}
            for each in report.parts
        ],
        "parameters": parameters,
        "trainable": trainable,
        "frozen_bilm": dict(report.frozen),
        "vocabularies": dict(report.vocabularies) if report.is_counted else {},
        "assumed_vocabularies": {} if report.is_counted else dict(report.vocabularies),
    }


def _total(report: ModelReport) -> PartSize:
    from elmo_framework.experiment.model_report import PartSize

    return PartSize(
        "total",
        sum(each.total for each in report.parts),
        sum(each.trainable for each in report.parts),
    )


def _or_dash(dim: int | None) -> str:
    return "-" if dim is None else f"{dim:,}"
