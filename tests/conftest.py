"""What all tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from fsspec.implementations.memory import MemoryFileSystem

from elmo_framework import components

ROOT = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-golden", action="store_true", help="write tests/golden again from the configs"
    )


def pytest_sessionstart() -> None:
    """Register the components before any test module defines families of its own."""
    # A forked process waits for ever for the threads of OpenMP that its parent had started.
    torch.set_num_threads(1)
    components.load()
    # A shell starts background jobs with Ctrl-C ignored, and the tests' child processes inherit it.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tests away from the cache of the person who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMO_CACHE_ROOT", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """What a test kills is a process; only a machine loses what is not on its disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture
def in_root(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run from the root of the project, which the paths of shipped configs start from."""
    monkeypatch.chdir(ROOT)
    return ROOT


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    """The files of `memory://`, which one process has."""
    yield MemoryFileSystem()
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture(scope="session")
def transformer_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of a tiny transformer of a kind, written once."""
    # Slow to import, and for these tests alone.
    from tests.tiny_transformers import save_transformer

    root, written = tmp_path_factory.mktemp("transformers"), dict[str, Path]()

    def folder(kind: str) -> Path:
        if kind not in written:
            written[kind] = save_transformer(root / kind, kind)
        return written[kind]

    return folder
