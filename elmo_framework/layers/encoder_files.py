"""Encoders by their places: biLMs, by folder or name, and other encoders, by folder."""

from __future__ import annotations

from pathlib import Path

from elmo_framework.bilm.files.load import holds_bilm, reference
from elmo_framework.bilm.files.published import is_bilm_name, resolve_bilm
from elmo_framework.io.archives import local_folder
from elmo_framework.io.remote import as_path
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.bilm_source import open_layers
from elmo_framework.layers.encoder_format import encoder_format
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.layers.transformer_files import is_transformer, transformer_reference
from elmo_framework.layers.transformer_source import TransformerOptions, open_transformer
from elmo_framework.model.part import Reference


def open_encoder(
    place: str | Path,
    *,
    precision: Precision = "float32",
    options: TransformerOptions | None = None,
) -> LayerSource:
    """Open a frozen encoder.

    Args:
        place: the folder of a transformer, of an encoder in the format of a plugin, or of a biLM or
            of the run that trained it, or the name of a biLM.
        precision: of its products.
        options: of a transformer.

    Raises:
        DataError: there is none, or a file is damaged.
        RunError: a transformer needs the extra `transformers`.
        ValueError: an option or the precision does not fit.
    """
    if is_transformer(as_path(place)):
        return open_transformer(
            local_folder(place), options or TransformerOptions(), precision=precision
        )
    require_no_options(options)
    if (added := encoder_format(place)) is not None:
        return added.open(local_folder(place), precision=precision)
    return open_layers(resolve_bilm(place), precision=precision)


def is_encoder(place: str | Path) -> bool:
    """Return whether a place is that of an encoder, or of the run that trained one."""
    path = as_path(place)
    is_known = is_bilm_name(place) or is_transformer(path) or encoder_format(place) is not None
    return is_known or holds_bilm(path)


def require_no_options(options: TransformerOptions | None) -> None:
    """Raise ValueError for options of a transformer, where the encoder is another one."""
    if options not in (None, TransformerOptions()):
        raise ValueError("max_length, sub_token_mode and layers are for transformers")


def encoder_reference(place: str | Path) -> Reference:
    """Return the path and the digest of the files of an encoder.

    Raises:
        DataError: there is none, or a file is missing.
    """
    if is_transformer(as_path(place)):
        return transformer_reference(local_folder(place))
    if (added := encoder_format(place)) is not None:
        return added.reference(local_folder(place))
    return reference(resolve_bilm(place))
