"""Cutting all blocks of a text, in several processes."""

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

_BLOCKS_A_PROCESS = 2
"""How many blocks are read ahead for each process, so that none has to wait."""


@final
@dataclass(frozen=True)
class TextTokenizerOptions:
    """What each process makes its splitter of.

    Attributes:
        tokenizer: see `TextTokenizer`.
        sentence_splitter: see `TextTokenizer`.
        packages: plugins that register them.
    """

    tokenizer: Any
    sentence_splitter: Any
    packages: Sequence[str]

    def build(self) -> TextTokenizer:
        """Make the splitter.

        Raises:
            ElmoFrameworkError: there is no such tokenizer or plugin.
        """
        load_plugins(list(self.packages), asked_by="--include-package")
        return TextTokenizer(self.tokenizer, self.sentence_splitter)


@dataclass(frozen=True)
class TokenizedFile:
    """A block whose draft has been written.

    Attributes:
        number: of the block.
        num_bytes: of the block on the disk.
        num_words: in it.
        digest: of its lines.
    """

    number: int
    num_bytes: int
    num_words: int
    digest: str


def tokenize_blocks(
    tasks: Iterable[tuple[Block, Path]], recipe: TextTokenizerOptions, num_processes: int
) -> Iterator[TokenizedFile]:
    """Write the drafts of blocks and yield what was done, in any order.

    Args:
        tasks: the blocks, and where their drafts go.
        recipe: how lines are cut.
        num_processes: how many work side by side; one is the process that asks.

    Raises:
        DataError: a block cannot be cut.
        RunError: a process has ended before its work was done.
    """
    if num_processes == 1:
        splitter = recipe.build()
        yield from (_draft(block, path, splitter) for block, path in tasks)
        return
    # A forked process would share the locks of this one's threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        num_processes, mp_context=context, initializer=_start, initargs=(recipe,)
    ) as pool:
        try:
            yield from _results(pool, tasks, _BLOCKS_A_PROCESS * num_processes)
        except BrokenProcessPool as error:
            raise RunError(
                "a process that cut text was killed, perhaps for want of memory; "
                f"{RESUME}, with fewer --processes"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _results(
    pool: ProcessPoolExecutor, tasks: Iterable[tuple[Block, Path]], num_ahead: int
) -> Iterator[TokenizedFile]:
    running = set[Future[TokenizedFile]]()
    for block, path in tasks:
        running.add(pool.submit(_draft_in_worker, block, path))
        if len(running) >= num_ahead:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in done)


_splitter: TextTokenizer | None = None
"""Of a worker process, for all its blocks."""


def _start(recipe: TextTokenizerOptions) -> None:
    global _splitter
    # The process that asks is interrupted as well, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _splitter = recipe.build()


def _end_with_parent() -> None:
    """End this process when the one that started it was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _draft_in_worker(block: Block, path: Path) -> TokenizedFile:
    assert _splitter is not None
    return _draft(block, path, _splitter)


def _draft(block: Block, path: Path, splitter: TextTokenizer) -> TokenizedFile:
    draft = TokenizedBlock.of(block, splitter)
    draft.save(path)
    return TokenizedFile(block.number, block.num_bytes, len(draft.ids), block.digest)
