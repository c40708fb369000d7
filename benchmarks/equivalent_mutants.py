"""Mutants that no unit test of their folder can notice, by their names, and why."""

from __future__ import annotations

from collections.abc import Mapping

EQUIVALENT: Mapping[str, str] = {
    "0fd9140a0f": "estimate.py: `start` sets the number before anything reads it",
    "2101976c9c": "tests/architecture: the last statement of every model is `self.initialize`",
    "7bfce0322d": "shard_files.py: NumPy loads no pickles by default",
}
