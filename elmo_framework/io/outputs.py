"""Refuse outputs that would replace an input of the command or a part of other work."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import Literal, TypeAlias

from elmo_framework.errors import ElmoFrameworkError, RunError
from elmo_framework.io.files import cache_root
from elmo_framework.io.remote import RemotePath, archive_path

FolderKind: TypeAlias = Literal["run", "biLM", "corpus", "folder of vectors", "cache"]

_STANDARD_INPUT = Path("-")


@dataclass(frozen=True)
class Input:
    """A file or a folder that a command reads.

    Attributes:
        path: `-` is standard input.
        name: the argument or dotted config key that gave the path, for messages.
    """

    path: Path
    name: str


@dataclass(frozen=True)
class Output:
    """A file or a folder that a command writes.

    Attributes:
        path: the file or folder.
        flag: the flag that gave the path, for messages.
        force: whether an existing file may be overwritten; None if the command decides.
        is_folder: whether it is a folder, which replaces an existing one.
        updates: the kind of folder whose direct parts the command may replace.
    """

    path: Path
    flag: str
    force: bool | None = None
    is_folder: bool = False
    updates: FolderKind | None = None

    def __str__(self) -> str:
        return f"{self.flag} {self.path}"


BILM_PARTS = (
    "options.json",
    "weights.hdf5",
    "bilm.json",
    "weights.safetensors",
    "pieces.json",
    "softmax.safetensors",
    "vocabulary.txt",
)
"""The files of a biLM of either format, with those of its softmax and its pieces."""

ONNX_FILES = ("model.onnx", "model.json", "elmo_onnx.py")
"""The files of an ONNX model: the model, what the loader needs to know of it, and the loader."""

BRAT = "brat"
"""The format of predictions that is a folder."""

_FORMATS = {".csv": "csv", ".tsv": "tsv", ".conll": "conll", ".conllu": "conllu"}

_VECTOR_PARTS = ("header.json", "vectors.npy", "index.npy")
_MARKERS: Mapping[FolderKind, Sequence[Sequence[str]]] = {
    "run": [["filled_config.json"]],
    "biLM": [["options.json", "weights.hdf5"], ["bilm.json", "weights.safetensors"]],
    "corpus": [["corpus.json", "words.txt"]],
    "folder of vectors": [_VECTOR_PARTS],
}
"""Sets of files; a folder with all files of one set is of this kind. The cache has its own path."""

PARTS: Mapping[FolderKind, Sequence[str]] = {
    "run": (
        "config.jsonnet",
        "config.json",
        "translated.jsonnet",
        "filled_config.json",
        "metadata.json",
        "metrics.json",
        "metrics.jsonl",
        "steps.jsonl",
        "weights.safetensors",
        "calibration.json",
        "vocabulary",
        "checkpoints",
        "log",
        "bilm",
        "models",
        "README.md",
        "archive.json",
        ".lock",
    ),
    "biLM": BILM_PARTS,
    "corpus": (
        "corpus.json",
        "words.txt",
        "vocabulary.txt",
        "pieces.json",
        "counts.bin",
        "characters.bin",
        "training",
        "held_out",
    ),
    "folder of vectors": (*_VECTOR_PARTS, "scales.npy"),
    "cache": ("downloads", "layers", "compiled", "archives", "hub"),
}
"""The files and folders that belong to each kind of folder; others are the user's."""


def format_by_suffix(path: Path | None) -> str:
    """Return the format of a file of predictions by its suffix; JSON lines by default."""
    return "jsonl" if path is None else _FORMATS.get(path.suffix.lower(), "jsonl")


def check_outputs(outputs: Sequence[Output], inputs: Iterable[Input]) -> None:
    """Refuse outputs that would overwrite something unintentionally.

    Paths are compared after resolving symbolic links, and by device and inode, so that hard links,
    other spellings and another case of the same name are recognized. Devices and pipes are
    accepted.

    Raises:
        RunError: an output is a URL or an input, is a file inside an input folder, or is a folder
            that contains an input; it is a part of a run, a biLM, a corpus, a folder of vectors or
            the cache; a file is where a folder is needed; two outputs are the same file; or a file
            exists and `force` is false.
    """
    checked = list(filter(_is_file_or_folder, outputs))
    if not checked:
        return
    sources = [source for input_ in inputs for source in _matching(input_)]
    for number, output in enumerate(checked):
        for other in checked[:number]:
            if _is_same(output.path, other.path):
                raise RunError(f"{other} and {output} are the same file; choose two paths")
        for source in sources:
            _check_input(output, source)
        _check_owner(output)
        _check_place(output)
        if output.force is False and output.path.is_file():
            raise RunError(
                f"{output} already exists; pass --force to overwrite it, or choose another path"
            )


def check_standard_output(inputs: Iterable[Input]) -> None:
    """Refuse standard output that is redirected to an input, as by `>> FILE`.

    The command would read its own output endlessly.

    Raises:
        RunError: standard output is an input, or a file in an input folder of data.
    """
    identity = _stream_identity(1)
    if identity is None:
        return
    for input_ in inputs:
        for source in _matching(input_):
            if identity in _identities_read(source.path):
                raise RunError(
                    f"standard output is also an input ({source.name} {source.path}); send it to "
                    "another file"
                )


def _is_file_or_folder(output: Output) -> bool:
    if isinstance(output.path, RemotePath):
        raise RunError(f"{output} is a URL; choose a local path")
    return not is_stream(output.path)


def _identities_read(path: Path) -> Iterator[tuple[int, int] | None]:
    if path == _STANDARD_INPUT:
        yield _stream_identity(0)
    elif not path.is_dir():
        yield _identity(path)
    elif not any(folder_kinds(path)):  # folders of a command may contain files of the user
        yield from map(_identity, _files(path))


def _check_input(output: Output, source: Input) -> None:
    if source.path == _STANDARD_INPUT:
        identity = _stream_identity(0)
        if identity is not None and identity == _identity(output.path):
            raise _conflict(output, "is also the standard input")
        return
    if _is_same(output.path, source.path):
        raise _conflict(output, f"is also an input ({source.name})")
    if output.is_folder and _is_inside(source.path, output.path):
        raise _conflict(output, f"contains the input {source.path} ({source.name})")
    if not output.is_folder and source.path.is_dir() and _is_file_of(output.path, source.path):
        raise _conflict(output, f"is a file of the input {source.path} ({source.name})")


def _check_owner(output: Output) -> None:
    """Refuse a part of a folder made by a command."""
    # Also unresolved: a part may itself be a link to a file elsewhere.
    for path in dict.fromkeys((output.path.absolute(), _resolved(output.path))):
        for folder in path.parents:
            for kind in folder_kinds(folder):
                is_update = kind == output.updates and folder == path.parent
                if _is_part(path, folder, kind) and not is_update:
                    raise _conflict(output, f"is a part of the {kind} {folder}")


def _check_place(output: Output) -> None:
    """Refuse a file where a folder is needed: for the output itself, or for one of its parents."""
    if output.is_folder and output.path.is_file():
        raise _conflict(output, "is a file, and a folder is written")
    for parent in output.path.parents:
        if parent.is_file():
            raise _conflict(output, f"cannot be written: {parent} is a file and not a folder")


def _conflict(output: Output, problem: str) -> RunError:
    return RunError(f"{output} {problem}; choose another path")


def _matching(source: Input) -> Iterator[Input]:
    """Expand a local path to itself, the archive around it, or the files of a pattern."""
    path = archive_path(source.path).file
    if isinstance(path, RemotePath):
        return  # its copy is a part of the cache
    if source.path == _STANDARD_INPUT or path.exists():
        yield Input(path, source.name)
    elif has_magic(str(path)):
        anchor = Path(path.anchor)
        with suppress(ValueError):  # an invalid pattern is reported when it is read
            for match in anchor.glob(str(path.relative_to(anchor))):
                yield Input(match, source.name)


def folder_kinds(folder: Path) -> Iterator[FolderKind]:
    """Yield the kinds of folders made by commands that a folder is; none for other paths."""
    for kind, markers in _MARKERS.items():
        if any(all((folder / name).is_file() for name in names) for names in markers):
            yield kind
    if _is_same(folder, _cache()):
        yield "cache"


def _cache() -> Path:
    try:
        return cache_root()
    except (RuntimeError, ElmoFrameworkError):  # no home folder, so no cache either
        return Path(os.devnull)


def _is_part(path: Path, folder: Path, kind: FolderKind) -> bool:
    return path.relative_to(folder).parts[0].casefold() in map(str.casefold, PARTS[kind])


def _is_file_of(path: Path, folder: Path) -> bool:
    """Return whether a path is one of the files of a folder, under any name.

    In a folder made by a command those are its parts, in any other folder all files.
    """
    kinds = tuple(folder_kinds(folder))
    if not kinds and _is_inside(path, folder):
        return True
    identity = _identity(path)
    if identity is None:
        return False
    parts = [folder / name for kind in kinds for name in PARTS[kind]] if kinds else [folder]
    return any(identity == _identity(file) for part in parts for file in _files(part))


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    for folder, _, names in os.walk(path):
        yield from (Path(folder, name) for name in names)


def _is_inside(path: Path, folder: Path) -> bool:
    within, outer = _resolved(path), _resolved(folder)
    if within.is_relative_to(outer):
        return True
    identity = _identity(outer)
    return identity is not None and any(_identity(parent) == identity for parent in within.parents)


def _is_same(path: Path, other: Path) -> bool:
    identity = _identity(path)
    is_one = identity is not None and identity == _identity(other)
    return is_one or _resolved(path) == _resolved(other)


def is_stream(path: Path) -> bool:
    """Return whether a path is a device or a pipe, neither a file nor a folder."""
    try:
        return not path.is_file() and not path.is_dir() and path.exists()
    except (OSError, ValueError):  # an invalid path is reported when it is opened
        return True


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file or a folder, if it exists."""
    try:
        return _as_identity(path.stat())
    except (OSError, ValueError):
        return None


def _stream_identity(descriptor: int) -> tuple[int, int] | None:
    """Return the identity of the file that a standard stream is redirected to, if any."""
    try:
        return _as_identity(os.fstat(descriptor))
    except OSError:  # closed
        return None


def _as_identity(status: os.stat_result) -> tuple[int, int] | None:
    is_on_disk = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return (status.st_dev, status.st_ino) if is_on_disk else None
