"""The data of an experiment: what is read, counted, and made into batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import torch

from elmo_framework.corpus.vocabulary_file import as_counts, read_vocabulary_file
from elmo_framework.data.source import BatchSource, Rank, SourceContext
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.experiment.experiment import Experiment, VocabularyOptions
from elmo_framework.model.model import Model
from elmo_framework.model.part import parts_of


def count_vocabularies(experiment: Experiment, model: type[Model[Any]]) -> Vocabularies:
    """Count the words and labels of the data that the experiment names for it.

    Raises:
        DataError: some of the data cannot be read.
    """
    total: dict[str, Counter[str]] = {}
    for split in experiment.vocabulary_splits:
        for name, counted in model.task.count(experiment.examples(split)).items():
            total.setdefault(name, Counter()).update(counted)
    if experiment.vocabulary.directory is not None:
        earlier = Vocabularies.load(experiment.vocabulary.directory)
        for name in earlier.names:
            total.setdefault(name, Counter()).update(earlier.counted(name))
    if experiment.vocabulary.words_file is not None:
        total["words"] = as_counts(read_vocabulary_file(experiment.vocabulary.words_file))
    return Vocabularies(
        {name: _limited(name, counted, experiment.vocabulary) for name, counted in total.items()}
    )


def prepare_model(experiment: Experiment, model: Model[Any], device: torch.device) -> None:
    """Let the parts of a model compute what they need once for all sentences of the data.

    Raises:
        DataError: some of the data cannot be read.
    """

    @cache
    def sentences() -> list[Sequence[str]]:
        return [
            words
            for split in experiment.used_splits
            for example in experiment.examples(split)
            for words in model.task.sentences(example)
        ]

    for _, part in parts_of(model):
        part.precompute(sentences, device)


def training_source(
    experiment: Experiment, model: Model[Any], vocabularies: Vocabularies, *, rank: Rank
) -> BatchSource[Any]:
    """Return the batches that a model is trained on."""
    context = _context(experiment, model, vocabularies, is_training=True, rank=rank)
    return experiment.train_loader.source(experiment.examples("train"), context)


def evaluation_source(
    experiment: Experiment,
    model: Model[Any],
    vocabularies: Vocabularies,
    *,
    examples: Iterable[Any],
    rank: Rank,
) -> BatchSource[Any]:
    """Return the batches of examples that a model is scored on."""
    context = _context(experiment, model, vocabularies, is_training=False, rank=rank)
    return experiment.evaluation_loader.source(examples, context)


def _context(
    experiment: Experiment,
    model: Model[Any],
    vocabularies: Vocabularies,
    *,
    is_training: bool,
    rank: Rank,
) -> SourceContext:
    return SourceContext(
        collate=model.task.collator(vocabularies, model.indexers),
        num_tokens=model.task.num_tokens,
        seed=experiment.random_seed,
        is_training=is_training,
        rank=rank,
    )


def _limited(name: str, counted: Counter[str], options: VocabularyOptions) -> Counter[str]:
    """Return the items that the options keep, the most frequent if there is a largest number."""
    enough = {
        item: count for item, count in counted.items() if count >= options.min_count.get(name, 0)
    }
    by_frequency = sorted(enough.items(), key=lambda pair: (-pair[1], pair[0]))
    return Counter(dict(by_frequency[: options.max_vocab_size.get(name)]))
