"""Tokenize blocks of text in several processes, with word ids local to each block."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import threading
from array import array
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.config.parse import parse
from elmo_framework.config.plugins import load_plugins
from elmo_framework.corpus.blocks import Block, LineRange
from elmo_framework.data.formats.text_files import decoded_lines, error_context
from elmo_framework.data.sentences import sentence_digest
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError, RunError, shown
from elmo_framework.io.files import replacing
from elmo_framework.io.resumable_output import RESUME

_HASH_BYTES = 8
_BLOCKS_PER_PROCESS = 2
"""Number of blocks read ahead for each process, so that none has to wait."""

SplitLine: TypeAlias = Callable[[str], list[list[str]]]
"""Returns the words of each sentence of a line that has words."""


@final
@dataclass(frozen=True)
class TextTokenizer:
    """Picklable options of a tokenizer of lines; each process builds its own.

    Attributes:
        tokenizer: splits sentences into words; its name, or JSON as in a config.
        sentence_splitter: the tokenizer that splits lines into sentences.
        packages: plugins that register tokenizers.
    """

    tokenizer: Any
    sentence_splitter: Any
    packages: Sequence[str] = ()

    def build(self) -> SplitLine:
        """Build the tokenizer.

        Raises:
            ElmoFrameworkError: the tokenizer or a plugin is unknown.
        """
        load_plugins(list(self.packages), asked_by="--include-package")
        words = _built(self.tokenizer, "--tokenizer").words
        sentences = _built(self.sentence_splitter, "--sentence-splitter").sentences
        return lambda line: list(filter(None, map(words, sentences(line))))


@final
@dataclass(frozen=True)
class TokenizedBlock:
    """The sentences of a block.

    Attributes:
        words: the distinct words, in order of appearance.
        ids: the concatenated sentences, as indices into `words`.
        lengths: the number of words of each sentence.
        hashes: of each sentence.
        num_blank_lines: the number of lines without a word.
    """

    words: list[str]
    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    num_blank_lines: int

    @classmethod
    def of(cls, block: Block, tokenizer: SplitLine) -> TokenizedBlock:
        """Tokenize the lines of a block.

        Raises:
            DataError: a line is not UTF-8, or cannot be tokenized; or a word is empty or has a
                line end.
        """
        word_ids: defaultdict[str, int] = defaultdict(count().__next__)
        ids, lengths, hashes, num_blank_lines = array("i"), array("i"), bytearray(), 0
        for lines, number, line in _lines(block):
            try:
                sentences = tokenizer(line)
            except (DataError, ValueError):
                with error_context(lines.path, lines.number_in_file(number)):
                    raise
            num_blank_lines += not sentences
            for words in sentences:
                ids.extend(map(word_ids.__getitem__, words))
                lengths.append(len(words))
                hashes += sentence_digest(words, separator=" ", num_bytes=_HASH_BYTES)
        broken = next((word for word in word_ids if not word or "\n" in word), None)
        if broken is not None:
            problem = "has a line end" if broken else "is empty"
            message = f"the tokenizer made the word {shown(broken)}, which {problem}"
            only = block.ranges[0].path if len(block.ranges) == 1 else None
            raise DataError(message, path=only)
        return cls(
            list(word_ids),
            np.frombuffer(ids, np.int32),
            np.frombuffer(lengths, np.int32),
            np.frombuffer(hashes, "<u8"),
            num_blank_lines,
        )

    def select(self, is_inside: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the ids of the words and the lengths of some of the sentences."""
        return self.ids[np.repeat(is_inside, self.lengths)], self.lengths[is_inside]

    def save(self, path: Path) -> None:
        """Write a file atomically."""
        with replacing(path) as aside, aside.open("wb") as file:
            np.savez(
                file,
                words=np.frombuffer("\n".join(self.words).encode(), np.uint8),
                ids=self.ids,
                lengths=self.lengths,
                hashes=self.hashes,
                num_blank_lines=self.num_blank_lines,
            )

    @classmethod
    def load(cls, path: Path) -> TokenizedBlock:
        with np.load(path) as file:
            words = file["words"].tobytes().decode()
            return cls(
                words.split("\n") if words else [],
                file["ids"],
                file["lengths"],
                file["hashes"],
                int(file["num_blank_lines"]),
            )


def load_hashes(path: Path) -> NDArray[np.uint64]:
    """Read only the hashes of a file of `TokenizedBlock.save`."""
    with np.load(path) as file:
        hashes: NDArray[np.uint64] = file["hashes"]
    return hashes


def _built(raw: Any, source: str) -> Tokenizer:
    return parse(Tokenizer, raw, source=source).build()


def _lines(block: Block) -> Iterator[tuple[LineRange, int, str]]:
    """Yield the lines of a block, with their ranges and their numbers from `first_line`."""
    for lines in block.ranges:
        numbered = decoded_lines(io.BytesIO(lines.content), lines.path, first=lines.first_line)
        yield from ((lines, number, line) for number, line in numbered)


@dataclass(frozen=True)
class TokenizedFile:
    """A finished block: its number, its size on disk, its number of words, and its digest."""

    number: int
    num_bytes: int
    num_words: int
    digest: str


def tokenize_blocks(
    tasks: Iterable[tuple[Block, Path]],
    tokenizer: TextTokenizer,
    num_processes: int,
    *,
    advice: str = RESUME,
) -> Generator[TokenizedFile, None, None]:
    """Tokenize blocks to files and yield the finished ones, in any order.

    Args:
        tasks: the blocks, with the paths of their files.
        tokenizer: splits lines.
        num_processes: number of processes; one is the current process.
        advice: on how to resume, for messages.

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
                f"{advice}, but with fewer --processes"
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
