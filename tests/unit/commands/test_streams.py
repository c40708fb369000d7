"""Commands whose standard streams are closed, or have another encoding than UTF-8."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, final

import pytest

from elmo_framework.commands import main as module
from elmo_framework.commands.command import Command
from elmo_framework.commands.main import main
from elmo_framework.config.arguments import Argument
from tests.experiment.jobs import run_python


@final
@dataclass(frozen=True, kw_only=True)
class Echo(Command):
    """Print the argument, or the standard input."""

    name = "echo"
    epilog = "examples:\n  elmo echo\n"

    text: Annotated[str | None, Argument(is_positional=True)] = None

    def run(self) -> int:
        sys.stdout.write(f"{self.text or sys.stdin.buffer.read().decode()}\n")
        return 0


@pytest.fixture(autouse=True)
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMANDS", (Echo,))


def test_a_closed_output_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["echo", "x"]) == 2
    said = "error: standard output is closed; redirect it to /dev/null if you do not need it\n"
    assert capsys.readouterr().err == said


def test_a_closed_input_is_an_error_when_it_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["echo", "x"]) == 0
    assert main(["echo"]) == 2
    said = "error: standard input: it is closed; redirect it from a file or a pipe\n"
    assert capsys.readouterr().err == said


def test_with_closed_errors_the_work_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["echo", "x"]) == 0
    assert capsys.readouterr().out == "x\n"
    assert main(["echo", "--no-such-flag"]) == 2


@pytest.mark.parametrize(("encoding", "text"), [("ascii", "Zürich"), ("latin-1", "Łódź")])
def test_unencodable_output_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], encoding: str, text: str
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        assert main(["echo", text]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: cannot write ")
    assert said.endswith("; set PYTHONIOENCODING=utf-8\n")


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_file_name_with_invalid_bytes_is_printed(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(["echo", os.fsdecode(b"caf\xe9.html")]) == 0
    assert stream.buffer.getvalue() == b"caf\xe9.html\n"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("--version 2>&-", 0, ""),
        ("cache >&-", 2, "error: standard output is closed; redirect it to /dev/null"),
        ("cache <&- >&- 2>&-", 2, ""),
    ],
)
def test_streams_that_a_shell_has_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shell = "import os, sys; os.execv('/bin/sh', ['sh', '-c', sys.argv[1]])"
    done = run_python("-c", shell, f"{quote(sys.executable)} -m elmo_framework {words}")
    last = done.stderr.rpartition("error: ")
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert "".join(last[1:]).startswith(said)
