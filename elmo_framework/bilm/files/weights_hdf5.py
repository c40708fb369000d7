"""bilm-tf's `weights.hdf5` and the `options.json` next to it: reading and writing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.context_layers import ElmoLstmContextLayers
from elmo_framework.bilm.files.options import BiLmTfOptions, options_of
from elmo_framework.bilm.token_encoder import CharCnnTokenEncoder
from elmo_framework.config.types import Lazy
from elmo_framework.errors import DataError
from elmo_framework.io.files import write_bytes, write_text
from elmo_framework.model.weights import without_weights
from elmo_framework.nn.elmo_lstm import ElmoLstm

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped]

# What bilm-tf leaves out of the names of a model with one layer, and its own reader asks for.
_ONLY_CELL = "MultiRNNCell/Cell0/"

# AllenNLP adds the 1 of the forget gates to this dataset in the dataset's own type. In float16 the
# sum is rounded, which moves the vectors of a small biLM by 3.4e-4.
_LSTM_BIAS = "LSTMCell/B"


def has_bilm_tf_parts(bilm: BiLm) -> bool:
    """Return whether the format of bilm-tf can represent a biLM."""
    encoder = bilm.token_encoder
    is_plain = isinstance(encoder, CharCnnTokenEncoder) and encoder.norm is None
    return is_plain and isinstance(bilm.context_layers, ElmoLstmContextLayers)


def write_bilm_tf(
    bilm: BiLm, *, options_file: Path, weight_file: Path, dtype: torch.dtype = torch.float32
) -> None:
    """Write a biLM of which `has_bilm_tf_parts` is true; each file is replaced at once.

    Args:
        bilm: the biLM to write.
        options_file: the path of its options.
        weight_file: the path of its weights.
        dtype: of the weights in the file: float32 as bilm-tf has it, or float16. The biases of
            the LSTMs are float32 always.

    Raises:
        DataError: a weight is too large for the type.
    """
    import h5py

    # In memory: where the disk is full, or a file too large, HDF5 itself ends the process.
    with h5py.File("weights", "w", driver="core", backing_store=False) as file:
        for name, blocks in _datasets(bilm).items():
            stored_dtype = torch.float32 if name.endswith(_LSTM_BIAS) else dtype
            rows = torch.cat(
                [block.detach().to("cpu", stored_dtype).contiguous() for block in blocks]
            )
            if not rows.isfinite().all():
                message = f"dataset {name!r} holds numbers that {stored_dtype} cannot hold"
                raise DataError(message, path=weight_file)
            file.create_dataset(name, data=rows.numpy())
        file.flush()
        write_bytes(weight_file, file.id.get_file_image())
    write_text(options_file, json.dumps(options_of(bilm), indent=2) + "\n")


def read_bilm_tf(*, options_file: Path, weight_file: Path) -> BiLm:
    """Read a biLM in the default type and onto the default device.

    Under the device `meta` the options are read and the weights are not.

    Raises:
        DataError: a file cannot be read, or the two do not fit.
        ConfigError: the options have a value of the wrong kind.
    """
    options, device = BiLmTfOptions.read(options_file), torch.get_default_device()
    if device.type == "meta":
        return _without_weights(options.bilm(has_projection=not options.fills_projection))
    with _opened(weight_file) as file:
        is_projected = _found(file, "CNN_proj/W_proj", weight_file) is not None
        has_projection = is_projected or not options.fills_projection
        bilm = _without_weights(options.bilm(has_projection=has_projection)).to_empty(device=device)
        datasets = _datasets(bilm)
        largest = max(block.numel() for blocks in datasets.values() for block in blocks)
        buffer = torch.empty(largest, dtype=torch.float32, device="cpu")
        for name, blocks in datasets.items():
            _fill(blocks, _dataset(file, name, blocks, weight_file), buffer)
    _require_all_read(bilm, options_file, weight_file)
    return bilm


def _require_all_read(bilm: BiLm, options_file: Path, weight_file: Path) -> None:
    """Raise DataError for layers in the file that the options do not have."""
    read = names_read(bilm)
    for name in list_datasets(weight_file):
        is_of_layer = name.startswith("CNN_high_") or "/Cell" in name
        if is_of_layer and name not in read:
            message = f"{name} belongs to a layer that {options_file.name} does not have"
            raise DataError(message, path=weight_file)


def list_datasets(weight_file: Path) -> dict[str, tuple[int, ...]]:
    """Return the shape of each dataset in a file by its name.

    Raises:
        DataError: it is not an HDF5 file.
    """
    import h5py

    shapes: dict[str, tuple[int, ...]] = {}

    def note(name: str, item: h5py.Dataset | h5py.Group) -> None:
        if isinstance(item, h5py.Dataset):
            shapes[name] = item.shape

    with _opened(weight_file) as file, _readable("the file", weight_file):
        file.visititems(note)
    return shapes


def names_read(bilm: BiLm) -> set[str]:
    """Return the names of datasets under which the weights of a biLM are looked for."""
    names = _datasets(bilm).keys()
    return {*names, *(name.replace(_ONLY_CELL, "") for name in names)}


def _datasets(bilm: BiLm) -> dict[str, list[Tensor]]:
    """Return the parameters as they lie in a file: views, stacked along the first dimension."""
    assert isinstance(bilm.token_encoder, CharCnnTokenEncoder)
    assert isinstance(bilm.context_layers, ElmoLstmContextLayers)
    both = bilm.context_layers.forward_lstm, bilm.context_layers.backward_lstm
    datasets = dict(_token_datasets(bilm.token_encoder))
    for direction, lstm in enumerate(both):
        datasets |= dict(_lstm_datasets(lstm, f"RNN_{direction}/RNN/MultiRNNCell"))
    return datasets


def _token_datasets(encoder: CharCnnTokenEncoder) -> Iterator[tuple[str, list[Tensor]]]:
    parameters = dict(encoder.named_parameters())
    yield "char_embed", [parameters["char_cnn.table"]]
    for k in range(len(encoder.char_cnn.convolutions)):
        ours = f"char_cnn.convolutions.{k}"
        yield f"CNN/W_cnn_{k}", [parameters[f"{ours}.weight"].permute(2, 1, 0)[None]]
        yield f"CNN/b_cnn_{k}", [parameters[f"{ours}.bias"]]
    for k, kind in product(range(len(encoder.highway.layers)), ("carry", "transform")):
        ours = f"highway.layers.{k}.{kind}"
        yield f"CNN_high_{k}/W_{kind}", [parameters[f"{ours}.weight"].T]
        yield f"CNN_high_{k}/b_{kind}", [parameters[f"{ours}.bias"]]
    if encoder.projection is not None:
        yield "CNN_proj/W_proj", [encoder.projection.weight.T]
        yield "CNN_proj/b_proj", [encoder.projection.bias]


def _lstm_datasets(lstm: ElmoLstm, prefix: str) -> Iterator[tuple[str, list[Tensor]]]:
    parameters = dict(lstm.named_parameters())
    for layer in range(lstm.num_layers):
        ours, theirs = f"cells.{layer}", f"{prefix}/Cell{layer}/LSTMCell"
        weights = parameters[f"{ours}.input_weight"], parameters[f"{ours}.recurrent_weight"]
        yield f"{theirs}/W_0", [weight.T for weight in weights]
        yield f"{theirs}/B", [parameters[f"{ours}.bias"]]
        if f"{ours}.projection_weight" in parameters:
            yield f"{theirs}/W_P_0", [parameters[f"{ours}.projection_weight"].T]


def _without_weights(lazy: Lazy[BiLm]) -> BiLm:
    with without_weights():
        return lazy.build()


@contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    import h5py

    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise DataError(f"not an HDF5 file, or a damaged one: {error}", path=path) from error
    with file:
        yield file


@contextmanager
def _readable(what: str, path: Path) -> Iterator[None]:
    """Turn the HDF5 errors of a damaged file into an error that names it."""
    try:
        yield
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{what} cannot be read: {error}", path=path) from error


def _found(file: h5py.File, name: str, path: Path) -> h5py.Dataset | None:
    """Return a dataset; None where there is none.

    Raises:
        DataError: the file is damaged, or the numbers are in another file, which may be any of
            this machine.
    """
    import h5py

    with _readable(f"dataset {name!r}", path):
        dataset = file.get(name)
        if not isinstance(dataset, h5py.Dataset):
            return None
        is_elsewhere = (
            dataset.file.filename != file.filename or dataset.external or dataset.is_virtual
        )
    if is_elsewhere:
        raise DataError(f"dataset {name!r} is kept in another file", path=path)
    return dataset


def _dataset(file: h5py.File, name: str, blocks: list[Tensor], path: Path) -> h5py.Dataset:
    """Return the dataset of some blocks.

    Raises:
        DataError: it is missing, or of another shape.
    """
    dataset = _found(file, name, path) or _found(file, name.replace(_ONLY_CELL, ""), path)
    if dataset is None:
        raise DataError(f"dataset {name!r} is missing", path=path)
    shape = (sum(len(block) for block in blocks), *blocks[0].shape[1:])
    if dataset.shape != shape:
        message = f"dataset {name!r} has the shape {dataset.shape}; the options ask for {shape}"
        raise DataError(message, path=path)
    return dataset


def _fill(blocks: list[Tensor], dataset: h5py.Dataset, buffer: Tensor) -> None:
    """Copy the rows of a dataset into blocks, through a buffer that fits each of them."""
    path, name, start = Path(dataset.file.filename), str(dataset.name)[1:], 0
    for block in blocks:
        part = buffer[: block.numel()].view(block.shape)
        with _readable(f"dataset {name!r}", path):
            dataset.read_direct(part.numpy(), np.s_[start : start + len(block)])
        # The extremes are NaN where one number is, and need one pass and no memory.
        if not torch.stack(torch.aminmax(part)).isfinite().all():
            raise DataError(f"dataset {name!r} holds numbers that are not finite", path=path)
        with torch.no_grad():
            # Blocks are transposed views of parameters: seen from the parameter, PyTorch copies
            # the same numbers three times faster.
            block.transpose(0, -1).copy_(part.transpose(0, -1))
        start += len(block)
