import os
from argparse import ArgumentParser

import pytest

from elmo_framework.commands.prepare import Prepare


def processes(*flags: str) -> object:
    parser = ArgumentParser()
    Prepare().add_arguments(parser)
    return parser.parse_args(["news.txt", "--output-dir", "corpus", *flags]).processes


def test_as_many_cut_text_as_there_are_cores_unless_given() -> None:
    assert processes() == len(os.sched_getaffinity(0))
    assert processes("--processes", "3") == 3


@pytest.mark.parametrize(("cores", "expected"), [(6, 6), (None, 1)])
def test_where_the_system_does_not_say_which_cores_are_free_all_are_counted(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, expected: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert processes() == expected
