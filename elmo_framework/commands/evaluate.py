"""`elmo evaluate`: scores of a run or of a biLM on files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, final

from elmo_framework.commands.command import (
    Command,
    above_zero,
    add_device_argument,
    add_force_argument,
    add_format_argument,
    add_include_package,
    add_predictions_format_argument,
    add_run_bilm_argument,
    component,
    output_files,
)
from elmo_framework.commands.inputs import run_bilm_inputs, run_inputs
from elmo_framework.io.outputs import Input, Output

if TYPE_CHECKING:
    from elmo_framework.experiment.assembly import Assembly
    from elmo_framework.model.task import PredictionFormat


@final
class Evaluate(Command):
    """Scores a run on files in the format of its reader, or a biLM on text."""

    name = "evaluate"
    help = "score a run or a biLM on one or several files"
    epilog = """\
examples:
  elmo evaluate runs/ner data/conll2003/valid.txt
  elmo evaluate runs/bilm news.txt letters.txt --format json
  elmo evaluate runs/ner valid.txt --predictions-file tags.jsonl --output-file scores.json
  elmo evaluate runs/ner valid.txt --predictions-file tags.txt --predictions-format conll
  elmo evaluate mini news.txt
  elmo evaluate exported data/corpus/held_out --batch-size 64

A biLM, by its name or folder, is scored by the softmax that pretraining leaves next to it:
perplexity in both directions, sentence ends counted, and the rate of unknown words. FILE is text,
one sentence per line, with spaces between words, or a part of a corpus of `elmo prepare`.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the run, the files, and what is written."""
        parser.add_argument(
            "run",
            metavar="RUN",
            help="the folder of a finished run, or the folder or name of a biLM with a softmax",
        )
        parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="data to score on")
        parser.add_argument(
            "--predictions-file",
            "--predictions",
            type=Path,
            metavar="FILE",
            help="write the prediction for each example of all files, in order",
        )
        add_predictions_format_argument(parser)
        parser.add_argument(
            "--output-file", type=Path, metavar="FILE", help="write the scores there as JSON too"
        )
        add_force_argument(parser, result="the files that are written")
        add_run_bilm_argument(parser)
        add_device_argument(parser)
        add_include_package(parser)
        add_format_argument(parser)
        _add_bilm_arguments(parser)

    def outputs(self, arguments: Namespace) -> Sequence[Output]:
        """Return the files of the predictions and of the scores."""
        return output_files(arguments, "--predictions-file", "--output-file")

    def inputs(self, arguments: Namespace) -> Sequence[Input]:
        """Return the run and the data."""
        files = [Input(path, "FILE") for path in arguments.files]
        return [*run_inputs(Path(arguments.run), "RUN"), *run_bilm_inputs(arguments.bilms), *files]

    def run(self, arguments: Namespace) -> int:
        """Score and print."""
        import json

        from elmo_framework.data.formats.text_files import require_data

        _require_file_for_format(arguments)
        run = _loaded(arguments)
        for path in arguments.files:
            require_data(path)
        written = _prediction_format(arguments, run)
        predicted: list[tuple[Any, Any]] = []
        with _opened(arguments.predictions_file) as predictions:
            with _opened(arguments.output_file) as output:
                collected = None if written is None else predicted
                sums = {str(path): _sums(run, path, collected) for path in arguments.files}
                scores = {
                    path: {**run.model.scores(each), **run.model.tables(each)}
                    for path, each in sums.items()
                }
                if output is not None:
                    output.write(json.dumps(scores, indent=2) + "\n")
            # Before the predictions, whose format may refuse them: scores may take hours.
            print(json.dumps(scores, indent=2) if arguments.format == "json" else _text(scores))
            if predictions is not None and written is not None:
                predictions.writelines(written(predicted))
        return 0


def _add_bilm_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("for a biLM", "a run has its own")
    group.add_argument(
        "--batch-size",
        type=above_zero,
        metavar="N",
        help="rows of text that are read at the same time; 16 by default",
    )
    group.add_argument(
        "--tokenizer",
        type=component,
        metavar="NAME",
        help="splits lines into words, as those of the biLM's vocabulary are: whitespace by "
        "default, another registered name, or JSON as in a config",
    )


def _loaded(arguments: Namespace) -> Assembly:
    """Load what is scored.

    Raises:
        RunError: it cannot be loaded, or a flag is for the other of the two.
    """
    from elmo_framework.analysis.bilm_scorer import NUM_ROWS, is_bilm, load_bilm_scorer
    from elmo_framework.errors import RunError
    from elmo_framework.experiment.load_run import load

    keys = {"device": arguments.device, "packages": arguments.include_package}
    for_bilm = {"--batch-size": arguments.batch_size, "--tokenizer": arguments.tokenizer}
    for_run = {"--predictions-file": arguments.predictions_file, "--bilm": arguments.bilms}
    is_for_bilm = is_bilm(arguments.run)
    for flag, value in (for_run if is_for_bilm else for_bilm).items():
        if value:
            kinds = ("run", "biLM") if is_for_bilm else ("biLM", "run")
            raise RunError(f"{flag} is for a {kinds[0]}, and {arguments.run} is a {kinds[1]}")
    if is_for_bilm:
        return load_bilm_scorer(
            arguments.run,
            num_rows=arguments.batch_size or NUM_ROWS,
            tokenizer=arguments.tokenizer or "whitespace",
            **keys,
        )
    return load(arguments.run, bilm=arguments.bilms, **keys)


def _prediction_format(arguments: Namespace, run: Assembly) -> PredictionFormat | None:
    """Return what writes predictions; None where none are written.

    Raises:
        RunError: the model predicts nothing, or has no such format.
    """
    from elmo_framework.experiment.predict import prediction_format

    if arguments.predictions_file is None:
        return None
    return prediction_format(run.head().task, arguments.predictions_format)


def _require_file_for_format(arguments: Namespace) -> None:
    """Refuse a format of predictions that are not written.

    Raises:
        RunError: they are not.
    """
    from elmo_framework.errors import RunError

    if arguments.predictions_file is None and arguments.predictions_format != "jsonl":
        raise RunError(
            f"--predictions-format {arguments.predictions_format} needs --predictions-file, which "
            "names what is written"
        )


def _opened(path: Path | None) -> AbstractContextManager[TextIO | None]:
    """Open a file that may be named; it has its place when the block ends well."""
    from elmo_framework.io.files import writing

    return nullcontext() if path is None else writing(path)


def _sums(
    run: Assembly, path: Path, predictions: list[tuple[Any, Any]] | None
) -> Mapping[str, float]:
    """Count what a run gets right on a file; add to `predictions` if there are any to keep."""
    from elmo_framework.console import ProgressBar

    with ProgressBar(f"evaluating {path.name}", total=None, unit="batch") as progress:

        def note(batch: Any, result: Any) -> None:
            progress.advance(1)

        if predictions is None:
            return run.sums(path, note=note)
        scored = run.score(path, note=note)
    predictions += scored.predictions
    return scored.sums


def _text(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Format the scores of all files as columns, and below them their tables."""
    from elmo_framework.console import render_table

    columns = [
        {name: f"{value:.6g}" for name, value in metrics.items() if not _is_table(value)}
        for metrics in scores.values()
    ]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [[name, *(column.get(name, "") for column in columns)] for name in names]
    tables = [
        f"\n\n{name} of {path}, the right label on the left:\n\n{_grid(value)}"
        for path, metrics in scores.items()
        for name, value in metrics.items()
        if _is_table(value)
    ]
    return render_table(["", *scores], rows) + "".join(tables)


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _grid(table: Mapping[str, Mapping[str, int]]) -> str:
    from elmo_framework.console import render_table

    columns = list(next(iter(table.values())))
    rows = [[name, *(str(row[column]) for column in columns)] for name, row in table.items()]
    return render_table(["", *columns], rows)
