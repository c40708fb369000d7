"""Write a commented config for a data file, with sizes that fit the data and the machine."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.config.load import Config
from elmo_framework.config.registry import member_classes
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.check import check_config
from elmo_framework.experiment.experiment import Experiment, Split
from elmo_framework.io.files import cache_root
from elmo_framework.layers.bilm_source import open_layers
from elmo_framework.model.head import Head
from elmo_framework.model.task import HeadTask
from elmo_framework.scaffold.data_statistics import DataStatistics
from elmo_framework.scaffold.language import tokenizer_of
from elmo_framework.scaffold.recognize import RecognizedData, TaskName
from elmo_framework.scaffold.rendering import as_jsonnet, template

HEADS: Mapping[TaskName, str] = {
    "classification": "basic_classifier",
    "multi_label": "multi_label_classifier",
    "regression": "text_regression",
    "entailment": "esim",
    "tagging": "crf_tagger",
    "question_answering": "bidaf_self_attention",
}
"""The head of each task."""

_TEMPLATES: Mapping[str, str] = {
    "multi_label_classifier": "classification",
    "text_regression": "classification",
    "esim_regression": "entailment",
}
"""Heads with the network of another task, and so with its template."""

_METRICS: Mapping[TaskName, str] = {"multi_label": "+f1-measure-micro", "regression": "+pearson"}
"""The metric that selects the best epoch, where it is not the accuracy."""

_RARE = 15
"""A label with fewer examples may occur in held-out examples only."""

MAX_WORDS = 500
"""Longer texts are truncated: they take time and memory, and add little to a label."""

_MAX_EPOCHS, _WORDS_TO_READ = 10, 10_000_000
"""Pretraining from random weights reads so many words, and a text at most ten times."""

_FRACTIONS = (0.1, 0.2, 0.3)
_FEW, _SMALL, _LARGE, _HUGE = 300, 1_000, 20_000, 100_000
"""Numbers of examples below or above which sizes and times of training change."""

_BATCH_SIZES = {200: 4, 1_000: 8, 5_000: 16, math.inf: 32}
"""Batch sizes for fewer examples than these: a small data set needs many updates all the same."""

_CHECKED_SPLITS = 5_000


@dataclass(frozen=True)
class DataPaths:
    """Where the data is.

    Attributes:
        training: a file or a folder.
        validation: the file or folder next to it that is called so, if any.
        test: the same for test data.
    """

    training: Path
    validation: Path | None = None
    test: Path | None = None

    @classmethod
    def of(cls, path: Path) -> DataPaths:
        """Find validation and test data next to training data by their names."""
        validation = _sibling(path, ("dev", "valid", "validation", "val"))
        return cls(path, validation, _sibling(path, ("test",)))


def _sibling(path: Path, names: Sequence[str]) -> Path | None:
    if "train" not in path.name:
        return None
    candidates = [
        path.with_name(path.name.replace(word, name))
        for word in ("training", "train")
        for name in names
    ]
    return next(
        (
            each
            for each in candidates
            if each != path and each.exists() and each.is_dir() == path.is_dir()
        ),
        None,
    )


def head_task(data: RecognizedData) -> HeadTask[Any, Any]:
    """Return the task of the head that a config is written with."""
    return member_classes(Head)[_head(data)].task


def _head(data: RecognizedData) -> str:
    is_pair = data.reader["type"] == "pair_regression_json"
    return "esim_regression" if is_pair else HEADS[data.task]


def render_config(
    paths: DataPaths,
    data: RecognizedData,
    statistics: DataStatistics,
    *,
    bilm: str,
    language: str,
    command: str,
) -> str:
    """Return the text of a config that passes `elmo check`.

    Args:
        paths: of the data.
        data: what the data was taken for.
        statistics: of the training data.
        bilm: the folder or the name of a biLM.
        language: a code of spaCy, or `characters`.
        command: the line that wrote the config, for its comment.

    Raises:
        ConfigError: the config has problems.
        RunError: the data is so small or so uniform that nothing is left to hold out.
    """
    values = _values(paths, data, statistics, bilm=bilm, language=language)
    start = 0 if statistics.num_examples >= _FEW else 1
    for fraction in _FRACTIONS[start:]:
        text = _rendered(
            _TEMPLATES.get(_head(data), data.task),
            **values,
            command=command,
            fraction=fraction,
        )
        experiment = _checked(text)
        if statistics.num_examples > _CHECKED_SPLITS or _has_all_parts(experiment):
            return text
    raise RunError(
        f"{paths.training}: no examples can be held out, since too many of them have the same text"
    )


def render_pretraining(
    data: RecognizedData,
    *,
    corpus: Path,
    num_words: int,
    is_english: bool,
    prepare: str,
    command: str,
) -> str:
    """Return the text of a config that pretrains on the output of `elmo prepare`.

    Args:
        data: what the text was taken for.
        corpus: the output folder of `elmo prepare`.
        num_words: of the text.
        is_english: whether `mini` can be trained further.
        prepare: the command that makes the corpus.
        command: the line that wrote the config.
    """
    num_epochs = max(1, min(_MAX_EPOCHS, _WORDS_TO_READ // num_words))
    return _rendered(
        "language_modeling",
        recognized=data,
        corpus=corpus,
        num_words=num_words,
        num_epochs=1 if is_english else num_epochs,
        is_english=is_english,
        prepare=prepare,
        command=command,
    )


def _checked(text: str) -> Experiment:
    """Check a config as `elmo check` does.

    Raises:
        ConfigError: it has problems.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "config.jsonnet")
        path.write_text(text, encoding="utf-8")
        _, experiment = check_config(Config.load(path)).unwrap()
    return experiment


def _has_all_parts(experiment: Experiment) -> bool:
    splits: list[Split] = ["train", "validation", "test"]
    try:
        return all(
            any(True for _ in experiment.examples(split))
            for split in splits
            if experiment.paths[split] is not None
        )
    except DataError as error:
        if error.line is not None:
            raise
        return False


def _values(
    paths: DataPaths,
    data: RecognizedData,
    statistics: DataStatistics,
    *,
    bilm: str,
    language: str,
) -> dict[str, Any]:
    num_words = sum(statistics.lengths)
    num_examples = statistics.num_examples
    is_small, is_large = num_examples < _SMALL, num_examples >= _LARGE
    batch_size = next(size for limit, size in _BATCH_SIZES.items() if num_examples < limit)
    return {
        "paths": paths,
        "recognized": data,
        "head": _head(data),
        "metric": _METRICS.get(data.task, "+accuracy"),
        "statistics": statistics,
        "bilm": bilm,
        "language": language,
        "is_english": language == "en",
        "tokenizer": tokenizer_of(language),
        "reader": _reader(data, statistics, language),
        "counts_labels": statistics.rarest is not None and statistics.rarest < _RARE,
        "batch_size": batch_size,
        "hidden_size": 200 if is_large and torch.cuda.is_available() else 100,
        "is_small": is_small,
        "is_tiny": num_examples < _FEW,
        "num_epochs": 30 if is_small else 5 if is_large else 20,
        "patience": 10 if is_small else 3 if is_large else 5,
        "evaluate_every": num_examples // batch_size // 4 if num_examples >= _HUGE else None,
        "cache": _cache(bilm, num_words),
    }


def is_truncated(data: RecognizedData, statistics: DataStatistics) -> bool:
    """Return whether the config reads only the first `MAX_WORDS` words of a text."""
    is_text = data.reader["type"].startswith(("text_", "multi_label"))
    return is_text and statistics.longest > MAX_WORDS


def _reader(data: RecognizedData, statistics: DataStatistics, language: str) -> str:
    """Return the dataset reader as jsonnet."""
    reader = dict(data.reader)
    if data.task != "tagging":
        if reader["type"] != "sst_tokens":
            reader["tokenizer"] = tokenizer_of(language)
        if is_truncated(data, statistics):
            reader["max_sequence_length"] = MAX_WORDS
    if statistics.has_spans:
        reader["coding_scheme"] = "BIOUL"
    return as_jsonnet(reader, indent=2, first=len("dataset_reader: ,"))


def _cache(bilm: str, num_words: int) -> tuple[str, int]:
    """Return where layers are cached, and the bytes of those of some words."""
    source = open_layers(resolve_bilm(bilm), requires_grad=False, cache="none")
    num_bytes = 2 * num_words * source.num_layers * source.dim  # in float16
    root = cache_root()
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    fits = 4 * num_bytes < shutil.disk_usage(existing).free
    return ("disk" if fits else "none"), num_bytes


def _rendered(name: str, **values: Any) -> str:
    """Fill in a template; the lines that its blocks leave blank are dropped."""
    text = template(f"{name}.jsonnet").render(values)
    return "".join(f"{line}\n" for line in text.split("\n") if line.strip())
