"""Writes a biLM as it is before training: the random control of a pretrained one of its shape.

Parts and sizes are those of another biLM; no text is read. With the default seed of a config the
weights are those that its pretraining starts from.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import torch
from measuring import say

from elmo_framework import components
from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import read_bilm, save_bilm
from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.config.parse import parse
from elmo_framework.errors import ElmoFrameworkError
from elmo_framework.training.seeds import seed_everything

_SEED = 13370
"""The default of `random_seed` in a config."""


def main() -> int:
    """Write the biLM; return 2 where its model cannot be read or a folder is in the way."""
    arguments = _arguments()
    components.load()
    try:
        write_random_bilm(arguments.bilm, arguments.output_dir, seed=arguments.seed)
    except ElmoFrameworkError as error:
        say(f"error: {error}", file=sys.stderr)
        return 2
    say(str(arguments.output_dir))
    return 0


def write_random_bilm(model: str | Path, directory: Path, *, seed: int = _SEED) -> None:
    """Write a biLM with the parts and sizes of another and initial weights.

    Args:
        model: the folder or the name of the other; its weights are not read.
        directory: where the files go; it must not exist.
        seed: of the weights.

    Raises:
        DataError: there is no such biLM.
        ElmoFrameworkError: something is in the way.
    """
    if directory.exists():
        raise ElmoFrameworkError(f"{directory} already exists; choose another folder")
    with torch.device("meta"):
        parts = read_bilm(resolve_bilm(model)).description
    seed_everything(seed)
    save_bilm(parse(BiLm, parts, source=str(model)).build(), directory)


def _arguments() -> Namespace:
    parser = ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("bilm", metavar="BILM", help="the folder or the name of a biLM")
    parser.add_argument("--output-dir", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seed", type=int, default=_SEED, help="of the weights (%(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
