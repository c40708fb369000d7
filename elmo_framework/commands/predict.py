"""`elmo predict`: what a run says of new text."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, final

from elmo_framework.commands.command import (
    Command,
    above_zero,
    add_device_argument,
    add_force_argument,
    add_include_package,
    add_predictions_format_argument,
    component,
    output_files,
)
from elmo_framework.commands.inputs import run_inputs
from elmo_framework.common.outputs import Input, Output

if TYPE_CHECKING:
    from elmo_framework.experiment.loaded_run import LoadedRun
    from elmo_framework.model.task import HeadTask


@final
class Predict(Command):
    """Predicts for sentences or JSON lines."""

    name = "predict"
    help = "predict for new text: plain sentences or JSON lines in, JSON lines or colours out"
    epilog = """\
examples:
  echo "Anna Kovacs moved to Lisbon." | elmo predict runs/ner -
  echo "Anna Kovacs moved to Lisbon." | elmo predict runs/ner --pretty
  elmo predict runs/ner sentences.txt --output-file tags.jsonl
  elmo predict runs/ner tokenized.jsonl            lines such as {"tokens": ["Anna", "left"]}
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the run, the input and the output."""
        parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a finished run")
        parser.add_argument(
            "file",
            nargs="?",
            type=Path,
            default=Path("-"),
            metavar="FILE",
            help="a line that begins with { is a JSON object, every other line a sentence; blank "
            "lines are left out; - or nothing reads standard input",
        )
        parser.add_argument(
            "--output-file", type=Path, metavar="FILE", help="write there, not to standard output"
        )
        add_force_argument(parser, result="the output file")
        form = parser.add_mutually_exclusive_group()
        add_predictions_format_argument(form)
        form.add_argument(
            "--pretty",
            action="store_true",
            help="for reading: what was found, marked in the text; in colours on a terminal",
        )
        parser.add_argument(
            "--tokenizer",
            type=component,
            metavar="NAME",
            help="what splits raw text: a registered name, or JSON as in a config",
        )
        parser.add_argument(
            "--batch-size",
            type=above_zero,
            default=32,
            metavar="N",
            help="how many go through the model together; %(default)s unless given",
        )
        add_device_argument(parser)
        add_include_package(parser)

    def outputs(self, arguments: Namespace) -> Sequence[Output]:
        """Return the file of the predictions."""
        return output_files(arguments, "--output-file")

    def inputs(self, arguments: Namespace) -> Sequence[Input]:
        """Return the run and the sentences."""
        return [*run_inputs(arguments.run, "RUN"), Input(arguments.file, "FILE")]

    def run(self, arguments: Namespace) -> int:
        """Predict and write."""
        from elmo_framework.common.files import writing
        from elmo_framework.experiment.loaded_run import load

        run = load(arguments.run, device=arguments.device, packages=arguments.include_package)
        if arguments.output_file is None:
            _write(run, arguments, sys.stdout)
            return 0
        with writing(arguments.output_file) as output:
            _write(run, arguments, output)
        return 0


def _write(run: LoadedRun, arguments: Namespace, output: TextIO) -> None:
    from elmo_framework.experiment.prediction_formats import prediction_format

    task = run.head().task
    written = prediction_format(task, arguments.predictions_format)
    examples = _examples(arguments.file, run.to_example(arguments.tokenizer))
    predictions = run.predictions(examples, batch_size=arguments.batch_size)
    if arguments.pretty:
        _print_pretty(task, predictions, output)
        return
    for piece in written(predictions):
        output.write(piece)


def _print_pretty(
    task: HeadTask[Any, Any], predictions: Iterable[tuple[Any, Any]], output: TextIO
) -> None:
    from rich.console import Console

    console = Console(file=output)
    for prediction, example in predictions:
        console.print(task.pretty(prediction, example), soft_wrap=True)


def _examples(path: Path, to_example: Callable[[object], Any]) -> Iterator[Any]:
    """Yield an example of each line of a file, a sentence or an object, that is not blank."""
    from elmo_framework.data.paths import STANDARD_INPUT, decoded_lines, placed, read_lines
    from elmo_framework.data.records import json_object

    is_piped = path == STANDARD_INPUT
    lines = decoded_lines(sys.stdin.buffer, path) if is_piped else read_lines(path)
    for number, line in lines:
        text = line.strip()
        if text:
            with placed(path, number):
                example = to_example(json_object(line) if text.startswith("{") else text)
            yield example
