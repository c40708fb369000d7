"""The data of an experiment: what is read, counted, and made into batches."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from elmo_framework.corpus.vocabulary_file import as_counts, read_vocabulary_file
from elmo_framework.data.source import BatchSource, Share, SourceContext
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.experiment.experiment import Experiment, Split, VocabularyOptions
from elmo_framework.model.model import Model, Prepared
from elmo_framework.tasks.language_modeling.corpus import Corpus


def read_examples(experiment: Experiment, split: Split) -> Iterable[Any]:
    """Return the examples of one of the data sets; those of training are a share of the whole.

    Raises:
        DataError: the data is not in the reader's format.
    """
    reader, path = experiment.reader(split), experiment.paths[split]
    if split != "train" or experiment.train_fraction == 1.0:
        return reader.read(path)
    examples = reader.read(path)
    if isinstance(examples, Corpus):
        numbers = chosen_groups(
            examples.num_sentences, experiment.train_fraction, experiment.random_seed
        )
        return examples.part(np.array(sorted(numbers)))
    group = experiment.model.factory.task.group
    num_groups = 1 + max((index for index, _ in _numbered(reader.read(path), group)), default=0)
    chosen = chosen_groups(num_groups, experiment.train_fraction, experiment.random_seed)
    return (example for index, example in _numbered(reader.read(path), group) if index in chosen)


def chosen_groups(num_groups: int, fraction: float, seed: int) -> set[int]:
    """Return which groups of examples a share of the data holds: at least one.

    With the same seed a smaller share is a part of a larger one.
    """
    order = list(range(num_groups))
    random.Random(seed).shuffle(order)
    return set(order[: max(1, round(fraction * num_groups))])


def _numbered(examples: Iterable[Any], group: Callable[[Any], object]) -> Iterator[tuple[int, Any]]:
    """Yield each example with the number of its group."""
    number, last = -1, None
    for example in examples:
        held = group(example)
        number += held is not last
        last = held
        yield number, example


def count_vocabularies(experiment: Experiment, model: type[Model[Any]]) -> Vocabularies:
    """Count the words and labels of the data that the experiment names for it.

    Raises:
        DataError: some of the data cannot be read.
    """
    total: dict[str, Counter[str]] = {}
    for split in experiment.vocabulary_splits:
        for name, counted in model.task.count(read_examples(experiment, split)).items():
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
    """Let the modules of a model do what can be done once for all sentences of the data.

    Raises:
        DataError: some of the data cannot be read.
    """
    parts = [part for part in model.modules() if isinstance(part, Prepared)]
    if not parts:
        return
    sentences = [
        words
        for split in experiment.used_splits
        for example in read_examples(experiment, split)
        for words in model.task.sentences(example)
    ]
    for part in parts:
        part.prepare(sentences, device)


def training_source(
    experiment: Experiment, model: Model[Any], vocabularies: Vocabularies, *, share: Share
) -> BatchSource[Any]:
    """Return the batches that a model is trained on."""
    context = _context(experiment, model, vocabularies, is_training=True, share=share)
    return experiment.train_loader.source(read_examples(experiment, "train"), context)


def evaluation_source(
    experiment: Experiment,
    model: Model[Any],
    vocabularies: Vocabularies,
    *,
    examples: Iterable[Any],
    share: Share,
) -> BatchSource[Any]:
    """Return the batches of examples that a model is scored on."""
    context = _context(experiment, model, vocabularies, is_training=False, share=share)
    return experiment.evaluation_loader.source(examples, context)


def _context(
    experiment: Experiment,
    model: Model[Any],
    vocabularies: Vocabularies,
    *,
    is_training: bool,
    share: Share,
) -> SourceContext:
    return SourceContext(
        collate=model.task.collator(vocabularies, model.indexers),
        num_tokens=model.task.num_tokens,
        seed=experiment.random_seed,
        is_training=is_training,
        share=share,
    )


def _limited(name: str, counted: Counter[str], options: VocabularyOptions) -> Counter[str]:
    """Return the items that the options keep, the most frequent if there is a largest number."""
    enough = {
        item: count for item, count in counted.items() if count >= options.min_count.get(name, 0)
    }
    by_frequency = sorted(enough.items(), key=lambda pair: (-pair[1], pair[0]))
    return Counter(dict(by_frequency[: options.max_vocab_size.get(name)]))
