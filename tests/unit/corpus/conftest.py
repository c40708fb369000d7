"""Small texts, and the corpora that they become."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from elmo_framework.corpus.job import PreparationJob
from elmo_framework.corpus.prepare import prepare
from elmo_framework.tasks.language_modeling.corpus import TokenIdCorpus
from elmo_framework.tasks.language_modeling.reader import PreparedCorpusReader

TEXT = "the cat sat .\n\nthe dog sat\n the  cat ran .\nthe cat sat .\n"

Make: TypeAlias = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Prepare a text, and return the corpus."""

    def made(text: str = TEXT, name: str = "corpus", **changes: Any) -> Path:
        source = tmp_path / f"{name}.txt"
        source.write_text(text)
        job = {"texts": [source], "output": tmp_path / name, "held_out": 0.0, **changes}
        prepare(PreparationJob(**job))
        return tmp_path / name

    return made


def read(part: Path) -> TokenIdCorpus:
    return PreparedCorpusReader().read(part)


def sentences(part: Path) -> list[str]:
    return [" ".join(example.words) for example in read(part)]


def contents(corpus: Path) -> dict[str, bytes]:
    """All files of a corpus but the manifest, which tells where its text was."""
    return {
        str(file.relative_to(corpus)): file.read_bytes()
        for file in sorted(corpus.rglob("*"))
        if file.is_file() and file.name != "corpus.json"
    }


def many_sentences(number: int = 2000) -> str:
    """A text of several thousand words, with sentences that come twice."""
    return "".join(f"w{i % 50} v{i % 7} u{i % 900} .\n" for i in range(number))
