"""Open the layers of a biLM: frozen, cached or trained with the task."""

from __future__ import annotations

from functools import partial
from typing import Literal
from weakref import WeakValueDictionary

import torch

from elmo_framework.bilm.files.load import BiLmFiles, read_bilm, reference
from elmo_framework.bilm.files.published import script_check
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.bilm_source import FrozenBiLm, TrainedBiLm
from elmo_framework.layers.cache.cached_layers import CachedLayers, CacheDtype
from elmo_framework.layers.layer_source import LayerSource

_shared: WeakValueDictionary[tuple[object, ...], LayerSource] = WeakValueDictionary()
"""The frozen and cached sources in use, by the content of their files and how they compute."""


def open_layers(
    files: BiLmFiles,
    *,
    requires_grad: bool = False,
    cache: Literal["disk", "memory", "none"] = "none",
    cache_dtype: CacheDtype = "float16",
    precision: Precision = "float32",
) -> LayerSource:
    """Open a biLM.

    A frozen or cached one that is in use is shared by all that open files with the same content.

    Args:
        files: of the biLM.
        requires_grad: whether it is trained with the task; the other options have no effect then.
        cache: where layers are cached.
        cache_dtype: the type of cached numbers.
        precision: of the products of a frozen biLM.

    Raises:
        DataError: a file cannot be read, or the two do not fit.
    """
    if requires_grad:
        return TrainedBiLm(read_bilm(files, requires_grad=True))
    fingerprint = reference(files)
    computed_in = precision, torch.get_default_device(), torch.get_default_dtype()
    key = fingerprint.digest, cache, cache_dtype if cache != "none" else None, *computed_in
    source = _shared.get(key)
    if source is None:
        if cache == "none":
            source = FrozenBiLm(read_bilm(files), precision, script_check(files), fingerprint)
        else:
            with torch.device("meta"):
                shape = FrozenBiLm(read_bilm(files))
            source = CachedLayers(
                shape,
                partial(open_layers, files, precision=precision),
                fingerprint=fingerprint,
                cache=cache,
                dtype=cache_dtype,
                precision=precision,
            )
        _shared[key] = source
    return source


def open_frozen(files: BiLmFiles, *, precision: Precision = "float32") -> FrozenBiLm:
    """Open a frozen biLM, for a caller that needs the model itself; see `open_layers`."""
    source = open_layers(files, precision=precision)
    assert isinstance(source, FrozenBiLm)
    return source
