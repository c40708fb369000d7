import os
from argparse import ArgumentParser

import pytest

from elmo_framework.commands.prepare import Prepare
from elmo_framework.config.arguments import add_arguments


def processes(*flags: str) -> object:
    parser = ArgumentParser()
    add_arguments(parser, Prepare)
    return parser.parse_args(["news.txt", "--output-dir", "corpus", *flags]).num_processes


def test_processes_default_to_the_number_of_cores() -> None:
    assert processes() == len(os.sched_getaffinity(0))
    assert processes("--processes", "3") == 3


@pytest.mark.parametrize(("cores", "expected"), [(6, 6), (None, 1)])
def test_all_cores_count_without_sched_getaffinity(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, expected: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert processes() == expected
