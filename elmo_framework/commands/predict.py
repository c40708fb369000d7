"""`elmo predict`: the predictions of a run for new text."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, final

from elmo_framework.commands.command import (
    Command,
    above_zero,
    add_device_argument,
    add_include_package,
    add_predictions_format_argument,
    add_resume_arguments,
    add_run_bilm_argument,
    component,
)
from elmo_framework.commands.inputs import run_bilm_inputs, run_inputs
from elmo_framework.io.outputs import Input, Output, is_stream

if TYPE_CHECKING:
    from elmo_framework.experiment.assembly import Assembly
    from elmo_framework.experiment.inputs import InputForm
    from elmo_framework.experiment.predict import Predicted, PredictionJob
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
  elmo predict runs/ner long.txt --output-file tags.jsonl --resume      after an interruption

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
        add_resume_arguments(parser, result="the output file")
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
            help="the tokenizer of raw text: a registered name, or JSON as in a config",
        )
        parser.add_argument(
            "--batch-size",
            type=above_zero,
            default=32,
            metavar="N",
            help="number of inputs in a batch; %(default)s by default",
        )
        add_run_bilm_argument(parser)
        add_device_argument(parser)
        add_include_package(parser)

    def outputs(self, arguments: Namespace) -> Sequence[Output]:
        """Return the file of the predictions."""
        path: Path | None = arguments.output_file
        return [] if path is None else [Output(path, "--output-file")]

    def inputs(self, arguments: Namespace) -> Sequence[Input]:
        """Return the run and the sentences."""
        run = [*run_inputs(arguments.run, "RUN"), *run_bilm_inputs(arguments.bilms)]
        return [*run, Input(arguments.file, "FILE")]

    def run(self, arguments: Namespace) -> int:
        """Predict and write."""
        path: Path | None = arguments.output_file
        if path is None:
            _check_no_file_flags(arguments)
            _predict_to(sys.stdout, arguments)
        elif is_stream(path):
            with path.open("w", encoding="utf-8") as stream:
                _predict_to(stream, arguments)
        else:
            _predict_to_file(path, arguments)
        return 0


def _predict_to(stream: TextIO, arguments: Namespace) -> None:
    from elmo_framework.experiment.predict import predict_to_stream

    with _piped(arguments.file) as piped:
        job = _job(_load(arguments), arguments, piped)
        # What is piped can be read once; a terminal shows how far the work is.
        is_counted = piped is None and not stream.isatty()
        predict_to_stream(job, stream, total=job.num_inputs() if is_counted else None)


def _predict_to_file(path: Path, arguments: Namespace) -> None:
    from elmo_framework.data.formats.text_files import spooled
    from elmo_framework.experiment.predict import predict_to_file
    from elmo_framework.io.resumable_output import ResumableOutput

    # Of a link, the file that it leads to is replaced.
    target = path.resolve() if path.is_symlink() else path
    output = ResumableOutput(target, flag="--output-file")
    with output.locked(), _piped(arguments.file) as piped, ExitStack() as copies:
        if not (arguments.resume and output.is_named()):
            output.check_overwritable(resume=arguments.resume, force=arguments.force)
        run = _load(arguments)
        copy = None if piped is None else copies.enter_context(spooled(piped))
        settings = _settings(run, arguments, copy)
        predict_to_file(_job(run, arguments, copy), output, settings, resume=arguments.resume)


def _load(arguments: Namespace) -> Assembly:
    from elmo_framework.experiment.load_run import load

    return load(
        arguments.run,
        device=arguments.device,
        packages=arguments.include_package,
        bilm=arguments.bilms,
    )


def _job(run: Assembly, arguments: Namespace, piped: BinaryIO | None) -> PredictionJob:
    from dataclasses import replace

    from elmo_framework.data.formats.text_files import STANDARD_INPUT
    from elmo_framework.experiment.predict import PredictionJob, input_format

    task = run.head().task
    pieces = input_format(task, arguments.predictions_format)
    reader = run.input_reader(reader=arguments.reader, tokenizer=arguments.tokenizer)
    path = arguments.file if piped is None else STANDARD_INPUT
    reader = replace(reader, standard_input=None if piped is sys.stdin.buffer else piped)

    def write(predictions: Iterable[Predicted], file: TextIO) -> None:
        if arguments.pretty:
            _print_pretty(task, predictions, file)
        else:
            file.writelines(pieces(predictions))

    return PredictionJob(
        run,
        lambda: reader.read(path, _form(arguments)),
        write,
        arguments.batch_size,
    )


def _settings(run: Assembly, arguments: Namespace, piped: BinaryIO | None) -> dict[str, Any]:
    """Return what predictions depend on; the format that they are written in may change."""
    from elmo_framework.experiment.predict import (
        digest_of_files,
        digest_of_stream,
        fingerprint,
    )

    return {
        "weights": fingerprint(run.model),
        "input": digest_of_files(arguments.file) if piped is None else digest_of_stream(piped),
        "form": _form(arguments),
        "reader": arguments.reader,
        "tokenizer": arguments.tokenizer,
        "batch_size": arguments.batch_size,
    }


def _piped(file: Path) -> AbstractContextManager[BinaryIO | None]:
    """Return the input where it is standard input or a pipe; None where it is a file."""
    from elmo_framework.data.formats.text_files import STANDARD_INPUT

    if file == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)
    return file.open("rb") if is_stream(file) else nullcontext()


def _check_no_file_flags(arguments: Namespace) -> None:
    """Refuse the flags of an output file where none is written.

    Raises:
        RunError: there is one.
    """
    from elmo_framework.errors import RunError

    for flag in ("force", "resume"):
        if getattr(arguments, flag):
            raise RunError(f"--{flag} needs --output-file")


def _print_pretty(
    task: HeadTask[Any, Any], predictions: Iterable[Predicted], output: TextIO
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
