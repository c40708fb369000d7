"""Explanations for reading: words shaded by their scores, in a terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TextIO

from rich.console import Console
from rich.text import Text

from elmo_framework.analysis.page import render
from elmo_framework.experiment.explain import Explanation

_NUM_LISTED = 5
_FOR, _AGAINST = (42, 138, 75), (209, 85, 27)
"""The colors of words for and against a label; the signs of the scores are listed too."""

COLORS = {"for": _FOR, "against": _AGAINST}
"""The same by name, for templates."""

_FAINTEST = 0.05
"""Words with a smaller part of the largest score are not shaded."""


def print_shaded(explanation: Explanation, file: TextIO) -> None:
    """Print an explanation for a person; in color on a terminal, unless `NO_COLOR` is set."""
    Console(file=file).print(shaded(explanation), soft_wrap=True)


def shaded(explanation: Explanation) -> Text:
    """Return the label, the words shaded by their scores, and the strongest ones in numbers."""
    lines = [_title(explanation)]
    for words, strengths in zip(explanation.sentences, _strengths(explanation), strict=True):
        pairs = zip(words, strengths, strict=True)
        lines.append(Text("  ") + Text(" ").join(Text(w, style=_style(s)) for w, s in pairs))
    listed = ", ".join(f"{word} {score:+.3f}" for word, score in strongest(explanation))
    lines.append(Text(f"  {listed}", style="dim"))
    for name, weights in explanation.layer_weights.items():
        shown = ", ".join(f"{key} {value:.2f}" for key, value in weights.items())
        lines.append(Text(f"  {name}: {shown}", style="dim"))
    return Text("\n").join(lines)


def strongest(explanation: Explanation, number: int = _NUM_LISTED) -> list[tuple[str, float]]:
    """Return the words with the largest scores, for or against the label, and their scores."""
    pairs = zip(chain(*explanation.sentences), chain(*explanation.scores), strict=True)
    return sorted(pairs, key=lambda pair: -abs(pair[1]))[:number]


def explanation_page(title: str, explanations: Sequence[Explanation]) -> str:
    """Return explanations as an HTML page without scripts or other files."""
    return render(
        "explanations.html",
        title=title,
        explanations=explanations,
        strongest=strongest,
        shaded_words=shaded_words,
        colors=COLORS,
    )


def shaded_words(explanation: Explanation) -> Iterator[list[tuple[str, float, float]]]:
    """Yield for each sentence its words with their scores and strengths, which are in [-1, 1]."""
    strengths = _strengths(explanation)
    for columns in zip(explanation.sentences, explanation.scores, strengths, strict=True):
        yield list(zip(*columns, strict=True))


def _strengths(explanation: Explanation) -> list[list[float]]:
    """Return the scores in [-1, 1], relative to the largest of all."""
    largest = max(map(abs, chain(*explanation.scores)), default=0.0) or 1.0
    return [[score / largest for score in scores] for scores in explanation.scores]


def _title(explanation: Explanation) -> Text:
    word = explanation.word
    where = "" if word is None else f" of {explanation.sentences[0][word]!r}"
    return Text.assemble(
        (explanation.label, "bold"),
        where,
        f" {explanation.probability:.1%}",
        (f" (baseline {explanation.baseline:.1%}{_remarks(explanation)})", "dim"),
    )


def _remarks(explanation: Explanation) -> str:
    calibrated = ", calibrated" if explanation.is_calibrated else ""
    return calibrated + ("" if explanation.is_predicted else ", not the predicted label")


def _style(strength: float) -> str:
    """Return a background between the terminal's and the full color, with black text."""
    if abs(strength) < _FAINTEST:
        return ""
    color = _FOR if strength > 0 else _AGAINST
    mixed = (round(255 - (255 - part) * abs(strength)) for part in color)
    return "black on rgb({},{},{})".format(*mixed)
