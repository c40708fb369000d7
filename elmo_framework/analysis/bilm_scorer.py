"""Score a biLM on text, without a run: its perplexities, by the softmax in its folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, final

import torch

from elmo_framework import components
from elmo_framework.bilm.files.load import BiLmFiles, holds_bilm, read_bilm
from elmo_framework.bilm.files.published import PACKAGED, PUBLISHED, resolve_bilm, script_check
from elmo_framework.bilm.files.softmax import check_softmax_published, read_softmax_words
from elmo_framework.config.parse import parse
from elmo_framework.config.plugins import load_plugins
from elmo_framework.corpus.manifest import MANIFEST, SPLITS
from elmo_framework.corpus.vocabulary_file import as_counts
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.tokenizer import TokenizerConfig
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError, RunError, allowed
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.io.archives import local_folder
from elmo_framework.io.remote import RemotePath, as_path
from elmo_framework.layers.transformer_files import is_transformer
from elmo_framework.training.process_group import choose_device

NUM_ROWS, _NUM_STEPS = 16, 20
"""Of a batch: `fine_tune.jsonnet`'s, and what the model card of `mini` was scored with."""

_NUM_CHECKED = 1_000
"""Sentences of a text whose script is looked at."""


@final
class _TextReader(DatasetReader[Any]):
    """Reads plain text or a part of a prepared corpus; warns of text in an unexpected script."""

    def __init__(self, reader: DatasetReader[Any], files: BiLmFiles) -> None:
        self.reader, self.files_of_bilm = reader, files

    def read(self, path: Path) -> Iterable[Any]:
        if (path / MANIFEST).is_file():
            splits = " or ".join(str(path / split) for split in SPLITS)
            raise DataError(f"this is a whole corpus; evaluate {splits}", path=path)
        is_prepared = path.name in SPLITS and (path.parent / MANIFEST).is_file()
        reader = self.reader
        if is_prepared:
            reader = parse(DatasetReader, "prepared_corpus", source="corpus").build()
        first = islice(reader.read(path), _NUM_CHECKED)
        script_check(self.files_of_bilm).read(example.words for example in first)
        return reader.read(path)


def is_bilm(place: str) -> bool:
    """Return whether a place is the folder or the name of a biLM, and not a run directory.

    Raises:
        RunError: it could be a name, and is none; or it is the folder of a transformer.
    """
    path, names = as_path(place), (*PACKAGED, *PUBLISHED)
    if isinstance(path, RemotePath) or path.exists():
        folder = local_folder(path)
        if is_transformer(folder):
            raise RunError(f"{place} is a transformer; `elmo score` scores text with it")
        return not RunDirectory(folder).config.is_file() and holds_bilm(folder)
    if path.name == place and place not in names:
        raise RunError(
            f"{place!r} is neither the folder of a run or a biLM nor the name of a biLM; "
            f"{allowed(place, names)}"
        )
    return place in names


def load_bilm_scorer(
    place: str,
    *,
    device: str = "auto",
    num_rows: int = NUM_ROWS,
    tokenizer: TokenizerConfig = "whitespace",
    packages: Sequence[str] = (),
) -> Assembly:
    """Load a biLM with its softmax, to score text.

    Args:
        place: its folder or its name.
        device: `auto`, `cpu` or `cuda`.
        num_rows: of text that are read at the same time. Each starts from zeros once, and then
            continues from sentence to sentence.
        tokenizer: splits lines into words, as those of the vocabulary are.
        packages: plugins that hold parts of it.

    Raises:
        DataError: the biLM or its softmax is missing, or a file is damaged.
        RunError: the device does not exist.
        ConfigError: unknown tokenizer.
    """
    torch_device = choose_device(device)
    components.load()
    load_plugins(packages, asked_by="--include-package")
    check_softmax_published(place)
    files = resolve_bilm(place)
    vocabularies = Vocabularies({"words": as_counts(read_softmax_words(files))})
    with torch.device("meta"):
        description = read_bilm(files).description
    config = {
        "dataset_reader": {"type": "language_modeling", "tokenizer": tokenizer},
        "train_data_path": str(files.weights.parent),
        "model": {"type": "bilm", **description},
        "data_loader": {"type": "windows", "batch_size": num_rows, "unroll_steps": _NUM_STEPS},
    }
    experiment = parse(Experiment, config, source=place).build()
    experiment.validation_dataset_reader = _TextReader(experiment.dataset_reader, files)
    model = experiment.model.build(vocabularies=vocabularies, weights_follow=True)
    model.load_bilm(place)
    return Assembly(experiment, model.to(torch_device).eval(), vocabularies, torch_device)
