"""Import a checkpoint of bilm-tf: the biLM, and the softmax that its HDF5 files leave out."""

from __future__ import annotations

import re
from pathlib import Path

import h5py  # type: ignore[import-untyped]
import torch

from elmo_framework.bilm.files.load import SOFTMAX, VOCABULARY, save_bilm
from elmo_framework.bilm.files.tf_checkpoint import TfCheckpoint
from elmo_framework.bilm.files.weights_hdf5 import read_bilm_tf
from elmo_framework.corpus.vocabulary_file import (
    SPECIAL_WORDS,
    read_vocabulary_file,
    vocabulary_text,
)
from elmo_framework.errors import DataError, RunError
from elmo_framework.io.files import replacing, write_text
from elmo_framework.model.weights import save_tensors

_SCOPE, _SOFTMAX_SCOPE = "lm/", "lm/softmax/"
_OPTIMIZER_SLOT = re.compile(r"/(Adagrad|Adam|Adam_1|Momentum)$")
_HDF5_NAMES = (
    ("/rnn/", "/RNN/"),
    ("/multi_rnn_cell/", "/MultiRNNCell/"),
    ("/cell_", "/Cell"),
    ("/lstm_cell/", "/LSTMCell/"),
    ("/projection/kernel", "/W_P_0"),
    ("LSTMCell/kernel", "LSTMCell/W_0"),
    ("LSTMCell/bias", "LSTMCell/B"),
)
"""How bilm-tf's `dump_weights` renames the variables of its LSTMs."""


def import_bilm_tf(
    checkpoint: Path,
    directory: Path,
    *,
    options_file: Path | None = None,
    vocabulary_file: Path | None = None,
) -> None:
    """Write the folder of a biLM from a checkpoint of bilm-tf.

    The folder appears when all of it is written. The state of the optimizer is left out.

    Args:
        checkpoint: `model.ckpt-7`, or the folder of checkpoints, of which the latest is taken.
        directory: of the biLM; a new one.
        options_file: bilm-tf's; by default `options.json` next to the checkpoint.
        vocabulary_file: of the words of the softmax; without it the softmax is left out.

    Raises:
        DataError: a file is missing or damaged, or the files do not fit together.
        ConfigError: the options have a value of the wrong kind.
        RunError: the folder exists.
    """
    if directory.exists():
        raise RunError(f"{directory}: output already exists; choose another folder")
    tensors = TfCheckpoint(checkpoint)
    options_file = options_file or tensors.prefix.with_name("options.json")
    softmax = None if vocabulary_file is None else _softmax(tensors, vocabulary_file)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with replacing(directory) as aside:
        aside.mkdir()
        weight_file = aside / "weights.hdf5"
        _write_hdf5(tensors, weight_file)
        try:
            bilm = read_bilm_tf(options_file=options_file, weight_file=weight_file)
        except DataError as error:
            if error.path != weight_file:
                raise
            problem = str(error).removeprefix(f"{weight_file}: ")
            message = f"{options_file} and the checkpoint do not fit: {problem}"
            raise DataError(message, path=tensors.prefix) from error
        save_bilm(bilm, aside)
        if softmax is not None:
            weights, words = softmax
            save_tensors(weights, aside / SOFTMAX)
            write_text(aside / VOCABULARY, vocabulary_text(words))


def _write_hdf5(tensors: TfCheckpoint, weight_file: Path) -> None:
    """Write the variables of a biLM with the names of bilm-tf's HDF5 files."""
    names = [
        name
        for name in tensors.shapes
        if name.startswith(_SCOPE)
        and not name.startswith(_SOFTMAX_SCOPE)
        and not _OPTIMIZER_SLOT.search(name)
    ]
    if f"{_SCOPE}char_embed" not in names:
        problem = "its biLM reads words" if f"{_SCOPE}embedding" in names else "not of bilm-tf"
        raise DataError(
            f"no biLM that reads characters: variable 'lm/char_embed' is missing ({problem})",
            path=tensors.prefix,
        )
    with h5py.File(weight_file, "w") as file:
        for name in names:
            file.create_dataset(_hdf5_name(name), data=tensors.tensor(name))


def _hdf5_name(name: str) -> str:
    renamed = name.removeprefix(_SCOPE)
    for theirs, ours in _HDF5_NAMES:
        renamed = renamed.replace(theirs, ours)
    return renamed


def _softmax(
    tensors: TfCheckpoint, vocabulary_file: Path
) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Return the weights of the softmax and its words after the special ones."""
    words = read_vocabulary_file(vocabulary_file)
    size = len(SPECIAL_WORDS) + len(words)
    rows = tensors.shapes.get(f"{_SOFTMAX_SCOPE}W", (size,))[:1]
    if rows != (size,):
        raise DataError(
            f"not the vocabulary of this checkpoint: {size:,} words for the {rows[0]:,} rows of "
            "its softmax",
            path=vocabulary_file,
        )
    names = {"weight": "W", "bias": "b"}
    weights = {
        ours: torch.from_numpy(tensors.tensor(f"{_SOFTMAX_SCOPE}{theirs}").astype("float32"))
        for ours, theirs in names.items()
    }
    return weights, words
