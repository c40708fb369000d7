"""The stages of `gpu.py` after pretraining in one process: several, embedding, and a head."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from clock import now
from gpu_setting import (
    ROOT,
    SEED,
    TOLERANCE,
    config_of,
    largest_difference,
    overrides,
    pretraining,
    report_stage,
    texts,
    trainer_of,
)
from numpy.typing import NDArray
from small_jobs import DATA

from elmo_framework.bilm.files.load import save_bilm
from elmo_framework.commands.main import main as elmo
from elmo_framework.config.load import Config
from elmo_framework.training.seeds import seed_everything

_PATIENCE = 600.0
"""Seconds that a process under `torchrun` may take; a GPU compiles kernels first."""

_COMPARED = 64
"""Sentences that the processor embeds, too."""

_DIFFERENCE = 2e-2
"""The largest difference of a number from that of the processor, over the largest number."""


def try_processes(arguments: Namespace) -> bool:
    """Train under `torchrun`, kill a process, and resume."""
    number = min(2, torch.cuda.device_count()) if arguments.device == "cuda" else 2
    num_steps = arguments.steps * 2
    changes = {
        **texts(arguments),
        "trainer.device": arguments.device,
        "trainer.num_epochs": None,
        "trainer.num_steps": num_steps,
        "trainer.learning_rate_scheduler": "constant",
        "trainer.evaluate_every": {"steps": num_steps},
        "trainer.checkpointer": {"save_every": {"steps": max(1, arguments.steps // 5)}},
    }
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        words = [word for override in overrides(changes) for word in ("-o", override)]
        command = ["train", str(config_of(arguments.size)), "-s", str(run), *words]
        kill_code, seconds = _killed(number, command, run)
        with _launched(number, [*command, "--recover"]) as launcher:
            recover_code = _ended(launcher)
        is_finished = (run / "metrics.json").exists()
    report_stage(
        arguments,
        "processes",
        processes=number,
        exit_of_killed=kill_code,
        seconds_to_end=round(seconds, 1),
        exit_of_recovered=recover_code,
    )
    return kill_code != 0 and recover_code == 0 and is_finished


def _launched(number: int, command: list[str]) -> subprocess.Popen[bytes]:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(number)]
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    return subprocess.Popen(
        [sys.executable, *launch, "-m", "elmo_framework", *command],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _killed(number: int, command: list[str], run: Path) -> tuple[int, float]:
    """Kill the last process after its first checkpoint.

    Returns:
        the exit code of `torchrun`, and the seconds that it took to notice.
    """
    with _launched(number, command) as launcher:
        deadline = time.monotonic() + _PATIENCE
        while launcher.poll() is None and not list(run.glob("checkpoints/step-*")):
            if time.monotonic() > deadline:
                launcher.terminate()
                raise TimeoutError(f"no checkpoint within {_PATIENCE:.0f} seconds")
            time.sleep(0.05)
        if launcher.poll() is not None:
            return launcher.returncode, 0.0
        children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)
        began = time.monotonic()
        return _ended(launcher), time.monotonic() - began


def _ended(launcher: subprocess.Popen[bytes]) -> int:
    """Wait for the end of `torchrun`, which has to end its workers itself, and return its code."""
    try:
        return launcher.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        launcher.terminate()
        raise


def measure_embedding(arguments: Namespace) -> bool:
    """Embed with a biLM of random weights, and compare some vectors with the processor's."""
    trainer = pretraining(arguments, {}, device="cpu")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_bilm(trainer.model.get_submodule("bilm"), folder / "bilm")
        lines = Path(arguments.train).read_text(encoding="utf-8").splitlines()[:20_000]
        (folder / "all.txt").write_text("\n".join(lines) + "\n")
        (folder / "some.txt").write_text("\n".join(lines[:_COMPARED]) + "\n")
        expected, _ = _embedded(folder, "some", "cpu")
        found, _ = _embedded(folder, "some", arguments.device)
        _, seconds = _embedded(folder, "all", arguments.device)
    difference = float(np.abs(found - expected).max() / np.abs(expected).max())
    report_stage(
        arguments,
        "embedding",
        sentences=len(lines),
        largest_difference=difference,
        tokens_per_s_with_start=round(sum(len(line.split()) for line in lines) / seconds, 1),
    )
    return difference <= _DIFFERENCE


def _embedded(folder: Path, name: str, device: str) -> tuple[NDArray[Any], float]:
    """Return the vectors of a text and the seconds of `elmo embed`, with its start."""
    output = folder / f"{name}-{device}.npy"
    began = time.monotonic()
    options = ["--layers", "top", "--dtype", "float16", "--force", "--device", device]
    words = [str(folder / "bilm"), str(folder / f"{name}.txt"), "--output-file", str(output)]
    if code := elmo(["embed", *words, "--pool", "mean", *options]):
        sys.exit(code)
    return np.load(output).astype(np.float32), time.monotonic() - began


def measure_head(arguments: Namespace) -> bool:
    """Train a tagger on cached layers on both devices, and compare the losses."""
    losses, rates = [], []
    torch.backends.cudnn.allow_tf32 = False  # PyTorch's default rounds the inputs of its LSTM
    for device in ("cpu", arguments.device):
        trainer = trainer_of(_tagging(device), device)
        seed_everything(SEED)
        began, reports = now(trainer.device), list(islice(trainer.steps(), arguments.steps))
        rates.append(arguments.steps / (now(trainer.device) - began))
        losses.append([float(each.loss) for each in reports])
    largest = largest_difference(losses[1], losses[0])
    report_stage(
        arguments,
        "head",
        steps=arguments.steps,
        largest_difference=largest,
        updates_per_s=round(rates[1], 1),
        updates_per_s_of_cpu=round(rates[0], 1),
    )
    return largest <= TOLERANCE


def _tagging(device: str) -> Config:
    embedders = "model.embedder.token_embedders"
    changes: Mapping[str, Any] = {
        "train_data_path": str(DATA / "train.txt"),
        "validation_data_path": str(DATA / "valid.txt"),
        f"{embedders}.tokens.pretrained_file": None,
        f"{embedders}.elmo.bilm": "mini",
        f"{embedders}.elmo.cache": "memory",
        "model.dropout": 0.0,
        "model.encoder.dropout": 0.0,
        "trainer.device": device,
    }
    return Config.load(ROOT / "experiments/ner/elmo.jsonnet", overrides=overrides(changes))
