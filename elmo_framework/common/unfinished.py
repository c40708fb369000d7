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
from elmo_framework.common.files import write_text

_PARTIAL = ".partial"


@final
class UnfinishedFolder:
    """The folder `OUT.partial` beside a result `OUT`.

    Args:
        output: the result.
        flag: of the command line, by which another result can be chosen.

    Attributes:
        output: the result.
        path: the folder.
        settings: its file `settings.json`: what the job does.
    """

    def __init__(self, output: Path, *, flag: str) -> None:
        self.output, self.path = output, output.with_name(output.name + _PARTIAL)
        self.settings, self._flag = self.path / "settings.json", flag

    def require_free(
        self, *, is_begun: bool, resume: bool, force: bool, require_ours: Callable[[Path], None]
    ) -> None:
        """Refuse a place where something is that the user may want to keep.

        Args:
            is_begun: whether an interrupted job has left work.
            resume: whether the user wants to go on with it.
            force: whether the user gives up what is there.
            require_ours: refuses what no such job has written.

        Raises:
            RunError: there is, or there is no folder for the result.
        """
        if not self.output.parent.is_dir():
            raise RunError(f"{self.output}: there is no folder {self.output.parent} to write in")
        if os.path.lexists(self.output):
            if not force:
                raise RunError(
                    f"{self.output} is there already; pass --force to replace it, or choose "
                    f"another {self._flag}"
                )
            require_ours(self.output)
        if is_begun and not (resume or force):
            raise RunError(
                f"{self.path} holds the work of an interrupted job; pass --resume to go on with "
                "it, or --force to begin anew"
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other jobs out.

        Raises:
            RunError: one is at work here.
        """
        lock = FileLock(self.path.with_name(f".{self.path.name}.lock"))
        try:
            with lock.acquire(timeout=0):
                yield
        except Timeout as error:
            raise RunError(f"{self.path}: another job is writing here; wait for it") from error
        Path(lock.lock_file).unlink(missing_ok=True)

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        """Note what the job does."""
        write_text(self.settings, json.dumps(dict(settings), indent=2) + "\n")

    def require_same(self, settings: Mapping[str, Any], *, verb: str) -> None:
        """Refuse to go on with a job that was another one.

        Args:
            settings: what this job does.
            verb: what the interrupted job does with something else.

        Raises:
            RunError: it was another one; says in what.
        """
        begun = json.loads(self.settings.read_text(encoding="utf-8"))
        others = [
            f"{name} was {begun.get(name)!r} and is {value!r}"
            for name, value in settings.items()
            if begun.get(name) != value
        ]
        if others:
            raise RunError(
                f"{self.path}: the interrupted job {verb} something else: {', '.join(others)}; "
                "ask for the same, or pass --force without --resume to begin anew"
            )
