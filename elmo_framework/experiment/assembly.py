"""An experiment with its model and vocabularies: train it, score it and predict with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, SupportsIndex, TypeAlias

import torch

from elmo_framework.bilm.files.export import export_files, save_bilm_of
from elmo_framework.data.batch import grouped, to_device
from elmo_framework.data.data_loader import BatchSource, SourceContext
from elmo_framework.data.inputs import Predicted, PredictionInput
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.tokenizer import Tokenizer, TokenizerConfig, build_tokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import RunError, error_path, shown
from elmo_framework.experiment.experiment import Experiment, Split
from elmo_framework.experiment.explain import Explainer, Explanation, Method
from elmo_framework.experiment.inputs import InputForm, InputReader, dataset_reader
from elmo_framework.experiment.prediction_record import Predictions
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.experiment.terms import ExampleTerms, ScoredFile
from elmo_framework.io.remote import as_path
from elmo_framework.model.head import Head, total
from elmo_framework.model.model import Model
from elmo_framework.model.part import parts_of
from elmo_framework.training.evaluator import Evaluator, model_output
from elmo_framework.training.process_group import ProcessGroup
from elmo_framework.training.seeds import seed_everything

Note: TypeAlias = Callable[[Any, Any], None]
"""Called with each batch and its output."""


@dataclass(frozen=True)
class Assembly:
    """An experiment with its model and vocabularies on a device.

    `Assembly.build` makes one for training; `load` makes one from a run, with its best weights and
    in evaluation mode.

    Attributes:
        experiment: built from its config.
        model: on the device.
        vocabularies: those that the model was built with.
        device: of this process.
        group: the processes that train or score together; by default this one alone.
        tokenizer: splits raw text where the dataset reader reads words, as the run recorded it;
            None if the run recorded none.
        run: that it was loaded from; None if it was not.
        reload: loads it again, as unpickling does; None if it was not loaded.
    """

    experiment: Experiment
    model: Model[Any]
    vocabularies: Vocabularies
    device: torch.device
    group: ProcessGroup = field(default_factory=ProcessGroup)
    tokenizer: TokenizerConfig | None = None
    run: RunDirectory | None = None
    reload: Callable[[], Assembly] | None = None

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return (self.reload, ()) if self.reload else super().__reduce_ex__(protocol)

    @classmethod
    def build(
        cls,
        experiment: Experiment,
        *,
        device: torch.device,
        vocabularies: Vocabularies | None = None,
        group: ProcessGroup | None = None,
    ) -> Assembly:
        """Build the model of an experiment with the initial weights of its seed.

        Parameters that match `trainer.no_grad` require no gradient.

        Args:
            experiment: built.
            device: of this process.
            vocabularies: of the model; by default counted in the data.
            group: the processes that train together; by default this one alone.

        Raises:
            DataError: some of the data cannot be read.
        """
        if vocabularies is None:
            vocabularies = experiment.count_vocabularies()
        seed_everything(experiment.random_seed)
        model = experiment.model.build(vocabularies=vocabularies).to(device)
        for pattern in experiment.trainer.no_grad:
            for name, parameter in model.named_parameters():
                if re.search(pattern, name):
                    parameter.requires_grad_(False)
        return cls(experiment, model, vocabularies, device, group or ProcessGroup())

    def precompute(self) -> None:
        """Let the parts of the model compute what they need once for all sentences of the data.

        Raises:
            DataError: some of the data cannot be read.
        """

        @cache
        def sentences() -> list[Sequence[str]]:
            return [*chain.from_iterable(map(self.sentences, self.experiment.used_splits))]

        def documents() -> list[Sequence[Sequence[str]]]:
            splits = map(self.experiment.examples, self.experiment.used_splits)
            return [*filter(None, map(self.model.task.document, chain.from_iterable(splits)))]

        for _, part in parts_of(self.model):
            part.precompute(sentences, self.device)
            part.precompute_documents(documents, self.device)

    def sentences(self, split: Split) -> Iterator[Sequence[str]]:
        """Yield the words of each sentence of a split.

        Raises:
            DataError: the data cannot be read.
        """
        for example in self.experiment.examples(split):
            yield from self.model.task.sentences(example)

    def training_source(self) -> BatchSource[Any]:
        """Return the batches of the training data; this rank's part of them."""
        examples = self.experiment.examples("train")
        return self.experiment.data_loader.source(examples, self._context(is_training=True))

    def evaluation_source(self, examples: Iterable[Any]) -> BatchSource[Any]:
        """Return the batches of examples to score; this rank's part of them."""
        context = self._context(is_training=False)
        return self.experiment.validation_data_loader.source(examples, context)

    def evaluator(self, split: Split) -> Evaluator | None:
        """Return what scores the model on a split, together with the other ranks.

        Returns:
            None if the config does not name the split.

        Raises:
            DataError: the data has a label that was not seen in training. Without this check, the
                first evaluation would fail after hours of training.
        """
        path = self.experiment.paths[split]
        if path is None:
            return None
        evaluator = self._evaluator(self.experiment.examples(split))
        with error_path(path):
            evaluator.sanity_check(self.model)
        return evaluator

    def evaluate(self, path: Path | str | None, *, note: Note | None = None) -> dict[str, float]:
        """Score the model on a file in the format of the run's evaluation reader.

        Args:
            path: the file; None for the test data of the config.
            note: see `Note`.

        Raises:
            DataError: the file cannot be read, or has a label that was not seen in training.
            RunError: the config has no test data.
        """
        return self.model.scores(self.sums(path, note=note))

    def sums(self, path: Path | str | None, *, note: Note | None = None) -> Mapping[str, float]:
        """Return what the scores of `evaluate` are made of, with the same arguments."""
        with self._examples(path) as examples:
            return self._evaluator(examples).sums(self.model, note)

    def score(
        self, path: Path | str | None, *, note: Note | None = None, split: Split = "test"
    ) -> ScoredFile:
        """Count as `sums` does, and return the predictions too.

        Args:
            path: as of `evaluate`.
            note: as of `evaluate`.
            split: which data of the config None means.

        Raises:
            RunError: the model predicts nothing.
        """
        head = self.head()
        outputs: dict[int, tuple[Any, dict[str, float]]] = {}

        def count(output: Any, batch: Any) -> Mapping[str, float]:
            predictions = head.predict(output, batch)
            terms = head.terms(predictions, output, batch)
            # By their examples, as a data loader may bring those of similar length together.
            pairs = zip(predictions, terms, strict=True)
            outputs.update(zip(map(id, batch.examples), pairs, strict=True))
            return total(terms, output)

        with self._examples(path, split) as lazy_examples:
            examples = list(lazy_examples)
            sums = self._evaluator(examples).sums(self.model, note, count=count)
        predictions = [(outputs[id(example)][0], example) for example in examples]
        terms = [outputs[id(example)][1] for example in examples]
        return ScoredFile(sums, predictions, ExampleTerms.of(terms, examples, head.task))

    def predict(
        self,
        inputs: Iterable[str | Mapping[str, Any]],
        *,
        batch_size: int = 32,
        tokenizer: Tokenizer | TokenizerConfig | None = None,
        top_k: int = 1,
    ) -> Predictions:
        """Predict for sentences or JSON objects; return a list with a JSON object for each.

        Keys that the task does not read, such as `id` or `label`, are copied from an input to its
        output, as `input_NAME` where the prediction has a value of that name.

        Args:
            inputs: a sentence means `{"sentence": ...}`. An object has the keys of the task, or of
                the run's dataset reader if that reads objects or tables.
            batch_size: number of inputs in a batch.
            tokenizer: splits raw text: a tokenizer, its registered name, or its config; by default
                that of the reader, of the run, of its biLM, or of the task.
            top_k: number of labels with their probabilities, for each text or each span, in `top`.

        Raises:
            RunError: the run is a pretrained biLM, which predicts nothing; or unknown tokenizer.
            ConfigError: the keys of the tokenizer are wrong.
            DataError: an object lacks a key that the task needs.
            TypeError: `inputs` is one sentence or one object.
            ValueError: `batch_size` or `top_k` is below 1.
        """
        if isinstance(inputs, str | Mapping):
            raise TypeError(f"pass a list, [{shown(inputs)}], not {shown(inputs)} alone")
        reader = self.input_reader(tokenizer=tokenizer)
        return self._outputs(reader.of_all(inputs), batch_size, top_k)

    def predict_file(
        self,
        path: Path | str,
        *,
        form: InputForm = "auto",
        reader: DatasetReader[Any] | str | dict[str, Any] | None = None,
        batch_size: int = 32,
        tokenizer: Tokenizer | TokenizerConfig | None = None,
        top_k: int = 1,
    ) -> Predictions:
        """Predict for a file, or for those of a folder or a pattern, as `elmo predict` does.

        Args:
            path: of data for the run's dataset reader, with or without labels; of JSON objects; or
                of plain text with one sentence per line.
            form: `auto` decides by the suffix and the first lines; `dataset` uses the reader;
                `sentences` reads plain text.
            reader: replaces that of the run: a reader, its registered name, or its config; then
                `auto` means `dataset`.
            batch_size: number of inputs in a batch.
            tokenizer: splits raw text, as of `predict`.
            top_k: as of `predict`.

        Raises:
            RunError: as of `predict`; or the reader is for another task.
            DataError: the file cannot be read, or its format is not known.
        """
        file_form: InputForm = "dataset" if reader is not None and form == "auto" else form
        inputs = self.input_reader(reader=reader, tokenizer=tokenizer)
        return self._outputs(inputs.read(as_path(path), file_form), batch_size, top_k)

    def input_reader(
        self,
        *,
        reader: DatasetReader[Any] | str | dict[str, Any] | None = None,
        tokenizer: Tokenizer | TokenizerConfig | None = None,
    ) -> InputReader:
        """Return a reader of inputs, with the arguments and the errors of `predict_file`."""
        task = self.head().task
        if reader is None:
            reader = self.experiment.validation_dataset_reader
        elif not isinstance(reader, DatasetReader):
            reader = dataset_reader(reader, task)
        if tokenizer is not None:
            tokenizer = build_tokenizer(tokenizer)
            if reader.tokenizer is not None:
                reader = copy(reader)
                reader.tokenizer = tokenizer
        default = self.experiment.tokenizer or self.tokenizer or task.default_tokenizer
        return InputReader(task, reader, tokenizer or reader.tokenizer or build_tokenizer(default))

    def predictions(
        self, inputs: Iterable[PredictionInput[Any]], *, batch_size: int, top_k: int = 1
    ) -> Iterator[Predicted]:
        """Yield what `predict` makes of inputs as the task knows it, each with its input."""
        for name, value in (("batch_size", batch_size), ("top_k", top_k)):
            if value < 1:
                raise ValueError(f"{name} is {value}; it must be above 0")
        return self._in_batches(self.head(), inputs, batch_size, top_k)

    def explain(
        self,
        inputs: Iterable[str | Mapping[str, Any]],
        *,
        method: Method = "integrated_gradients",
        steps: int = 50,
        label: str | None = None,
        word: str | int | None = None,
        tokenizer: Tokenizer | TokenizerConfig | None = None,
    ) -> list[Explanation]:
        """Show which words of each input speak for its label; `inputs` are those of `predict`.

        The other arguments and the errors are those of `Explainer`.
        """
        explain = self.explainer(method=method, steps=steps, label=label, word=word)
        reader = self.input_reader(tokenizer=tokenizer)
        return [explain(each.example) for each in reader.of_all(inputs)]

    def explainer(self, **options: Any) -> Explainer:
        """Return what explains examples of the task, by options of `Explainer`."""
        head, precision = self.head(), self.experiment.trainer.precision
        return Explainer(head, head.collator(self.vocabularies), self.device, precision, **options)

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

    def export(
        self, directory: Path, *, dtype: torch.dtype = torch.float32, force: bool = False
    ) -> list[Path]:
        """Write the biLM that the model trains, in bilm-tf's format; see `export_files`.

        Raises:
            RunError: the model trains no biLM, or several; or as of `export_files`.
            DataError: as of `export_files`.
        """
        source = "this model" if self.run is None else self.run.path
        with TemporaryDirectory() as folder:
            files = save_bilm_of(self.model, Path(folder), source=source)
            return export_files(files, directory, source=source, dtype=dtype, force=force)

    @contextmanager
    def _examples(self, path: Path | str | None, split: Split = "test") -> Iterator[Iterable[Any]]:
        """Yield the examples of a file, or of a split; errors in the block name the path."""
        experiment = self.experiment
        if path is not None:
            with error_path(as_path(path)):
                yield experiment.validation_dataset_reader.read(as_path(path))
        elif experiment.paths[split] is None:
            keys = f"neither {split}_data_path nor {split}_fraction"
            raise RunError(f"this run has no {split} data: its config has {keys}")
        else:
            with error_path(experiment.paths[split]):
                yield experiment.examples(split)

    def _evaluator(self, examples: Iterable[Any]) -> Evaluator:
        source, precision = self.evaluation_source(examples), self.experiment.trainer.precision
        return Evaluator(source, group=self.group, device=self.device, precision=precision)

    def _context(self, *, is_training: bool) -> SourceContext:
        return SourceContext(
            collate=self.model.collator(self.vocabularies),
            num_tokens=self.model.task.num_tokens,
            seed=self.experiment.random_seed,
            is_training=is_training,
            rank=self.group.rank,
            label=getattr(self.model.task, "label", lambda example: None),
        )

    def _outputs(
        self, inputs: Iterable[PredictionInput[Any]], batch_size: int, top_k: int
    ) -> Predictions:
        predicted = self.predictions(inputs, batch_size=batch_size, top_k=top_k)
        return Predictions.of(self.head().task, predicted, top_k=top_k)

    def _in_batches(
        self, head: Head[Any], inputs: Iterable[PredictionInput[Any]], batch_size: int, top_k: int
    ) -> Iterator[Predicted]:
        collate, precision = head.collator(self.vocabularies), self.experiment.trainer.precision
        for group in grouped(inputs, batch_size):
            batch = to_device(collate([each.example for each in group]), self.device)
            with model_output(head, batch, self.device, precision) as output:
                predicted = head.predict(output, batch)
                probabilities = head.annotation_probabilities(output, batch, predicted, top_k=top_k)
            for row in zip(predicted, group, probabilities, strict=True):
                yield Predicted(*row, head.temperature is not None)
