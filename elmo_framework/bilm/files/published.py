"""The biLMs that have a name: ours, which is in the package, and those of the authors of ELMo."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import torch

from elmo_framework.bilm.files.load import BiLmFiles, bilm_files
from elmo_framework.config.types import ReferencedPath
from elmo_framework.data.scripts import ScriptCheck, vocabulary_scripts
from elmo_framework.errors import DataError, allowed
from elmo_framework.io.download import local_file, local_path
from elmo_framework.io.files import path_hint
from elmo_framework.io.remote import RemotePath, as_path

BiLmName: TypeAlias = Literal["mini", "small", "medium", "original", "original-5.5b"]
BiLmLocation: TypeAlias = BiLmName | ReferencedPath
"""How a config names a biLM: by its name, or by the folder of it or of the run that trained it."""

PACKAGED: dict[str, Path] = {"mini": Path(__file__).parents[1] / "mini"}
"""The folders of the biLMs that need no download."""

PUBLISHED: dict[str, str] = {
    "small": "2x1024_128_2048cnn_1xhighway",
    "medium": "2x2048_256_2048cnn_1xhighway",
    "original": "2x4096_512_2048cnn_2xhighway",
    "original-5.5b": "2x4096_512_2048cnn_2xhighway_5.5B",
}
"""The English models published with the paper: our short names, and the published ones."""

_PREFIX = "https://allennlp.s3.amazonaws.com/models/elmo"


def files_at(options: str | Path, weights: str | Path) -> BiLmFiles:
    """Return the files of a biLM of bilm-tf's format, downloaded if they must be.

    Args:
        options: a path, a URL, or the folder or the name of a biLM.
        weights: the same.

    Raises:
        DataError: a file cannot be downloaded.
    """
    return BiLmFiles(
        local_file(file_place(options, "options.json")),
        local_file(file_place(weights, "weights.hdf5")),
    )


def file_place(place: str | Path, name: Literal["options.json", "weights.hdf5"]) -> str | Path:
    """Return the path or the URL of a file of a biLM with a name; a place as it is."""
    bilm, path = str(place), Path(place)
    # A file or a folder of this name goes before it.
    if bilm not in (*PACKAGED, *PUBLISHED) or path.is_file():
        return place
    if path.is_dir():
        files = bilm_files(path)
        return files.options if name == "options.json" else files.weights
    return _named_file(bilm, name)


def is_bilm_name(place: str | Path) -> bool:
    """Return whether a place is the name of a biLM; a folder of that name goes before it."""
    return place in (*PACKAGED, *PUBLISHED) and not as_path(place).is_dir()


def resolve_bilm(place: str | Path) -> BiLmFiles:
    """Return the files of a biLM, downloaded if they must be.

    Args:
        place: the folder of a biLM, the folder or the archive of the run that trained it, or the
            name of one: `mini`, which is part of the package, or a published one. A folder goes
            before a name.

    Raises:
        DataError: there is none, or it cannot be downloaded.
    """
    path, is_name = as_path(place), is_bilm_name(place)
    if isinstance(place, Path) or isinstance(path, RemotePath) or (path.exists() and not is_name):
        return bilm_files(path)
    if not is_name:
        raise DataError(
            f"{place!r} is neither a folder nor the name of a biLM; "
            f"{allowed(place, [*PACKAGED, *PUBLISHED])}{path_hint(path)}"
        )
    options, weights = _named_file(place, "options.json"), _named_file(place, "weights.hdf5")
    # On the device `meta` no weights are read, so that sizes are known before a long download.
    is_read = torch.get_default_device().type != "meta"
    return BiLmFiles(local_file(options), local_file(weights) if is_read else local_path(weights))


def _named_file(bilm: str, name: Literal["options.json", "weights.hdf5"]) -> str | Path:
    """Return the path or the URL of a file of a biLM with a name."""
    if bilm in PACKAGED:
        return PACKAGED[bilm] / name
    return f"{_PREFIX}/{PUBLISHED[bilm]}/elmo_{PUBLISHED[bilm]}_{name}"


def script_check(files: BiLmFiles) -> ScriptCheck:
    """Return a check that warns of text in scripts that a biLM was not trained on."""
    weights = {f"elmo_{name}_weights.hdf5" for name in PUBLISHED.values()}
    is_english = files.weights.name in weights
    scripts = frozenset({"Latin"}) if is_english else vocabulary_scripts(files.vocabulary)
    return ScriptCheck(scripts, str(files.weights.parent))
