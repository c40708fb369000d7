"""Names of the ways to make one vector per sentence, without NumPy."""

from __future__ import annotations

from typing import Literal, TypeAlias

Pool: TypeAlias = Literal["none", "mean", "max", "first_last"]
"""How the vectors of the words of a sentence become one."""

POOLS: tuple[Pool, ...] = ("mean", "max", "first_last")
"""Those that give one vector."""
