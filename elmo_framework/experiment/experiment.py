"""Experiment: the top level of every config."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, final

from annotated_types import Ge, Gt, Le, Lt

from elmo_framework.bilm.files.published import BiLmLocation
from elmo_framework.config.registry import Registrable
from elmo_framework.config.signature import component_class
from elmo_framework.config.types import Count, Default, ExistingPath, Lazy, TextPath
from elmo_framework.corpus.vocabulary_file import as_counts, read_vocabulary_file
from elmo_framework.data.data_loader import BucketDataLoader, DataLoader
from elmo_framework.data.formats.text_files import NO_EXAMPLE, require_nonempty
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.subsample import split_by_unit, subsample
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Vocabularies, count_characters
from elmo_framework.errors import RunError
from elmo_framework.model.model import Model
from elmo_framework.model.task import HeadTask, Task
from elmo_framework.training.options import GradientDescent

Split: TypeAlias = Literal["train", "validation", "test"]


@dataclass(frozen=True)
class VocabularyOptions:
    """Which of the counted items the vocabularies hold, by the name of the vocabulary.

    Attributes:
        min_count: the minimum count of an item; `characters` are those of the words.
        max_vocab_size: the number of most frequent items to keep.
        directory: the `vocabulary` folder of an earlier run, or of AllenNLP, whose counts are
            added.
        words_file: a vocabulary file of bilm-tf, whose words and their order replace those counted;
            counting is then not needed (`datasets_for_vocab_creation: []`).
    """

    min_count: Annotated[dict[str, Count], Default({})]
    max_vocab_size: Annotated[dict[str, Count], Default({})]
    directory: ExistingPath | None = None
    words_file: TextPath | None = None

    @property
    def limits(self) -> set[str]:
        """The names of the vocabularies that are limited."""
        return {*self.min_count, *self.max_vocab_size}

    def limited(self, name: str, counted: Counter[str]) -> Counter[str]:
        """Return the items of a vocabulary that are kept, the most frequent first."""
        frequent = {
            item: count for item, count in counted.items() if count >= self.min_count.get(name, 0)
        }
        by_frequency = sorted(frequent.items(), key=lambda pair: (-pair[1], pair[0]))
        return Counter(dict(by_frequency[: self.max_vocab_size.get(name)]))


@dataclass(frozen=True)
class InitFrom:
    """A run or a biLM whose weights training starts from; words and labels keep their ids.

    Attributes:
        path: the folder of an earlier run of the same model, finished or not: its best weights.
            Or, for pretraining, the folder or the name of a biLM: its weights, and those of its
            softmax if they are next to them.
        reset_optimizer: whether the optimizer starts over; otherwise it continues with its state at
            those weights, if the run saved it.
    """

    path: BiLmLocation
    reset_optimizer: bool = False


@final
class Experiment(Registrable):
    """One job: data, a model, and how it is trained.

    Args:
        dataset_reader: reads the examples.
        train_data_path: the training data: a file, a folder or a pattern such as `lm-*.txt`.
        model: the model to train.
        validation_data_path: the data that selects the best weights.
        test_data_path: the data that `evaluate_on_test` scores at the end.
        test_fraction: in place of a test_data_path, the fraction of the training data that is test
            data: it is not trained on, nor counted for vocabularies by default. The sentences,
            premises, passages or documents are selected by a hash of their text, so they are the
            same for all seeds; `train_fraction` is drawn from the others.
        validation_fraction: the same in place of a validation_data_path.
        validation_dataset_reader: reads the validation and the test data; else `dataset_reader`.
        test_dataset_reader: reads the test data, where it differs from the validation data in more
            than its path, such as in the rows of one table.
        data_loader: how examples become batches.
        validation_data_loader: the same for the validation and the test data.
        trainer: how the model is trained.
        init_from: an earlier run, or a biLM, whose weights training starts from. Steps, epochs
            and data are those of the new run.
        vocabulary: which of the counted words and labels are kept.
        datasets_for_vocab_creation: the data whose words and labels are counted. Name what is held
            out as well if a label is so rare that the other examples may lack it: data with labels
            that were not counted cannot be scored.
        evaluate_on_test: whether the best weights are scored on the test data at the end.
        train_fraction: fraction of the training examples that is used; for semantic roles, of the
            sentences with all their predicates. A smaller fraction of the same seed is a
            part of a larger one.
        random_seed: fixes the initial weights, dropout, and the order of the data.
        plugins: modules that register your components.
        tokenizer: splits raw text for `elmo predict` where the dataset reader reads words; with
            null as the text of the model's biLM was split, or else by spaCy's rules for English.
    """

    def __init__(
        self,
        dataset_reader: DatasetReader[Any],
        train_data_path: TextPath,
        model: Lazy[Model[Any]],
        data_loader: Annotated[DataLoader, Default({})],
        trainer: Annotated[GradientDescent, Default({})],
        vocabulary: Annotated[VocabularyOptions, Default({})],
        datasets_for_vocab_creation: Annotated[list[Split], Default(["train"])],
        plugins: Annotated[list[str], Default([])],
        validation_data_path: TextPath | None = None,
        test_data_path: TextPath | None = None,
        test_fraction: Annotated[float, Gt(0), Lt(1)] | None = None,
        validation_fraction: Annotated[float, Gt(0), Lt(1)] | None = None,
        validation_dataset_reader: DatasetReader[Any] | None = None,
        test_dataset_reader: DatasetReader[Any] | None = None,
        validation_data_loader: DataLoader | None = None,
        init_from: InitFrom | None = None,
        evaluate_on_test: bool = False,
        train_fraction: Annotated[float, Gt(0), Le(1)] = 1.0,
        random_seed: Annotated[int, Ge(0), Lt(2**62)] = 13370,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        task = component_class(model.factory).task
        held_out: dict[Split, tuple[float | None, Path | None]] = {
            "test": (test_fraction, test_data_path),
            "validation": (validation_fraction, validation_data_path),
        }
        _check_held_out(task, held_out)
        test_data_path = train_data_path if test_fraction else test_data_path
        if validation_fraction:
            validation_data_path = train_data_path
        if evaluate_on_test and test_data_path is None:
            raise ValueError("evaluate_on_test needs a test_data_path or a test_fraction")
        if validation_data_path is None:
            _require_no_validation(trainer)
        _check_balanced(data_loader, task)
        self.paths: dict[Split, Any] = {
            "train": train_data_path,
            "validation": validation_data_path,
            "test": test_data_path,
        }
        for split in datasets_for_vocab_creation:
            if self.paths[split] is None:
                raise ValueError(
                    f"datasets_for_vocab_creation names {split!r}, but {split}_data_path is not set"
                )
        self.dataset_reader = dataset_reader
        self.validation_dataset_reader = validation_dataset_reader or dataset_reader
        self.test_dataset_reader = test_dataset_reader or self.validation_dataset_reader
        self.data_loader = data_loader
        self.validation_data_loader = validation_data_loader or data_loader
        self.model, self.trainer, self.vocabulary = model, trainer, vocabulary
        self.init_from = init_from
        self.datasets_for_vocab_creation = datasets_for_vocab_creation
        self.evaluate_on_test, self.train_fraction = evaluate_on_test, train_fraction
        self._hash_ranges = _hash_ranges(test_fraction, validation_fraction)
        self.random_seed, self.tokenizer, self._task = random_seed, tokenizer, task

    def reader(self, split: Split) -> DatasetReader[Any]:
        readers = {"train": self.dataset_reader, "test": self.test_dataset_reader}
        return readers.get(split, self.validation_dataset_reader)

    def files(self) -> dict[Path, Sequence[Path]]:
        """Return the files of each data path, as its reader finds them.

        Raises:
            DataError: a path names none.
        """
        splits = [split for split, path in self.paths.items() if path]
        return {self.paths[split]: self.reader(split).files(self.paths[split]) for split in splits}

    def with_batch_size(self, batch_size: int) -> Experiment:
        """Return the same experiment, which scores data in batches of so many examples.

        Raises:
            RunError: its data loader does not make batches of examples.
        """
        loader = self.validation_data_loader
        if not isinstance(loader, BucketDataLoader):
            raise RunError("its data loader makes no batches of examples; leave out the batch size")
        resized = copy(self)
        resized.validation_data_loader = loader.with_batch_size(batch_size)
        return resized

    def examples(self, split: Split) -> Iterable[Any]:
        """Return the examples of one of the data sets; of training, those of `train_fraction`.

        Raises:
            DataError: the data is not in the reader's format, or what is held out leaves nothing.
        """
        if split == "train" and self.train_fraction < 1:
            return self._training_subsample
        return self._all_examples(split)

    def count_vocabularies(self) -> Vocabularies:
        """Count the words and labels of `datasets_for_vocab_creation`.

        Raises:
            DataError: some of the data cannot be read.
        """
        task, options = self._task, self.vocabulary
        counts: dict[str, Counter[str]] = {}
        for split in self.datasets_for_vocab_creation:
            for name, counted in task.count(self.examples(split)).items():
                counts.setdefault(name, Counter()).update(counted)
        if options.directory is not None:
            earlier = Vocabularies.load(options.directory)
            for name in earlier.names:
                counts.setdefault(name, Counter()).update(earlier.counted(name))
        if options.words_file is not None:
            counts["words"] = as_counts(read_vocabulary_file(options.words_file))
        if "words" in counts and options.limits & {"words", "characters"}:
            # Counted before the limits: afterwards, rare words would be missing.
            counts.setdefault("characters", count_characters(counts["words"]))
        return Vocabularies(
            {name: options.limited(name, counted) for name, counted in counts.items()}
        )

    def _all_examples(self, split: Split) -> Iterable[Any]:
        """Return the examples of a data set, without those held out; before `train_fraction`."""
        path = self.paths[split]
        examples = self.reader(split).read(path)
        # Readers of plugins need not check this. A corpus in memory is passed on unchanged.
        if isinstance(examples, Iterator | list | tuple):
            examples = require_nonempty(examples, NO_EXAMPLE, path)
        if split not in self._hash_ranges:
            return examples
        assert isinstance(self._task, HeadTask), self._task
        start, end = self._hash_ranges[split]
        part = split_by_unit(examples, self._task.sampling_unit, start=start, end=end)
        name = "training" if split == "train" else split
        message = f"test_fraction or validation_fraction leaves no {name} data of this data"
        return require_nonempty(part, message, path)

    @cached_property
    def _training_subsample(self) -> Iterable[Any]:
        """The examples of `train_fraction`; in memory, since choosing them reads all data."""
        return subsample(
            lambda: self._all_examples("train"),
            self._task.group,
            fraction=self.train_fraction,
            seed=self.random_seed,
        )

    @property
    def used_splits(self) -> list[Split]:
        """The data sets that a training reads: test data only where it is scored on them."""
        splits: list[Split] = ["train", "validation"]
        splits += ["test"] if self.evaluate_on_test else []
        return [split for split in splits if self.paths[split] is not None]


def _hash_ranges(
    test_fraction: float | None, validation_fraction: float | None
) -> dict[Split, tuple[float, float]]:
    """Return the hashes of each split of the training data; empty if nothing is held out of it."""
    if not (test_fraction or validation_fraction):
        return {}
    first, last = test_fraction or 0.0, 1 - (validation_fraction or 0.0)
    ranges: dict[Split, tuple[float, float]] = {"train": (first, last)}
    ranges |= {"test": (0.0, first)} if test_fraction else {}
    ranges |= {"validation": (last, 1.0)} if validation_fraction else {}
    return ranges


def _check_held_out(
    task: Task[Any, Any],
    held_out: Mapping[Split, tuple[float | None, Path | None]],
) -> None:
    """Raise ValueError if what is held out contradicts the rest of the config.

    Args:
        task: of the model.
        held_out: the fraction and the data path of the test and the validation data.
    """
    for split, (fraction, path) in held_out.items():
        key = f"{split}_fraction"
        if fraction is None:
            continue
        if not isinstance(task, HeadTask):
            raise ValueError(
                f"{key} is not for pretraining; hold text out with `elmo prepare --held-out`"
            )
        if path is not None:
            raise ValueError(f"{key} and {split}_data_path exclude each other; set one to null")
    if sum(fraction or 0.0 for fraction, _ in held_out.values()) >= 1:
        raise ValueError("test_fraction and validation_fraction leave no training data")


def _check_balanced(loader: DataLoader, task: Task[Any, Any]) -> None:
    """Raise ValueError if examples are balanced by labels that they do not have."""
    has_label = isinstance(task, HeadTask) and type(task).label is not HeadTask.label
    if isinstance(loader, BucketDataLoader) and loader.balanced and not has_label:
        raise ValueError("data_loader.balanced needs a model with one label for each example")


def _require_no_validation(trainer: GradientDescent) -> None:
    needing = [
        key
        for key, needs in (
            ("trainer.patience", trainer.patience is not None),
            ("trainer.learning_rate_scheduler", trainer.learning_rate_scheduler.needs_scores),
        )
        if needs
    ]
    if needing:
        raise ValueError(f"{' and '.join(needing)} needs a validation_data_path")
