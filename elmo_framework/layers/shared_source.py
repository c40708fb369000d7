"""Frozen sources that are shared by all that read the same files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal
from weakref import WeakValueDictionary

import torch

from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.cache.cached_layers import CachedLayers, CacheDtype
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.model.part import Reference

_shared: WeakValueDictionary[tuple[object, ...], LayerSource] = WeakValueDictionary()
"""The frozen and cached sources in use, by the content of their files and how they compute."""


def shared_source(
    fingerprint: Reference,
    read: Callable[[], LayerSource],
    reopen: Callable[..., LayerSource],
    *,
    cache: Literal["disk", "memory", "none"],
    cache_dtype: CacheDtype,
    precision: Precision,
    variant: str = "",
) -> LayerSource:
    """Return a frozen source, or its cached layers: the one in use where there is one.

    Args:
        fingerprint: of its files.
        read: reads the frozen source; under the device `meta`, without its weights.
        reopen: calls the function that called this one, with `cache` and `cache_dtype` or neither;
            picklable.
        cache: where layers are cached.
        cache_dtype: the type of cached numbers.
        precision: of the products.
        variant: the options that layers depend on in addition to files and precision.
    """
    device = torch.get_default_device()
    computed_in = precision, device, uses_cpu_code(device), torch.get_default_dtype()
    cached_in = cache, cache_dtype if cache != "none" else None
    key = fingerprint.digest, variant, *cached_in, *computed_in
    source = _shared.get(key)
    if source is None:
        if cache == "none":
            source = read()
        else:
            with torch.device("meta"):
                shape = read()
            source = CachedLayers(
                shape,
                reopen,
                fingerprint=fingerprint,
                cache=cache,
                dtype=cache_dtype,
                precision=precision,
            )
        _shared[key] = source
    return source
