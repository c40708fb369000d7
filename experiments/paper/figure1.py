"""Learned layer weights of each task, from the records of Table 1, which has the runs.

This is Figure 2 of the published paper (its Figure 1 has the learning curves).
`python experiments/paper/evidence.py` writes experiments/results/figure1.svg.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from elmo_framework.study import Record

TASKS = ("squad", "snli", "srl", "coreference", "ner", "sst")
_WEIGHT = re.compile(r"(.*)\.mix\.s_(\d+)")
_PLACES = {"output_embedder": "output"}  # all other embedders are at the input


class LayerWeights(NamedTuple):
    """The layer weights of a task at one place, averaged over the seeds.

    Attributes:
        task: its config.
        place: `input` or `output`.
        weights: softmax-normalized, of the token layer first.
        num_runs: how many runs they are from.
    """

    task: str
    place: str
    weights: tuple[float, ...]
    num_runs: int


def layer_weights(records: Iterable[Record], variant: str = "mini") -> Iterator[LayerWeights]:
    """Yield the weights of each task at the input and at the output, as far as there are any."""
    runs = [record for record in records if record.variant == variant]
    for task in TASKS:
        of_place: dict[str, dict[int, list[float]]] = {"input": {}, "output": {}}
        for record in runs:
            for name, value in record.monitored.items():
                if record.config == task and (match := _WEIGHT.fullmatch(name)):
                    place = of_place[_PLACES.get(match[1], "input")]
                    place.setdefault(int(match[2]), []).append(value)
        for place, layers in of_place.items():
            if layers:
                weights = tuple(mean(layers[layer]) for layer in sorted(layers))
                yield LayerWeights(task, place, weights, len(layers[0]))


def draw(rows: Iterable[LayerWeights], path: Path) -> None:
    """Write a picture: a row for each task and place, a column for each layer."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = list(rows)
    # The same records make the same file.
    with mpl.rc_context({"svg.hashsalt": "figure1", "font.size": 9}):
        figure = Figure(figsize=(4.5, 0.6 + 0.32 * len(rows)), layout="constrained")
        axes = figure.subplots()
        image = axes.imshow([row.weights for row in rows], vmin=0, vmax=1, cmap="Blues")
        axes.set_yticks(range(len(rows)), [f"{row.task}, {row.place}" for row in rows])
        num_layers = max(len(row.weights) for row in rows)
        axes.set_xticks(range(num_layers), ["token", *map(str, range(1, num_layers))])
        axes.set_xlabel("layer")
        for at, row in enumerate(rows):
            for layer, weight in enumerate(row.weights):
                color = "white" if weight > 0.6 else "black"
                axes.text(layer, at, f"{weight:.2f}", ha="center", va="center", color=color)
        figure.colorbar(image, shrink=0.8)
        figure.savefig(path, metadata={"Date": None})
