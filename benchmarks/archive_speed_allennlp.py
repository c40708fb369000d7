"""AllenNLP's half of `archive_speed.py`: it measures what the lines of its input ask for."""

from __future__ import annotations

import json
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from archive_agreement_allennlp import examples_of
from measuring import say, time_work


def main() -> int:
    """Load an archive, then measure updates and predictions of its batches."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if "--onednn" in sys.argv:
        torch.set_float32_matmul_precision("medium")
    import_module("allennlp_archives").import_allennlp()
    import_module("allennlp.common.params").evaluate_file = lambda path, **_: Path(path).read_text()
    model = Model(json.loads(sys.stdin.readline()))
    say(json.dumps(model.num_batches))
    time_work(model)
    return 0


class Model:
    """An archive and its batches.

    Args:
        question: the archive, the data, and the examples of each batch.
    """

    def __init__(self, question: dict[str, Any]) -> None:
        from allennlp.common import Params
        from allennlp.data import Batch
        from allennlp.models.archival import load_archive
        from allennlp.training.optimizers import Optimizer

        archive = load_archive(question["archive"])
        self._model, trainer = archive.model, archive.config["trainer"]
        kind, data = archive.config["model"]["type"], Path(question["data"])
        examples = examples_of(archive.dataset_reader, kind, data)
        self._examples = [[examples[at] for at in each] for each in question["batches"]]
        self._batches = []
        for each in self._examples:
            batch = Batch(each)
            batch.index_instances(self._model.vocab)
            self._batches.append(batch.as_tensor_dict())
        named = [(n, each) for n, each in self._model.named_parameters() if each.requires_grad]
        self._parameters = [each for _, each in named]
        options = Params(trainer["optimizer"].as_dict())
        self._optimizer = Optimizer.from_params(options, model_parameters=named)
        self._grad_norm = trainer["grad_norm"]

    @property
    def num_batches(self) -> int:
        """The number of batches."""
        return len(self._batches)

    def training(self, number: int) -> None:
        """Make one update."""
        self._model.train()
        self._model(**self._batches[number])["loss"].backward()
        torch.nn.utils.clip_grad_norm_(self._parameters, self._grad_norm)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def predicting(self, number: int) -> None:
        """Predict the labels of the examples of a batch."""
        self._model.eval()
        self._model.forward_on_instances(self._examples[number])


if __name__ == "__main__":
    sys.exit(main())
