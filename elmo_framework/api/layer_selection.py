"""Select some of the layers of a text by number or by name, or average them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Shaped
from numpy.typing import NDArray

from elmo_framework.errors import allowed

LayerSelection: TypeAlias = Literal["all", "average", "top"] | int | Sequence[int]

_NAMES = ("all", "average", "top")


def select_layers(
    layers: Shaped[NDArray[np.float32], "layers *words dim"], selection: LayerSelection
) -> Shaped[NDArray[np.float32], "*selected dim"]:
    """Return the selected layers; a number or a name for one drops the axis, as in NumPy.

    Args:
        layers: those of a text.
        selection: `all`, their `average`, the `top` one, a number (negative ones count from the
            top), or a list of numbers.

    Raises:
        ValueError: there is no such layer, or the list is empty.
    """
    if isinstance(selection, str):
        if selection not in _NAMES:
            raise ValueError(f"layers is {selection!r}; {allowed(selection, _NAMES)}")
        if selection == "average":
            return np.asarray(layers.mean(axis=0))
        return layers if selection == "all" else layers[-1]
    numbers, size = np.atleast_1d(np.asarray(selection)), len(layers)
    is_sound = numbers.ndim == 1 and numbers.size and np.issubdtype(numbers.dtype, np.integer)
    if not is_sound or numbers.min() < -size or numbers.max() >= size:
        names = ", ".join(map(repr, _NAMES))
        raise ValueError(
            f"layers is {selection!r}; choose from {names}, a number from {-size} to {size - 1}, "
            "or a list of such numbers"
        )
    return layers[int(numbers[0]) if np.ndim(selection) == 0 else list(numbers)]
