import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar, final

import pytest
import torch

from elmo_framework.commands import main as module
from elmo_framework.commands.command import Command
from elmo_framework.commands.main import COMMANDS, command_line, main
from elmo_framework.errors import DataError
from elmo_framework.version import VERSION
from tests.conftest import ROOT

NO_MEMORY = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of "
    "which 1.20 GiB is free. Including non-PyTorch memory, this process has 77.9 GiB memory in use."
)


@final
@dataclass(frozen=True, kw_only=True)
class Raising(Command):
    """End with an error, a signal or a code."""

    name = "raising"
    epilog = "examples:\n  elmo raising\n"
    error: ClassVar[BaseException | None] = None
    offline: ClassVar[str | None] = None

    code: int = 0
    terminate: bool = False

    def run(self) -> int:
        Raising.offline = os.environ.get("ELMO_OFFLINE")
        if self.error is not None:
            raise self.error
        if self.terminate:
            os.kill(os.getpid(), signal.SIGTERM)
        return self.code


def run(monkeypatch: pytest.MonkeyPatch, error: BaseException | None, *arguments: str) -> int:
    monkeypatch.setattr(Raising, "error", error)
    monkeypatch.setattr(module, "COMMANDS", (Raising,))
    return main([*arguments])


def test_the_code_of_the_command_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, None, "raising", "--code", "5") == 5


def test_a_gpu_without_memory_is_a_message_with_sizes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, torch.OutOfMemoryError(NO_MEMORY), "raising") == 2
    assert capsys.readouterr().err == (
        "error: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
        "79.10 GiB of which 1.20 GiB is free; lower --batch-size, pass --device cpu, or free the "
        "GPU\n"
    )
    with pytest.raises(RuntimeError, match="a bug"):
        run(monkeypatch, RuntimeError("a bug"), "raising")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "3000"),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, None),
    ],
)
def test_waiting_threads_yield_unless_configured(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str | None
) -> None:
    environment = {"OMP_NUM_THREADS": "2", **variables}
    monkeypatch.setattr(os, "environ", environment)
    run(monkeypatch, None, "raising")
    assert environment.get("GOMP_SPINCOUNT") == expected


def test_an_error_that_the_user_can_repair_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, DataError("is ragged", line=3), "raising") == 2
    assert capsys.readouterr() == ("", "error: 3: is ragged\n")


@pytest.mark.parametrize("arguments", [("--traceback", "raising"), ("raising", "--traceback")])
def test_the_traceback_is_shown_on_demand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert run(monkeypatch, DataError("is ragged"), *arguments) == 2
    assert capsys.readouterr().err.startswith("Traceback")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "x.txt"), "x.txt: No such file or"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("odd"), "odd"),
    ],
)
def test_errors_of_files_are_the_users(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: OSError, said: str
) -> None:
    assert run(monkeypatch, error, "raising") == 2
    assert capsys.readouterr().err.startswith(f"error: {said}")


def test_errors_of_ours_are_raised_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyError):
        run(monkeypatch, KeyError("x"), "raising")


@pytest.mark.parametrize("arguments", [("--offline", "raising"), ("raising", "--offline")])
def test_offline_holds_while_the_command_runs(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.delenv("ELMO_OFFLINE", raising=False)
    assert run(monkeypatch, None, *arguments) == 0
    assert Raising.offline == "1"
    assert main(["raising"]) == 0
    assert Raising.offline is None


def test_an_interrupt_has_its_own_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, KeyboardInterrupt(), "raising") == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_sigterm_ends_a_command_as_ctrl_c_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert run(monkeypatch, None, "raising", "--terminate") == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_unknown_command_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["chekc"]) == 2
    assert "unknown command 'chekc'; choose from " in (said := capsys.readouterr().err)
    assert said.endswith("Did you mean 'check'?\n")


def test_without_arguments_five_ways_to_begin_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = re.findall(r"^  \S.*?  (elmo .*)$", capsys.readouterr().out, re.MULTILINE)
    assert len(lines) == 5
    for line in lines:
        assert command_line().parse_args(line.split()[1:]).command in COMMANDS


@pytest.mark.parametrize("argv", [["check"], ["check", "x", "--no-such-flag"]])
def test_wrong_arguments_are_the_users(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    assert capsys.readouterr().err.startswith("usage: elmo")


def test_a_variable_without_a_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "x.jsonnet", "--ext-var", "DATA"]) == 2
    assert "'DATA' is not NAME=VALUE" in capsys.readouterr().err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"elmo_framework {VERSION}\n"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.name))
def test_every_command_has_help_with_examples(
    command: type[Command], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command.name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert command.help() in " ".join(shown.split())
    assert f"examples:\n  elmo {command.name}" in shown or f"| elmo {command.name}" in shown


def test_help_lists_each_command_in_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    groups = [line for line in lines if re.fullmatch(r"[a-z ]+:", line)]
    assert groups == [
        "options:",
        "data and configs:",
        "train:",
        "use:",
        "evaluate and study:",
        "share:",
    ]
    listed = [match[1] for line in lines if (match := re.match(r"  ([a-z][a-z-]*)  +\S", line))]
    assert sorted(listed) == sorted(command.name for command in COMMANDS)
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("build-vocab", "elmo check"),
        ("cached-path", "elmo cache"),
        ("checklist", "elmo evaluate"),
        ("configure", "elmo new"),
        ("dry-run", "elmo train CONFIG -s DIR --dry-run"),
        ("elmo", "elmo embed"),
        ("fine-tune", "elmo train"),
        ("make-vocab", "elmo check"),
        ("count-instances", "elmo check"),
        ("push-to-hf", "elmo push"),
        ("test-install", "elmo check-weights mini"),
        ("tune", "elmo study"),
    ],
)
def test_other_commands_of_allennlp_say_what_to_use(
    name: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "config.jsonnet", "--force"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"elmo has no {name}: ")
    assert instead in line
    words = line[line.index(instead) :].split()
    assert words[1] in {command.name for command in COMMANDS}


def test_readme_lists_all_commands() -> None:
    listed = re.findall(r"^\| `elmo ([a-z-]+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(command.name for command in COMMANDS)


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(flag: str) -> None:
    heavy = {"torch", "numpy", "pydantic", "spacy", "rich", "h5py", "shtab", "fsspec"}
    script = (
        f"import sys; from elmo_framework.commands.main import main; main([{flag!r}]); "
        f"print(sorted({heavy} & sys.modules.keys()))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_broken_pipe_is_not_an_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "elmo_framework", "describe"]
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_an_argument_that_is_no_path_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prepare", "file://a.txt", "--output-dir", "corpus"]) == 2
    assert capsys.readouterr().err.startswith("error: file://a.txt: not the URL of a local file")
