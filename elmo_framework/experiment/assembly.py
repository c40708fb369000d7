"""A finished run, to score and to predict with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from elmo_framework.config.parse import parse
from elmo_framework.config.registry import members
from elmo_framework.data.batch import grouped, to_device
from elmo_framework.data.inputs import PredictionInput
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.source import Rank
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError, RunError, allowed, shown
from elmo_framework.experiment.data_sets import evaluation_source
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.inputs import InputForm, InputReader, TokenizerConfig, dataset_reader
from elmo_framework.experiment.references import (
    BiLmPaths,
    locate,
    read_experiment,
    require_recorded,
)
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.metrics.metric import Table
from elmo_framework.model.head import Head
from elmo_framework.model.model import Model
from elmo_framework.model.task import HeadTask
from elmo_framework.model.weights import load_weights
from elmo_framework.training.evaluator import Evaluator, autocast, inference
from elmo_framework.training.process_group import ProcessGroup, choose_device

Note = Callable[[Any, Any], None]


@dataclass(frozen=True)
class ScoredFile:
    """What a model makes of a file.

    Attributes:
        sums: what its scores are made of.
        predictions: as the task knows them, each with its example, in the order of the file.
    """

    sums: Mapping[str, float]
    predictions: Sequence[tuple[Any, Any]]


@dataclass(frozen=True)
class LoadedRun:
    """A trained model with what it was trained with.

    Attributes:
        experiment: from the run's filled configuration.
        model: with the best weights, in evaluation mode.
        vocabularies: of the training data.
        device: where the model is.
        tokenizer: that raw text is split with where the dataset reader reads words, as the run
            recorded it; None where it could not tell.
    """

    experiment: Experiment
    model: Model[Any]
    vocabularies: Vocabularies
    device: torch.device
    tokenizer: TokenizerConfig | None = None

    def evaluate(self, path: Path | str, *, note: Note | None = None) -> dict[str, float]:
        """Score the model on a file in the format of the run's evaluation reader.

        Args:
            path: the file.
            note: told each batch and its output.

        Raises:
            DataError: the file cannot be read, or has a label that was not seen in training.
        """
        return self.model.scores(self.sums(path, note=note))

    def sums(self, path: Path | str, *, note: Note | None = None) -> Mapping[str, float]:
        """Return what the scores of `evaluate` are made of, with the same arguments."""
        with _named(Path(path)):
            return self._sums(self.experiment.evaluation_reader.read(Path(path)), note)

    def score(self, path: Path | str, *, note: Note | None = None) -> ScoredFile:
        """Count as `sums` does, and return the predictions besides.

        Raises:
            RunError: the model predicts nothing.
        """
        head = self.head()
        found: dict[int, Any] = {}

        def keep(batch: Any, output: Any) -> None:
            # By their examples, as a data loader may bring those of similar length together.
            found.update(zip(map(id, batch.examples), head.predict(output, batch), strict=True))
            if note is not None:
                note(batch, output)

        with _named(Path(path)):
            examples = list(self.experiment.evaluation_reader.read(Path(path)))
            sums = self._sums(examples, keep)
        return ScoredFile(sums, [(found[id(example)], example) for example in examples])

    def tables(self, sums: Mapping[str, float]) -> Mapping[str, Table]:
        """Return tables that say more than scores, by name: which labels are taken for which."""
        return self.model.tables(sums) if isinstance(self.model, Head) else {}

    def predict(
        self,
        inputs: Iterable[str | Mapping[str, Any]],
        *,
        batch_size: int = 32,
        tokenizer: Tokenizer | TokenizerConfig | None = None,
    ) -> list[dict[str, Any]]:
        """Predict for sentences or JSON objects; return a JSON object for each.

        Keys that the task does not read, such as `id` or `label`, are copied from an input to its
        output, as `input_NAME` where the prediction has a value of that name.

        Args:
            inputs: a sentence means `{"sentence": ...}`. An object has the keys of the task, or of
                the run's dataset reader if that reads objects or tables.
            batch_size: how many go through the model together.
            tokenizer: splits raw text: itself, its registered name, or what a config says of it;
                else the reader's, the run's or that of its biLM, and else the task's.

        Raises:
            RunError: the run is a pretrained biLM, which predicts nothing, or there is no such
                tokenizer.
            ConfigError: the keys of the tokenizer are wrong.
            DataError: an object has not what the task needs.
            TypeError: `inputs` is one sentence or one object.
            ValueError: `batch_size` is below 1.
        """
        if isinstance(inputs, str | Mapping):
            raise TypeError(f"pass a list, [{shown(inputs)}], not {shown(inputs)} alone")
        reader = self.input_reader(tokenizer=tokenizer)
        read = (_numbered(reader, held, at) for at, held in enumerate(inputs, start=1))
        return self._outputs(read, batch_size)

    def predict_file(
        self,
        path: Path | str,
        *,
        form: InputForm = "auto",
        reader: DatasetReader[Any] | str | dict[str, Any] | None = None,
        batch_size: int = 32,
        tokenizer: Tokenizer | TokenizerConfig | None = None,
    ) -> list[dict[str, Any]]:
        """Predict for a file, or for those of a folder or a pattern, as `elmo predict` does.

        Args:
            path: of data in the format of the run's dataset reader, whose labels may be missing; of
                JSON objects; or of plain sentences, one on each line.
            form: `auto` tells from the suffix and the first lines which of these it is; `dataset`
                takes the reader, `sentences` takes each line for a sentence.
            reader: of data, in place of the run's: itself, its registered name, or what a config
                says of it; then `auto` means `dataset`.
            batch_size: how many go through the model together.
            tokenizer: splits raw text, as of `predict`.

        Raises:
            RunError: as of `predict`; or the reader is for another task.
            DataError: the file cannot be read, or its format is not known.
        """
        chosen: InputForm = "dataset" if reader is not None and form == "auto" else form
        inputs = self.input_reader(reader=reader, tokenizer=tokenizer).read(Path(path), chosen)
        return self._outputs(inputs, batch_size)

    def input_reader(
        self,
        *,
        reader: DatasetReader[Any] | str | dict[str, Any] | None = None,
        tokenizer: Tokenizer | TokenizerConfig | None = None,
    ) -> InputReader:
        """Return what makes inputs of sentences, objects and files, with those of `predict_file`.

        Raises:
            RunError: as there.
        """
        task = self.head().task
        if reader is None:
            reader = self.experiment.evaluation_reader
        elif not isinstance(reader, DatasetReader):
            reader = dataset_reader(reader, task)
        if tokenizer is not None and not isinstance(tokenizer, Tokenizer):
            tokenizer = build_tokenizer(tokenizer)
        if tokenizer is not None and reader.tokenizer is not None:
            reader = copy(reader)
            reader.tokenizer = tokenizer
        return InputReader(task, reader, tokenizer or self._tokenizer(task, reader))

    def predictions(
        self, inputs: Iterable[PredictionInput[Any]], *, batch_size: int
    ) -> Iterator[tuple[Any, PredictionInput[Any]]]:
        """Yield what `predict` makes of inputs as the task knows it, each with its input."""
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; it must be above 0")
        return self._in_batches(self.head(), inputs, batch_size)

    def head(self) -> Head[Any]:
        """Return the model as one that predicts.

        Raises:
            RunError: it predicts nothing.
        """
        if not isinstance(self.model, Head):
            raise RunError(
                f"this run is a {type(self.model).__name__}, which predicts no labels; "
                "`elmo evaluate` scores it"
            )
        return self.model

    def _sums(self, examples: Iterable[Any], note: Note | None) -> Mapping[str, float]:
        source = evaluation_source(
            self.experiment, self.model, self.vocabularies, examples=examples, rank=Rank()
        )
        evaluator = Evaluator(
            source,
            group=ProcessGroup(Rank()),
            device=self.device,
            precision=self.experiment.trainer.precision,
        )
        return evaluator.sums(self.model, note)

    def _outputs(
        self, inputs: Iterable[PredictionInput[Any]], batch_size: int
    ) -> list[dict[str, Any]]:
        to_json = self.head().task.to_json
        pairs = self.predictions(inputs, batch_size=batch_size)
        return [each.output(to_json(prediction, each.example)) for prediction, each in pairs]

    def _tokenizer(self, task: HeadTask[Any, Any], reader: DatasetReader[Any]) -> Tokenizer:
        own = reader.tokenizer or self.experiment.tokenizer
        return own or build_tokenizer(self.tokenizer or task.default_tokenizer)

    def _in_batches(
        self, head: Head[Any], inputs: Iterable[PredictionInput[Any]], batch_size: int
    ) -> Iterator[tuple[Any, PredictionInput[Any]]]:
        collate = head.task.collator(self.vocabularies, head.indexers)
        for group in grouped(inputs, batch_size):
            batch = collate([each.example for each in group])
            yield from zip(self._predict(head, batch), group, strict=True)

    def _predict(self, head: Head[Any], batch: Any) -> Sequence[Any]:
        with inference(head), head.fresh_state():
            moved = to_device(batch, self.device)
            with autocast(self.device, self.experiment.trainer.precision):
                output = head(moved)
            return head.predict(output, moved)


def load(
    path: Path | str,
    *,
    device: str = "auto",
    packages: Sequence[str] = (),
    bilm: BiLmPaths = (),
) -> LoadedRun:
    """Load a run.

    Args:
        path: its folder. Of a run that is not finished the best weights so far are taken.
        device: `auto`, `cpu` or `cuda`.
        packages: plugins besides those that the run was trained with.
        bilm: where a biLM is that the run was trained with, or several are; each is recognized by
            its digest. Without it they are looked for where they were, seen from the run, and then
            at their old paths.

    Raises:
        RunError: there is no such device, no run with weights, or they are those of another
            model; a plugin is gone, or its biLM is gone or not the one that it was trained on.
    """
    chosen = choose_device(device)
    run = RunDirectory.existing(Path(path))
    located = locate(run, read_experiment(run, packages), bilm)
    experiment = located.build()
    vocabularies = Vocabularies.load(run.vocabulary)
    model = _build(run, experiment, vocabularies)
    require_recorded(run, located, model)
    load_weights(model, run.load_weights(), source=str(run.weights))
    recorded = _recorded_tokenizer(run)
    return LoadedRun(experiment, model.to(chosen).eval(), vocabularies, chosen, recorded)


def _build(run: RunDirectory, experiment: Experiment, vocabularies: Vocabularies) -> Model[Any]:
    """Build the model of a run, for weights that follow.

    Raises:
        RunError: a model that it reads, such as a biLM, is gone.
    """
    try:
        return experiment.model.build(vocabularies=vocabularies, weights_follow=True)
    except DataError as error:
        if error.path is None or error.path.exists():
            raise
        raise RunError(
            f"{run.path}: this run needs the model that is recorded at {error.path}, and nothing "
            "is there; put it back"
        ) from error


def build_tokenizer(wanted: TokenizerConfig) -> Tokenizer:
    """Return a tokenizer.

    Raises:
        RunError: there is none of that name.
        ConfigError: its keys are wrong.
    """
    known = members(Tokenizer)
    if isinstance(wanted, str) and wanted not in known:
        raise RunError(f"{wanted!r} is no tokenizer; {allowed(wanted, known)}")
    return parse(Tokenizer, wanted, source="tokenizer").build()


def _recorded_tokenizer(run: RunDirectory) -> TokenizerConfig | None:
    """Return the tokenizer that a run recorded, if it is registered here."""
    recorded = run.read_metadata().get("tokenizer")
    name = recorded.get("type") if isinstance(recorded, dict) else recorded
    return recorded if isinstance(name, str) and name in members(Tokenizer) else None


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say of which file an error is, where it does not say so itself."""
    try:
        yield
    except DataError as error:
        if error.path is not None:
            raise
        raise DataError(str(error), path=path) from error


def _numbered(reader: InputReader, held: object, number: int) -> PredictionInput[Any]:
    try:
        return reader.of(held)
    except DataError as error:
        raise DataError(f"input {number}: {error}") from error
