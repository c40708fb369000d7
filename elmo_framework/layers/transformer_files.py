"""Transformers of Hugging Face in a folder: what has to be in it, and reading it.

`transformers` is imported here and nowhere else. Nothing is downloaded, no code of a folder is
run, and weights are read from safetensors only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn

from elmo_framework.errors import DataError
from elmo_framework.io.extras import import_extra
from elmo_framework.io.files import digest
from elmo_framework.model.part import Reference

CONFIG = "config.json"
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_TOKENIZERS = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
)
_TOKENIZER_OPTIONS = (
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
)
_UNSAFE = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack")

_ERRORS = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    ImportError,
    RuntimeError,
    SafetensorError,
)
"""The errors that the library raises for damaged files."""

_OFFLINE = {"local_files_only": True, "trust_remote_code": False}


def is_transformer(folder: Path) -> bool:
    """Return whether a folder has the configuration of a transformer, also a damaged one."""
    try:
        return _is_configuration(folder / CONFIG)
    except OSError:
        return False
    except ValueError:
        return _has_weights(folder)


def require_transformer(folder: Path) -> None:
    """Refuse a folder that lacks a file of a transformer.

    Raises:
        DataError: the configuration, the weights as safetensors or the tokenizer is missing, or
            the configuration is damaged.
    """
    if not (folder / CONFIG).is_file():
        message = f"no folder of a transformer: it has no {CONFIG}"
        raise DataError(f"{message}; name a folder as `save_pretrained` writes it", path=folder)
    try:
        is_configuration = _is_configuration(folder / CONFIG)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read it as JSON: {error}", path=folder / CONFIG) from error
    if not is_configuration:
        raise DataError("not the configuration of a transformer", path=folder / CONFIG)
    if not _has_weights(folder):
        unsafe = [name for name in _UNSAFE if (folder / name).is_file()]
        there = f" but {unsafe[0]}, which is not read because it can run code" if unsafe else ""
        raise DataError(
            f"no {_WEIGHTS[0]}{there}; save the weights as safetensors with `save_pretrained`",
            path=folder,
        )
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        message = f"no tokenizer: none of {', '.join(_TOKENIZERS)}; save it next to the weights"
        raise DataError(message, path=folder)


def _is_configuration(path: Path) -> bool:
    config = json.loads(path.read_text(encoding="utf-8"))
    return isinstance(config, dict) and "model_type" in config


def _has_weights(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _WEIGHTS)


def transformer_reference(folder: Path) -> Reference:
    """Return the path and the digest of a transformer; under the device `meta`, without weights.

    Raises:
        DataError: a file is missing or cannot be read.
    """
    require_transformer(folder)
    paths = _small_files(folder)
    if torch.get_default_device().type != "meta":
        paths += sorted(folder.glob("model*.safetensors"))
    try:
        return Reference(folder.absolute(), digest(paths))
    except OSError as error:
        raise DataError(f"cannot read the transformer: {error}", path=folder) from error


def files_of_transformer(folder: Path) -> list[Path]:
    """Return the files of a transformer that are read: configuration, tokenizer and weights."""
    return [*_small_files(folder), *sorted(folder.glob("model*.safetensors*"))]


def _small_files(folder: Path) -> list[Path]:
    names = [CONFIG, *_TOKENIZERS, *_TOKENIZER_OPTIONS]
    return [folder / name for name in names if (folder / name).is_file()]


def read_tokenizer(folder: Path) -> Any:
    """Return the fast tokenizer of a folder.

    Raises:
        DataError: there is none, or it is damaged.
        RunError: the extra `transformers` is not installed.
    """
    require_transformer(folder)
    with _reading(folder, "tokenizer") as transformers:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **_OFFLINE)
    if not tokenizer.is_fast:
        raise DataError(
            "only a slow tokenizer, which cannot map its pieces to words; save a fast one "
            "(tokenizer.json)",
            path=folder,
        )
    return tokenizer


def read_encoder(folder: Path) -> nn.Module:
    """Return the encoder of a transformer, in `eval()`; of an encoder-decoder, its encoder.

    Under the device `meta` no weights are read.

    Raises:
        DataError: a file is missing or damaged, or weights are missing.
        RunError: the extra `transformers` is not installed.
    """
    require_transformer(folder)
    with _reading(folder, "transformer") as transformers:
        model = _read(transformers, transformers.AutoModel, folder)
    encoder = model.get_encoder() if model.config.is_encoder_decoder else model
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None  # reads the first vector for classification, after all layers
    result: nn.Module = encoder.eval()
    return result


def read_language_model(folder: Path) -> nn.Module:
    """Return a transformer with the head that predicts the next piece, in `eval()`.

    Raises:
        DataError: it predicts no next piece, or a file is missing or damaged.
        RunError: the extra `transformers` is not installed.
    """
    require_transformer(folder)
    with _reading(folder, "transformer") as transformers:
        config = transformers.AutoConfig.from_pretrained(str(folder), **_OFFLINE)
        if not _has_language_model(config):
            raise DataError(
                f"this transformer ({config.model_type}) has no probability of the next word; "
                "score with a causal language model, such as GPT-2's or Llama's kind, or a biLM",
                path=folder,
            )
        model: nn.Module = _read(transformers, transformers.AutoModelForCausalLM, folder)
    return model.eval()


def _has_language_model(config: Any) -> bool:
    """Return whether the weights are those of a decoder with its softmax."""
    has_head = any("LMHead" in name or "CausalLM" in name for name in config.architectures or ())
    return has_head and not config.is_encoder_decoder


def _read(transformers: Any, family: Any, folder: Path) -> Any:
    """Read a model in the default floating-point type, or build it under the device `meta`."""
    if torch.get_default_device().type == "meta":
        config = transformers.AutoConfig.from_pretrained(str(folder), **_OFFLINE)
        return family.from_config(config, trust_remote_code=False)
    model, info = family.from_pretrained(
        str(folder),
        use_safetensors=True,
        dtype=torch.get_default_dtype(),
        output_loading_info=True,
        **_OFFLINE,
    )
    unused = ("pooler.", "decoder.") if model.config.is_encoder_decoder else ("pooler.",)
    missing = [name for name in sorted(info["missing_keys"]) if not name.startswith(unused)]
    if missing:
        raise DataError(f"no weights for {missing[0]} and {len(missing) - 1} more", path=folder)
    return model


@contextmanager
def _reading(folder: Path, what: str) -> Iterator[Any]:
    """Yield the library; without its messages, and with its errors as DataError."""
    transformers = import_extra("transformers", "transformers")
    log = transformers.utils.logging
    verbosity, has_bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield transformers
    except _ERRORS as error:
        reason = str(error).strip().split("\n")[0]
        raise DataError(f"cannot read the {what}: {reason}", path=folder) from error
    finally:
        log.set_verbosity(verbosity)
        if has_bars:
            log.enable_progress_bar()
