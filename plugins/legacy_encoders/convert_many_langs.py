"""The command `elmo-convert-many-langs`: a model of ELMoForManyLangs becomes a biLM.

Its pickles hold tensors by name. `torch.load(weights_only=True)` reads them and runs no code.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path, PurePosixPath
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from elmo_framework import DataError, ElmoFrameworkError
from elmo_framework.bilm.files import bilm_files, read_bilm, save_bilm
from elmo_framework.io import replacing

from .many_langs import ManyLangsTokenEncoder, padding_last, read_characters, read_words

_DESCRIPTION = """\
Convert a model of ELMoForManyLangs into the folder of a biLM.

SOURCE is the unpacked folder: config.json, token_embedder.pkl, encoder.pkl, char.dic and word.dic.
"""

_SAMPLE = "configs/cnn_50_100_512_4096_sample.json of the package elmoformanylangs"
_WORDS_FILE, _CHARACTERS_FILE = "word.dic", "char.dic"
_WRITTEN = {"bilm.json", "weights.safetensors", _WORDS_FILE, _CHARACTERS_FILE}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code: 2 for an error that the user can fix."""
    parser = ArgumentParser(
        "elmo-convert-many-langs",
        description=_DESCRIPTION,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", type=Path, metavar="SOURCE", help="the published folder")
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="the folder to write")
    parser.add_argument("--config", type=Path, help=f"the sizes of its layers, such as {_SAMPLE}")
    parser.add_argument("--force", action="store_true", help="overwrite the output")
    options = parser.parse_args(arguments)
    try:
        convert_many_langs(
            options.source, options.output, config=options.config, force=options.force
        )
    except (ElmoFrameworkError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stderr.write(f"written: {options.output}\n")
    return 0


def convert_many_langs(
    source: Path, output: Path, *, config: Path | None = None, force: bool = False
) -> None:
    """Convert a published model into the folder of a biLM.

    Args:
        source: its folder.
        output: the folder of the biLM; written aside and renamed.
        config: the sizes of its layers; by default the file that its `config.json` names.
        force: whether a folder at `output` is replaced; it must be one that this function wrote.

    Raises:
        DataError: a file is missing or damaged, the model is of a kind that was not published, or
            there is something at `output` that may not be replaced.
        OSError: the output cannot be written.
    """
    if output.exists() and not force:
        raise DataError("output already exists; pass --force to overwrite", path=output)
    if output.resolve() in (source.resolve(), *source.resolve().parents):
        raise DataError("the output would replace the model that is read", path=output)
    _check_replaceable(output)
    path = config or _config_file(source)
    try:
        words, context = _sections(_read_json(path))
        description = _description(words, context)
        tensors = {
            **dict(_token_encoder(source, words)),
            **dict(_lstms(_State.read(source / "encoder.pkl"), context["n_layers"])),
        }
    except (KeyError, TypeError, ValueError) as error:
        message = f"not a configuration of ELMoForManyLangs: {error!r}"
        raise DataError(message, path=path) from error
    with replacing(output) as aside:
        aside.mkdir(parents=True)
        (aside / "bilm.json").write_text(json.dumps(description), encoding="utf-8")
        for name in (each for each in _dictionaries(words) if each):
            (aside / name).write_bytes((source / name).read_bytes())
        contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
        save_file(contiguous, aside / "weights.safetensors")
        try:
            bilm = read_bilm(bilm_files(aside))
        except ElmoFrameworkError as error:
            raise DataError(f"its weights do not fit {path.name}: {error}", path=source) from error
        save_bilm(bilm, aside)  # records the package of the plugin


def _check_replaceable(output: Path) -> None:
    """Raise DataError if there is anything but a converted biLM, which would be deleted."""
    if not output.exists():
        return
    if not output.is_dir():
        raise DataError("not a folder; choose another output", path=output)
    names = {path.name for path in output.iterdir()}
    if others := sorted(names - _WRITTEN):
        message = f"has other files than a converted biLM: {others[0]}; choose another output"
        raise DataError(message, path=output)
    if names and "bilm.json" not in names:
        message = "has no bilm.json, so it is not a converted biLM; choose another output"
        raise DataError(message, path=output)


class _State(dict[str, Tensor]):
    """The tensors of a file by name."""

    path: Path

    @classmethod
    def read(cls, path: Path) -> _State:
        """Read a file.

        Raises:
            DataError: it is missing, or holds anything else.
        """
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, EOFError, UnpicklingError) as error:
            raise DataError(f"cannot read the weights: {error}", path=path) from error
        if not isinstance(state, Mapping) or not all(
            isinstance(each, Tensor) for each in state.values()
        ):
            raise DataError("expected tensors by name", path=path)
        tensors = cls(state)
        tensors.path = path
        return tensors

    def __missing__(self, name: str) -> Tensor:
        raise DataError(f"no tensor {name!r}", path=self.path)

    def table(self, name: str, items: Sequence[str]) -> Tensor:
        """Return a table with a row for each item of a dictionary.

        Raises:
            DataError: it has another number of rows.
        """
        if len(self[name]) != len(items):
            rows = f"{name} has {len(self[name])} rows"
            raise DataError(f"{rows}, and its dictionary {len(items)} items", path=self.path)
        return self[name]


def _sections(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the configurations of the token embedder and of the encoder."""
    words, context = dict(options["token_embedder"]), dict(options["encoder"])
    names = words["name"].lower(), context["name"].lower()
    if names != ("cnn", "elmo"):
        raise ValueError(
            f"the parts {' and '.join(names)} are not supported; allowed: cnn and elmo"
        )
    if context["dim"] <= context["projection_dim"]:
        raise ValueError("dim of the encoder must be above projection_dim")
    return words, context


def _dictionaries(words: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the files of words and of characters; None where they are not read."""
    return (
        _WORDS_FILE if words["word_dim"] else None,
        _CHARACTERS_FILE if words["char_dim"] else None,
    )


def _description(words: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of the biLM."""
    words_file, characters_file = _dictionaries(words)
    return {
        "plugins": [ManyLangsTokenEncoder.__module__],
        "token_encoder": {
            "type": "many_langs",
            "words_file": words_file,
            "characters_file": characters_file,
            **({"word_dim": words["word_dim"]} if words_file else {}),
            **({"character_dim": words["char_dim"]} if characters_file else {}),
            "filters": words["filters"],
            "num_highway": words["n_highway"],
            "activation": words["activation"],
            "max_characters_per_token": words["max_characters_per_token"],
            "projection_dim": context["projection_dim"],
        },
        "context_layers": {
            "type": "elmo_lstm",
            "cell_size": context["dim"],
            "projection_dim": context["projection_dim"],
            "num_layers": context["n_layers"],
            "cell_clip": context["cell_clip"] or None,
            "projection_clip": context["proj_clip"] or None,
        },
    }


def _token_encoder(source: Path, options: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    state = _State.read(source / "token_embedder.pkl")
    words_file, characters_file = _dictionaries(options)
    ours = "token_encoder"
    if words_file:
        words = read_words(source / words_file)
        yield f"{ours}.word_vectors", state.table("word_emb_layer.embedding.weight", words)
    if characters_file:
        characters = read_characters(source / characters_file)
        table = state.table("char_emb_layer.embedding.weight", characters)
        yield f"{ours}.char_cnn.table", table[padding_last(characters)]
        for number, kind in product(range(len(options["filters"])), ("weight", "bias")):
            name = f"convolutions.{number}.{kind}"
            yield f"{ours}.char_cnn.{name}", state[name]
        for number, kind in product(range(options["n_highway"]), ("weight", "bias")):
            transform, carry = state[f"highways._layers.{number}.{kind}"].chunk(2)
            layer = f"{ours}.highway.layers.{number}"
            yield f"{layer}.transform.{kind}", transform
            # Their gate is that of the input, ours that of the transformed vector.
            yield f"{layer}.carry.{kind}", -carry
    for kind in ("weight", "bias"):
        yield f"{ours}.projection.{kind}", state[f"projection.{kind}"]


def _lstms(state: _State, num_layers: int) -> Iterator[tuple[str, Tensor]]:
    for direction, layer in product(("forward", "backward"), range(num_layers)):
        theirs = f"{direction}_layer_{layer}"
        ours = f"context_layers.{direction}_lstm.cells.{layer}"
        yield f"{ours}.input_weight", _gates(state[f"{theirs}.input_linearity.weight"])
        yield f"{ours}.recurrent_weight", _gates(state[f"{theirs}.state_linearity.weight"])
        entered, new, forgotten, given = _gates(state[f"{theirs}.state_linearity.bias"]).chunk(4)
        # Our LSTM adds 1 to the forget gate.
        yield f"{ours}.bias", torch.cat([entered, new, forgotten - 1, given])
        yield f"{ours}.projection_weight", state[f"{theirs}.state_projection.weight"]


def _gates(rows: Tensor) -> Tensor:
    """Bring the gates of AllenNLP's LSTM into the order of TensorFlow's."""
    entered, forgotten, new, given = rows.chunk(4)
    return torch.cat([entered, new, forgotten, given])


def _config_file(source: Path) -> Path:
    """Return the file that `config.json` names, which may be a path of another machine."""
    path = source / "config.json"
    stated = _read_json(path).get("config_path")
    if not isinstance(stated, str):
        raise DataError("no path of a configuration; expected the key config_path", path=path)
    for candidate in (source / stated, source / PurePosixPath(stated).name):
        if candidate.is_file():
            return candidate
    message = f"the configuration {stated} is missing; pass --config FILE, such as {_SAMPLE}"
    raise DataError(message, path=path)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"cannot read this configuration: {error}", path=path) from error
