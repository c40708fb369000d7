"""From the lines that measurements print to a table with ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple, TypeAlias

_LARGER_IS_BETTER = "_per_s"
_SMALLER_IS_BETTER = ("import_s", "load_s", "peak_rss_mib")
_WHOLE = "-"
"""The configuration of a figure that is not of one row but of the whole process."""


class Key(NamedTuple):
    """What a figure is.

    Attributes:
        config: of the measurement.
        unit: its key in the line.
    """

    config: str
    unit: str


Figures: TypeAlias = Mapping[Key, Sequence[float]]
"""The values of all rounds."""


def figures_of(lines: Sequence[Mapping[str, Any]]) -> Figures:
    """Collect the figures of the rounds of one measurement."""
    found: dict[Key, list[float]] = {}
    for line in lines:
        for row in (line, *line.get("rows", [])):
            for unit, value in row.items():
                if unit.endswith(_LARGER_IS_BETTER) or unit in _SMALLER_IS_BETTER:
                    found.setdefault(Key(row.get("config", _WHOLE), unit), []).append(value)
    return found


def ratio(key: Key, ours: Figures, other: Figures) -> float | None:
    """Return how many times better we are than another; None where it has no such figure.

    It is compared by the same configuration, or else by the best that it has.
    """
    own = median(ours[key])
    if key.unit in _SMALLER_IS_BETTER:
        return median(other[key]) / own if key in other else None
    if key in other:
        return own / median(other[key])
    best = max((median(v) for held, v in other.items() if held.unit == key.unit), default=None)
    return None if best is None else own / best


def table(measured: Mapping[str, Figures]) -> str:
    """Lay out all figures in Markdown; behind those of ours, the ratios to the others."""
    others = [name for name in measured if not _is_ours(name)]
    heading = ["who", "configuration", "figure", "median [min..max]"]
    rows = [heading + [f"times better than {name}" for name in others]]
    rows.append(["---"] * len(rows[0]))
    for name, figures in measured.items():
        for key, values in figures.items():
            spread = f"{median(values):.4g} [{min(values):.4g}..{max(values):.4g}]"
            ratios = [_shown(ratio(key, figures, measured[other])) for other in others]
            shown = ratios if _is_ours(name) else [""] * len(others)
            rows.append([name, key.config, key.unit, spread, *shown])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def summary(measured: Mapping[str, Mapping[str, Figures]]) -> str:
    """Lay out in Markdown who is faster at each work, and how many times.

    Args:
        measured: the figures of everyone, by the name of the comparison.
    """
    rows = [["work", "configuration", "ours", "fastest other", "times faster"], ["---"] * 5]
    for work, figures in measured.items():
        others = {name: held for name, held in figures.items() if not _is_ours(name)}
        for name in filter(_is_ours, figures):
            for key, values in figures[name].items():
                ratios = {other: ratio(key, figures[name], held) for other, held in others.items()}
                known = {other: times for other, times in ratios.items() if times is not None}
                if key.unit.endswith(_LARGER_IS_BETTER) and known:
                    nearest = min(known, key=known.__getitem__)
                    shown = f"{known[nearest]:.2f}"
                    rows.append(
                        [f"{work}: {name}", key.config, f"{median(values):.4g}", nearest, shown]
                    )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _is_ours(name: str) -> bool:
    return name.startswith("ours")


def _shown(times: float | None) -> str:
    return "" if times is None else f"{times:.2f}"
