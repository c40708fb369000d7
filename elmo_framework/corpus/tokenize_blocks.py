"""Tokenize the blocks of a text in several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from elmo_framework.config.plugins import load_plugins
from elmo_framework.corpus.blocks import Block
from elmo_framework.corpus.tokenize import TextTokenizer, TokenizedBlock
from elmo_framework.errors import RunError
from elmo_framework.io.resumable_output import RESUME

_BLOCKS_PER_PROCESS = 2
"""Number of blocks read ahead for each process, so that none has to wait."""


@final
@dataclass(frozen=True)
class TextTokenizerOptions:
    """Picklable options of a `TextTokenizer`; `packages` are plugins that register tokenizers."""

    tokenizer: Any
    sentence_splitter: Any
    packages: Sequence[str]

    def build(self) -> TextTokenizer:
        """Build the tokenizer.

        Raises:
            ElmoFrameworkError: the tokenizer or a plugin is unknown.
        """
        load_plugins(list(self.packages), asked_by="--include-package")
        return TextTokenizer(self.tokenizer, self.sentence_splitter)


@dataclass(frozen=True)
class TokenizedFile:
    """A finished block: its number, its size on disk, its number of words, and its digest."""

    number: int
    num_bytes: int
    num_words: int
    digest: str


def tokenize_blocks(
    tasks: Iterable[tuple[Block, Path]], options: TextTokenizerOptions, num_processes: int
) -> Iterator[TokenizedFile]:
    """Tokenize blocks to files and yield the finished ones, in any order.

    Args:
        tasks: the blocks, with the paths of their files.
        options: of the tokenizer.
        num_processes: number of processes; one is the current process.

    Raises:
        DataError: a block cannot be tokenized.
        RunError: a process was killed.
    """
    if num_processes == 1:
        tokenizer = options.build()
        yield from (_tokenize(block, path, tokenizer) for block, path in tasks)
        return
    # A forked process would copy the locks that threads of this one hold.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        num_processes, mp_context=context, initializer=_start, initargs=(options,)
    ) as pool:
        try:
            yield from _results(pool, tasks, _BLOCKS_PER_PROCESS * num_processes)
        except BrokenProcessPool as error:
            raise RunError(
                "a tokenizing process was killed, perhaps because memory ran out; "
                f"{RESUME} and fewer --processes"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _results(
    pool: ProcessPoolExecutor, tasks: Iterable[tuple[Block, Path]], num_ahead: int
) -> Iterator[TokenizedFile]:
    running = set[Future[TokenizedFile]]()
    for block, path in tasks:
        running.add(pool.submit(_tokenize_in_worker, block, path))
        if len(running) >= num_ahead:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in done)


_tokenizer: TextTokenizer | None = None
"""Of a worker process, for all its blocks."""


def _start(options: TextTokenizerOptions) -> None:
    global _tokenizer
    # The parent is interrupted as well, and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _tokenizer = options.build()


def _end_with_parent() -> None:
    """End this worker if its parent is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _tokenize_in_worker(block: Block, path: Path) -> TokenizedFile:
    assert _tokenizer is not None
    return _tokenize(block, path, _tokenizer)


def _tokenize(block: Block, path: Path, tokenizer: TextTokenizer) -> TokenizedFile:
    tokenized = TokenizedBlock.of(block, tokenizer)
    tokenized.save(path)
    return TokenizedFile(block.number, block.num_bytes, len(tokenized.ids), block.digest)
