"""What `docs/claims.md` names exists, and each claim names something."""

from __future__ import annotations

import re

import pytest

from elmo_framework.commands.main import COMMANDS
from tests.conftest import ROOT

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs/claims.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| Claim", "| Measurement"))
]
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_each_claim_names_evidence_that_exists(row: list[str]) -> None:
    evidence = re.findall(r"`([^`]+)`", row[-1])
    assert evidence, "a claim without evidence"
    pages = re.findall(r"`([^`]+)`", row[1]) if len(row) == 3 else []
    assert [name for name in [*evidence, *pages] if not exists(name)] == []


@pytest.mark.parametrize(
    "name",
    [
        "make no-such-target",
        "elmo no-such-command",
        "benchmarks/no_such_file.py",
        "tests/docs/test_claims.py::test_no_such_test",
        "tests/docs/no_such_file.py::test_each_claim_names_evidence_that_exists",
    ],
)
def test_evidence_that_is_missing_is_noticed(name: str) -> None:
    assert not exists(name)


def exists(name: str) -> bool:
    """Whether a test, a file, a target of the Makefile or a command exists."""
    tool, _, word = name.partition(" ")
    path, _, test = name.partition("::")
    match tool:
        case "make":
            return word in TARGETS
        case "elmo":
            return word in {command.name for command in COMMANDS}
        case _ if not (ROOT / path).is_file():
            return False
        case _:
            return not test or f"def {test}(" in (ROOT / path).read_text()
