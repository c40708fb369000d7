"""A path on the command line that does not exist: the nearest one that does."""

from __future__ import annotations

from pathlib import Path

import pytest

from elmo_framework.commands.main import main


@pytest.mark.parametrize(
    ("command", "near"),
    [
        ("evaluate runs/nre sentences.txt", "runs/ner"),
        ("embed runs/nre sentences.txt --output-file vectors.npy", "runs/ner"),
        ("train confg.jsonnet -s run", "config.jsonnet"),
        ("new sentence.txt", "sentences.txt"),
        ("prepare sentence.txt --output-dir corpus", "sentences.txt"),
        ("score mini sentence.txt", "sentences.txt"),
    ],
)
def test_the_nearest_path_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    near: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs/ner").mkdir(parents=True)
    for name in ("config.jsonnet", "sentences.txt"):
        Path(name).touch()
    assert main(command.split()) == 2
    assert capsys.readouterr().err.endswith(f". Did you mean {near!r}?\n")
