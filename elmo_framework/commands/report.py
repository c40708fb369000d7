"""`elmo report`: a page about a run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, final

from elmo_framework.commands.command import (
    Command,
    add_force_argument,
    add_include_package,
    add_run_bilm_argument,
    output_files,
    register_components,
)
from elmo_framework.commands.inputs import bilm_inputs, run_bilm_inputs, run_inputs
from elmo_framework.commands.neighbors import add_search_arguments, search
from elmo_framework.io.outputs import Input, Output

if TYPE_CHECKING:
    from elmo_framework.analysis.report import Comparison


@final
class ShowReport(Command):
    """Writes what a run was and how it went to an HTML file."""

    name = "report"
    help = "write a page about a run: its curves, layer weights, configuration and origin"
    epilog = """\
examples:
  elmo report runs/ner --output-file ner.html
  elmo report runs/bilm --output-file bilm.html --before runs/bilm-random --corpus news.txt \\
      --query "He sat on the river bank" --word bank

the page is one file and needs no network. The run need not be finished. With --query it shows the
nearest neighbours of a word too, by the biLM that the run trained or reads and by the one of
--before.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the run, the file and the search."""
        parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run")
        parser.add_argument(
            "--output-file", type=Path, required=True, metavar="FILE", help="the path of the page"
        )
        parser.add_argument(
            "--before",
            metavar="BILM",
            help="the folder or the name of a biLM whose neighbours are shown for comparison",
        )
        add_search_arguments(parser, required=False)
        add_force_argument(parser, result="FILE")
        add_run_bilm_argument(parser)
        add_include_package(parser)

    def outputs(self, arguments: Namespace) -> Sequence[Output]:
        """Return the file of the page."""
        return output_files(arguments, "--output-file")

    def inputs(self, arguments: Namespace) -> Sequence[Input]:
        """Return the run, the biLM to compare with and the corpus."""
        before = bilm_inputs(arguments.before, "--before") if arguments.before else []
        corpus = [Input(path, "--corpus") for path in arguments.corpus or ()]
        run = [*run_inputs(arguments.run, "RUN"), *run_bilm_inputs(arguments.bilms)]
        return [*run, *before, *corpus]

    def run(self, arguments: Namespace) -> int:
        """Write the page and print its path."""
        from elmo_framework.analysis.report import write_report

        register_components(arguments.include_package)
        write_report(arguments.run, arguments.output_file, comparison=_comparison(arguments))
        print(arguments.output_file)
        return 0


def _comparison(arguments: Namespace) -> Comparison | None:
    from elmo_framework.analysis.report import Comparison
    from elmo_framework.errors import RunError

    needed = ("corpus", "query", "word")
    missing = [f"--{name}" for name in needed if getattr(arguments, name) is None]
    if missing and (len(missing) < len(needed) or arguments.before or arguments.bilms):
        raise RunError(f"neighbours need {', '.join(missing)} too")
    if missing:
        return None
    return Comparison(
        search(arguments), arguments.before, arguments.bilms, arguments.include_package
    )
