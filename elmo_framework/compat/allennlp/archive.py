"""Import trained models of AllenNLP: `model.tar.gz` becomes a run."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, final

import h5py  # type: ignore[import-untyped]
import numpy as np
import torch
from torch import Tensor

from elmo_framework import components
from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.compat.allennlp.character_tables import fitted_tables
from elmo_framework.compat.allennlp.embedders import published_name
from elmo_framework.compat.allennlp.namespaces import namespaces
from elmo_framework.compat.allennlp.parameter_names import names
from elmo_framework.compat.allennlp.recognize import (
    CONFIG_NAME,
    DAMAGED,
    VOCABULARY_FOLDER,
    WEIGHTS_NAME,
    serialized_files,
)
from elmo_framework.compat.allennlp.tensors import (
    UnknownWeightsError,
    translated_weights,
    with_input_columns,
)
from elmo_framework.compat.allennlp.translate import translate_allennlp
from elmo_framework.config.load import Config, Translation
from elmo_framework.config.parse import parse
from elmo_framework.config.resolve import filled, with_absolute_paths
from elmo_framework.data.vocabulary import Vocabularies, counts_of_namespaces
from elmo_framework.errors import DataError, RunError, shown
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.metadata import RunRecord
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.io.archives import check_unpacked_size
from elmo_framework.model.model import Model
from elmo_framework.model.weights import load_pickled, load_weights

_CONFIG, _WEIGHTS, _VOCABULARY = CONFIG_NAME, WEIGHTS_NAME, f"{VOCABULARY_FOLDER}/"
_CHARACTERS = "_elmo_lstm._token_embedder._char_embedding_weights"
_FILES = {"options_file", "weight_file"}


@final
@dataclass(frozen=True)
class AllenNlpArchive:
    """What an archive contains.

    Attributes:
        path: of the archive.
        config: the configuration of the training, as JSON types.
        weights: by AllenNLP's names.
        vocabulary: the items of each namespace, without padding, in the order of their ids.
    """

    path: Path
    config: dict[str, Any]
    weights: Mapping[str, Tensor]
    vocabulary: Mapping[str, Sequence[str]]

    @classmethod
    def read(cls, path: Path) -> AllenNlpArchive:
        """Read an archive or a serialization directory.

        Nothing in it is executed, and no file is written.

        Raises:
            DataError: it is damaged or is not an archive of AllenNLP, or a member is a link or is
                outside the archive; or all together are suspiciously large.
        """
        files = {name: file.read_bytes() for name, file in serialized_files(path).items()}
        if not path.is_dir():
            with _members(path) as members:
                files = dict(members)
        for name in (_CONFIG, _WEIGHTS):
            if name not in files:
                raise DataError(f"not an archive of AllenNLP: it has no {name}", path=path)
        if not any(name.startswith(_VOCABULARY) for name in files):
            message = "not a whole archive of AllenNLP: it has no folder vocabulary"
            raise DataError(message, path=path)
        vocabulary = {
            PurePosixPath(name).stem: _lines(content, path, name)
            for name, content in files.items()
            if name.startswith(_VOCABULARY) and name.endswith(".txt")
        }
        unpadded = vocabulary.pop("non_padded_namespaces", [])
        if "labels" in vocabulary and not any("labels".endswith(u.lstrip("*")) for u in unpadded):
            message = "its labels have a padding item, which labels do not have here"
            raise DataError(message, path=path)
        return cls(path, _config(files[_CONFIG], path), _tensors(files[_WEIGHTS], path), vocabulary)


@contextmanager
def _members(path: Path) -> Iterator[Iterator[tuple[str, bytes]]]:
    """Read the members that are needed, and check the names of all."""
    try:
        with tarfile.open(path, "r:*") as tar:
            yield _checked_members(tar, path)
    except DAMAGED as error:
        raise DataError(f"the archive is damaged: {error}", path=path) from error


def _checked_members(tar: tarfile.TarFile, path: Path) -> Iterator[tuple[str, bytes]]:
    num_bytes = 0
    for member in tar:
        # Of all members: those that are not needed are unpacked too when they are skipped.
        num_bytes += member.size
        check_unpacked_size(num_bytes, path)
        parts = PurePosixPath(member.name).parts
        if member.issym() or member.islnk():
            raise DataError(f"the member {member.name!r} is a link", path=path)
        if member.name.startswith("/") or ".." in parts:
            message = f"the member {member.name!r} would be outside the folder"
            raise DataError(message, path=path)
        name = "/".join(parts)
        if not (name in (_CONFIG, _WEIGHTS) or name.startswith(_VOCABULARY)):
            continue
        source = tar.extractfile(member)
        if source is None:  # a folder
            continue
        yield name, source.read()


def _config(content: bytes, path: Path) -> dict[str, Any]:
    try:
        config = json.loads(content)
    except ValueError as error:
        raise DataError(f"{_CONFIG} is not JSON: {error}", path=path) from error
    if not isinstance(config, dict):
        raise DataError(f"{_CONFIG}: expected an object, found {shown(config)}", path=path)
    return config


def _tensors(content: bytes, path: Path, name: str = _WEIGHTS) -> dict[str, Tensor]:
    try:
        weights = load_pickled(io.BytesIO(content))
    except ValueError as error:
        raise DataError(f"{name} {error}", path=path) from error
    if not isinstance(weights, dict) or not all(
        isinstance(key, str) and isinstance(tensor, Tensor) for key, tensor in weights.items()
    ):
        raise DataError(f"{name}: expected tensors by name", path=path)
    return weights


def _lines(content: bytes, path: Path, name: str) -> list[str]:
    """Return the items of a vocabulary file; each line has one."""
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not UTF-8: {error}", path=path) from error
    if lines[-1] == "":
        lines.pop()
    return [line.rstrip("\r").replace("@@NEWLINE@@", "\n") for line in lines]


def import_archive(
    path: Path,
    directory: Path,
    *,
    bilm: Path | str | None = None,
    weights_file: Path | None = None,
    overrides: Sequence[str] = (),
    force: bool = False,
) -> Translation:
    """Write a trained model of AllenNLP as a run, with its vocabulary and its weights.

    Args:
        path: the archive, usually `model.tar.gz`, or the serialization directory.
        directory: of the run.
        bilm: the folder or the name of the biLM that the model reads; by default its options and
            weights are at the paths in the config.
        weights_file: weights of AllenNLP in place of those in the archive, such as
            `model_state_epoch_3.th`.
        overrides: of keys of the translated config, as of `Config.load`.
        force: remove the run in the directory.

    Returns:
        the translated config.

    Raises:
        ConfigError: a part of the config has no counterpart, or an override matches no key.
        DataError: the archive is damaged; its weights do not fit the config; or the files of its
            biLM do not exist, or are of another biLM.
        RunError: the directory is in use, or has a run.
    """
    run = RunDirectory(directory)
    if run.config.is_file() and not force:
        advice = "pass --force to remove it, or choose another --serialization-dir"
        raise RunError(f"{directory}: the folder has a run; {advice}")
    archive = AllenNlpArchive.read(path)
    if weights_file is not None:
        content = weights_file.read_bytes()
        archive = replace(archive, weights=_tensors(content, path, weights_file.name))
    translation = _translated(archive, bilm)
    config = Config(
        translation.raw, str(path), json.dumps(archive.config, indent=2) + "\n", (), translation
    ).overridden(overrides)
    components.load()
    parsed = parse(Experiment, config.raw, source=str(path))
    experiment = parsed.build()
    vocabularies = _vocabularies(archive)
    model = experiment.model.build(vocabularies=vocabularies, weights_follow=True)
    load_weights(model, _weights(archive, config, model), source=str(path))
    with run.locked():
        written = filled(with_absolute_paths(parsed))
        record = RunRecord(parsed, experiment, config, written, run)
        record.write_config(force=force, recover=False)
        vocabularies.save(run.vocabulary)
        assembly = Assembly(experiment, model.eval(), vocabularies, torch.device("cpu"), run=run)
        record.write_metadata(assembly, has_data=False)
        # Last: with its weights a run is complete.
        run.save_weights(model.state_dict())
    return translation


def _translated(archive: AllenNlpArchive, bilm: Path | str | None) -> Translation:
    """Translate the config for a model that is trained already.

    Vectors from files and limits of the vocabulary are left out: the words and their vectors are
    in the archive.
    """
    raw, path = deepcopy(archive.config), archive.path
    raw.pop("vocabulary", None)
    model = raw.get("model")
    readers = [block for block in _blocks(model) if block.keys() & _FILES or _is_elmo(block)]
    if bilm is not None and not readers:
        raise DataError("its model reads no biLM; remove --bilm", path=path)
    for block in readers:
        _name_bilm(block, archive, bilm)
    for block in _blocks(model):
        block.pop("pretrained_file", None)
    if isinstance(model, dict):
        model.pop("initializer", None)
    translation = translate_allennlp(raw, str(path), has_weights=True)
    if translation is None:
        raise DataError(f"{_CONFIG} is not of AllenNLP", path=path)
    return translation


def _blocks(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects of a config."""
    inner: Iterable[Any] = ()
    if isinstance(value, dict):
        yield value
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    for each in inner:
        yield from _blocks(each)


def _is_elmo(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "elmo_token_embedder"


def _name_bilm(block: dict[str, Any], archive: AllenNlpArchive, bilm: Path | str | None) -> None:
    """Name the files of the biLM that a block reads, and check that it is that of the training.

    Raises:
        DataError: a file is not there, or it is another biLM.
    """
    if bilm is not None:
        files = resolve_bilm(bilm)
        block |= {"options_file": str(files.options), "weight_file": str(files.weights)}
    places = [block.get(key) for key in ("options_file", "weight_file")]
    for place in places:
        if isinstance(place, str) and "://" not in place and not Path(place).is_file():
            raise DataError(
                f"its biLM is not in the archive, and not at {place}; name its folder with --bilm",
                path=archive.path,
            )
        if isinstance(place, str) and "://" in place and published_name(places) is None:
            raise DataError(
                f"its biLM is not in the archive, but at {place}; download its options and "
                "weights, and name their folder with --bilm",
                path=archive.path,
            )
    weights = places[1]
    if isinstance(weights, str) and weights.endswith(".hdf5") and "://" not in weights:
        _require_same_bilm(archive, Path(weights))


def _require_same_bilm(archive: AllenNlpArchive, weights: Path) -> None:
    """Compare the vectors of characters; those of the archive begin with padding."""
    with h5py.File(weights) as file:
        characters = file["char_embed"][...] if "char_embed" in file else None
    recorded = [each for name, each in archive.weights.items() if name.endswith(_CHARACTERS)]
    if characters is None or not recorded:
        return
    if not any(np.array_equal(each[1:].numpy(), characters) for each in recorded):
        raise DataError(
            f"{weights} is another biLM than the one of its training; name that with --bilm",
            path=archive.path,
        )


def _vocabularies(archive: AllenNlpArchive) -> Vocabularies:
    """Return vocabularies with the items in the order of the archive."""
    items: dict[str, Sequence[str]] = {"words": ()}
    for namespace, name in namespaces(archive.config).items():
        if (listed := archive.vocabulary.get(namespace)) is not None:
            items[name] = listed if name == "labels" else listed[1:]  # without unknown ones
    return Vocabularies(counts_of_namespaces(items))


def _weights(archive: AllenNlpArchive, config: Config, model: Model[Any]) -> dict[str, Tensor]:
    theirs = archive.config.get("model")
    has_input_elmo = isinstance(theirs, dict) and theirs.get("use_input_elmo") is True
    pairs = names(config.raw["model"], has_input_elmo=has_input_elmo)
    try:
        tables = fitted_tables(archive.config, archive.vocabulary, archive.weights)
        if has_input_elmo:
            tables = with_input_columns(tables, model)
        weights = translated_weights(pairs, tables, dict(model.named_parameters()))
    except UnknownWeightsError as error:
        raise DataError(str(error), path=archive.path) from error
    return model.state_dict() | weights
