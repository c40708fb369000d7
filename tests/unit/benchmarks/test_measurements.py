from __future__ import annotations

from pathlib import Path

import pytest
from measurements import NAMES, Places, commands

MODELS, SENTENCES = Path("models"), Path("sentences.txt")
ALONE = Places(MODELS, SENTENCES)
TOGETHER = Places(MODELS, SENTENCES, peers=Path("/peers"), scripts=Path("/scripts"))


@pytest.mark.parametrize("name", NAMES)
def test_without_the_others_ours_run_alone(name: str) -> None:
    assert all(held.startswith("ours") for held in commands(name, ALONE, is_quick=False))


@pytest.mark.parametrize("name", NAMES)
def test_our_command_comes_before_that_of_allennlp(name: str) -> None:
    chosen = commands(name, TOGETHER, is_quick=False)
    assert next(iter(chosen)) == "ours"
    assert chosen["allennlp"].words[0] == "/peers/an/bin/python"
    assert chosen["allennlp"].directory == Path("/scripts")


@pytest.mark.parametrize("name", NAMES)
def test_every_script_of_ours_is_there(name: str) -> None:
    for command in commands(name, ALONE, is_quick=True).values():
        assert Path(command.words[1]).is_file()


def test_all_embed_the_same_sentences() -> None:
    chosen = commands("embedding-small", TOGETHER, is_quick=False).values()
    assert {held.words[held.words.index("--n") + 1] for held in chosen} == {"384"}
    assert {held.words[held.words.index("--n1") + 1] for held in chosen} == {"24"}
