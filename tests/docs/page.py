"""Runs a page of the documentation: its files are written, its commands run and compared."""

from __future__ import annotations

import io
import re
import runpy
import shlex
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from elmo_framework.commands.main import main

_BLOCK = re.compile(
    r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```$', re.MULTILINE | re.DOTALL
)
_COMMAND = re.compile(
    r"^\$ (?P<program>elmo|python) (?P<arguments>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE
)


def _python(arguments: list[str]) -> int:
    (script,) = arguments
    runpy.run_path(script, run_name="__main__")
    return 0


_PROGRAMS: dict[str, Callable[[list[str]], int]] = {"elmo": main, "python": _python}


def run_page(page: Path, *, section: str = "") -> int:
    """Work through a page in the current folder; return how many commands it holds.

    A block with a title is a file. In a `console` block each line after `$ ` is a command, and
    what follows it is all that it prints; `...` stands for any text. With `section`, only what is
    below this heading, up to the next one, is run.
    """
    num_commands = 0
    text = page.read_text(encoding="utf-8")
    if section:
        _, heading, rest = text.partition(f"# {section}\n")
        assert heading, f"{page} has no section {section!r}"
        text = re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    for block in _BLOCK.finditer(text):
        if block["title"]:
            path = Path(block["title"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["body"], encoding="utf-8")
        elif block["kind"] == "console":
            num_commands += sum(_run(command) for command in _commands(block["body"]))
    return num_commands


def _commands(body: str) -> Iterator[re.Match[str]]:
    found = list(_COMMAND.finditer(body))
    assert "".join(command[0] for command in found) == body, f"not all of it is commands:\n{body}"
    yield from found


def _run(command: re.Match[str]) -> int:
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        code = _PROGRAMS[command["program"]](shlex.split(command["arguments"]))
    expected, output = command["output"].strip(), printed.getvalue().strip()
    pattern = ".*".join(map(re.escape, expected.split("...")))
    assert re.fullmatch(pattern, output, re.DOTALL), f"{command[0]}\nprinted:\n{output}"
    assert code == (2 if "error: " in expected else 0), f"{command[0]}\nended with {code}"
    return 1
