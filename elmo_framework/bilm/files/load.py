"""Saving a biLM in a folder, and loading it from there."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

# Registers parts that files name.
import elmo_framework.bilm.residual_context_layers
import elmo_framework.bilm.subword_token_encoders  # noqa: F401
from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.weights_hdf5 import has_bilm_tf_parts, read_bilm_tf, write_bilm_tf
from elmo_framework.config.parse import parse
from elmo_framework.config.plugins import load_plugins, named_plugins, naming_packages, packages_of
from elmo_framework.config.registry import Registrable
from elmo_framework.config.resolve import with_paths_in
from elmo_framework.data.pieces import PIECES_FILE
from elmo_framework.errors import DataError, shown, with_hint
from elmo_framework.io.archives import local_folder
from elmo_framework.io.files import digest, path_hint, remove, write_bytes, write_text
from elmo_framework.io.formats import check_format
from elmo_framework.model.part import Reference
from elmo_framework.model.weights import converted, load_tensors, save_tensors

BILM_TF = ("options.json", "weights.hdf5")
GENERIC = ("bilm.json", "weights.safetensors")
FILE_NAMES = (*BILM_TF, *GENERIC, PIECES_FILE)
"""Every name that a file of a biLM can have; `save_bilm` writes some of them and removes the rest.
"""

FORMAT = 1
"""The format number of `bilm.json`; `options.json` is bilm-tf's."""

SOFTMAX, VOCABULARY = "softmax.safetensors", "vocabulary.txt"
"""Files that pretraining writes next to a biLM: its softmax, and the words by their ids."""


@dataclass(frozen=True)
class BiLmFiles:
    """The two files of a biLM.

    Attributes:
        options: bilm-tf's `options.json`, or `bilm.json` with the configuration of other parts.
        weights: its weights: HDF5 with the first, safetensors with the second.
    """

    options: Path
    weights: Path

    @property
    def softmax(self) -> Path:
        """The file of its softmax weights, if they were saved."""
        return self.weights.with_name(SOFTMAX)

    @property
    def vocabulary(self) -> Path:
        """The file of its softmax words, if they were saved."""
        return self.weights.with_name(VOCABULARY)

    @property
    def of_token_encoder(self) -> list[Path]:
        """The files of its token encoder, such as pieces.

        Raises:
            DataError: the options cannot be read.
        """
        digests = _description(self.options).get("files", {}) if self.is_generic else {}
        return [self.options.with_name(name) for name in digests]

    @property
    def is_generic(self) -> bool:
        """Whether the biLM has parts that bilm-tf does not know."""
        return self.weights.suffix == ".safetensors"


def save_bilm(bilm: BiLm, directory: Path, *, dtype: torch.dtype = torch.float32) -> None:
    """Write a biLM in bilm-tf's format if possible, otherwise as `bilm.json` and safetensors.

    Each file is replaced at once, the weights first.

    Args:
        bilm: the biLM to write.
        directory: of the files; created if it does not exist.
        dtype: of the weights in the files.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if has_bilm_tf_parts(bilm):
        files = _files(directory, BILM_TF)
        write_bilm_tf(bilm, options_file=files.options, weight_file=files.weights, dtype=dtype)
    else:
        files = _files(directory, GENERIC)
        _write_generic(bilm, files, dtype)
    written = {files.options.name, files.weights.name}
    written.update(file.name for file in bilm.token_encoder.files)
    for name in FILE_NAMES:
        if name not in written:
            remove(directory / name)


def bilm_files(path: Path) -> BiLmFiles:
    """Return the files of the biLM in a folder, or in an archive of the run that trained it.

    Raises:
        DataError: there is none.
    """
    path = local_folder(path)
    for folder in (path, path / "bilm"):
        for names in (BILM_TF, GENERIC):
            files = _files(folder, names)
            if files.options.is_file():
                return files
    if not path.exists():
        raise DataError(with_hint("does not exist", path_hint(path)), path=path)
    looked_for = f"{BILM_TF[0]} or {GENERIC[0]}"
    message = f"no folder of a biLM: neither it nor a folder bilm in it holds {looked_for}"
    raise DataError(message + _hint(path), path=path)


def holds_bilm(place: Path) -> bool:
    """Return whether a folder, or an archive, is that of a biLM or of the run that trained one."""
    try:
        bilm_files(place)
    except DataError:
        return False
    return True


def _hint(folder: Path) -> str:
    """Return what to do about the folder of a transformer, or of a run without a biLM."""
    if (folder / "config.json").is_file() and (folder / "model.safetensors").is_file():
        return "; for a transformer, use the embedder `pretrained_transformer_mismatched`"
    if not (folder / "checkpoints").is_dir():
        return ""
    if (folder / "metrics.json").is_file():
        return "; a finished run without one is that of a head: name the biLM that the head reads"
    return "; for the best weights of a pretraining that has not ended, use `elmo export`"


def read_bilm(files: BiLmFiles, *, requires_grad: bool = False) -> BiLm:
    """Load a biLM from two files; it is in `eval()`.

    Under the device `meta` the weights are not read.

    Raises:
        DataError: a file cannot be read, or the two do not fit.
    """
    if files.is_generic:
        bilm = _read_generic(files)
    else:
        bilm = read_bilm_tf(options_file=files.options, weight_file=files.weights)
    return bilm.eval().requires_grad_(requires_grad)


def reads_both_sides(files: BiLmFiles) -> bool:
    """Return whether each of its layers reads both sides of a word; reads the options alone.

    Raises:
        DataError: they cannot be read.
    """
    if not files.is_generic:
        return False
    with torch.device("meta"):
        return read_bilm(files).context_layers.is_bidirectional


def reference(files: BiLmFiles) -> Reference:
    """Return the path and the digest of a biLM; under the device `meta`, by its options alone.

    Raises:
        DataError: a file cannot be read.
    """
    paths = [files.options] if _is_meta() else [files.options, files.weights]
    try:
        return Reference(files.weights.absolute(), digest(paths))
    except OSError as error:
        path = next((path for path in paths if not path.is_file()), files.weights)
        absence = with_hint("file not found", path_hint(path))
        what = f"not a file of a biLM: {error}" if path.exists() else absence
        raise DataError(what, path=path) from error


def _files(folder: Path, names: tuple[str, str]) -> BiLmFiles:
    return BiLmFiles(*(folder / name for name in names))


def _untouched_generators() -> AbstractContextManager[None]:
    """Draw initial weights, which a file replaces, without a trace in the random generators."""
    device = torch.get_default_device()
    return torch.random.fork_rng([device] if device.type == "cuda" else [])


def _is_meta() -> bool:
    return torch.get_default_device().type == "meta"


def _write_generic(bilm: BiLm, files: BiLmFiles, dtype: torch.dtype) -> None:
    modules = {type(m).__module__ for m in bilm.modules() if isinstance(m, Registrable)}
    plugins = sorted(name for name in modules if not name.startswith("elmo_framework."))
    packages = packages_of(plugins)
    origins = {"packages": packages} if packages else {}
    description = {"format": FORMAT, "plugins": plugins, **origins, **bilm.description}
    if own := bilm.token_encoder.files:
        # With the digests, the digest of the options is that of these files too.
        digests = {file.name: sha256(file.content).hexdigest() for file in own}
        names = {file.key: file.name for file in own}
        token_encoder = {**bilm.description["token_encoder"], **names}
        description |= {"files": digests, "token_encoder": token_encoder}
    save_tensors(converted(bilm.state_dict(), dtype, path=files.weights), files.weights)
    for file in own:
        write_bytes(files.options.with_name(file.name), file.content)
    write_text(files.options, json.dumps(description, indent=2) + "\n")


def _verify(digests: Any, options: Path) -> None:
    """Check the content of the files of the token encoder."""
    if not isinstance(digests, dict):
        raise DataError(f"'files' is {shown(digests)}; expected an object", path=options)
    for name, expected in digests.items():
        path = options.with_name(Path(name).name)
        if not path.is_file():
            raise DataError("is missing; it belongs to the biLM in this folder", path=path)
        if digest([path]) != expected:
            raise DataError("its content is not that of this biLM any more", path=path)


def _description(options: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(options.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"not a description of a biLM: {error}", path=options) from error


def _read_generic(files: BiLmFiles) -> BiLm:
    raw = _description(files.options)
    check_format(raw, name="a biLM", supported=FORMAT, path=files.options)
    raw.pop("format", None)
    plugins = named_plugins(raw.pop("plugins", []), source=files.options)
    _verify(raw.pop("files", {}), files.options)
    with naming_packages(raw.pop("packages", None), needed_by=f"the biLM {files.options}"):
        load_plugins(plugins, asked_by=str(files.options))
        lazy = with_paths_in(files.options.parent, parse(BiLm, raw, source=str(files.options)))
        with _untouched_generators():
            bilm = lazy.build()
    if not _is_meta():
        weights = load_tensors(files.weights)
        try:
            bilm.load_state_dict(weights)
        except RuntimeError as error:
            # PyTorch lists every parameter that does not fit; one is enough to see what is wrong.
            reason = " ".join(str(error).split("\n\t")[:2])
            raise DataError(
                f"not the weights of this biLM: {reason}", path=files.weights
            ) from error
    return bilm
