"""Resumable outputs: a job writes into a `.partial` folder, renamed when it is complete."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar, final

from filelock import FileLock, Timeout

from elmo_framework.errors import RunError, StoppedError
from elmo_framework.io.files import remove, remove_folder, repairable, write_text
from elmo_framework.io.process import terminable

PartT = TypeVar("PartT")

_PARTIAL = ".partial"
RESUME = "resume with --resume"
"""The advice of every message about an interrupted job."""


@final
class ResumableOutput:
    """An output `OUT`, and the folder `OUT.partial` next to it in which it is written.

    | file in `OUT.partial` | content |
    |---|---|
    | `settings.json` | the settings of the job; a job with other settings does not resume it |
    | `done*` | journals: one line per finished part |
    | `result` | the file or folder that is renamed to `OUT` |

    A job may add other files, and creates `result`, maybe empty, before any part is done. The
    folder is removed after the rename.

    Args:
        output: the output of the finished job.
        flag: the command-line flag that sets `output`, for messages.
        check_replaceable: refuses what `--force` must not remove; by default all but files.

    Attributes:
        output: as above.
        path: the folder `OUT.partial`.
        result: the file or folder in it that is renamed.
    """

    def __init__(
        self, output: Path, *, flag: str, check_replaceable: Callable[[Path], None] | None = None
    ) -> None:
        self.output, self.path = output, output.with_name(output.name + _PARTIAL)
        self.result, self._settings = self.path / "result", self.path / "settings.json"
        self._flag, self._check_replaceable = flag, check_replaceable or check_file

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder, after creating a missing parent.

        Raises:
            RunError: another job is writing here.
        """
        self.output.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path.with_name(f".{self.path.name}.lock"))
        try:
            with lock.acquire(timeout=0):
                try:
                    yield
                finally:
                    # While it is locked: later, another job may have locked it already.
                    Path(lock.lock_file).unlink(missing_ok=True)
        except Timeout as error:
            raise RunError(f"{self.path}: another job is writing here; wait for it") from error

    def check_overwritable(self, *, resume: bool, force: bool) -> None:
        """Refuse to overwrite an output or an interrupted job without `force` (or `resume`).

        Raises:
            RunError: an output, an interrupted job, or a folder that no job has made exists.
        """
        if os.path.lexists(self.output):
            self._check_replaceable(self.output)
            if not force:
                raise RunError(
                    f"{self._flag} {self.output} already exists; pass --force to overwrite it, or "
                    "choose another path"
                )
        self._check_folder()
        if self.has_progress() and not (resume or force):
            raise RunError(
                f"{self.path} belongs to an interrupted job; resume it with --resume, or start "
                "over with --force"
            )

    def begin(self, settings: Mapping[str, Any], *, resume: bool) -> bool:
        """Resume an interrupted job if there is one and `resume` is set, or start over.

        Args:
            settings: of this job, as JSON types.
            resume: whether to resume.

        Returns:
            Whether the job resumes; otherwise the folder contains only the settings.

        Raises:
            RunError: the interrupted job had other settings.
        """
        if resume and self.has_progress():
            self._check_same(settings)
            return True
        self._check_folder()
        remove_folder(self.path)
        self.path.mkdir()
        write_text(self._settings, json.dumps(dict(settings), indent=2) + "\n")
        return False

    def has_progress(self) -> bool:
        """Return whether a part is done."""
        return any(journal.stat().st_size for journal in self._journals())

    def is_named(self) -> bool:
        """Return whether a job ended after the rename, before the folder was removed."""
        is_gone = self.has_progress() and not self.result.exists()
        return is_gone and os.path.lexists(self.output)

    def journal(self, name: str) -> Journal:
        """Open a journal; its name must start with `done`."""
        return Journal(self.path / name)

    def done(self, parse: Callable[[str], PartT]) -> Iterator[PartT]:
        """Parse each line of all journals.

        Args:
            parse: a ValueError or TypeError means that the line is damaged.

        Raises:
            RunError: a journal is damaged.
        """
        for path in self._journals():
            try:
                yield from map(parse, Journal.lines(path))
            except (ValueError, TypeError) as error:
                raise _damaged(path, error) from error

    def finish(self) -> None:
        """Rename the result to the output, and remove the folder."""
        if self.result.exists():
            if self.result.is_dir() or self.output.is_dir():
                remove(self.output)
            self.result.replace(self.output)
        remove_folder(self.path)

    def repairable(self, path: Path | None = None) -> AbstractContextManager[None]:
        """Report disk errors with the advice to resume; see `files.repairable`."""
        return repairable(path or self.path, advice=RESUME)

    def _journals(self) -> list[Path]:
        return sorted(self.path.glob("done*"))

    def _check_folder(self) -> None:
        """Refuse a folder of this name that a job did not make."""
        if self._settings.is_file() or not self.path.is_dir():
            return
        present = [path.name for path in self.path.iterdir() if not path.name.startswith(".")]
        if present:
            raise RunError(
                f"{self.path}, the folder for partial results, contains other files "
                f"({min(present)}, ...); rename it, or choose another {self._flag}"
            )

    def _check_same(self, settings: Mapping[str, Any]) -> None:
        before = self._read_settings()
        others = [
            f"{name} was {before.get(name)!r} and is {value!r}"
            for name, value in settings.items()
            if before.get(name) != value
        ]
        if others:
            raise RunError(
                f"{self.path}: the interrupted job has other settings: {', '.join(others)}; "
                "use the same, or start over with --force and without --resume"
            )

    def _read_settings(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._settings.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise _damaged(self._settings, error) from error


@final
class Journal:
    """An append-only file with a line per finished part; an incomplete last line is dropped.

    Args:
        path: the file; created if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+b", buffering=0)
        self._file.seek(0)
        self._file.truncate(_end_of_last_line(path))

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def mark_done(self, *lines: str) -> None:
        """Append lines, and synchronize them to disk."""
        content = memoryview("".join(f"{line}\n" for line in lines).encode())
        while content:
            content = content[self._file.write(content) :]
        os.fsync(self._file.fileno())

    @staticmethod
    def lines(path: Path) -> Iterator[str]:
        """Yield the complete lines of a journal, which need not exist."""
        if not path.exists():
            return
        with path.open("rb") as file:
            yield from (line[:-1].decode() for line in file if line.endswith(b"\n"))


def _damaged(path: Path, reason: Exception) -> RunError:
    return RunError(
        f"{path}: this file is damaged ({reason}); start over with --force and without --resume"
    )


def check_file(output: Path) -> None:
    """Raise RunError if the output is not an ordinary file, and so must not be removed."""
    if not output.is_file():
        raise RunError(f"{output} is not an ordinary file; choose another path")


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn Ctrl-C or SIGTERM into a StoppedError that says how to resume."""
    with terminable():
        try:
            yield
        except KeyboardInterrupt as error:
            raise StoppedError(f"interrupted; {RESUME}") from error


def _end_of_last_line(path: Path) -> int:
    """Return the offset after the last newline, reading backwards in blocks."""
    size = path.stat().st_size
    with path.open("rb") as file:
        while size:
            begin = max(0, size - (1 << 16))
            file.seek(begin)
            end = file.read(size - begin).rfind(b"\n")
            if end >= 0:
                return begin + end + 1
            size = begin
    return 0
