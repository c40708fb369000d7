"""Results that take long: they grow in a folder of their own, and an interrupted job continues."""

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
RESUME = "--resume continues from here"
"""What a message says of a job that was interrupted."""


@final
class ResumableOutput:
    """A result `OUT`, and the folder `OUT.partial` next to it in which it grows.

    | name | what |
    |---|---|
    | `settings.json` | what the job does; a job that does something else does not continue it |
    | `done*` | journals: a line for each part that is done |
    | `result` | what gets the name of the result |

    A job adds files of its own, and makes the result, maybe empty, before any part is done. The
    folder is removed when the result has its name.

    Args:
        output: the result.
        flag: of the command line, by which another result can be chosen.
        check_replaceable: refuses what `--force` must not remove; by default all but files.

    Attributes:
        output: the result.
        path: the folder.
        result: the file or folder in it that gets the name.
    """

    def __init__(
        self, output: Path, *, flag: str, check_replaceable: Callable[[Path], None] | None = None
    ) -> None:
        self.output, self.path = output, output.with_name(output.name + _PARTIAL)
        self.result, self._settings = self.path / "result", self.path / "settings.json"
        self._flag, self._check_replaceable = flag, check_replaceable or check_file

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other jobs out; a missing folder for the result is made.

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
                    # While it is held: later, another job may hold it already.
                    Path(lock.lock_file).unlink(missing_ok=True)
        except Timeout as error:
            raise RunError(f"{self.path}: another job is writing here; wait for it") from error

    def check_overwritable(self, *, resume: bool, force: bool) -> None:
        """Refuse to replace what the user may want to keep.

        Args:
            resume: whether to continue an interrupted job.
            force: whether to give up what is there.

        Raises:
            RunError: the result exists, or an interrupted job, or a folder that is not of a job.
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
                f"{self.path} holds the work of an interrupted job; continue it with --resume, or "
                "start over with --force"
            )

    def begin(self, settings: Mapping[str, Any], *, resume: bool) -> bool:
        """Continue an interrupted job, if there is one and that is wanted, or start.

        Args:
            settings: what this job does, as JSON.
            resume: whether to continue.

        Returns:
            Whether it continues; otherwise the folder holds the settings alone.

        Raises:
            RunError: the interrupted job did something else.
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
        """Tell whether a part is done."""
        return any(journal.stat().st_size for journal in self._journals())

    def is_named(self) -> bool:
        """Tell whether a job ended after the result got its name, before the rest was removed."""
        is_gone = self.has_progress() and not self.result.exists()
        return is_gone and os.path.lexists(self.output)

    def journal(self, name: str) -> Journal:
        """Open a journal, whose name begins with `done`."""
        return Journal(self.path / name)

    def done(self, parse: Callable[[str], PartT]) -> Iterator[PartT]:
        """Yield what each line of all journals says.

        Args:
            parse: reads a line; its `ValueError` or `TypeError` means that the line is damaged.

        Raises:
            RunError: a journal is damaged.
        """
        for path in self._journals():
            try:
                yield from map(parse, Journal.lines(path))
            except (ValueError, TypeError) as error:
                raise _damaged(path, error) from error

    def finish(self) -> None:
        """Give the result its name, and remove the folder."""
        if self.result.exists():
            if self.result.is_dir() or self.output.is_dir():
                remove(self.output)
            self.result.replace(self.output)
        remove_folder(self.path)

    def repairable(self, path: Path | None = None) -> AbstractContextManager[None]:
        """Say of an error of the disk how the job continues; see `files.repairable`."""
        return repairable(path or self.path, to_go_on=RESUME)

    def _journals(self) -> list[Path]:
        return sorted(self.path.glob("done*"))

    def _check_folder(self) -> None:
        """Refuse a folder of this name that no job has made."""
        if self._settings.is_file() or not self.path.is_dir():
            return
        present = [path.name for path in self.path.iterdir() if not path.name.startswith(".")]
        if present:
            raise RunError(
                f"{self.path}, which the result would grow in, holds something else "
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
                f"{self.path}: the interrupted job does something else: {', '.join(others)}; "
                "ask for the same, or start over with --force and without --resume"
            )

    def _read_settings(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._settings.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise _damaged(self._settings, error) from error


@final
class Journal:
    """A file of lines that say what is done; half a line, of a job that was killed, is dropped.

    Args:
        path: the file; it is made if it does not exist.
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
        """Add lines; they are on the disk afterwards."""
        content = memoryview("".join(f"{line}\n" for line in lines).encode())
        while content:
            content = content[self._file.write(content) :]
        os.fsync(self._file.fileno())

    @staticmethod
    def lines(path: Path) -> Iterator[str]:
        """Yield the whole lines of a journal, which need not exist."""
        if not path.exists():
            return
        with path.open("rb") as file:
            yield from (line[:-1].decode() for line in file if line.endswith(b"\n"))


def _damaged(path: Path, reason: Exception) -> RunError:
    """Return the error of a file that an interrupted job left and that cannot be read."""
    return RunError(
        f"{path}: this file is damaged ({reason}); start over with --force and without --resume"
    )


def check_file(output: Path) -> None:
    """Refuse to remove what is no ordinary file.

    Raises:
        RunError: it is none.
    """
    if not output.is_file():
        raise RunError(f"{output} is not an ordinary file; choose another path")


@contextmanager
def stoppable() -> Iterator[None]:
    """End a resumable job on Ctrl-C or SIGTERM with a message that says how to continue.

    Raises:
        StoppedError: there was one of the signals.
    """
    with terminable():
        try:
            yield
        except KeyboardInterrupt as error:
            raise StoppedError(f"interrupted; {RESUME}") from error


def _end_of_last_line(path: Path) -> int:
    """Return the number of bytes up to the last end of a line; the file is not held in memory."""
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
