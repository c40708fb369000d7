"""The biLM of a run or of a folder, written in bilm-tf's format for others to read or train on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import (
    FILE_NAMES,
    SOFTMAX,
    VOCABULARY,
    BiLmFiles,
    bilm_files,
    read_bilm,
    save_bilm,
)
from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.bilm.files.weights_hdf5 import has_bilm_tf_parts
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.assembly import load
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.io.files import remove, write_bytes
from elmo_framework.model.model import Model
from elmo_framework.model.tensor_files import converted, load_tensors, save_tensors


def export_bilm(
    source: Path | str,
    directory: Path,
    *,
    dtype: torch.dtype = torch.float32,
    force: bool = False,
    packages: Sequence[str] = (),
    run_bilms: Sequence[Path | str] = (),
) -> list[Path]:
    """Write `options.json` and `weights.hdf5`; each file is replaced at once.

    If its softmax is next to the biLM, that is written too, with its vocabulary, so that the
    biLM can be trained on.

    Args:
        source: the folder of a biLM, of a run that pretrained one, finished or not, or of a run
            that trained one together with its task model; or the name of a biLM.
        directory: of the files; created if it does not exist.
        dtype: of the weights in the files: float32, which every ELMo program reads, or float16,
            which takes half the space; the biases of the LSTMs stay float32.
        force: whether files of these names that are there may be replaced or removed.
        packages: plugins to import in addition to those of the run.
        run_bilms: the new folders of biLMs that a run tuned with its task, if they were moved.

    Returns:
        The files that were written.

    Raises:
        DataError: the biLM is missing or damaged, or a weight is too large for the type.
        RunError: bilm-tf's format cannot hold it, files are in the way, or the run cannot be
            loaded.
    """
    names = (*FILE_NAMES, SOFTMAX, VOCABULARY)
    present = [name for name in names if (directory / name).exists()]
    if present and not force:
        raise RunError(
            f"--output-dir {directory}: files of a biLM are there already ({', '.join(present)}); "
            "pass --force to replace them, or choose another folder"
        )
    with TemporaryDirectory() as folder:
        files = _files(source)
        if files is None:
            run = load(source, device="cpu", packages=packages, bilm=run_bilms)
            files = _extracted(Path(source), run.model, Path(folder))
        elif run_bilms:
            raise RunError(f"--bilm is for a run that tuned a biLM with its task; {source} did not")
        bilm = read_bilm(files)
        _require_bilm_tf_parts(bilm, source)
        # Whole before the biLM is written, so that no half of an export is left.
        softmax = _read_softmax(files, dtype, directory / SOFTMAX)
        save_bilm(bilm, directory, dtype=dtype)
    written = bilm_files(directory)
    if softmax is None:
        # What is there belonged to another biLM.
        remove(written.softmax)
        remove(written.vocabulary)
        return [written.options, written.weights]
    save_tensors(softmax.weights, written.softmax)
    write_bytes(written.vocabulary, softmax.words)
    return [written.options, written.weights, written.softmax, written.vocabulary]


class _Softmax(NamedTuple):
    """The softmax that pretraining writes next to a biLM.

    Attributes:
        weights: of the softmax, in the type that they are written in.
        words: the content of its vocabulary file.
    """

    weights: dict[str, Tensor]
    words: bytes


def _read_softmax(files: BiLmFiles, dtype: torch.dtype, written: Path) -> _Softmax | None:
    """Return the softmax that belongs to a biLM, for a file; None if it has none."""
    if not files.softmax.is_file():
        return None
    weights = converted(load_tensors(files.softmax), dtype, path=written)
    return _Softmax(weights, files.vocabulary.read_bytes())


def _files(source: Path | str) -> BiLmFiles | None:
    """Return the files of a biLM; None for a run that may have trained one with its task."""
    try:
        return resolve_bilm(source)
    except DataError:
        if not RunDirectory(Path(source)).config.is_file():
            raise
        return None


def _extracted(source: Path, model: Model[Any], folder: Path) -> BiLmFiles:
    """Write the biLM among the weights of a run: one tuned with a task, or not finished."""
    model.save_extras(folder)
    with suppress(DataError):
        return bilm_files(folder)
    save_bilm(_tuned(source, model), folder)
    return bilm_files(folder)


def _tuned(source: Path, model: Model[Any]) -> BiLm:
    """Return the biLM in a task model."""
    bilms = {name: part for name, part in model.named_modules() if isinstance(part, BiLm)}
    if len(bilms) == 1:
        return next(iter(bilms.values()))
    if bilms:
        raise RunError(
            f"{source}: this run trained several biLMs: {', '.join(bilms)}; allowed: one"
        )
    frozen = sorted({str(reference.path.parent) for reference in model.references().values()})
    hint = f"; it reads the frozen one in {', '.join(frozen)}, export that" if frozen else ""
    raise RunError(f"{source}: this run trained no biLM{hint}")


def _require_bilm_tf_parts(bilm: BiLm, source: Path | str) -> None:
    if not has_bilm_tf_parts(bilm):
        words, context = (bilm.description[part] for part in ("token_encoder", "context_layers"))
        raise RunError(
            f"{source}: this biLM has a token_encoder {words['type']!r} and context_layers "
            f"{context['type']!r}; bilm-tf's files hold 'char_cnn' with 'elmo_lstm' alone"
        )
