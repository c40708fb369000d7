"""The tokenized blocks of a text, which one job writes, or several that share the work."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, final

from filelock import FileLock, Timeout

from elmo_framework.config.job_part import WHOLE, JobPart
from elmo_framework.console import ProgressBar, plural
from elmo_framework.corpus.blocks import Block, read_blocks, sample_digest, size_on_disk
from elmo_framework.corpus.tokenize import TextTokenizer, TokenizedFile, tokenize_blocks
from elmo_framework.data.formats.text_files import STANDARD_INPUT
from elmo_framework.errors import RunError
from elmo_framework.io.files import write_text
from elmo_framework.io.resumable_output import AGAIN, RESUME, ResumableOutput

BLOCK_BYTES = 8 << 20
"""The text that one process tokenizes at a time, and that is lost if it is killed."""

_TEXT = "text.json"

_SECONDS_TO_START = 30.0
"""Parts that start at the same time create the folder one after the other."""

_NUM_SHOWN = 5


@final
class TokenizedBlocks:
    """Writes and finds the tokenized blocks of a text in the folder of a `ResumableOutput`.

    | file | content |
    |---|---|
    | `draft-NNNNN.npz` | one tokenized block of text |
    | `done*.jsonl` | the finished blocks with their digests, one per line; one file for each part |
    | `text.json` | the files that parts read, and digests of their samples |
    | `.part-I-of-N.lock` | locked while a part is written |

    Args:
        files: the text.
        tokenizer: splits its lines.
        output: of the job.
    """

    def __init__(
        self, files: Sequence[Path], tokenizer: TextTokenizer, output: ResumableOutput
    ) -> None:
        self._files, self._tokenizer, self._output = files, tokenizer, output

    @property
    def settings(self) -> dict[str, Any]:
        """Return what must be equal for jobs to use the blocks of each other."""
        return {
            "tokenizer": self._tokenizer.tokenizer,
            "sentence_splitter": self._tokenizer.sentence_splitter,
            "block_bytes": BLOCK_BYTES,
        }

    def tokenize(self, num_processes: int, part: JobPart | None = None) -> tuple[list[Path], int]:
        """Tokenize the blocks of a part that are not done; by default, all of them.

        Returns:
            The files of its blocks, and the number of their words.

        Raises:
            DataError: a block cannot be tokenized.
            RunError: the text has changed since others of its blocks were tokenized.
        """
        total = None if STANDARD_INPUT in self._files else sum(map(size_on_disk, self._files))
        if total is not None and total <= BLOCK_BYTES:
            num_processes = 1
        paths, num_words = list[Path](), 0

        def count(file: TokenizedFile) -> None:
            nonlocal num_words
            num_words += file.num_words
            progress.advance(file.num_bytes, note=plural(num_words, "word"))

        name = "tokenizing" if part is None else f"tokenizing, part {part}"
        journal_name = "done" if part is None else f"done-{part.number}-of-{part.total}"
        remaining = self._remaining(part or WHOLE, paths, count)
        advice = RESUME if part is None else AGAIN
        with (
            ProgressBar(name, total=total if part is None else None, unit="byte") as progress,
            self._output.journal(f"{journal_name}.jsonl") as journal,
            closing(
                tokenize_blocks(remaining, self._tokenizer, num_processes, advice=advice)
            ) as tokenized,
        ):
            for file in tokenized:
                journal.mark_done(json.dumps(asdict(file)))
                count(file)
        return paths, num_words

    def all_paths(self) -> list[Path]:
        """Return the files of all blocks, which parts have tokenized.

        Raises:
            RunError: some are not tokenized, or the text has changed since.
        """
        paths = list[Path]()
        remaining = self._remaining(WHOLE, paths, lambda _: None)
        if missing := [block.number for block, _ in remaining]:
            shown = ", ".join(map(str, islice(missing, _NUM_SHOWN)))
            raise RunError(
                f"{self._output.path}: {len(missing):,} of {plural(len(paths), 'block')} are not "
                f"tokenized ({shown}{', ...' if len(missing) > _NUM_SHOWN else ''}); run their "
                "parts again (block B is in part B mod N of N), or tokenize them here with "
                "--resume in place of --merge"
            )
        return paths

    @contextmanager
    def shared(self, part: JobPart) -> Iterator[None]:
        """Write blocks next to the jobs of other parts.

        Raises:
            RunError: the others have another text or other settings, this part is being written,
                or the corpus exists.
        """
        output = self._output
        text = self._text()  # not while others wait for the lock: it may be a download
        with output.locked(timeout=_SECONDS_TO_START):
            if os.path.lexists(output.output):
                raise RunError(
                    f"--output-dir {output.output} already exists; remove it, or choose another "
                    "path"
                )
            output.join(self.settings)
            self._join_text(text)
            lock = FileLock(output.path / f".part-{part.number}-of-{part.total}.lock")
            try:
                lock.acquire(timeout=0)
            except Timeout as error:
                raise RunError(f"{output.path}: another job is writing part {part}") from error
        try:
            yield
        finally:
            lock.release()

    def check_parts(self) -> None:
        """Check that there are parts, of this text.

        Raises:
            RunError: there are none, or of another text.
        """
        path = self._output.path
        if not self._output.has_progress():
            raise RunError(f"{path} has no tokenized blocks; run the parts first, with --part")
        if (path / _TEXT).exists():
            self._check_text(self._text())

    def require_no_running_part(self) -> None:
        """Raise RunError if a part is being written; the output must be locked."""
        for path in self._output.path.glob(".part-*.lock"):
            try:
                with FileLock(path).acquire(timeout=0):
                    pass
            except Timeout as error:
                part = path.stem.removeprefix(".part-").replace("-of-", "/")
                raise RunError(
                    f"{self._output.path}: another job is writing part {part}; wait for it"
                ) from error

    def _join_text(self, text: list[list[str]]) -> None:
        path = self._output.path / _TEXT
        if path.exists():
            self._check_text(text)
        else:
            write_text(path, json.dumps(text, indent=2) + "\n")

    def _check_text(self, text: list[list[str]]) -> None:
        before = json.loads((self._output.path / _TEXT).read_text(encoding="utf-8"))
        if text == before:
            return
        names = (now[0] for now, then in zip(text, before, strict=False) if now != then)
        reason = f"{next(names, 'the number of files')} is not the one"
        raise RunError(
            f"{self._output.path}: {reason} that the other parts read; pass the same text in the "
            "same order, or choose another --output-dir"
        )

    def _text(self) -> list[list[str]]:
        return [[file.name, sample_digest(file)] for file in self._files]

    def _remaining(
        self, part: JobPart, paths: list[Path], count: Callable[[TokenizedFile], None]
    ) -> Iterator[tuple[Block, Path]]:
        """Yield the blocks that are not done with the paths of their files; count the others.

        The paths of all blocks of the part are added to `paths`.

        Raises:
            RunError: the text is not the one that was tokenized before.
        """
        done = {number: file for number, file in self._done().items() if part.includes(number)}
        for block in read_blocks(self._files, BLOCK_BYTES, part):
            paths.append(self._path(block.number))
            file = done.pop(block.number, None)
            if file is None:
                yield block, paths[-1]
            elif file.digest == block.digest:
                count(file)
            else:
                raise self._changed()
        if done:
            raise self._changed()

    def _path(self, number: int) -> Path:
        return self._output.path / f"draft-{number:05}.npz"

    def _done(self) -> dict[int, TokenizedFile]:
        files = self._output.done(lambda line: TokenizedFile(**json.loads(line)))
        return {file.number: file for file in files if self._path(file.number).exists()}

    def _changed(self) -> RunError:
        return RunError(
            f"{self._output.path}: the text is not the one that the interrupted job read; "
            f"pass the same text, or {self._output.start_over}"
        )
