"""The biLM of a model in AllenNLP's archives, from bilm-tf's files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_framework.compat.allennlp.parameter_names import Pair

_MIX, _INSIDE = ".scalar_mix_0.gamma", "_elmo_lstm"
_EMBEDDER = "token_embedder_"
_DIRECTIONS = ("forward_layer", "backward_layer")
_NUM_GATES = 4


def elmo_weights(model: Mapping[str, Any], pairs: Iterable[Pair]) -> dict[str, Tensor]:
    """Return the weights of the biLMs that a model reads; an archive of AllenNLP has them.

    Args:
        model: AllenNLP's block.
        pairs: AllenNLP's name and ours of each parameter.
    """
    weights: dict[str, Tensor] = {}
    for place in [name.removesuffix(_MIX) for name, _ in pairs if name.endswith(_MIX)]:
        _, is_embedder, rest = place.partition(_EMBEDDER)
        block = model.get("elmo")
        if is_embedder:
            name = rest.removesuffix("._elmo")
            block = model["text_field_embedder"]["token_embedders"][name]
        assert isinstance(block, dict)
        read = _read(Path(block["options_file"]), Path(block["weight_file"]))
        weights |= {f"{place}.{_INSIDE}.{inner}": tensor for inner, tensor in read.items()}
    return weights


def _read(options_file: Path, weight_file: Path) -> dict[str, Tensor]:
    options = json.loads(options_file.read_text(encoding="utf-8"))
    with h5py.File(weight_file) as file:
        arrays = {**_of_characters(file, options), **_of_layers(file, options)}
    return {
        name: torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
        for name, array in arrays.items()
    }


def _of_characters(file: h5py.File, options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    of_cnn, place = options["char_cnn"], "_token_embedder"
    table = file["char_embed"][...]
    arrays = {f"{place}._char_embedding_weights": np.pad(table, ((1, 0), (0, 0)))}  # padding
    for number in range(len(of_cnn["filters"])):
        filters = file["CNN"][f"W_cnn_{number}"][...]
        arrays[f"{place}.char_conv_{number}.weight"] = filters[0].transpose(2, 1, 0)
        arrays[f"{place}.char_conv_{number}.bias"] = file["CNN"][f"b_cnn_{number}"][...]
    for number in range(of_cnn.get("n_highway") or 0):
        layer = file[f"CNN_high_{number}"]
        for kind, initial in (("weight", "W"), ("bias", "b")):
            # There the gate is that of the input, in bilm-tf that of what it becomes.
            parts = [layer[f"{initial}_transform"][...].T, -layer[f"{initial}_carry"][...].T]
            arrays[f"{place}._highways._layers.{number}.{kind}"] = np.concatenate(parts)
    arrays[f"{place}._projection.weight"] = file["CNN_proj"]["W_proj"][...].T
    arrays[f"{place}._projection.bias"] = file["CNN_proj"]["b_proj"][...]
    return arrays


def _of_layers(file: h5py.File, options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for layer in range(options["lstm"]["n_layers"]):
        for number, direction in enumerate(_DIRECTIONS):
            cell = file[f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"]
            place = f"_elmo_lstm.{direction}_{layer}"
            weight, projection = _in_order(cell["W_0"][...].T), cell["W_P_0"][...].T
            width = weight.shape[1] - len(projection)
            bias = _in_order(cell["B"][...])
            size = len(bias) // _NUM_GATES
            bias[size : 2 * size] += 1  # of the forget gate, which bilm-tf adds when it runs
            arrays |= {
                f"{place}.input_linearity.weight": weight[:, :width],
                f"{place}.state_linearity.weight": weight[:, width:],
                f"{place}.state_linearity.bias": bias,
                f"{place}.state_projection.weight": projection,
            }
    return arrays


def _in_order(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the gates in AllenNLP's order; bilm-tf has the new memory before the forget gate."""
    input_gate, memory, forget_gate, output_gate = np.split(rows, _NUM_GATES)
    return np.concatenate([input_gate, forget_gate, memory, output_gate])
