"""Other interpreters than the one that runs the tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.extras.conftest import require_program

PACKAGE = Path(__file__).parents[2] / "elmo_framework"
CODE = """
import pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
    compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)
"""


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_interpreter_compiles_every_module(version: str) -> None:
    interpreter = require_program(f"python{version}")
    if subprocess.run([interpreter, "--version"], capture_output=True).returncode:
        pytest.skip(f"python{version} is installed, but not selected")  # by pyenv
    command = [interpreter, "-W", "error", "-c", CODE, str(PACKAGE)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
