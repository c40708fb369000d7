"""Our half of `archive_speed.py`: it measures what the lines of its input ask for."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from head_step import Updates
from measuring import say, time_work
from peer_configs import ROOT

from elmo_framework import load
from elmo_framework.compat.allennlp.archive import import_archive
from elmo_framework.config.plugins import load_plugins
from elmo_framework.io.process import keep_freed_memory
from elmo_framework.training.evaluator import inference

_CPU = torch.device("cpu")


def main() -> int:
    """Load an archive, then measure updates and predictions of its batches."""
    sys.path.insert(0, str(ROOT))
    load_plugins(["plugins.allennlp_heads"], asked_by="this benchmark")
    torch.set_num_threads(1)
    keep_freed_memory()
    model = Model(json.loads(sys.stdin.readline()))
    say(json.dumps(model.plan))
    time_work(model)
    return 0


class Model:
    """An imported archive and its batches.

    Args:
        question: the archive, the data, the size of a batch, and where the run is written.

    Attributes:
        plan: the examples of each batch, which are of similar length, and their tokens.
    """

    def __init__(self, question: dict[str, Any]) -> None:
        import_archive(Path(question["archive"]), Path(question["run"]))
        run = load(question["run"], device="cpu")
        self._head, self._collate = run.head(), run.explainer().collate
        examples = list(run.experiment.dataset_reader.read(Path(question["data"])))
        task, size = self._head.task, question["size"]
        order = sorted(range(len(examples)), key=lambda index: task.num_tokens(examples[index]))
        numbers = [order[at : at + size] for at in range(0, len(order), size)]
        numbers = [each for each in numbers if len(each) == size]
        self._examples = [[examples[index] for index in each] for each in numbers]
        self._batches = [self._collate(each) for each in self._examples]
        self._updates = Updates(self._head, run.experiment.trainer, _CPU)
        num_tokens = sum(batch.num_tokens for batch in self._batches)
        self.plan = {"batches": numbers, "num_tokens": num_tokens}

    def training(self, number: int) -> None:
        """Make one update."""
        self._head.train()
        self._updates.update(self._batches[number])

    def predicting(self, number: int) -> None:
        """Predict the labels of the examples of a batch."""
        batch = self._collate(self._examples[number])
        with inference(self._head):
            self._head.predict(self._head(batch), batch)


if __name__ == "__main__":
    sys.exit(main())
