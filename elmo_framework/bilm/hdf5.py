"""The files of bilm-tf: `options.json` and `weights.hdf5`, both ways."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]
import numpy as np
import torch
from torch import Tensor

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.context_layers import ElmoLstmContextLayers
from elmo_framework.bilm.token_encoder import CharCnnTokenEncoder
from elmo_framework.common.build import parse
from elmo_framework.common.component import Lazy
from elmo_framework.common.errors import DataError
from elmo_framework.common.files import replacing, write_text
from elmo_framework.data.characters import NUM_CHARACTERS
from elmo_framework.nn.elmo_lstm import ElmoLstm

# What `n_characters` says in a file for prediction, where id 0 counts as well.
_NUM_IDS = NUM_CHARACTERS + 1

_LOG = logging.getLogger(__name__)


def has_bilm_tf_parts(bilm: BiLm) -> bool:
    """Tell whether the files of bilm-tf can hold a biLM."""
    return isinstance(bilm.token_encoder, CharCnnTokenEncoder) and isinstance(
        bilm.context_layers, ElmoLstmContextLayers
    )


def write_bilm_tf(bilm: BiLm, *, options_file: Path, weight_file: Path) -> None:
    """Write a biLM of which `has_bilm_tf_parts` is true; each file is replaced at once."""
    with replacing(weight_file) as aside, h5py.File(aside, "w") as file:
        for name, blocks in _datasets(bilm).items():
            rows = [block.detach().to("cpu", torch.float32).numpy() for block in blocks]
            file.create_dataset(name, data=np.concatenate(rows))
    write_text(options_file, json.dumps(_options(bilm), indent=2) + "\n")


def read_bilm_tf(*, options_file: Path, weight_file: Path) -> BiLm:
    """Read a biLM in the default type and onto the default device.

    Under the device `meta` the options are read and the weights are not.

    Raises:
        DataError: a file cannot be read, or the two do not fit.
        ConfigError: the options hold a value of the wrong kind.
    """
    options, device = _Options.read(options_file), torch.get_default_device()
    if device.type == "meta":
        return _bilm(options, has_projection=not options.fills_projection).build()
    with _opened(weight_file) as file:
        lazy = _bilm(options, "CNN_proj/W_proj" in file or not options.fills_projection)
        with torch.device("meta"):
            bilm = lazy.build()
        bilm.to_empty(device=device)
        for name, blocks in _datasets(bilm).items():
            _fill(blocks, file, name, weight_file)
    return bilm


@dataclass(frozen=True)
class _Options:
    """The content of `options.json`."""

    path: Path
    content: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> _Options:
        try:
            options = cls(path, json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise DataError(f"no options of a biLM: {error}", path=path) from error
        options._check()
        return options

    def get(self, name: str, *default: Any) -> Any:
        """Return a value by its dotted name; without a default it has to be there."""
        value: Any = self.content
        for key in name.split("."):
            if not isinstance(value, Mapping):
                message = f"{name!r} is asked of {value!r}, which is no object"
                raise DataError(message, path=self.path)
            if key not in value and default:
                return default[0]
            if key not in value:
                message = f"{name!r} is missing: no {key!r} among {', '.join(sorted(value))}"
                raise DataError(message, path=self.path)
            value = value[key]
        return value

    @property
    def fills_projection(self) -> bool:
        """Whether the filters are as many as a projection of them would be wide.

        bilm-tf has no projection then, and AllenNLP's files have one.
        """
        try:
            num_filters = sum(num for _, num in self.get("char_cnn.filters"))
        except (TypeError, ValueError):
            return False
        return bool(num_filters == self.get("lstm.projection_dim"))

    def _check(self) -> None:
        if not self.get("bidirectional", True):
            raise DataError("'bidirectional' is false; a biLM reads both ways", path=self.path)
        num_ids = self.get("char_cnn.n_characters", _NUM_IDS)
        if num_ids not in (NUM_CHARACTERS, _NUM_IDS):
            _LOG.warning("%s: n_characters is %r; read as %d", self.path, num_ids, _NUM_IDS)


def _bilm(options: _Options, has_projection: bool) -> Lazy[BiLm]:
    get = options.get
    token_encoder = {
        "type": "char_cnn",
        "embedding_dim": get("char_cnn.embedding.dim"),
        "filters": get("char_cnn.filters"),
        "num_highway": get("char_cnn.n_highway", 0),
        "projection_dim": get("lstm.projection_dim") if has_projection else None,
        "activation": get("char_cnn.activation", "relu"),
        "max_characters_per_token": get("char_cnn.max_characters_per_token"),
    }
    context_layers = {
        "type": "elmo_lstm",
        "cell_size": get("lstm.dim"),
        "projection_dim": get("lstm.projection_dim"),
        "num_layers": get("lstm.n_layers", 1),
        "cell_clip": get("lstm.cell_clip", None),
        "projection_clip": get("lstm.proj_clip", None),
        "use_skip_connections": get("lstm.use_skip_connections", False),
    }
    raw = {"token_encoder": token_encoder, "context_layers": context_layers}
    return parse(BiLm, raw, source=str(options.path))


def _options(bilm: BiLm) -> dict[str, Any]:
    words, context = bilm.description["token_encoder"], bilm.description["context_layers"]
    return {
        "bidirectional": True,
        "char_cnn": {
            "activation": words["activation"],
            "embedding": {"dim": words["embedding_dim"]},
            "filters": words["filters"],
            "max_characters_per_token": words["max_characters_per_token"],
            "n_characters": _NUM_IDS,
            "n_highway": words["num_highway"],
        },
        "lstm": {
            "cell_clip": context["cell_clip"],
            "dim": context["cell_size"],
            "n_layers": context["num_layers"],
            "proj_clip": context["projection_clip"],
            "projection_dim": bilm.token_encoder.output_dim,
            "use_skip_connections": context["use_skip_connections"],
        },
    }


def _datasets(bilm: BiLm) -> dict[str, list[Tensor]]:
    """Return the parameters as they lie in a file: views, stacked along the first dimension."""
    assert isinstance(bilm.token_encoder, CharCnnTokenEncoder)
    assert isinstance(bilm.context_layers, ElmoLstmContextLayers)
    both = bilm.context_layers.forward_lstm, bilm.context_layers.backward_lstm
    named = dict(_token_datasets(bilm.token_encoder))
    for direction, lstm in enumerate(both):
        named |= dict(_lstm_datasets(lstm, f"RNN_{direction}/RNN/MultiRNNCell"))
    return named


def _token_datasets(encoder: CharCnnTokenEncoder) -> Iterator[tuple[str, list[Tensor]]]:
    held = dict(encoder.named_parameters())
    yield "char_embed", [held["char_cnn.table"]]
    for k in range(len(encoder.char_cnn.convolutions)):
        ours = f"char_cnn.convolutions.{k}"
        yield f"CNN/W_cnn_{k}", [held[f"{ours}.weight"].permute(2, 1, 0)[None]]
        yield f"CNN/b_cnn_{k}", [held[f"{ours}.bias"]]
    for k, kind in product(range(len(encoder.highway.layers)), ("carry", "transform")):
        ours = f"highway.layers.{k}.{kind}"
        yield f"CNN_high_{k}/W_{kind}", [held[f"{ours}.weight"].T]
        yield f"CNN_high_{k}/b_{kind}", [held[f"{ours}.bias"]]
    if encoder.projection is not None:
        yield "CNN_proj/W_proj", [encoder.projection.weight.T]
        yield "CNN_proj/b_proj", [encoder.projection.bias]


def _lstm_datasets(lstm: ElmoLstm, prefix: str) -> Iterator[tuple[str, list[Tensor]]]:
    held = dict(lstm.named_parameters())
    for layer in range(lstm.num_layers):
        ours, theirs = f"cells.{layer}", f"{prefix}/Cell{layer}/LSTMCell"
        weights = held[f"{ours}.input_weight"], held[f"{ours}.recurrent_weight"]
        yield f"{theirs}/W_0", [weight.T for weight in weights]
        yield f"{theirs}/B", [held[f"{ours}.bias"]]
        if f"{ours}.projection_weight" in held:
            yield f"{theirs}/W_P_0", [held[f"{ours}.projection_weight"].T]


@contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise DataError(f"no HDF5 file, or a damaged one: {error}", path=path) from error
    with file:
        yield file


def _fill(blocks: list[Tensor], file: h5py.File, name: str, path: Path) -> None:
    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        raise DataError(f"dataset {name!r} is missing", path=path)
    shape = (sum(len(block) for block in blocks), *blocks[0].shape[1:])
    if found.shape != shape:
        message = f"dataset {name!r} has the shape {found.shape}; the options ask for {shape}"
        raise DataError(message, path=path)
    try:
        values = torch.from_numpy(np.asarray(found[()], dtype=np.float32))
    except (OSError, ValueError) as error:
        raise DataError(f"dataset {name!r} cannot be read: {error}", path=path) from error
    if not values.isfinite().all():
        raise DataError(f"dataset {name!r} holds numbers that are not finite", path=path)
    with torch.no_grad():
        sizes = [len(block) for block in blocks]
        for block, part in zip(blocks, torch.split(values, sizes), strict=True):
            block.copy_(part)
