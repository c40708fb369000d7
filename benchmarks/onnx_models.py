"""A tagger or classifier as ONNX next to PyTorch: equal predictions, latency and throughput.

The two take turns on the same sentences, on the same number of cores. Times are those of the
processor, so other work on the machine matters less.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from measuring import add_threads_argument, report

from elmo_framework import load
from elmo_framework.embedders.layer_embedder import LayerEmbedder
from elmo_framework.layers.cache.cached_layers import CachedLayers
from elmo_framework.onnx_export.elmo_onnx import Model
from elmo_framework.onnx_export.export import export_head

_BATCH_SIZE = 32


def main() -> int:
    """Export, compare, report."""
    parser = ArgumentParser(description="Compare a run with its ONNX form on a file.")
    parser.add_argument("run", type=Path, help="the folder of a tagger or classifier")
    parser.add_argument("file", type=Path, help="data for the run's dataset reader")
    parser.add_argument("--sentences", type=int, help="how many are read (all)")
    parser.add_argument("--words", type=int, default=20, help="length for the latency (20)")
    parser.add_argument("--no-cache", action="store_true", help="compute the layers of the biLM")
    add_threads_argument(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    run = load(arguments.run, device="cpu")
    head = run.head()
    for part in head.modules() if arguments.no_cache else ():
        if isinstance(part, LayerEmbedder) and isinstance(part.source, CachedLayers):
            part.source = part.source.frozen
    examples = list(run.experiment.validation_dataset_reader.read(arguments.file))
    examples = examples[: arguments.sentences]
    with TemporaryDirectory() as folder:
        rows = []
        for name in ("float32", "int8"):
            place = Path(folder) / name
            files = export_head(head, place, is_int8=name == "int8")
            model = Model(place, threads=arguments.threads)
            size = sum(file.stat().st_size for file in files) / 1e6
            compared = _compared(run, model, examples, arguments.words)
            rows.append({"config": name, "mb": round(size, 2), **compared})
    one = [each for each in examples if head.task.num_tokens(each) == arguments.words][:20]
    _reference(run, one[:1])
    report(
        bench="onnx",
        torch=torch.__version__,
        threads=arguments.threads,
        num_examples=len(examples),
        torch_ms=_latency(lambda example: _reference(run, [example]), one),
        rows=rows,
    )
    return 0


def _compared(run: Any, model: Model, examples: Sequence[Any], length: int) -> dict[str, Any]:
    """Return how many predictions are equal, the largest difference of logits, and times."""
    equal, largest, seconds = 0, 0.0, {"torch": 0.0, "onnx": 0.0}
    sums: dict[str, dict[str, float]] = {"torch": {}, "onnx": {}}
    head = run.head()
    for start in range(0, len(examples), _BATCH_SIZE):
        batch = examples[start : start + _BATCH_SIZE]
        sentences = [list(*head.task.sentences(example)) for example in batch]
        began = time.process_time()
        logits, expected = _reference(run, batch)
        seconds["torch"] += time.process_time() - began
        began = time.process_time()
        predicted = model.predict(sentences)
        seconds["onnx"] += time.process_time() - began
        computed = model.run(sentences)["logits"]
        if model.kind == "tags":
            lengths = np.array([[len(words)] for words in sentences])
            mask = np.arange(logits.shape[1]) < lengths
            logits, computed = logits[mask], computed[mask]
        largest = max(largest, float(np.abs(logits - computed).max()))
        for row, example, own in zip(predicted, batch, expected, strict=True):
            known = tuple(row) if model.kind == "tags" else row[0]
            equal += known == (own if model.kind == "tags" else own.label)
            if model.kind == "tags":
                _add(sums["onnx"], head.count(known, example))
                _add(sums["torch"], head.count(own, example))
    words = [list(*head.task.sentences(example)) for example in examples]
    one = [each for each in words if len(each) == length][:20]
    num_words = sum(map(len, words))
    scores = {f"f1_{name}": _f1(head, counted) for name, counted in sums.items()}
    return {
        "equal": equal,
        "largest_difference": largest,
        **scores,
        **{f"{name}_words_per_s": round(num_words / time_) for name, time_ in seconds.items()},
        "onnx_ms": _latency(lambda each: model.run([each]), one),
    }


def _reference(run: Any, examples: Sequence[Any]) -> tuple[Any, list[Any]]:
    head = run.head()
    batch = head.collator(run.vocabularies)(list(examples))
    with torch.inference_mode():
        output = head(batch)
    return output.logits.numpy(), head.predict(output, batch)


def _latency(function: Callable[[Any], object], inputs: Sequence[Any]) -> float | None:
    """Return the median of the milliseconds for one input, after a first round."""
    times = []
    for _ in range(4):
        for each in inputs:
            began = time.process_time()
            function(each)
            times.append(1000 * (time.process_time() - began))
    return round(median(times[len(inputs) :]), 2) if inputs else None


def _add(sums: dict[str, float], terms: dict[str, float]) -> None:
    for name, value in terms.items():
        sums[name] = sums.get(name, 0.0) + value


def _f1(head: Any, sums: dict[str, float]) -> float | None:
    return head.scores(sums).get("f1-measure-overall") if sums else None


if __name__ == "__main__":
    sys.exit(main())
