"""Resumable outputs: a locked folder, and what of the work in it is done."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, final

from filelock import FileLock, Timeout

from elmo_framework.errors import RunError, StoppedError
from elmo_framework.io.files import remove, remove_folder, repairable, write_text
from elmo_framework.io.process import terminable

PartT = TypeVar("PartT")

RESUME = "resume with --resume"
"""The advice of messages about an interrupted job."""

AGAIN = "run the same command again"
"""The same about a job that resumes without a flag."""

START_OVER = "start over with --force and without --resume"
"""The advice of messages about files that no job can resume."""


class FolderRules(NamedTuple):
    """How a folder that a job writes in is recognized, and the messages about it.

    Attributes:
        marker: the file that shows that a job made the folder.
        progress: patterns of folders, and of files that are not empty, that show progress.
        busy: refuses a folder that another job has locked.
        foreign: refuses a folder without a marker that contains `{other}`.
        unfinished: refuses to remove progress.
    """

    marker: str = "settings.json"
    progress: tuple[str, ...] = ("done*",)
    busy: str = "{path}: another job is writing here; wait for it"
    foreign: str = (
        "{path}, the folder for partial results, contains other files ({other}, ...); rename it, "
        "or choose another {flag}"
    )
    unfinished: str = (
        "{path} belongs to an interrupted job; resume it with --resume, or start over with --force"
    )


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

    With `in_place`, the folder is `OUT` itself, and the job writes its files there.

    Args:
        output: the output of the finished job.
        flag: the command-line flag that sets `output`, for messages.
        check_replaceable: refuses what `--force` must not remove; by default all but files.
        in_place: the rules of a folder that is itself the output.
        start_over: the advice where a job cannot resume; may contain `{path}` and `{flag}`.
    """

    def __init__(
        self,
        output: Path,
        *,
        flag: str,
        check_replaceable: Callable[[Path], None] | None = None,
        in_place: FolderRules | None = None,
        start_over: str = START_OVER,
    ) -> None:
        self.output, self._is_in_place = output, in_place is not None
        self.path = output if in_place else output.with_name(f"{output.name}.partial")
        self._rules = in_place or FolderRules()
        self.result, self._marker = self.path / "result", self.path / self._rules.marker
        self._flag, self._check_replaceable = flag, check_replaceable or check_file
        self.start_over = start_over.format(path=self.path, flag=flag)

    @contextmanager
    def locked(self, *, timeout: float = 0) -> Iterator[None]:
        """Lock the folder, after creating the one that the lock is in.

        Args:
            timeout: how many seconds to wait for another job.

        Raises:
            RunError: another job is writing here, or a folder cannot be created.
        """
        next_to_it = self.path.with_name(f".{self.path.name}.lock")
        path = self.path / ".lock" if self._is_in_place else next_to_it
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"{self._flag} {path.parent}: cannot create this folder: {error.strerror}"
            ) from error
        try:
            with FileLock(path).acquire(timeout=timeout):
                try:
                    yield
                finally:
                    # While it is locked: later, another job may have locked it already.
                    if not (self._is_in_place and self._marker.exists()):
                        with suppress(PermissionError):  # Windows keeps what is open
                            path.unlink(missing_ok=True)
        except Timeout as error:
            raise self._error(self._rules.busy) from error

    def check_overwritable(self, *, resume: bool, force: bool) -> None:
        """Refuse to overwrite an output or an interrupted job without `force` (or `resume`).

        Raises:
            RunError: an output, an interrupted job, or a folder that no job has made exists.
        """
        if not self._is_in_place and os.path.lexists(self.output):
            self._check_replaceable(self.output)
            if not force:
                raise RunError(
                    f"{self._flag} {self.output} already exists; pass --force to overwrite it, or "
                    "choose another path"
                )
        self._check_folder()
        if self.has_progress() and not (resume or force):
            raise self._error(self._rules.unfinished)

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
        write_text(self._marker, json.dumps(dict(settings), indent=2) + "\n")
        return False

    def join(self, settings: Mapping[str, Any]) -> None:
        """Create the folder, unless a job with which this one shares it has created it.

        Raises:
            RunError: that job had other settings, or the folder has other files.
        """
        if self._marker.is_file():
            self._check_same(settings)
        else:
            self.begin(settings, resume=False)

    def clear(self, names: Iterable[str]) -> None:
        """Remove files and folders of the folder by their names, those that exist.

        The marker is removed last: while it exists, the folder is known for that of a job.
        """
        for name in sorted(names, key=lambda name: name == self._marker.name):
            remove(self.path / name)

    def has_progress(self) -> bool:
        paths = (path for pattern in self._rules.progress for path in self.path.glob(pattern))
        return any(path.is_dir() or path.stat().st_size for path in paths)

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
                raise self._damaged(path, error) from error

    def finish(self) -> None:
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
        if not self._marker.is_file() and (files := self._files()):
            raise self._error(self._rules.foreign, other=min(files).name)

    def _files(self) -> list[Path]:
        paths = self.path.iterdir() if self.path.is_dir() else ()
        return [path for path in paths if not path.name.startswith(".")]

    def _error(self, message: str, **parts: str) -> RunError:
        return RunError(message.format(path=self.path, flag=self._flag, **parts))

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
                f"use the same, or {self.start_over}"
            )

    def _read_settings(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._marker.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise self._damaged(self._marker, error) from error

    def _damaged(self, path: Path, reason: Exception) -> RunError:
        return RunError(f"{path}: this file is damaged ({reason}); {self.start_over}")


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


def check_file(output: Path) -> None:
    """Raise RunError if the output is not an ordinary file, and so must not be removed."""
    if not output.is_file():
        raise RunError(f"{output} is not an ordinary file; choose another path")


@contextmanager
def stoppable(advice: str = RESUME) -> Iterator[None]:
    """Turn Ctrl-C or SIGTERM into a StoppedError with advice on how to resume."""
    with terminable():
        try:
            yield
        except KeyboardInterrupt as error:
            raise StoppedError(f"interrupted; {advice}") from error


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
