"""`elmo predict`: what a run says of new text."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, final

from elmo_framework.commands.command import (
    Command,
    above_zero,
    add_device_argument,
    add_force_argument,
    add_include_package,
    add_predictions_format_argument,
    add_run_bilm_argument,
    component,
    output_files,
)
from elmo_framework.commands.inputs import run_bilm_inputs, run_inputs
from elmo_framework.common.outputs import Input, Output

if TYPE_CHECKING:
    from elmo_framework.data.inputs import PredictionInput
    from elmo_framework.experiment.loaded_run import LoadedRun
    from elmo_framework.experiment.prediction_inputs import InputForm
    from elmo_framework.model.task import HeadTask


@final
class Predict(Command):
    """Predicts for sentences, JSON lines or files of data."""

    name = "predict"
    help = "predict for data files, JSON lines or plain sentences; JSON lines or colours out"
    epilog = """\
examples:
  echo "Anna Kovacs moved to Lisbon." | elmo predict runs/ner -
  echo "Anna Kovacs moved to Lisbon." | elmo predict runs/ner --pretty
  elmo predict runs/ner sentences.txt --output-file tags.jsonl
  elmo predict runs/ner tokenized.jsonl            lines such as {"tokens": ["Anna", "left"]}
  elmo predict runs/ner new.conll                  as training data, labels or none
  elmo predict runs/topics reviews.csv             other columns are copied to the output
  elmo predict runs/ner new.csv --reader tagging_table

A suffix such as .csv, .tsv, .jsonl, .conll or .conllu, or the first lines, show that a file is
data. Then the dataset reader of the run reads it; labels may be missing, and may be any. JSON
objects, and the rows of a table, may also have the keys of the task, such as "sentence". What the
task does not read ("id", "label", ...) is copied to the output: as "input_label" where the
prediction has a "label" itself.
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
            help="data, or text: a line that begins with { is a JSON object, every other line a "
            "sentence; blank lines are left out; - or nothing reads standard input",
        )
        _add_reading_arguments(parser)
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
        add_run_bilm_argument(parser)
        add_device_argument(parser)
        add_include_package(parser)

    def outputs(self, arguments: Namespace) -> Sequence[Output]:
        """Return the file of the predictions."""
        return output_files(arguments, "--output-file")

    def inputs(self, arguments: Namespace) -> Sequence[Input]:
        """Return the run and the sentences."""
        run = [*run_inputs(arguments.run, "RUN"), *run_bilm_inputs(arguments.bilms)]
        return [*run, Input(arguments.file, "FILE")]

    def run(self, arguments: Namespace) -> int:
        """Predict and write."""
        from elmo_framework.common.files import writing
        from elmo_framework.experiment.loaded_run import load

        run = load(
            arguments.run,
            device=arguments.device,
            packages=arguments.include_package,
            bilm=arguments.bilms,
        )
        if arguments.output_file is None:
            _write(run, arguments, sys.stdout)
            return 0
        with writing(arguments.output_file) as output:
            _write(run, arguments, output)
        return 0


def _write(run: LoadedRun, arguments: Namespace, output: TextIO) -> None:
    from elmo_framework.experiment.prediction_formats import input_format

    task = run.head().task
    written = input_format(task, arguments.predictions_format)
    reader = run.input_reader(reader=arguments.reader, tokenizer=arguments.tokenizer)
    inputs = reader.read(arguments.file, _form(arguments))
    predictions = run.predictions(inputs, batch_size=arguments.batch_size)
    if arguments.pretty:
        _print_pretty(task, predictions, output)
        return
    for piece in written(predictions):
        output.write(piece)


def _print_pretty(
    task: HeadTask[Any, Any],
    predictions: Iterable[tuple[Any, PredictionInput[Any]]],
    output: TextIO,
) -> None:
    from rich.console import Console

    console = Console(file=output)
    for prediction, each in predictions:
        console.print(task.pretty(prediction, each.example), soft_wrap=True)


def _add_reading_arguments(parser: ArgumentParser) -> None:
    """Declare how FILE is read."""
    read = parser.add_mutually_exclusive_group()
    read.add_argument(
        "--use-dataset-reader",
        action="store_true",
        help="read FILE with the run's dataset reader, whatever it looks like",
    )
    read.add_argument(
        "--reader",
        type=component,
        metavar="NAME",
        help="read FILE with another dataset reader: a registered name, or JSON as in a config",
    )
    read.add_argument(
        "--sentences",
        action="store_true",
        help="read FILE as plain text with one sentence per line, whatever it looks like",
    )


def _form(arguments: Namespace) -> InputForm:
    if arguments.sentences:
        return "sentences"
    forced = arguments.use_dataset_reader or arguments.reader is not None
    return "dataset" if forced else "auto"
