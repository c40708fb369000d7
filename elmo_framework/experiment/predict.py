"""The job of `elmo predict`: resumable predictions."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import torch
from pydantic import TypeAdapter

from elmo_framework import console
from elmo_framework.console import ProgressBar, plural
from elmo_framework.data.batch import grouped
from elmo_framework.data.formats.text_files import matches
from elmo_framework.data.inputs import Predicted, PredictionInput
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.io.files import digest, remove, remove_folder
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
        top_k: number of labels with their probabilities.
        files: returns names and texts of the files of a folder; None if a single file is written.
    """

    run: Assembly
    read: Callable[[], Iterator[PredictionInput[Any]]]
    write: Callable[[Iterable[Predicted], TextIO], None]
    batch_size: int
    top_k: int = 1
    files: Callable[[Iterable[Predicted]], Iterator[tuple[str, str]]] | None = None

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
        if not total:
            console.info("there are no inputs to predict for")
        return total

    def batches(self, inputs: Iterable[PredictionInput[Any]]) -> Iterator[list[Predicted]]:
        predictions = self.run.predictions(inputs, batch_size=self.batch_size, top_k=self.top_k)
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
        _write(job, output)
        output.finish()


def _write(job: PredictionJob, output: ResumableOutput) -> None:
    """Write the result, over what an interrupted job left of it, maybe in another format."""
    stored = _stored(job, output)
    if job.files is None:
        remove_folder(output.result)
        with _synced(output.result) as file:
            job.write(stored, file)
        return
    remove(output.result)
    output.result.mkdir()
    for name, text in job.files(stored):
        with _synced(output.result / name) as file:
            file.write(text)


@contextmanager
def _synced(path: Path) -> Iterator[TextIO]:
    """Open a file to write, without changes of line ends; it is on disk when the block ends."""
    with path.open("w", encoding="utf-8", newline="") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _predict(job: PredictionJob, output: ResumableOutput, total: int) -> None:
    """Predict for the inputs that have no prediction yet."""
    adapter = prediction_adapter(job.run.head().task)
    done = min(total, job.batch_size * sum(1 for _ in output.done(json.loads)))
    if done:
        console.info(f"{done:,} of {plural(total, 'input')} predicted before")
    batches = job.batches(islice(job.read(), done, None))
    with _progress("predicting", total - done) as progress, output.journal("done.jsonl") as journal:
        for batch in batches:
            journal.mark_done(dump_predictions(adapter, batch))
            progress.advance(len(batch))


def _stored(job: PredictionJob, output: ResumableOutput) -> Iterator[Predicted]:
    load = partial(load_predictions, prediction_adapter(job.run.head().task))
    stored = chain.from_iterable(output.done(load))
    is_calibrated = job.run.head().temperature is not None
    for (prediction, probabilities), each in zip(stored, job.read(), strict=True):
        yield Predicted(prediction, each, probabilities, is_calibrated)


def _flushed(job: PredictionJob, stream: TextIO, progress: ProgressBar) -> Iterator[Predicted]:
    """Yield predictions; what was written of a batch is flushed before the next one."""
    for batch in job.batches(job.read()):
        yield from batch
        stream.flush()
        progress.advance(len(batch))


def prediction_adapter(task: HeadTask[Any, Any]) -> TypeAdapter[list[Any]]:
    """Return what reads the JSON of a task's predictions; sequences are read as lists."""
    kind = task.prediction_type()
    return TypeAdapter(list[kind])  # type: ignore[valid-type]


def dump_predictions(adapter: TypeAdapter[list[Any]], batch: Sequence[Predicted]) -> str:
    """Return predictions as one line of JSON; floats are exact, NaN is kept."""
    stored = {
        "predictions": adapter.dump_python([each.prediction for each in batch], mode="json"),
        "probabilities": [list(map(dict, each.probabilities)) for each in batch],
    }
    return json.dumps(stored, ensure_ascii=False)


def load_predictions(
    adapter: TypeAdapter[list[Any]], line: str
) -> list[tuple[Any, Sequence[Mapping[str, float]]]]:
    """Return the predictions of a line, each with its probabilities.

    Raises:
        ValueError: the line is damaged.
    """
    match json.loads(line):
        case {"predictions": list(predictions), "probabilities": list(probabilities)}:
            pass
        case list(predictions):  # of a version without probabilities
            probabilities = [()] * len(predictions)
        case _:
            raise ValueError("no predictions")
    return list(zip(adapter.validate_python(predictions), probabilities, strict=True))


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
