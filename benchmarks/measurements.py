"""What is compared: the commands of each comparison, ours first."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NAMES = (
    "embedding-original",
    "embedding-small",
    "training-original",
    "training-small",
    "tagger",
    "loading",
)
_HERE = Path(__file__).parent
_NUM_SENTENCES: Mapping[str, tuple[int, int]] = {"original": (128, 6), "small": (384, 24)}
"""How many are embedded in batches and how many one by one."""


@dataclass(frozen=True)
class Command:
    """A process that measures something.

    Attributes:
        words: of the command line.
        directory: where it runs.
    """

    words: list[str]
    directory: Path


@dataclass(frozen=True)
class Places:
    """Where things are.

    Attributes:
        models: the folder with a biLM a size.
        sentences: a tokenized sentence a line.
        device: of our measurements.
        peers: where the other implementations are installed; None when ours run alone.
        scripts: what measures them.
    """

    models: Path
    sentences: Path
    device: str = "cpu"
    peers: Path | None = None
    scripts: Path | None = None

    def ours(self, script: str, *words: str) -> Command:
        """Return a command of ours."""
        return Command([sys.executable, str(_HERE / script), *words], Path.cwd())

    def allennlp(self, script: str, *words: str, name: str = "allennlp") -> dict[str, Command]:
        """Return a command of AllenNLP's; nothing where it is not installed."""
        return self._others(name, "an", script, *words)

    def tensorflow(self, name: str, script: str, *words: str) -> dict[str, Command]:
        """Return a command of one on TensorFlow; nothing where it is not installed."""
        return self._others(name, "tf", script, *words)

    def _others(self, name: str, environment: str, script: str, *words: str) -> dict[str, Command]:
        if self.peers is None or self.scripts is None:
            return {}
        python = self.peers / environment / "bin/python"
        return {name: Command([str(python), "-W", "ignore", script, *words], self.scripts)}


def commands(name: str, places: Places, *, is_quick: bool) -> dict[str, Command]:
    """Return the commands of a comparison, by what a table calls them.

    Args:
        name: one of `NAMES`.
        places: where things are.
        is_quick: few sentences and steps: to see that all works.
    """
    work, _, size = name.partition("-")
    match work:
        case "embedding":
            return _embedding(size, places, is_quick=is_quick)
        case "training":
            return _training(size, places, is_quick=is_quick)
        case "tagger":
            return _tagger(places, is_quick=is_quick)
        case _:
            return _loading(places)


def _embedding(size: str, places: Places, *, is_quick: bool) -> dict[str, Command]:
    num_sentences, num_single = (32, 4) if is_quick else _NUM_SENTENCES[size]
    text = [*_model(places, size), "--sentences", str(places.sentences), "--n", str(num_sentences)]
    text += ["--n1", str(num_single)]
    own = [*text, "--device", places.device]
    batches = [*text, "--warmup-batches", "1", "--config", "32s", "--config", "64s"]
    both = [*batches, "--config", "1u"]
    reduced = {
        f"ours, {precision}": places.ours(
            "embedding.py", *own, "--precision", precision, "--config", "1u", "--config", "best"
        )
        for precision in ("bfloat16", "int8")
    }
    return {
        "ours": places.ours("embedding.py", *own),
        **reduced,
        **places.allennlp("bench_allennlp_infer.py", *both),
        **places.allennlp("bench_allennlp_infer.py", *both, "--onednn", name="allennlp, oneDNN"),
        **places.tensorflow("simple_elmo", "bench_simple_elmo_infer.py", *both),
    }


def _training(size: str, places: Places, *, is_quick: bool) -> dict[str, Command]:
    words = ["--size", size, "--steps", "1" if is_quick else "3"]
    return {
        "ours": places.ours("training_step.py", *words, "--device", places.device),
        **places.allennlp("bench_allennlp_train.py", *words),
        **places.tensorflow("bilm", "bench_bilm_tf_train.py", *words),
    }


def _tagger(places: Places, *, is_quick: bool) -> dict[str, Command]:
    text = [*_model(places, "original"), "--sentences", str(places.sentences)]
    text += ["--n", "32" if is_quick else "96"]
    return {
        "ours": places.ours("tagger_epochs.py", *text, "--epochs", "2" if is_quick else "25"),
        **places.allennlp("bench_allennlp_ner.py", *text),
    }


def _loading(places: Places) -> dict[str, Command]:
    model = _model(places, "original")
    # The scripts report how long they loaded; what they embed after it does not count here.
    little = ["--sentences", str(places.sentences), "--n", "2", "--config", "2u"]
    return {
        "ours": places.ours("loading.py", *model),
        **places.allennlp("bench_allennlp_infer.py", *model, *little),
        **places.tensorflow("simple_elmo", "bench_simple_elmo_infer.py", *model, *little),
    }


def _model(places: Places, size: str) -> list[str]:
    return ["--model", str(places.models / size)]
