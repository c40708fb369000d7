"""`elmo predict`: the predictions of a run for new text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TextIO, final

from elmo_framework.commands.command import (
    Combine,
    Command,
    EnsembleRuns,
    PredictionsFormat,
    WeightsFile,
    load_runs,
)
from elmo_framework.commands.inputs import run_bilm_inputs, run_inputs
from elmo_framework.config.arguments import (
    AboveZero,
    Argument,
    ComponentConfig,
    Device,
    Force,
    Plugins,
    RunBiLms,
)
from elmo_framework.errors import RunError
from elmo_framework.io.outputs import BRAT, Input, Output, format_by_suffix, is_stream

if TYPE_CHECKING:
    from elmo_framework.data.inputs import Predicted
    from elmo_framework.experiment.assembly import Assembly
    from elmo_framework.experiment.inputs import InputForm
    from elmo_framework.experiment.predict import PredictionJob
    from elmo_framework.model.task import HeadTask


@final
@dataclass(frozen=True, kw_only=True)
class Predict(Command):
    """Predict for data files, JSON lines or plain sentences; JSON lines or colors out.

    Attributes:
        run_folder: the folder or the archive of a finished run, or an archive of AllenNLP.
        file: data, or text: a line that begins with { is a JSON object, every other line a
            sentence; blank lines are left out; - or nothing reads standard input.
        use_dataset_reader: read FILE with the run's dataset reader, whatever it looks like.
        reader: read FILE with another dataset reader: a registered name, or JSON as in a config.
        sentences: read FILE as plain text with one sentence per line, whatever it looks like.
        output_file: write there, not to standard output.
        force: overwrite the output file if it exists.
        top_k: number of labels with their probabilities, for each text or span; %(default)s by
            default.
        pretty: for reading: what was found, marked in the text; in colors on a terminal.
        tokenizer: the tokenizer of raw text: a registered name, or JSON as in a config.
        batch_size: number of inputs in a batch; %(default)s by default.
    """

    name = "predict"
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
  elmo predict runs/ner new.csv --output-file spans.csv --top-k 3
  elmo predict runs/ner notes.jsonl --output-file notes --format brat
  elmo predict runs/ner-1 sentences.txt --ensemble runs/ner-2 runs/ner-3

A suffix such as .csv, .tsv, .jsonl, .conll or .conllu, or the first lines, show that a file is
data. Then the dataset reader of the run reads it; labels may be missing, and may be any. JSON
objects, and the rows of a table, may also have the keys of the task, such as "sentence". What the
task does not read ("id", "label", ...) is copied to the output: as "input_label" where the
prediction has a "label" itself.
"""

    run_folder: Annotated[Path, Argument("RUN", is_positional=True)]
    file: Annotated[Path, Argument("FILE", is_positional=True)] = Path("-")
    use_dataset_reader: Annotated[bool, Argument(excludes="reading")] = False
    reader: Annotated[ComponentConfig, Argument(excludes="reading")] = None
    sentences: Annotated[bool, Argument(excludes="reading")] = False
    output_file: Annotated[Path | None, Argument("FILE")] = None
    force: Force = False
    resume: bool = False
    predictions_format: Annotated[
        PredictionsFormat, Argument(flags=("--format", "--predictions-format"))
    ] = None
    top_k: AboveZero = 1
    pretty: Annotated[bool, Argument(excludes="format of predictions")] = False
    tokenizer: ComponentConfig = None
    batch_size: AboveZero = 32
    weights_file: WeightsFile = None
    ensemble: EnsembleRuns = ()
    combine: Combine = None
    run_bilms: RunBiLms = ()
    device: Device = "auto"
    packages: Plugins = ()

    def outputs(self) -> Sequence[Output]:
        if self.output_file is None:
            return []
        return [Output(self.output_file, "--output-file", is_folder=self._format == BRAT)]

    def inputs(self) -> Sequence[Input]:
        ensemble = [each for run in self.ensemble for each in run_inputs(run, "--ensemble")]
        run = [*run_inputs(self.run_folder, "RUN"), *ensemble, *run_bilm_inputs(self.run_bilms)]
        weights = [] if self.weights_file is None else [Input(self.weights_file, "--weights-file")]
        return [*run, *weights, Input(self.file, "FILE")]

    def run(self) -> int:
        path = self.output_file
        if path is None:
            self._check_no_file_flags()
            self._predict_to(sys.stdout)
        elif is_stream(path):
            with path.open("w", encoding="utf-8") as stream:
                self._predict_to(stream)
        else:
            self._predict_to_file(path)
        return 0

    def _predict_to(self, stream: TextIO) -> None:
        from elmo_framework.experiment.predict import predict_to_stream

        with _piped(self.file) as piped:
            job = self._job(self._load(), piped)
            # What is piped can be read once; a terminal shows how far the work is.
            is_counted = piped is None and not stream.isatty()
            predict_to_stream(job, stream, total=job.num_inputs() if is_counted else None)

    def _predict_to_file(self, path: Path) -> None:
        from elmo_framework.data.formats.text_files import spooled
        from elmo_framework.experiment.predict import predict_to_file
        from elmo_framework.experiment.prediction_formats import check_brat_folder
        from elmo_framework.io.resumable_output import ResumableOutput

        # Of a link, the file that it leads to is replaced.
        target = path.resolve() if path.is_symlink() else path
        check = check_brat_folder if self._format == BRAT else None
        output = ResumableOutput(target, flag="--output-file", check_replaceable=check)
        with output.locked(), _piped(self.file) as piped, ExitStack() as copies:
            if not (self.resume and output.is_named()):
                output.check_overwritable(resume=self.resume, force=self.force)
            run = self._load()
            copy = None if piped is None else copies.enter_context(spooled(piped))
            settings = self._settings(run, copy)
            predict_to_file(self._job(run, copy), output, settings, resume=self.resume)

    def _load(self) -> Assembly:
        return load_runs(
            self.run_folder,
            self.ensemble,
            self.combine,
            device=self.device,
            packages=self.packages,
            bilm=self.run_bilms,
            weights_file=self.weights_file,
        )

    def _job(self, run: Assembly, piped: BinaryIO | None) -> PredictionJob:
        from elmo_framework.data.formats.text_files import STANDARD_INPUT
        from elmo_framework.experiment.predict import PredictionJob
        from elmo_framework.experiment.prediction_formats import PredictionWriter

        task = run.head().task
        document = "predictions" if piped is not None else self.file.name.partition(".")[0]
        writer = PredictionWriter.of(run, self._format, top_k=self.top_k, document=document)
        reader = run.input_reader(reader=self.reader, tokenizer=self.tokenizer)
        path = self.file if piped is None else STANDARD_INPUT
        reader = replace(reader, standard_input=None if piped is sys.stdin.buffer else piped)

        def write(predictions: Iterable[Predicted], file: TextIO) -> None:
            if self.pretty:
                _print_pretty(task, predictions, file)
            else:
                file.writelines(writer.pieces(predictions))

        if writer.is_folder and self.output_file is None:
            raise RunError(f"{BRAT} writes a folder of files; name it with --output-file")
        return PredictionJob(
            run,
            lambda: reader.read(path, self._form()),
            write,
            self.batch_size,
            self.top_k,
            writer.files if writer.is_folder else None,
        )

    @property
    def _format(self) -> str:
        return self.predictions_format or format_by_suffix(self.output_file)

    def _settings(self, run: Assembly, piped: BinaryIO | None) -> dict[str, Any]:
        """Return what predictions depend on; the format that they are written in may change."""
        from elmo_framework.experiment.predict import (
            digest_of_files,
            digest_of_stream,
            fingerprint,
        )

        temperature, threshold = run.head().temperature, run.head().fitted_threshold
        return {
            "weights": fingerprint(run.model),
            **({} if temperature is None else {"temperature": temperature}),
            **({} if threshold is None else {"threshold": threshold}),
            "input": digest_of_files(self.file) if piped is None else digest_of_stream(piped),
            "form": self._form(),
            "reader": self.reader,
            "tokenizer": self.tokenizer,
            "batch_size": self.batch_size,
            **({} if self.top_k == 1 else {"top_k": self.top_k}),
            **({"combine": self.combine or "mean"} if self.ensemble else {}),
        }

    def _form(self) -> InputForm:
        if self.sentences:
            return "sentences"
        is_dataset = self.use_dataset_reader or self.reader is not None
        return "dataset" if is_dataset else "auto"

    def _check_no_file_flags(self) -> None:
        """Raise RunError for the flags of an output file where none is written."""
        for flag in ("force", "resume"):
            if getattr(self, flag):
                raise RunError(f"--{flag} needs --output-file")


def _piped(file: Path) -> AbstractContextManager[BinaryIO | None]:
    """Return the input where it is standard input or a pipe; None where it is a file."""
    from elmo_framework.data.formats.text_files import STANDARD_INPUT

    if file == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)
    return file.open("rb") if is_stream(file) else nullcontext()


def _print_pretty(
    task: HeadTask[Any, Any], predictions: Iterable[Predicted], output: TextIO
) -> None:
    from rich.console import Console

    console = Console(file=output)
    for each in predictions:
        console.print(task.pretty(each.prediction, each.input.example), soft_wrap=True)
