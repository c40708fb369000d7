"""Types of whole numbers in constructors, with bounds that keep every size computable.

The largest model of the field's papers has an LSTM of 8,192 units. Sizes far beyond would overflow
in a product of two, or take minutes to build even where no weight gets memory.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from annotated_types import Ge, Gt, Le

MAX_LAYERS, MAX_WIDTH, MAX_COUNT = 100, 1000, 10**12

Dim: TypeAlias = Annotated[int, Gt(0), Le(65_536)]
"""The width of a vector, or a number of filters."""

NumLayers: TypeAlias = Annotated[int, Gt(0), Le(MAX_LAYERS)]
"""How many layers are stacked."""

NumLayersOrZero: TypeAlias = Annotated[int, Ge(0), Le(MAX_LAYERS)]
"""How many layers are stacked, if any."""

Width: TypeAlias = Annotated[int, Gt(0), Le(MAX_WIDTH)]
"""How many words or characters a convolution or a span covers."""

Count: TypeAlias = Annotated[int, Gt(0), Le(MAX_COUNT)]
"""How many examples, words or updates."""

CountOrZero: TypeAlias = Annotated[int, Ge(0), Le(MAX_COUNT)]
"""How many examples, words or updates, if any."""
