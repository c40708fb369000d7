"""A picture of a learning-rate range test."""

from __future__ import annotations

import math

from elmo_framework.analysis.chart import line_chart
from elmo_framework.analysis.curves import Curve, Panel
from elmo_framework.analysis.page import standalone
from elmo_framework.experiment.learning_rates import RateLosses


def rate_chart(result: RateLosses) -> str:
    """Draw the losses and the smoothed losses by learning rate, as an SVG."""
    first, last = min(result.rates), max(result.rates)
    powers = range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)
    ticks = {10.0**power: f"{10.0**power:g}" for power in powers}
    curves = (
        Curve("loss", tuple(zip(result.rates, result.losses, strict=True))),
        Curve("smoothed loss", tuple(zip(result.rates, result.smoothed, strict=True))),
    )
    panel = Panel("Training loss", curves, ticks=ticks, axis="learning rate")
    return standalone(line_chart(panel))
