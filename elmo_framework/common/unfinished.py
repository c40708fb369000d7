"""The folder beside a result in which it grows, and what keeps other jobs and other work apart."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from filelock import FileLock, Timeout

from elmo_framework.common.errors import RunError
from elmo_framework.common.files import remove_folder, write_text

_PARTIAL = ".partial"


def damaged(path: Path, reason: Exception) -> RunError:
    """Return the error of a file that an interrupted job left and that cannot be read."""
    return RunError(
        f"{path}: this file is damaged ({reason}); pass --force without --resume to begin anew"
    )


@final
class UnfinishedFolder:
    """The folder `OUT.partial` beside a result `OUT`.

    Its `settings.json` tells what the job does. The job notes what it has done in files whose names
    begin with `done`; while they are empty, there is nothing to go on with.

    Args:
        output: the result.
        flag: of the command line, by which another result can be chosen.
        require_ours: refuses a result that no such job has written.

    Attributes:
        output: the result.
        path: the folder.
    """

    def __init__(self, output: Path, *, flag: str, require_ours: Callable[[Path], None]) -> None:
        self.output, self.path = output, output.with_name(output.name + _PARTIAL)
        self._settings, self._flag = self.path / "settings.json", flag
        self._require_ours = require_ours

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other jobs out; a missing folder for the result is made.

        Raises:
            RunError: one is at work here.
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

    def require_free(self, *, resume: bool, force: bool) -> None:
        """Refuse a place where something is that the user may want to keep.

        Args:
            resume: whether the user wants to go on with what an interrupted job has left.
            force: whether the user gives up what is there.

        Raises:
            RunError: there is.
        """
        if os.path.lexists(self.output):
            if not force:
                raise RunError(
                    f"{self.output} is there already; pass --force to replace it, or choose "
                    f"another {self._flag}"
                )
            self._require_ours(self.output)
        if self.is_begun() and not (resume or force):
            raise RunError(
                f"{self.path} holds the work of an interrupted job; pass --resume to go on with "
                "it, or --force to begin anew"
            )

    def begin(self, settings: Mapping[str, Any], *, resume: bool) -> bool:
        """Go on with the work of an interrupted job, if there is any and it is wanted, or begin.

        Args:
            settings: what this job does.
            resume: whether to go on.

        Returns:
            Whether it goes on; otherwise the folder is made anew.

        Raises:
            RunError: the interrupted job did something else.
        """
        if resume and self.is_begun():
            self._require_same(settings)
            return True
        remove_folder(self.path)
        self.path.mkdir()
        write_text(self._settings, json.dumps(dict(settings), indent=2) + "\n")
        return False

    def is_begun(self) -> bool:
        """Tell whether a job has noted here what it has done."""
        return any(journal.stat().st_size for journal in self.path.glob("done*"))

    def _require_same(self, settings: Mapping[str, Any]) -> None:
        try:
            begun = dict(json.loads(self._settings.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise damaged(self._settings, error) from error
        others = [
            f"{name} was {begun.get(name)!r} and is {value!r}"
            for name, value in settings.items()
            if begun.get(name) != value
        ]
        if others:
            raise RunError(
                f"{self.path}: the interrupted job does something else: {', '.join(others)}; "
                "ask for the same, or pass --force without --resume to begin anew"
            )
