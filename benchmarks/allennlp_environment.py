"""Run a script in the environment of AllenNLP 2.10.1."""

from __future__ import annotations

import os
import subprocess
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path

_ROOT = Path(__file__).parents[1]


def add_scripts_argument(parser: ArgumentParser) -> None:
    """Add the argument of all benchmarks that need AllenNLP."""
    parser.add_argument("scripts", type=Path, help="folder of allennlp_compat.py")


def run_allennlp(script: str, arguments: Iterable[str], scripts: Path) -> str:
    """Run a script of this folder; return what it prints.

    Args:
        script: its file name.
        arguments: of the script.
        scripts: the folder of `allennlp_compat.py`.

    Raises:
        KeyError: the variable PEERS does not name the folder of the environment, `an`.
        CalledProcessError: the script failed.
    """
    python = Path(os.environ["PEERS"]) / "an/bin/python"
    command = [str(python), "-W", "ignore", f"benchmarks/{script}", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(scripts.resolve())}
    done = subprocess.run(
        command, cwd=_ROOT, env=environment, stdout=subprocess.PIPE, check=True, text=True
    )
    return done.stdout
