from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import pytest

from elmo_framework.config.arguments import (
    AboveZero,
    Argument,
    ComponentConfig,
    add_arguments,
    read_arguments,
)

Name: TypeAlias = Annotated[str, Argument("NAME", flags=("-n",))]


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Base class of the job.

    Attributes:
        size: how large.
        verbose: whether to print more.
    """

    verbose: bool = False


@dataclass(frozen=True, kw_only=True)
class Job(Shared):
    """A job of this test.

    Attributes:
        files: what is read.
        size: how large it is (default: %(default)s).
    """

    files: Annotated[Sequence[Path], Argument("FILE", is_positional=True)]
    name: Name | None = None
    size: AboveZero = field(default_factory=lambda: 3)
    form: Literal["long", "short"] = "long"
    labels: Sequence[str] = ()
    columns: Annotated[Sequence[int] | None, Argument("N", takes_many=True)] = None
    reader: Annotated[ComponentConfig, Argument(excludes="reading")] = None
    is_text: Annotated[bool, Argument(excludes="reading")] = False


def parser() -> ArgumentParser:
    parser = ArgumentParser(prog="job", allow_abbrev=False)
    add_arguments(parser, Job)
    return parser


def read(line: str) -> Job:
    job = read_arguments(Job, parser().parse_args(line.split()))
    assert isinstance(job, Job)
    return job


def test_defaults_are_those_of_the_dataclass() -> None:
    assert read("a.txt") == Job(files=[Path("a.txt")], labels=[])


def test_all_values_reach_their_fields() -> None:
    line = "a b -n x --size 7 --form short --labels p --labels q --columns 1 2 --is-text --verbose"
    assert read(line) == Job(
        files=[Path("a"), Path("b")],
        name="x",
        size=7,
        form="short",
        labels=["p", "q"],
        columns=[1, 2],
        is_text=True,
        verbose=True,
    )


def test_lists_of_one_line_do_not_reach_the_next() -> None:
    assert read("a --labels p").labels == ["p"]
    assert read("a").labels == []


def test_json_argument_is_decoded() -> None:
    assert read('a --reader {"type":"x"}').reader == {"type": "x"}
    assert read("a --reader x").reader == "x"


def test_help_is_the_nearest_docstring_of_the_field() -> None:
    texts = " ".join(parser().format_help().split())
    assert "how large it is (default: 3)" in texts
    assert "whether to print more" in texts
    assert "-n NAME" in texts


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "the following arguments are required: FILE"),
        ("a --size 0", "argument --size: '0' is not a whole number above 0"),
        ("a --reader x --is-text", "not allowed with argument --reader"),
        ("a --columns", "argument --columns: expected at least one argument"),
        ("a --form medium", "argument --form: invalid choice: 'medium'"),
        ("a --nam x", "unrecognized arguments: --nam x"),
    ],
)
def test_wrong_values_are_errors(
    line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        read(line)
    assert message in capsys.readouterr().err
