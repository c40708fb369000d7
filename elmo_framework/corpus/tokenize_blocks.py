"""Tokenize the blocks of a text in several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from elmo_framework.corpus.blocks import Block
from elmo_framework.corpus.tokenize import SplitLine, TextTokenizer, TokenizedBlock
from elmo_framework.errors import RunError
from elmo_framework.io.resumable_output import RESUME

_BLOCKS_PER_PROCESS = 2
"""Number of blocks read ahead for each process, so that none has to wait."""


@dataclass(frozen=True)
class TokenizedFile:
    """A finished block: its number, its size on disk, its number of words, and its digest."""

    number: int
    num_bytes: int
    num_words: int
    digest: str


def tokenize_blocks(
    tasks: Iterable[tuple[Block, Path]], tokenizer: TextTokenizer, num_processes: int
) -> Generator[TokenizedFile, None, None]:
    """Tokenize blocks to files and yield the finished ones, in any order.

    Args:
        tasks: the blocks, with the paths of their files.
        tokenizer: splits lines.
        num_processes: number of processes; one is the current process.

    Raises:
        DataError: a block cannot be tokenized.
        RunError: a process was killed.
    """
    if num_processes == 1:
        split_line = tokenizer.build()
        yield from (_tokenize(block, path, split_line) for block, path in tasks)
        return
    # A forked process would copy the locks that threads of this one hold.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    with (
        receiver,
        sender,
        ProcessPoolExecutor(
            num_processes, mp_context=context, initializer=_start, initargs=(tokenizer, receiver)
        ) as pool,
    ):
        try:
            yield from _results(pool, tasks, _BLOCKS_PER_PROCESS * num_processes)
        except BrokenProcessPool as error:
            raise RunError(
                "a tokenizing process was killed, perhaps because memory ran out; "
                f"{RESUME} and fewer --processes"
            ) from error
        except BaseException:
            sender.close()  # ends the workers at once, in the middle of their blocks
            raise
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


_split_line: SplitLine | None = None
"""Of a worker process, for all its blocks."""


def _start(tokenizer: TextTokenizer, parent: Connection) -> None:
    global _split_line
    # The parent is interrupted as well, and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _split_line = tokenizer.build()


def _end_with(parent: Connection) -> None:
    """End this worker when its parent stops, or is killed: both close the other end."""
    with suppress(EOFError, OSError):
        parent.recv_bytes()
    os._exit(1)


def _tokenize_in_worker(block: Block, path: Path) -> TokenizedFile:
    assert _split_line is not None
    return _tokenize(block, path, _split_line)


def _tokenize(block: Block, path: Path, split_line: SplitLine) -> TokenizedFile:
    tokenized = TokenizedBlock.of(block, split_line)
    tokenized.save(path)
    return TokenizedFile(block.number, block.num_bytes, len(tokenized.ids), block.digest)
