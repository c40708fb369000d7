"""Names of the precisions of products, without PyTorch."""

from __future__ import annotations

from typing import Literal, TypeAlias

Precision: TypeAlias = Literal["float32", "bfloat16", "int8"]
"""Precision of products; inputs and outputs have the type of the weights."""
