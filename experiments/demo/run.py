"""Pretrain a tiny biLM, train taggers without it, with it and with `mini`, and compare them.

The script prints the command of every step, so that you can run each one yourself.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_framework import main as elmo

HERE = Path("experiments/demo")
RUNS = Path("runs/demo")


@dataclass(frozen=True)
class Tagger:
    """A trained tagger: one line of the table and one curve of the chart."""

    name: str
    run: Path
    seconds: float

    @property
    def f1(self) -> float:
        """Span F1 on the test sentences."""
        scores = json.loads((self.run / "test.json").read_text())
        return float(next(iter(scores.values()))["f1-measure-overall"])

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the run."""
        metrics: dict[str, Any] = json.loads((self.run / "metrics.json").read_text())
        return metrics

    @property
    def curve(self) -> tuple[list[float], list[float]]:
        """Training steps and validation F1."""
        lines = (self.run / "metrics.jsonl").read_text().splitlines()
        evaluations = [json.loads(line) for line in lines]
        steps = [evaluation["step"] for evaluation in evaluations]
        return steps, [evaluation["f1-measure-overall"] for evaluation in evaluations]


def main() -> int:
    """Run all steps, print the table and draw the chart."""
    shutil.rmtree(RUNS, ignore_errors=True)
    seconds = step("train", "experiments/pretrain/demo.jsonnet", "-s", f"{RUNS}/bilm")
    show(f"Pretrained the biLM on {HERE}/lm_train.txt in {seconds:.0f} seconds.")
    taggers = [
        train_tagger("without ELMo", "baseline", RUNS / "ner-baseline"),
        train_tagger("tiny biLM", "elmo", RUNS / "ner-demo", bilm=f"{RUNS}/bilm"),
        train_tagger("mini", "elmo", RUNS / "ner-mini", bilm="mini"),
    ]
    step("predict", f"{taggers[-1].run}", f"{HERE}/sentences.txt")
    show(table(taggers, pretraining=seconds))
    show(f"Learning curves and layer weights: {draw(taggers, RUNS)}")
    show(
        "The tiny biLM was trained on a thousand sentences, mini on forty million words.\n"
        "The paper's biLM is seventeen times larger than mini.\n"
        "The test set is small: F1 can change by several points with the seed.\n"
        "See experiments/README.md for results on real data."
    )
    return 0


def train_tagger(name: str, config: str, run: Path, *, bilm: str | None = None) -> Tagger:
    """Train a tagger and evaluate it on the test sentences."""
    overrides = ["-o", f"model.embedder.token_embedders.elmo.bilm={bilm}"] if bilm else []
    seconds = step("train", f"{HERE}/{config}.jsonnet", "-s", f"{run}", *overrides)
    step("evaluate", f"{run}", f"{HERE}/test.txt", "--output-file", f"{run}/test.json", "-f")
    return Tagger(name, run, seconds)


def step(*arguments: str) -> float:
    """Print a command, run it, and return its time in seconds."""
    show(f"\n$ elmo {shlex.join(arguments)}")
    started = time.monotonic()
    code = elmo(arguments)
    if code:
        sys.exit(code)
    return time.monotonic() - started


def table(taggers: list[Tagger], *, pretraining: float) -> str:
    """Format the comparison of the taggers."""
    lines = [f"{'tagger':<14}{'test F1':>9}{'seconds':>9}  layer weights s, gamma"]
    for tagger in taggers:
        weights = ", ".join(f"{value:.2f}" for value in layer_weights(tagger.metrics).values())
        lines.append(f"{tagger.name:<14}{tagger.f1:>9.3f}{tagger.seconds:>9.0f}  {weights}")
    lines.append(f"{'(pretraining)':<23}{pretraining:>9.0f}")
    return "\n" + "\n".join(lines) + "\n"


def layer_weights(metrics: dict[str, Any]) -> dict[str, float]:
    """Return the learned weights of the layer mix: s of each layer, then gamma."""
    weights = {name.rpartition(".")[2]: value for name, value in metrics.items() if ".mix." in name}
    return {
        name: weights[name] for name in sorted(weights, key=lambda name: (name == "gamma", name))
    }


def draw(taggers: list[Tagger], folder: Path) -> Path:
    """Draw the learning curves and the layer weights, as PNG and as SVG; return the PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (curves, weights) = pyplot.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    for tagger in taggers:
        curves.plot(*tagger.curve, marker="o", markersize=3, label=tagger.name)
    curves.set(xlabel="training step", ylabel="span F1, validation", title="Learning curves")
    curves.legend()
    learned = layer_weights(taggers[-1].metrics)
    bars = weights.bar(list(learned), list(learned.values()))
    weights.bar_label(bars, fmt="%.2f")
    weights.margins(y=0.1)  # for the label of the highest bar
    weights.set(ylabel="weight", title=f"Layer weights s and scale gamma: {taggers[-1].name}")
    # No date and no random ids: the same runs make the same SVG, as docs/demo.svg is.
    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "demo"}):
        figure.savefig(folder / "demo.svg", metadata={"Date": None})
    figure.savefig(folder / "demo.png", dpi=120)
    return folder / "demo.png"


def show(text: str) -> None:
    """Print text."""
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
