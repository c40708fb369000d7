"""Stages of `gpu.py`: where the time of an update goes, and updates in a group of processes."""

from __future__ import annotations

import re
import socket
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any
from unittest.mock import PropertyMock, patch

import torch
import torch.distributed as dist
from clock import now
from gpu_setting import (
    RECORDABLE,
    SEED,
    Changes,
    largest_difference,
    num_recorded,
    pretraining,
    report_stage,
)
from torch.autograd import DeviceType

from elmo_framework.training.process_group import ProcessGroup
from elmo_framework.training.seeds import seed_everything

_NUM_FIRST, _NUM_MEASURED = 20, 10
_OTHERS, _NUM_OTHERS, _LONGEST_NAME = "others", 5, 60
_PARTS = {
    "lstm_cells": "lstm_step|^_step|clipped_gradient|clamp",
    "softmax": "log_sum_exp",
    "convolutions": "window_maxima|_inputs_gradient|_weight_gradient",
    "products": "gemm|cutlass|xmma|nvjet|cublas|splitk|::mm|addmm|linear",
    "optimizer": "adagrad|multi_tensor|_foreach|index_add|indexFuncLargeIndex",
    "candidates": "topk|sort|exponential|poisson|searchsorted",
    "dropout": "bernoulli|dropout",
    "copies": "memcpy|memset|copy_|::cat|catarray",
}
"""Kernels by parts of their names; the first that fits counts."""

_LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch")
_TOLERANCES = {"float32": 1e-3, "bfloat16": 2e-2}
"""Largest relative difference of a loss, by the type in which gradients are exchanged."""

_FLOAT32: Changes = {"trainer.precision": "float32"}


def measure_parts(arguments: Namespace) -> bool:
    """Report the milliseconds of an update, of each kind of kernel, and the memory.

    On a GPU `idle_ms` is the time in which no kernel runs: the CPU is too slow, or waits.
    """
    trainer = pretraining(arguments, {}, device=arguments.device)
    device, steps = trainer.device, trainer.steps()
    list(islice(steps, _NUM_FIRST))
    began = now(device)
    list(islice(steps, _NUM_MEASURED))
    milliseconds = 1000 * (now(device) - began) / _NUM_MEASURED
    with torch.profiler.profile() as profiler:
        list(islice(steps, _NUM_MEASURED))
        now(device)
    is_gpu, launches = device.type == "cuda", Counter[str]()
    kernels, spans = Counter[str](), []
    for event in profiler.events() or ():
        if event.name.startswith(_LAUNCHES):
            launches[event.name] += 1
        # Names with "#" are of ranges, such as that of an optimizer's step.
        if is_gpu == (event.device_type == DeviceType.CUDA) and "#" not in event.name:
            kernels[event.name] += _microseconds(event, is_gpu=is_gpu)
            spans.append((event.time_range.start, event.time_range.end))
    parts, others = Counter[str](), Counter[str]()
    for name, microseconds in kernels.items():
        parts[_part(name)] += microseconds
        if _part(name) == _OTHERS:
            others[name[:_LONGEST_NAME]] += microseconds
    busy = _covered(spans) / 1000 / _NUM_MEASURED
    report_stage(
        arguments,
        "parts",
        update_ms=round(milliseconds, 3),
        idle_ms=round(max(0.0, milliseconds - busy), 3) if is_gpu else None,
        launches={name: round(n / _NUM_MEASURED, 1) for name, n in sorted(launches.items())},
        parts_ms=_milliseconds(parts.most_common()),
        largest_others_ms=_milliseconds(others.most_common(_NUM_OTHERS)),
        **memory(device),
    )
    return True


def memory(device: torch.device) -> dict[str, float]:
    """Return the largest memory of tensors and of the process on a GPU so far, in GB."""
    if device.type != "cuda":
        return {}
    return {
        "allocated_gb": round(torch.cuda.max_memory_allocated(device) / 1e9, 2),
        "reserved_gb": round(torch.cuda.max_memory_reserved(device) / 1e9, 2),
    }


def _part(kernel: str) -> str:
    matches = (part for part, names in _PARTS.items() if re.search(names, kernel, re.IGNORECASE))
    return next(matches, _OTHERS)


def _milliseconds(microseconds: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the time of each name in an update."""
    return {name: round(us / 1000 / _NUM_MEASURED, 3) for name, us in microseconds}


def _microseconds(event: Any, *, is_gpu: bool) -> float:
    time = event.time_range.elapsed_us() if is_gpu else event.self_cpu_time_total
    return float(time)


def _covered(spans: list[tuple[float, float]]) -> float:
    """Return how long at least one of some spans lasts; kernels of two streams overlap."""
    total, last = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, last))
        last = max(last, end)
    return total


def compare_group(arguments: Namespace) -> bool:
    """Compare the losses of a group of one process with those of a process without a group.

    So one GPU is enough to run the code of several: NCCL averages the gradients of one process.
    On a GPU all of them must be recorded.
    """
    losses, recorded = {}, {}
    with _group_of_one(arguments.device):
        for name, dtype in (("alone", None), *((dtype, dtype) for dtype in _TOLERANCES)):
            changes = {**_FLOAT32, **RECORDABLE}
            if dtype is not None:
                changes["trainer.reduce_dtype"] = dtype
            is_alone = PropertyMock(return_value=dtype is None)
            with patch.object(ProcessGroup, "is_alone", is_alone):
                trainer = pretraining(arguments, changes, device=arguments.device)
                seed_everything(SEED)
                reports = list(islice(trainer.steps(), arguments.steps))
                trainer.group.release()
            recorded[name] = num_recorded(trainer)
            losses[name] = [float(report.loss) for report in reports]
    differences = {
        dtype: largest_difference(losses[dtype], losses["alone"]) for dtype in _TOLERANCES
    }
    report_stage(
        arguments,
        "group",
        steps=arguments.steps,
        recorded=recorded,
        largest_differences=differences,
    )
    are_recorded = arguments.device != "cuda" or all(recorded.values())
    return are_recorded and all(differences[dtype] <= limit for dtype, limit in _TOLERANCES.items())


@contextmanager
def _group_of_one(device: str) -> Iterator[None]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    dist.init_process_group(
        "nccl" if device == "cuda" else "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=0,
        world_size=1,
    )
    try:
        yield
    finally:
        dist.destroy_process_group()
