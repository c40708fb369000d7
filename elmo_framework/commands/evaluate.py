"""`elmo evaluate`: scores of a run on files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from elmo_framework.commands.command import (
    Command,
    add_device_argument,
    add_format_argument,
    add_include_package,
    add_predictions_format_argument,
)

if TYPE_CHECKING:
    from elmo_framework.experiment.loaded_run import LoadedRun


@final
class Evaluate(Command):
    """Scores a run on files in the format of its reader."""

    name = "evaluate"
    help = "score a run on one or several files"
    epilog = """\
examples:
  elmo evaluate runs/ner data/conll2003/valid.txt
  elmo evaluate runs/bilm news.txt letters.txt --format json
  elmo evaluate runs/ner valid.txt --predictions-file tags.jsonl --output-file scores.json
  elmo evaluate runs/ner valid.txt --predictions-file tags.txt --predictions-format conll
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the run, the files, and what is written."""
        parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a finished run")
        parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="data to score on")
        parser.add_argument(
            "--predictions-file",
            "--predictions",
            type=Path,
            dest="predictions",
            metavar="FILE",
            help="write the prediction for each example of all files, in order",
        )
        add_predictions_format_argument(parser)
        parser.add_argument(
            "--output-file", type=Path, metavar="FILE", help="write the scores there as JSON too"
        )
        add_device_argument(parser)
        add_include_package(parser)
        add_format_argument(parser)

    def run(self, arguments: Namespace) -> int:
        """Score and print."""
        import json
        from contextlib import ExitStack

        from elmo_framework.common.errors import RunError
        from elmo_framework.common.files import writing
        from elmo_framework.experiment.loaded_run import load
        from elmo_framework.experiment.prediction_formats import prediction_format

        if arguments.predictions is not None and arguments.predictions == arguments.output_file:
            raise RunError(f"--predictions and --output-file both name {arguments.output_file}")
        run = load(arguments.run, device=arguments.device, packages=arguments.include_package)
        written = None  # or the format, which refuses a model without predictions at once
        if arguments.predictions is not None:
            written = prediction_format(run.head().task, arguments.predictions_format)
        found: list[tuple[Any, Any]] = []
        with ExitStack() as files:
            predictions, output = (
                None if path is None else files.enter_context(writing(path))
                for path in (arguments.predictions, arguments.output_file)
            )
            kept = None if written is None else found
            sums = {str(path): _sums(run, path, kept) for path in arguments.files}
            scores = {
                path: {**run.model.scores(held), **run.tables(held)} for path, held in sums.items()
            }
            if predictions is not None and written is not None:
                predictions.writelines(written(found))
            if output is not None:
                output.write(json.dumps(scores, indent=2) + "\n")
        print(json.dumps(scores, indent=2) if arguments.format == "json" else _text(scores))
        return 0


def _sums(
    run: LoadedRun, path: Path, predictions: list[tuple[Any, Any]] | None
) -> Mapping[str, float]:
    """Count what a run gets right on a file; add to `predictions` if there are any to keep."""
    from elmo_framework.common.logs import Progress

    with Progress(f"evaluating {path.name}", total=None, unit="batches") as progress:

        def note(batch: Any, result: Any) -> None:
            progress.advance(1)

        if predictions is None:
            return run.sums(path, note=note)
        scored = run.score(path, note=note)
    predictions += scored.predictions
    return scored.sums


def _text(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the scores of all files beside each other, and below them their tables."""
    from elmo_framework.common.logs import render_table

    figures = {
        path: {name: f"{value:.6g}" for name, value in held.items() if not _is_table(value)}
        for path, held in scores.items()
    }
    names = sorted({name for held in figures.values() for name in held})
    rows = [[name, *(held.get(name, "") for held in figures.values())] for name in names]
    tables = [
        f"\n\n{name} of {path}, the right label on the left:\n\n{_grid(value)}"
        for path, held in scores.items()
        for name, value in held.items()
        if _is_table(value)
    ]
    return render_table(["", *scores], rows) + "".join(tables)


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _grid(table: Mapping[str, Mapping[str, int]]) -> str:
    from elmo_framework.common.logs import render_table

    columns = list(next(iter(table.values())))
    rows = [[name, *(str(row[column]) for column in columns)] for name, row in table.items()]
    return render_table(["", *columns], rows)
