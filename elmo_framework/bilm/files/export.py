"""Export a biLM: in bilm-tf's format, for other programs, or in ours if that cannot hold it."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

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
from elmo_framework.bilm.files.weights_hdf5 import has_bilm_tf_parts
from elmo_framework.errors import DataError, RunError
from elmo_framework.io.files import remove, write_bytes
from elmo_framework.model.model import Model
from elmo_framework.model.weights import converted, load_tensors, save_tensors

_LOG = logging.getLogger(__name__)
_PARTS = ("token_encoder", "context_layers")


def export_files(
    files: BiLmFiles,
    directory: Path,
    *,
    source: Path | str,
    dtype: torch.dtype = torch.float32,
    force: bool = False,
) -> list[Path]:
    """Write a biLM as `options.json` and `weights.hdf5`; each file is replaced at once.

    One with parts that bilm-tf does not know is written as `bilm.json` and `weights.safetensors`,
    which other programs do not read. If its softmax is next to the biLM, that is written too, with
    its vocabulary, so that the biLM can be trained on.

    Args:
        files: of the biLM.
        directory: of the files; created if it does not exist.
        source: what messages call the biLM.
        dtype: of the weights in the files: float32, which every ELMo program reads, or float16,
            which takes half the space; in bilm-tf's format the biases of the LSTMs stay float32.
        force: whether files of these names that are there may be replaced or removed.

    Raises:
        DataError: the biLM is damaged, or a weight is too large for the type.
        RunError: files are in the way.
    """
    names = (*FILE_NAMES, SOFTMAX, VOCABULARY)
    present = [name for name in names if (directory / name).exists()]
    if present and not force:
        raise RunError(
            f"--output-dir {directory}: files of a biLM are there already ({', '.join(present)}); "
            "pass --force to replace them, or choose another folder"
        )
    bilm = read_bilm(files)
    if not has_bilm_tf_parts(bilm):
        words, context = (bilm.description[part]["type"] for part in _PARTS)
        _LOG.warning(
            "%s: written as bilm.json, for elmo_framework alone: bilm-tf's files hold 'char_cnn' "
            "(no layer_norm) with 'elmo_lstm', and this biLM has %r with %r",
            source,
            words,
            context,
        )
    # Whole before the biLM is written, so that no half of an export is left.
    softmax = _read_softmax(files, dtype, directory / SOFTMAX)
    save_bilm(bilm, directory, dtype=dtype)
    written = bilm_files(directory)
    own = [written.options, written.weights, *written.of_token_encoder]
    if softmax is None:
        # What is there belonged to another biLM.
        remove(written.softmax)
        remove(written.vocabulary)
        return own
    weights, vocabulary = softmax
    save_tensors(weights, written.softmax)
    write_bytes(written.vocabulary, vocabulary)
    return [*own, written.softmax, written.vocabulary]


def _read_softmax(
    files: BiLmFiles, dtype: torch.dtype, written: Path
) -> tuple[dict[str, Tensor], bytes] | None:
    """Return the weights of a softmax for a file, and its vocabulary; None if there is none."""
    if not files.softmax.is_file():
        return None
    weights = converted(load_tensors(files.softmax), dtype, path=written)
    return weights, files.vocabulary.read_bytes()


def save_bilm_of(model: Model[Any], folder: Path, *, source: Path | str) -> BiLmFiles:
    """Write the biLM among the weights of a model: one that it pretrains or tunes with its task.

    Args:
        model: of a run, finished or not.
        folder: of the files.
        source: what messages call the model.

    Raises:
        RunError: the model has no biLM, or several.
    """
    model.save_extras(folder)
    with suppress(DataError):
        return bilm_files(folder)
    save_bilm(_tuned(model, source), folder)
    return bilm_files(folder)


def _tuned(model: Model[Any], source: Path | str) -> BiLm:
    bilms = {name: part for name, part in model.named_modules() if isinstance(part, BiLm)}
    if len(bilms) == 1:
        return next(iter(bilms.values()))
    if bilms:
        raise RunError(
            f"{source}: this run trained several biLMs: {', '.join(bilms)}; allowed: one"
        )
    frozen = sorted({str(reference.path.parent) for reference in model.references().values()})
    advice = f"; it reads the frozen one in {', '.join(frozen)}, export that" if frozen else ""
    own = "; for the model of the run itself, pass --format onnx or --format allennlp"
    raise RunError(f"{source}: this run trained no biLM{advice}{own}")
