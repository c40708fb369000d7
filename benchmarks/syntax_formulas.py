"""The formulas of SyntaxGym's suites: predictions about the surprisals of regions.

    [(6;%gap%) < (6;%no_gap%)] & [(7;%gap%) - (7;%no_gap%)] > 0

`(6;%gap%)` is the sum of bits of region 6 in the condition `gap`, `*` that of all regions. `&` and
`|` bind loosest, then `<`, `>` and `=`, then `+` and `-` from the left; brackets of both kinds
group. `=` holds within 0.001, as in SyntaxGym.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias, final

Surprisals: TypeAlias = Mapping[tuple[str, int], float]
"""Bits by condition and number of region."""

Value: TypeAlias = bool | float
Term: TypeAlias = Callable[[Surprisals], Value]

_TOKEN = re.compile(
    r"\s*(?:\(\s*(?P<region>\d+|\*)\s*;\s*%(?P<condition>[^%]+)%\s*\)"
    r"|(?P<number>\d+(?:\.\d+)?)|(?P<sign>[\[\]()&|<>=+-]))"
)
_CLOSING = {"[": "]", "(": ")"}
_TOLERANCE = {"rel_tol": 1e-5, "abs_tol": 1e-3}
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "=": lambda one, other: math.isclose(one, other, **_TOLERANCE),
}


def parse_formula(text: str) -> Callable[[Surprisals], bool]:
    """Return the test of a formula.

    Raises:
        ValueError: it is not one. The test raises it for a region or a condition that is missing.
    """
    parser = _Parser(text)
    term = parser.any_of()
    parser.require_end()

    def holds(surprisals: Surprisals) -> bool:
        value = term(surprisals)
        if not isinstance(value, bool):
            raise ValueError(f"{text!r} compares nothing")
        return value

    return holds


@final
class _Parser:
    """Reads a formula from left to right; each method reads one level of its grammar."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text.strip(), 0

    def any_of(self) -> Term:
        term = self._all_of()
        while self._take("|"):
            term = _both(operator.or_, bool, term, self._all_of())
        return term

    def require_end(self) -> None:
        if self._at < len(self._text):
            raise self._error()

    def _all_of(self) -> Term:
        term = self._comparison()
        while self._take("&"):
            term = _both(operator.and_, bool, term, self._comparison())
        return term

    def _comparison(self) -> Term:
        term = self._sum()
        for sign, compare in _COMPARISONS.items():
            if self._take(sign):
                return _both(compare, float, term, self._sum())
        return term

    def _sum(self) -> Term:
        term = self._atom()
        while sign := self._take("+") or self._take("-"):
            combine = operator.add if sign == "+" else operator.sub
            term = _both(combine, float, term, self._atom())
        return term

    def _atom(self) -> Term:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise self._error()
        sign = match["sign"]
        if sign is not None and sign not in _CLOSING:
            raise self._error()
        self._at = match.end()
        if match["number"] is not None:
            number = float(match["number"])
            return lambda surprisals: number
        if sign is None:
            return _region(match["condition"], match["region"])
        term = self.any_of()
        if not self._take(_CLOSING[sign]):
            raise self._error()
        return term

    def _take(self, sign: str) -> str | None:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match["sign"] != sign:
            return None
        self._at = match.end()
        return sign

    def _error(self) -> ValueError:
        rest = self._text[self._at :] or "the end"
        return ValueError(f"{self._text!r} is not a formula: unexpected {rest!r}")


def _region(condition: str, region: str) -> Term:
    def bits(surprisals: Surprisals) -> float:
        found = [
            value
            for (name, number), value in surprisals.items()
            if name == condition and region in ("*", str(number))
        ]
        if not found:
            raise ValueError(f"no region {region} in a condition {condition!r}")
        return math.fsum(found)

    return bits


def _both(combine: Callable[..., Value], kind: type, one: Term, other: Term) -> Term:
    """Combine two terms whose values are numbers, or both truths."""

    def combined(surprisals: Surprisals) -> Value:
        values = one(surprisals), other(surprisals)
        if any(isinstance(value, bool) != (kind is bool) for value in values):
            raise ValueError(f"a {'comparison' if kind is bool else 'number'} is missing")
        return combine(*values)

    return combined
