"""Recognize configs and archives of AllenNLP, without what translates them.

All commands that read a config or a run import this module, so it needs no rule of translation.
"""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from elmo_framework.errors import dotted
from elmo_framework.io.archives import is_archive
from elmo_framework.io.remote import as_path

CONFIG_NAME, WEIGHTS_NAME = "config.json", "weights.th"
"""The members that each archive of AllenNLP has."""

VOCABULARY_FOLDER = "vocabulary"
_WEIGHTS = (WEIGHTS_NAME, "best.th")

DAMAGED = (tarfile.TarError, EOFError, zlib.error)
"""What is raised for an archive that cannot be unpacked."""

_MARKS: Mapping[str, tuple[str, ...]] = {
    "": ("iterator", "validation_iterator", "distributed", "pytorch_seed", "numpy_seed"),
    "dataset_reader": ("token_indexers", "lazy"),
    "model": ("text_field_embedder", "source_embedder", "contextualizer", "bert_model"),
    "data_loader": ("batch_sampler", "num_workers"),
    "trainer": ("cuda_device", "use_amp", "num_serialized_models_to_keep", "shuffle"),
}
"""Keys of AllenNLP that no config of ours has, by their block."""

_OURS = ("embedder", "context_layers", "token_encoder")


def mark_of_allennlp(raw: Mapping[str, Any]) -> str | None:
    """Return the path of a key by which a config is AllenNLP's; None for a config of ours.

    A config that names plugins, or whose model has a key of ours, is ours.
    """
    own = raw.get("model")
    if "plugins" in raw or (isinstance(own, dict) and any(key in own for key in _OURS)):
        return None
    for name, keys in _MARKS.items():
        values = raw.get(name) if name else raw
        for key in keys:
            if isinstance(values, dict) and key in values:
                return dotted(name, key)
    return None


def serialized_files(folder: Path) -> Mapping[str, Path]:
    """Return what an archive of a serialization directory of AllenNLP has; nothing of others.

    Returns:
        The paths by the names of members; the weights are the best of the training.
    """
    weights = next((path for name in _WEIGHTS if (path := folder / name).is_file()), None)
    if weights is None or not (folder / CONFIG_NAME).is_file():
        return {}
    vocabulary = sorted((folder / VOCABULARY_FOLDER).glob("*.txt"))
    return {
        CONFIG_NAME: folder / CONFIG_NAME,
        WEIGHTS_NAME: weights,
        **{f"{VOCABULARY_FOLDER}/{path.name}": path for path in vocabulary},
    }


def is_allennlp_archive(place: Path | str) -> bool:
    """Return whether a place is a trained model of AllenNLP, whole or not; a URL is downloaded.

    It is an archive or a serialization directory.
    """
    path = Path(os.fspath(as_path(place)))
    if path.is_dir():
        return bool(serialized_files(path))
    if not path.is_file() or is_archive(path):
        return False
    try:
        with tarfile.open(path, "r:*") as tar:
            names = ("/".join(PurePosixPath(member.name).parts) for member in tar)
            return any(name in (CONFIG_NAME, WEIGHTS_NAME) for name in names)
    except DAMAGED:
        return False
