"""How long it takes to import the package and to load a biLM, and the memory of it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path

from measuring import add_threads_argument, report, timed


def main() -> int:
    """Import, load, report."""
    parser = ArgumentParser(description="Time the loading of a biLM in a fresh process.")
    parser.add_argument("--model", type=Path, required=True, help="the folder of a biLM")
    add_threads_argument(parser)
    arguments = parser.parse_args()
    # By name, because an import statement at the top could not be timed.
    load, import_seconds = timed(lambda: import_module("elmo_framework.bilm.files.load"))
    torch = import_module("torch")
    torch.set_num_threads(arguments.threads)
    _, load_seconds = timed(lambda: load.read_bilm(load.bilm_files(arguments.model)))
    report(
        bench="loading",
        torch=torch.__version__,
        threads=arguments.threads,
        import_s=round(import_seconds, 3),
        load_s=round(load_seconds, 3),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
