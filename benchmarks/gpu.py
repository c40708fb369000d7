"""Pretraining on a GPU, checked and measured by one command.

Stages, each a line of JSON:

* `kernels`: each kernel of Triton gives the numbers of PyTorch's operations, and the time of both.
* `losses`: the first updates give the same losses on the device as in float32 on the processor:
  within a relative 1e-3 in float32 and 2e-2 in bfloat16; with the softmax over all words, and with
  the sampled one, whose candidates are drawn on the processor for both. Without dropout, whose
  numbers differ.
* `graph`: updates that are replayed as a CUDA graph give the same losses as those that are not,
  with the same draws, within a relative 1e-3. On the CPU nothing is recorded.
* `waiting`: updates of which none waits for the device; PyTorch raises an error where one does. The
  trainer's look at the loss, every twenty updates, is left out. The profiler finds no copy from
  memory that is not pinned.
* `parts`: where the time of an update goes: kinds of kernels, time without any, launches, memory.
* `rate`: tokens a second of a whole training with its data, evaluations and checkpoints.
* `group`: updates in a group of one process, by NCCL, give the losses of updates without a group,
  within 1e-3, and within 2e-2 if gradients are exchanged in bfloat16.
* `processes`: the same training under `torchrun`, with a process on each of at most two GPUs, is
  killed and resumed. On the CPU two processes are used.
* `embedding`: `elmo embed` with a biLM of random weights: the largest difference from the vectors
  that the processor computes, and tokens a second.
* `head`: a tagger on the cached layers of `mini` has the losses of the processor, within a relative
  1e-3; updates a second.
* `medium`: the perplexity that a biLM of the medium size reaches in some minutes.

With `--size demo --device cpu` all of it is tried on a processor in a minute or two, on the
sentences of the demo; nothing is to be learned from its figures. Other sizes need a text of their
own: with fewer words than candidates the softmax is not sampled at all.
"""

from __future__ import annotations

import json
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from clock import now
from gpu_kernels import compare_kernels
from gpu_parts import compare_group, measure_parts, memory
from gpu_setting import (
    RECORDABLE,
    SEED,
    TOLERANCE,
    WITHOUT_CHANCE,
    Changes,
    config_of,
    largest_difference,
    num_recorded,
    overrides,
    pretraining,
    report_stage,
    texts,
)
from gpu_stages import measure_embedding, measure_head, try_processes
from jaxtyping import Float
from small_jobs import DATA
from torch import Tensor

from elmo_framework import components
from elmo_framework.commands.main import main as elmo
from elmo_framework.errors import allowed
from elmo_framework.nn import sampled_softmax
from elmo_framework.nn.sampled_softmax import SampledSoftmax, draw_candidates
from elmo_framework.training.process_group import SYNC_INTERVAL
from elmo_framework.training.seeds import seed_everything
from elmo_framework.training.state import StepReport
from elmo_framework.training.trainer import Trainer

_SIZES = ("original", "medium", "small", "mini", "demo")
_PRECISIONS = {"float32": TOLERANCE, "bfloat16": 2e-2}
"""The largest relative difference of a loss from that in float32 on the processor."""
_SOFTMAXES: Mapping[str, Changes] = {"full": {"model.num_samples": None}, "sampled": {}}


class Trained(NamedTuple):
    """What came out of a training.

    Attributes:
        metrics: of the run.
        num_tokens: the words that were read.
        softmax: what is reported of it.
    """

    metrics: Mapping[str, Any]
    num_tokens: int
    softmax: Mapping[str, Any]


def main() -> int:
    """Run the stages; return 1 when the losses differ."""
    arguments = _arguments()
    components.load()
    results = [_STAGES[name](arguments) for name in arguments.stages or _STAGES]
    return 0 if all(results) else 1


def _compare_losses(arguments: Namespace) -> bool:
    alike = [_are_close(arguments, softmax) for softmax in _SOFTMAXES]
    return all(alike)


def _are_close(arguments: Namespace, softmax: str) -> bool:
    rows = {"data_loader.batch_size": arguments.rows_compared}
    changes = {**WITHOUT_CHANCE, **_SOFTMAXES[softmax], **rows}
    expected, are_close = None, []
    for device, precision in (("cpu", "float32"), *((arguments.device, p) for p in _PRECISIONS)):
        of_precision = {**changes, "trainer.precision": precision}
        trainer = pretraining(arguments, of_precision, device=device)
        trainer._recorded_update = trainer.update  # candidates from the CPU cannot be recorded
        losses = _losses(trainer, arguments.steps)
        if expected is None:
            expected = losses
            continue
        largest = largest_difference(losses, expected)
        report_stage(
            arguments,
            "losses",
            softmax=softmax,
            precision=precision,
            **_of_softmax(trainer),
            steps=arguments.steps,
            largest_difference=largest,
        )
        are_close.append(largest <= _PRECISIONS[precision])
    return all(are_close)


def _losses(trainer: Trainer, num_steps: int) -> list[float]:
    seed_everything(SEED)
    with patch.object(sampled_softmax, "draw_candidates", _drawn_on_the_processor):
        return [float(held.loss) for held in islice(trainer.steps(), num_steps)]


def _drawn_on_the_processor(
    probabilities: Float[Tensor, " classes"], num_samples: int
) -> tuple[Tensor, Tensor]:
    ids, num_draws = draw_candidates(probabilities.cpu(), num_samples)
    return ids.to(probabilities.device), num_draws.to(probabilities.device)


def _of_softmax(trainer: Trainer) -> Mapping[str, Any]:
    softmax = trainer.model.get_submodule("softmax")
    assert isinstance(softmax, SampledSoftmax), softmax
    return {"vocabulary": softmax.num_classes, "is_sampling": softmax.num_samples is not None}


def _compare_replays(arguments: Namespace) -> bool:
    by_way, recorded = [], 0
    for is_recorded in (True, False):
        trainer = pretraining(arguments, RECORDABLE, device=arguments.device)
        if not is_recorded:
            trainer._recorded_update = trainer.update
        seed_everything(SEED)
        by_way.append([float(each.loss) for each in islice(trainer.steps(), arguments.steps)])
        recorded += num_recorded(trainer)
    largest = largest_difference(*by_way)
    report_stage(
        arguments,
        "graph",
        steps=arguments.steps,
        recorded=recorded,
        largest_difference=largest,
    )
    return largest <= TOLERANCE and (recorded > 0 or arguments.device != "cuda")


def _look_for_waiting(arguments: Namespace) -> bool:
    trainer = pretraining(arguments, {}, device=arguments.device)
    steps = trainer.steps()
    # The first updates compile, measure and fill caches.
    for _ in range(SYNC_INTERVAL):
        next(steps)
    started, num_tokens = now(trainer.device), 0
    with _refusing_to_wait(trainer.device):
        for _ in range(SYNC_INTERVAL - 1):
            num_tokens += next(steps).num_tokens
    seconds = now(trainer.device) - started
    rate = round(num_tokens / seconds, 1)
    num_pageable = _num_pageable_copies(steps)
    report_stage(
        arguments,
        "waiting",
        **_of_softmax(trainer),
        tokens_per_s=rate,
        pageable_copies=num_pageable,
    )
    return num_pageable == 0


def _num_pageable_copies(steps: Iterator[StepReport]) -> int:
    """Return how many copies of the next updates read or write memory that is not pinned."""
    with torch.profiler.profile() as profiler:
        for _ in range(SYNC_INTERVAL - 1):
            next(steps)
    return sum("Pageable" in event.name for event in profiler.events() or ())


@contextmanager
def _refusing_to_wait(device: torch.device) -> Iterator[None]:
    """Raise an error where the host would wait for the device."""
    if device.type != "cuda":
        yield
        return
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def _measure_rate(arguments: Namespace) -> bool:
    evaluations = {"trainer.evaluate_every": {"minutes": max(arguments.minutes / 3, 0.01)}}
    metrics, num_tokens, softmax = _trained(
        arguments, arguments.size, arguments.minutes, evaluations
    )
    seconds = metrics["training_duration"]
    report_stage(
        arguments,
        "rate",
        **softmax,
        minutes=round(seconds / 60, 2),
        tokens_per_s=round(num_tokens / seconds, 1),
        perplexity=metrics["best_validation_perplexity"],
        **memory(torch.device(arguments.device)),
    )
    return True


def _train_medium(arguments: Namespace) -> bool:
    size = "demo" if arguments.size == "demo" else "medium"
    metrics, num_tokens, softmax = _trained(arguments, size, arguments.medium_minutes, {})
    report_stage(
        arguments,
        "medium",
        size=size,
        **softmax,
        minutes=round(metrics["training_duration"] / 60, 2),
        tokens=num_tokens,
        perplexity=metrics["best_validation_perplexity"],
        forward_perplexity=metrics["best_validation_forward_perplexity"],
        backward_perplexity=metrics["best_validation_backward_perplexity"],
    )
    return True


def _trained(arguments: Namespace, size: str, minutes: float, changes: Changes) -> Trained:
    """Train by the command line for some minutes."""
    limits = {
        "trainer.device": arguments.device,
        "trainer.max_minutes": minutes,
        "trainer.num_epochs": None,
        "trainer.learning_rate_scheduler": "constant",
    }
    set_ = overrides({**texts(arguments), **limits, **changes})
    words = [word for override in set_ for word in ("-o", override)]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        if code := elmo(["train", str(config_of(size)), "-s", str(run), *words]):
            sys.exit(code)
        metrics = json.loads((run / "metrics.json").read_text())
        config = json.loads((run / "filled_config.json").read_text())
        vocabulary = len((run / "bilm/vocabulary.txt").read_text().splitlines())
    loader, num_samples = config["data_loader"], config["model"]["num_samples"]
    num_tokens = metrics["training_steps"] * loader["batch_size"] * loader["unroll_steps"]
    is_sampling = num_samples is not None and num_samples < vocabulary
    return Trained(metrics, num_tokens, {"vocabulary": vocabulary, "is_sampling": is_sampling})


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Check and measure pretraining on a GPU.")
    parser.add_argument("stages", nargs="*", help=f"of {', '.join(_STAGES)}; all unless given")
    parser.add_argument("--size", choices=_SIZES, default="original")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument(
        "--train", type=Path, help="a text; of the size demo that of the demo unless told"
    )
    parser.add_argument("--validation", type=Path, help="another")
    parser.add_argument("--steps", type=int, default=50, help="updates that are compared (50)")
    parser.add_argument("--rows-compared", type=int, default=16, help="rows of these (16)")
    parser.add_argument("--minutes", type=float, help="of the rate (8, of the size demo 0.1)")
    parser.add_argument("--medium-minutes", type=float, help="of medium (20, or 0.1)")
    arguments = parser.parse_args()
    for stage in arguments.stages:
        if stage not in _STAGES:
            parser.error(f"there is no stage {stage!r}; {allowed(stage, _STAGES)}")
    of_size: Changes = {"minutes": 8.0, "medium_minutes": 20.0}
    if arguments.size == "demo":
        of_demo = {"train": DATA / "lm_train.txt", "validation": DATA / "lm_valid.txt"}
        of_size = {"minutes": 0.1, "medium_minutes": 0.1, **of_demo}
    for name, value in of_size.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    if not (arguments.train and arguments.validation):
        parser.error(f"--size {arguments.size} needs --train and --validation")
    return arguments


_STAGES: Mapping[str, Callable[[Namespace], bool]] = {
    "kernels": compare_kernels,
    "losses": _compare_losses,
    "graph": _compare_replays,
    "waiting": _look_for_waiting,
    "parts": measure_parts,
    "rate": _measure_rate,
    "group": compare_group,
    "processes": try_processes,
    "embedding": measure_embedding,
    "head": measure_head,
    "medium": _train_medium,
}


if __name__ == "__main__":
    sys.exit(main())
