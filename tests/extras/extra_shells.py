"""Completion scripts in zsh and fish."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extras.conftest import require_program
from tests.unit.commands.test_completion import COMPLETIONS, completed, run, script


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shell_accepts_the_script(shell: str, tmp_path: Path) -> None:
    require_program(shell)
    (tmp_path / "script").write_text(script(shell))
    run(shell, "-n", "script", folder=tmp_path)


@pytest.mark.parametrize(("line", "expected"), COMPLETIONS)
def test_fish_completes_commands_flags_files_and_names(
    line: str, expected: set[str], tmp_path: Path
) -> None:
    require_program("fish")
    assert completed("fish", line, folder=tmp_path) == expected
