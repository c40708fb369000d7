"""A tagger on a frozen biLM: its whole training from a cold start, and again on the warm store.

Both are runs of `elmo train`: a bidirectional LSTM with a CRF reads ELMo and nothing else, the
batches are sorted by length, the tags are random. The first run computes the layers of the biLM
and stores them; its time is that of the whole command, from reading the config to the last
weights. The second finds them, and its epochs are split into what their time goes to.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from measuring import add_text_arguments, chosen_sentences, count_words, report, timed
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

from elmo_framework.bilm.layer_mix import LayerMix
from elmo_framework.commands.main import main as elmo
from elmo_framework.config.types import Injected
from elmo_framework.embedders.elmo import ElmoTokenEmbedder
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.training.callback import Callback
from elmo_framework.training.state import StepReport

_TIMED = (ElmoTokenEmbedder, LayerMix, Encoder)
_TAGS = ("O", "I-PER", "I-LOC", "I-ORG", "I-MISC")


@final
@Callback.register("clock")
class Clock(Callback):
    """Writes the seconds at which updates were done to `seconds.json`.

    Args:
        directory: the folder of the run.
    """

    def __init__(self, directory: Injected[Path]) -> None:
        self._path = directory / "seconds.json"
        self._seconds: list[float] = []

    def step(self, report: StepReport) -> None:
        """Keep the time."""
        self._seconds.append(report.seconds)

    def close(self) -> None:
        """Write what was kept."""
        self._path.write_text(json.dumps(self._seconds))


def main() -> int:
    """Train twice and report."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        os.environ["ELMO_CACHE_ROOT"] = str(directory / "cache")
        config = directory / "tagger.json"
        num_tokens = write_data(directory / "train.txt", arguments)
        embedder = {
            "type": "elmo_token_embedder",
            "bilm": str(arguments.model.absolute()),
            "cache": arguments.cache,
        }
        config.write_text(
            json.dumps(experiment(directory / "train.txt", embedder, arguments.epochs))
        )
        _, cold_seconds = timed(lambda: train(config, directory / "cold"))
        with _times_of_parts() as parts:
            _, warm_seconds = timed(lambda: train(config, directory / "warm"))
        warm_epochs = epochs(directory / "warm", arguments.epochs)
    number = arguments.epochs
    report(
        bench="tagger_epochs",
        model=str(arguments.model),
        torch=torch.__version__,
        threads=arguments.threads,
        tokens=num_tokens,
        rows=[
            _row(f"{number} epochs, cold", num_tokens * number, cold_seconds),
            _row(f"{number} epochs, warm", num_tokens * number, warm_seconds),
            _row("an epoch, warm", num_tokens, float(np.median(warm_epochs))),
        ],
        split_of_a_warm_epoch=_split(parts, warm_epochs),
    )
    return 0


def _row(config: str, num_tokens: int, seconds: float) -> dict[str, Any]:
    return {
        "config": config,
        "seconds": round(seconds, 4),
        "tokens_per_s": round(num_tokens / seconds, 2),
    }


def write_data(path: Path, arguments: Namespace) -> int:
    """Write sentences with random tags; return the number of words."""
    chance = random.Random(0)
    sentences = chosen_sentences(arguments.sentences, arguments.n)
    blocks = ("".join(f"{w} X X {chance.choice(_TAGS)}\n" for w in words) for words in sentences)
    path.write_text("\n".join(blocks), encoding="utf-8")
    return count_words(sentences)


def experiment(data: Path, embedder: dict[str, Any], num_epochs: int) -> dict[str, Any]:
    """Return a config whose only work besides the updates is one checkpoint at the end."""
    return {
        "dataset_reader": {"type": "conll2003", "tag_label": "ner", "coding_scheme": "BIOUL"},
        "train_data_path": str(data),
        "model": {
            "type": "crf_tagger",
            "embedder": {"token_embedders": {"elmo": embedder}},
            "encoder": {"type": "lstm", "hidden_size": 200, "bidirectional": True},
        },
        "data_loader": {"batch_size": 32, "bucketing": True},
        "trainer": {
            "optimizer": {"type": "adam", "lr": 0.001},
            "num_epochs": num_epochs,
            "evaluate_every": {"epochs": num_epochs},
            "callbacks": ["clock"],
            "device": "cpu",
        },
    }


def train(config: Path, directory: Path) -> None:
    """Train, and end the process where that fails."""
    if code := elmo(["train", str(config), "-s", str(directory)]):
        sys.exit(code)


def epochs(run: Path, number: int) -> NDArray[np.float64]:
    """Return the seconds of each epoch after the first."""
    seconds = json.loads((run / "seconds.json").read_text())
    ends: NDArray[np.float64] = np.array(seconds).reshape(number, -1)[:, -1]
    return np.diff(ends)


@contextmanager
def _times_of_parts() -> Iterator[dict[type, list[float]]]:
    """Keep the seconds of the forward passes of the parts of a tagger, by family."""
    seconds: dict[type, list[float]] = {family: [] for family in _TIMED}
    started: dict[nn.Module, float] = {}

    def enter(module: nn.Module, _inputs: object) -> None:
        started[module] = time.perf_counter()

    def leave(module: nn.Module, _inputs: object, _output: object) -> None:
        for family in _TIMED:
            if isinstance(module, family):
                seconds[family].append(time.perf_counter() - started[module])

    hooks = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave)]
    try:
        yield seconds
    finally:
        for hook in hooks:
            hook.remove()


def _split(parts: Mapping[type, Sequence[float]], epochs: NDArray[np.float64]) -> dict[str, float]:
    """Return the milliseconds that the middle one of the epochs spends on each part."""
    middle = int(np.argsort(epochs)[len(epochs) // 2])
    embedding, mixing, encoding = (
        np.array(parts[family]).reshape(len(epochs) + 1, -1).sum(1)[middle + 1] for family in _TIMED
    )
    split = {
        "reading_ms": embedding - mixing,
        "mixing_ms": mixing,
        "encoding_ms": encoding,
        "rest_ms": epochs[middle] - embedding - encoding,
    }
    return {name: round(float(1000 * seconds), 2) for name, seconds in split.items()}


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Measure the training of a tagger on a frozen biLM.")
    add_text_arguments(parser, num_sentences=96)
    parser.add_argument("--epochs", type=int, default=25, help="of each run, 2 at least (25)")
    parser.add_argument(
        "--cache", choices=("disk", "memory", "none"), default="disk", help="of ELMo (disk)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
