"""The demo: pretrain a tiny biLM, train a tagger without it, with it and with `mini`, and compare.

Every step is printed as the command that it stands for; each can be typed by hand.
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

from elmo_framework.commands.main import main as elmo

HERE = Path("experiments/demo")
RUNS = Path("runs/demo")


@dataclass(frozen=True)
class Tagger:
    """A trained tagger as the table shows it."""

    name: str
    run: Path
    seconds: float

    @property
    def f1(self) -> float:
        """Return its span F1 on the test sentences."""
        scores = json.loads((self.run / "test.json").read_text())
        return float(next(iter(scores.values()))["f1-measure-overall"])

    @property
    def metrics(self) -> dict[str, Any]:
        """Return the figures of its run."""
        metrics: dict[str, Any] = json.loads((self.run / "metrics.json").read_text())
        return metrics

    @property
    def curve(self) -> tuple[list[float], list[float]]:
        """Return steps and validation F1."""
        lines = (self.run / "metrics.jsonl").read_text().splitlines()
        read = [json.loads(line) for line in lines]
        return [line["step"] for line in read], [line["f1-measure-overall"] for line in read]


def main() -> int:
    """Run all steps, then print the table and draw the picture."""
    shutil.rmtree(RUNS, ignore_errors=True)
    seconds = step("train", "experiments/pretrain/demo.jsonnet", "-s", f"{RUNS}/bilm")
    say(f"The biLM has read {HERE}/lm_train.txt for {seconds:.0f} seconds.")
    taggers = [
        train_tagger("without ELMo", "baseline", RUNS / "ner-baseline"),
        train_tagger("tiny biLM", "elmo", RUNS / "ner-demo", bilm=f"{RUNS}/bilm"),
        train_tagger("mini", "elmo", RUNS / "ner-mini", bilm="mini"),
    ]
    step("predict", f"{taggers[-1].run}", f"{HERE}/sentences.txt")
    say(table(taggers, pretraining=seconds))
    picture = draw(taggers, RUNS / "demo.png")
    say(f"Learning curves and layer weights: {picture}")
    say(
        "What these numbers mean: the tiny biLM has read a thousand sentences, and mini, a part\n"
        "of the package, forty million words; the paper's is seventeen times larger than mini.\n"
        "The test set is small, so the F1 above can move by several points with the seed;\n"
        "experiments/README.md has measurements on real data."
    )
    return 0


def train_tagger(name: str, config: str, run: Path, *, bilm: str | None = None) -> Tagger:
    """Train one of the taggers and score it on the test sentences."""
    overrides = ["-o", f"model.embedder.token_embedders.elmo.bilm={bilm}"] if bilm else []
    seconds = step("train", f"{HERE}/{config}.jsonnet", "-s", f"{run}", *overrides)
    step("evaluate", f"{run}", f"{HERE}/test.txt", "--output-file", f"{run}/test.json", "-f")
    return Tagger(name, run, seconds)


def step(*arguments: str) -> float:
    """Print a command, run it, and return how many seconds it took."""
    say(f"\n$ elmo {shlex.join(arguments)}")
    started = time.monotonic()
    code = elmo(arguments)
    if code:
        sys.exit(code)
    return time.monotonic() - started


def table(taggers: list[Tagger], *, pretraining: float) -> str:
    """Return the comparison of the taggers as text."""
    lines = [f"{'tagger':<14}{'test F1':>9}{'seconds':>9}  layer weights s, gamma"]
    for tagger in taggers:
        weights = ", ".join(f"{value:.2f}" for value in layer_weights(tagger.metrics).values())
        lines.append(f"{tagger.name:<14}{tagger.f1:>9.3f}{tagger.seconds:>9.0f}  {weights}")
    lines.append(f"{'(pretraining)':<23}{pretraining:>9.0f}")
    return "\n" + "\n".join(lines) + "\n"


def layer_weights(metrics: dict[str, Any]) -> dict[str, float]:
    """Return the learned weights of the mix: s of each layer, then gamma."""
    found = {name.rpartition(".")[2]: value for name, value in metrics.items() if ".mix." in name}
    return {name: found[name] for name in sorted(found, key=lambda name: (name == "gamma", name))}


def draw(taggers: list[Tagger], path: Path) -> Path:
    """Draw the learning curves and the layer weights."""
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
    weights.set(ylabel="weight", title=f"Layer weights s and scale gamma: {taggers[-1].name}")
    figure.savefig(path, dpi=120)
    return path


def say(text: str) -> None:
    """Print for the reader of the demo."""
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
