"""`elmo check`: everything that is wrong with a config, before anything runs."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any, final

from elmo_framework.commands.command import (
    Command,
    add_config_arguments,
    add_format_argument,
    read_config,
)
from elmo_framework.errors import ConfigError, ElmoFrameworkError, Problem

if TYPE_CHECKING:
    from elmo_framework.experiment.check import CheckResult
    from elmo_framework.experiment.model_report import Amount, ModelReport


@final
class Check(Command):
    """Prints all problems of a config, and the sizes and the parameters of its model."""

    name = "check"
    help = "list all problems of a config, and the sizes of its model if it can be built"
    epilog = """examples:
  elmo check experiments/demo/elmo.jsonnet
  elmo check experiments/demo/elmo.jsonnet -o model.encoder.hidden_size=300
  elmo check experiments/demo/elmo.jsonnet --data --format json

Without --data nothing is read but the config; numbers that depend on how many words or labels
the data holds are printed as such: 100 + 50 \N{MULTIPLICATION SIGN} words.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_config_arguments(parser)
        parser.add_argument(
            "--data", action="store_true", help="read the data too, to count words and labels"
        )
        add_format_argument(parser)

    def run(self, arguments: Namespace) -> int:
        """Check a config and print what is known about its model."""
        if arguments.format == "json":
            written = _checked_as_json(arguments)
            print(json.dumps(written, indent=2, ensure_ascii=False))
            return 2 if written["problems"] else 0
        result = _check(arguments)
        if not result.problems:
            print(f"{arguments.config}: no problems\n")
        if result.report is not None:
            print(_as_text(result.report))
        result.unwrap()
        return 0


def _check(arguments: Namespace) -> CheckResult:
    config = read_config(arguments)
    from elmo_framework.experiment.check import check_config

    return check_config(config, reads_data=arguments.data)


def _checked_as_json(arguments: Namespace) -> dict[str, Any]:
    """Return the problems and the report; an error that ends the check is a problem too."""
    source, report = str(arguments.config), {}
    problems: tuple[Problem, ...]
    try:
        result = _check(arguments)
        problems = result.problems
        report = {} if result.report is None else _as_json(result.report)
    except ConfigError as error:
        source, problems = error.source, error.problems
    except ElmoFrameworkError as error:
        problems = (Problem("", str(error)),)
    return {"source": source, "problems": [vars(problem) for problem in problems], **report}


def _as_text(report: ModelReport) -> str:
    from elmo_framework.console import render_table
    from elmo_framework.experiment.model_report import show_amount, total_of

    widths = [
        (each.name or "(model)", each.kind, _or_dash(each.input_dim), show_amount(each.output_dim))
        for each in report.widths
    ]
    counts = [(each.name, each.total, each.trainable) for each in report.counts]
    counts += [("total", total_of(c[1] for c in counts), total_of(c[2] for c in counts))]
    tables = [
        render_table(("component", "class", "input_dim", "output_dim"), widths),
        render_table(
            ("part", "parameters", "trainable"),
            [(name, show_amount(total), show_amount(trained)) for name, total, trained in counts],
        ),
    ]
    for title, sizes in (
        ("frozen biLM of", report.frozen),
        ("vocabulary", report.vocabularies),
    ):
        if sizes:
            rows = [(name, f"{number:,}") for name, number in sizes.items()]
            tables.append(render_table((title, "size"), rows))
    return "\n\n".join(tables)


def _as_json(report: ModelReport) -> dict[str, Any]:
    from elmo_framework.experiment.model_report import amount_as_json, total_of

    totals = [each.total for each in report.counts]
    trainable = [each.trainable for each in report.counts]
    return {
        "components": [
            {
                "name": each.name,
                "class": each.kind,
                "input_dim": None if each.input_dim is None else amount_as_json(each.input_dim),
                "output_dim": amount_as_json(each.output_dim),
            }
            for each in report.widths
        ],
        "parts": [
            {
                "name": each.name,
                "parameters": amount_as_json(each.total),
                "trainable": amount_as_json(each.trainable),
            }
            for each in report.counts
        ],
        "parameters": amount_as_json(total_of(totals)),
        "trainable": amount_as_json(total_of(trainable)),
        "frozen_bilm": dict(report.frozen),
        "vocabularies": dict(report.vocabularies),
    }


def _or_dash(amount: Amount | None) -> str:
    from elmo_framework.experiment.model_report import show_amount

    return "-" if amount is None else show_amount(amount)
