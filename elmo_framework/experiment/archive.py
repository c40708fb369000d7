"""Archives of runs: one file with all that predicting needs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.config.types import Lazy
from elmo_framework.errors import RunError
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.load_run import read_experiment
from elmo_framework.experiment.model_card import model_card, shorten_paths
from elmo_framework.experiment.references import (
    BiLmPaths,
    external_models,
    locate,
    recorded_models,
)
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.io.archives import MANIFEST, local_folder, unpack, write_archive
from elmo_framework.io.hub import hub_place, upload
from elmo_framework.io.outputs import BILM_PARTS
from elmo_framework.model.weights import save_tensors

_MODELS = "models"
_RECORDS = (
    "config.jsonnet",
    "config.json",
    "translated.jsonnet",
    "filled_config.json",
    "metadata.json",
    "README.md",
)
_WORKING_DIRECTORY = re.compile(r'\n *"working_directory": "[^"]*",')
_OTHER_FORMATS = (".zip", ".7z", ".rar", ".tar.bz2", ".tar.xz", ".tar.zst", ".tbz2", ".txz")
_OMITTED = ("checkpoints", "log", ".lock", _MODELS, MANIFEST)
"""Parts of a run that only training and TensorBoard read, and what an archive makes anew."""


def archive_run(
    path: Path | str,
    archive: Path,
    *,
    with_bilm: bool = True,
    license_name: str | None = None,
    packages: Sequence[str] = (),
    bilm: BiLmPaths = (),
) -> None:
    """Write a run as one file, with its model card and the models that it reads.

    `load` takes the file in place of the folder. It needs neither the run nor the data nor the
    biLM, and predicts the same, bit for bit, on the same kind of machine. The training cannot be
    resumed from it. Of the machine's paths it has the parts below the working directory of the
    training, and otherwise the names of the files.

    Args:
        path: the folder of the run, or another archive. Of a run that is not finished the best
            weights so far are written.
        archive: the path of the file, such as `model.tar.gz`; an existing one is replaced.
        with_bilm: whether biLMs and transformers in other folders are included.
        license_name: of the model card; see `model_card`.
        packages: plugins to import in addition to those of the run.
        bilm: where the biLMs of the run are, if they were moved.

    Raises:
        RunError: there is no run with weights, or its biLM is not found; or the name of the archive
            has the suffix of another format.
        DataError: a file is damaged.
    """
    if archive.name.lower().endswith(_OTHER_FORMATS):
        raise RunError(f"{archive}: an archive is a gzipped tar file; name it like model.tar.gz")
    run = RunDirectory.existing(path)
    files = run_files(run, license_name=license_name)
    if with_bilm:
        files |= _models(run, locate(run, read_experiment(run, packages), bilm))
    files |= _without_machine(run, files)
    if run.weights.is_file():
        write_archive(files, archive)
        return
    with TemporaryDirectory() as folder:
        weights = Path(folder) / run.weights.name
        save_tensors(run.load_weights(), weights)
        write_archive({**files, weights.name: weights}, archive)


def push(
    source: Path | str,
    place: str,
    *,
    with_bilm: bool = True,
    license_name: str | None = None,
    is_private: bool = False,
    packages: Sequence[str] = (),
    bilm: BiLmPaths = (),
) -> str:
    """Upload a run, as the files of its archive, or a biLM to the Hugging Face Hub.

    Args:
        source: a run, as for `archive_run`, or the folder of a biLM.
        place: `hf://OWNER/NAME[@BRANCH]`.
        with_bilm: as of `archive_run`.
        license_name: as of `archive_run`; not for a biLM.
        is_private: whether a repository that is created is private.
        packages: as of `archive_run`.
        bilm: as of `archive_run`.

    Returns:
        The place with the new commit.

    Raises:
        RunError: as of `archive_run`; or the extra `hub` is not installed.
        DataError: there is no biLM; or the upload fails.
    """
    hub_place(place)
    folder = local_folder(source)
    if not RunDirectory(folder).config.is_file():
        files = resolve_bilm(folder)
        if license_name is not None:
            raise RunError("--license is for the model card of a run; a biLM has its own")
        parts = [*BILM_PARTS, "README.md"]
        return upload(files.weights.parent, place, names=parts, is_private=is_private)
    with TemporaryDirectory() as temporary:
        archive, unpacked = Path(temporary) / "model.tar.gz", Path(temporary) / "files"
        archive_run(
            folder,
            archive,
            with_bilm=with_bilm,
            license_name=license_name,
            packages=packages,
            bilm=bilm,
        )
        unpack(archive, unpacked)
        return upload(unpacked, place, names=None, is_private=is_private)


def run_files(run: RunDirectory, *, license_name: str | None = None) -> dict[str, Path | bytes]:
    """Return the files of a run that others need, by their names, with its model card."""
    files: dict[str, Path | bytes] = {}
    for part in run.parts():
        if part.name in _OMITTED:
            continue
        inner = sorted(part.rglob("*")) if part.is_dir() else [part]
        paths = (path for path in inner if path.is_file())
        files |= {path.relative_to(run.path).as_posix(): path for path in paths}
    files[run.model_card.name] = model_card(run, license_name=license_name).encode()
    return files


def _models(run: RunDirectory, experiment: Lazy[Experiment]) -> dict[str, Path | bytes]:
    """Return the models that a run reads, and metadata by which they are found there."""
    files: dict[str, Path | bytes] = {}
    references: dict[str, Any] = {}
    folders: dict[object, str] = {}
    recorded = recorded_models(run)
    for model in external_models(experiment):
        folder = folders.setdefault(tuple(model.files.values()), f"{_MODELS}/{len(folders)}")
        files |= {f"{folder}/{name}": path for name, path in model.contents().items()}
        places = model.packed(folder, recorded.get(model.path))
        record = {key: asdict(place) for key, place in places.items()}
        references[model.path] = {"sha256": model.digest(), "files": record}
    if references:
        metadata = run.read(run.metadata) | {"references": references}
        written = json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"
        files[run.metadata.name] = written.encode()
    return files


def _without_machine(
    run: RunDirectory, files: Mapping[str, Path | bytes]
) -> dict[str, Path | bytes]:
    """Return the configs, the metadata and the model card without the paths of the machine."""
    place = run.read(run.metadata).get("working_directory", "")
    below = rf"""(?<![^\s='"(\[]){re.escape(place)}/""" if place.count("/") > 1 else "(?!)"
    changed: dict[str, Path | bytes] = {}
    for name in _RECORDS:
        if name in files:
            content = files[name]
            text = (content if isinstance(content, bytes) else content.read_bytes()).decode()
            text = shorten_paths(re.sub(below, "", text))
            changed[name] = _WORKING_DIRECTORY.sub("", text).encode()
    return changed
