"""The job of `elmo predict`: resumable predictions, and the formats they are written in."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import chain, islice, starmap
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import torch
from pydantic import TypeAdapter

from elmo_framework import console
from elmo_framework.console import ProgressBar, plural
from elmo_framework.data.batch import grouped
from elmo_framework.data.formats.text_files import matches
from elmo_framework.data.inputs import Predicted, PredictionInput
from elmo_framework.errors import RunError, allowed
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.prediction_record import json_of
from elmo_framework.io.files import digest
from elmo_framework.io.resumable_output import ResumableOutput, stoppable
from elmo_framework.model.model import Model
from elmo_framework.model.task import HeadTask

_SECONDS_WITHOUT_PROGRESS = 5.0
_CHUNK = 1 << 20


@dataclass(frozen=True)
class PredictionJob:
    """Inputs to predict for, the run that predicts, and the output format.

    Attributes:
        run: predicts.
        read: returns the inputs from their beginning, each time the same.
        write: writes predictions to a file.
        batch_size: number of inputs in a batch.
    """

    run: Assembly
    read: Callable[[], Iterator[PredictionInput[Any]]]
    write: Callable[[Iterable[Predicted], TextIO], None]
    batch_size: int

    def num_inputs(self) -> int:
        """Read all inputs once and count them.

        Raises:
            DataError: an input is wrong; known before hours of work rather than after.
        """
        total = 0
        with _progress("reading", None) as progress:
            for _ in self.read():
                progress.advance(1)
                total += 1
        return total

    def batches(self, inputs: Iterable[PredictionInput[Any]]) -> Iterator[list[Predicted]]:
        predictions = self.run.predictions(inputs, batch_size=self.batch_size)
        return grouped(predictions, self.batch_size)


def predict_to_stream(job: PredictionJob, stream: TextIO, *, total: int | None) -> None:
    """Write each batch as soon as it is predicted.

    Args:
        job: inputs, run and output format.
        stream: receives the predictions.
        total: the number of inputs, for the remaining time; None if unknown.

    Raises:
        DataError: an input is wrong.
    """
    delay = math.inf if stream.isatty() else _SECONDS_WITHOUT_PROGRESS  # nothing between the lines
    with _progress("predicting", total, delay) as progress:
        job.write(_flushed(job, stream, progress), stream)


def predict_to_file(
    job: PredictionJob, output: ResumableOutput, settings: Mapping[str, Any], *, resume: bool
) -> None:
    """Predict, and write the result once all predictions are there.

    The predictions themselves are kept, one line of a journal per batch, and not what is written of
    them. So every format can be continued, and an interrupted job may change the format.

    Args:
        job: inputs, run and output format.
        output: of the result; locked.
        settings: all that predictions depend on; a job with others is not continued.
        resume: whether to continue an interrupted job.

    Raises:
        DataError: an input is wrong, or the format refuses the predictions, which are kept.
        RunError: the interrupted job did something else, or the disk is full.
        StoppedError: the user interrupted; what is done is kept.
    """
    total = job.num_inputs()
    with stoppable(), output.repairable():
        if not output.begin(settings, resume=resume):
            output.result.touch()
        _predict(job, output, total)
        with output.result.open("w", encoding="utf-8") as file:
            job.write(_stored(job, output), file)
            file.flush()
            os.fsync(file.fileno())
        output.finish()


def _predict(job: PredictionJob, output: ResumableOutput, total: int) -> None:
    """Predict for the inputs that have no prediction yet."""
    adapter = prediction_adapter(job.run.head().task)
    done = min(total, job.batch_size * sum(1 for _ in output.done(json.loads)))
    if done:
        console.info(f"{done:,} of {plural(total, 'input')} predicted before")
    batches = job.batches(islice(job.read(), done, None))
    with _progress("predicting", total - done) as progress, output.journal("done.jsonl") as journal:
        for batch in batches:
            journal.mark_done(dump_predictions(adapter, [each.prediction for each in batch]))
            progress.advance(len(batch))


def _stored(job: PredictionJob, output: ResumableOutput) -> Iterator[Predicted]:
    adapter = prediction_adapter(job.run.head().task)
    predictions = chain.from_iterable(output.done(adapter.validate_json))
    return starmap(Predicted, zip(predictions, job.read(), strict=True))


def _flushed(job: PredictionJob, stream: TextIO, progress: ProgressBar) -> Iterator[Predicted]:
    """Yield predictions; what was written of a batch is flushed before the next one."""
    for batch in job.batches(job.read()):
        yield from batch
        stream.flush()
        progress.advance(len(batch))


def prediction_adapter(task: HeadTask[Any, Any]) -> TypeAdapter[list[Any]]:
    """Return what reads the JSON of a task's predictions: sequences are read as lists."""
    kind = task.prediction_type()
    return TypeAdapter(list[kind])  # type: ignore[valid-type]


def dump_predictions(adapter: TypeAdapter[list[Any]], predictions: Sequence[Any]) -> str:
    """Return predictions as one line of JSON; floats are exact, NaN is kept."""
    return json.dumps(adapter.dump_python(list(predictions), mode="json"), ensure_ascii=False)


def fingerprint(model: Model[Any]) -> str:
    """Return the SHA-256 of the weights of a model, and of the frozen biLMs that it reads."""
    total = sha256()
    for name, tensor in sorted(model.state_dict().items()):
        total.update(name.encode())
        total.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    for name, reference in sorted(model.references().items()):
        total.update(f"{name} {reference.digest}".encode())
    return total.hexdigest()


def digest_of_files(path: Path) -> str:
    """Return the SHA-256 of the content of a file, a folder, or the files of a pattern."""
    if path.is_file():
        return digest([path])
    paths = matches(path / "**" / "*" if path.is_dir() else path)
    return digest(sorted(file for file in paths if file.is_file()))


def digest_of_stream(stream: BinaryIO) -> str:
    """Return the SHA-256 of what is in a stream, from its beginning."""
    stream.seek(0)
    total = sha256()
    while chunk := stream.read(_CHUNK):
        total.update(chunk)
    return total.hexdigest()


def _progress(
    description: str, total: int | None, delay: float = _SECONDS_WITHOUT_PROGRESS
) -> ProgressBar:
    return ProgressBar(description, total=total, unit="input", delay=delay)


def prediction_format(
    task: HeadTask[Any, Any], name: str
) -> Callable[[Iterable[Predicted]], Iterator[str]]:
    """Return an output format by name: one that the task defines, or `jsonl`.

    In `jsonl` the fields of an input come before the predicted ones.

    Raises:
        RunError: the task has none of that name.
    """
    if name == "jsonl":
        return partial(_json_lines, task)
    if name not in task.formats:
        raise RunError(
            f"unknown format {name!r} for predictions of this run; "
            f"{allowed(name, ['jsonl', *task.formats])}"
        )
    write = task.formats[name]
    return lambda predictions: write((each.prediction, each.input.example) for each in predictions)


def _json_lines(task: HeadTask[Any, Any], predictions: Iterable[Predicted]) -> Iterator[str]:
    for each in predictions:
        yield json.dumps(json_of(task, each), ensure_ascii=False) + "\n"
