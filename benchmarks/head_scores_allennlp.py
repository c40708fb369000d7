"""Trains a head of AllenNLP: the other side of `head_scores.py`, run in its environment.

Model, fields and updates are those of `head_peers_allennlp.py`. Writes the predictions for the
validation data at each evaluation, next to the file of data.
"""

from __future__ import annotations

import json
import random
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import torch
from head_peers_allennlp import _batch, _import_allennlp, _model, _update, _vocabulary
from measuring import say

_POOL = 50
"""Batches whose examples are sorted by length together."""


def main() -> int:
    """Train as long as the config says, and write the predictions of each evaluation."""
    arguments = _arguments()
    torch.set_num_threads(1)
    _import_allennlp(arguments.scripts)
    data = json.loads(arguments.data.read_text(encoding="utf-8"))
    torch.manual_seed(data["config"]["random_seed"])
    options, trainer = data["config"]["model"], data["config"]["trainer"]
    words = [*data["words"], *map(str.lower, data["words"])]
    vocabulary = _vocabulary({"words": dict.fromkeys(words, 1), "labels": data["labels"]})
    model = _model(options, vocabulary)
    _set_vectors(model, data, vocabulary)
    update = _update(model, [each for each in model.parameters() if each.requires_grad], trainer)
    steps, numbers = count(1), count(1)
    every = trainer["evaluate_every"]
    for epoch in range(trainer["num_epochs"]):
        for examples in batches(data["train"], data["config"]["data_loader"], epoch):
            model.train()
            update(_batch(examples, options, vocabulary))
            step = next(steps)
            if every.get("steps") and step % every["steps"] == 0:
                _evaluate(model, data, vocabulary, arguments.data.parent, next(numbers))
        if every.get("epochs") and (epoch + 1) % every["epochs"] == 0:
            _evaluate(model, data, vocabulary, arguments.data.parent, next(numbers))
    return 0


def batches(
    examples: Sequence[Any], options: Mapping[str, Any], epoch: int
) -> Iterator[Sequence[Any]]:
    """Yield the shuffled batches of an epoch; with `bucketing`, of examples of similar length."""
    size, order = options["batch_size"], list(examples)
    draw = random.Random(epoch)
    draw.shuffle(order)
    if options["bucketing"]:
        pool = size * _POOL
        pools = (order[start : start + pool] for start in range(0, len(order), pool))
        order = [example for own in pools for example in sorted(own, key=_length)]
    plan = [order[start : start + size] for start in range(0, len(order), size)]
    draw.shuffle(plan)
    return iter(plan)


def _length(example: Mapping[str, Any]) -> int:
    if "passage" in example:
        return len(example["passage"]["words"])
    return len(example.get("words") or example.get("premise") or ())


def _set_vectors(model: Any, data: Mapping[str, Any], vocabulary: Any) -> None:
    embedders = data["config"]["model"]["embedder"]["token_embedders"]
    field_embedder = getattr(model, "_text_field_embedder", None) or model.text_field_embedder
    for name, vectors in data["vectors"].items():
        weight = getattr(field_embedder, f"token_embedder_{name}").weight
        weight.requires_grad_(embedders[name].get("trainable", True))
        with torch.no_grad():
            for word, vector in zip(data["words"], vectors, strict=True):
                form = word.lower() if embedders[name].get("lowercase", False) else word
                weight[vocabulary.get_token_index(form)] = torch.tensor(vector)


@torch.no_grad()
def _evaluate(
    model: Any, data: Mapping[str, Any], vocabulary: Any, directory: Path, number: int
) -> None:
    model.eval()
    options, size = data["config"]["model"], data["config"]["data_loader"]["batch_size"]
    predictions: list[Any] = []
    for start in range(0, len(data["validation"]), size):
        examples = data["validation"][start : start + size]
        output = model(**_batch(examples, options, vocabulary))
        predictions += _predictions(model, output, vocabulary)
    path = directory / f"evaluation-{number:03}.json"
    path.write_text(json.dumps(predictions), encoding="utf-8")
    say(f"evaluation {number}")


def _predictions(model: Any, output: Mapping[str, Any], vocabulary: Any) -> list[Any]:
    """Return tags, a label, clusters, or the first and last word, of each example of a batch."""
    if "best_span" in output:
        return list(output["best_span"].tolist())
    if "predicted_antecedents" in output:
        return list(model.make_output_human_readable(dict(output))["clusters"])
    if "tags" in output or "mask" in output:
        readable = model.make_output_human_readable(dict(output))
        return [list(tags) for tags in readable["tags"]]
    logits = output["label_logits"] if "label_logits" in output else output["logits"]
    best = logits.argmax(dim=1).tolist()
    return [vocabulary.get_token_from_index(index, "labels") for index in best]


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Train a head of AllenNLP.")
    parser.add_argument("data", type=Path, help="a file of `head_scores.py`")
    parser.add_argument("--scripts", type=Path, required=True, help="of allennlp_compat.py")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
