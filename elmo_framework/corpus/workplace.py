"""The folder in which a corpus grows, and what makes an interrupted job go on there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, final

from filelock import FileLock, Timeout

from elmo_framework.common.errors import RunError
from elmo_framework.common.files import remove_folder, replacing, write_text
from elmo_framework.corpus.drafting import Drafted
from elmo_framework.corpus.manifest import FORMAT, MANIFEST

_PARTIAL = ".partial"


@final
class Workplace:
    """The folder `CORPUS.partial` beside a corpus `CORPUS`; gone when the corpus is there.

    | name | what |
    |---|---|
    | `settings.json` | how lines are cut |
    | `draft-NNNNN.npz` | the words of one block of text |
    | `done.jsonl` | the blocks whose drafts are whole, with the digest of each, a line each |
    | `corpus` | what gets the name of the corpus |

    Args:
        output: the corpus.

    Raises:
        RunError: a folder cannot have this name.
    """

    def __init__(self, output: Path) -> None:
        if output.name in ("", ".."):
            raise RunError(
                f"--output-dir {output}: a corpus is a folder of its own; name a new one"
            )
        self.output, self.path = output, output.with_name(output.name + _PARTIAL)
        self._settings, self._journal = self.path / "settings.json", self.path / "done.jsonl"

    def require_free(self, *, resume: bool, force: bool) -> None:
        """Refuse a place where something is that the user may want to keep.

        Raises:
            RunError: there is, or there is no folder for the corpus.
        """
        if not self.output.parent.is_dir():
            raise RunError(f"{self.output}: there is no folder {self.output.parent} to write in")
        if os.path.lexists(self.output):
            if not force:
                raise RunError(
                    f"{self.output} is there already; pass --force to replace it, or choose "
                    "another --output-dir"
                )
            _require_corpus(self.output)
        if self._journal.exists() and not (resume or force):
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

    def begin(self, settings: Mapping[str, Any], *, resume: bool) -> None:
        """Make the folder, unless an interrupted job goes on.

        Raises:
            RunError: the interrupted job cut lines otherwise.
        """
        if resume and self._settings.exists():
            begun = json.loads(self._settings.read_text(encoding="utf-8"))
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
            return
        remove_folder(self.path)
        self.path.mkdir()
        write_text(self._settings, json.dumps(dict(settings), indent=2) + "\n")

    def draft(self, number: int) -> Path:
        """Return where the draft of a block is."""
        return self.path / f"draft-{number:05}.npz"

    def done(self) -> dict[int, Drafted]:
        """Return the blocks whose drafts are whole, by their number."""
        if not self._journal.exists():
            return {}
        lines = self._journal.read_text(encoding="utf-8").splitlines()
        notes = [Drafted(**json.loads(line)) for line in lines]
        return {note.number: note for note in notes}

    def note(self, drafted: Drafted) -> None:
        """Note a block whose draft is whole."""
        notes = [*self.done().values(), drafted]
        write_text(self._journal, "".join(f"{json.dumps(asdict(note))}\n" for note in notes))

    @contextmanager
    def result(self) -> Iterator[Path]:
        """Give a folder to write the corpus in; at the end it has its name."""
        aside = self.path / "corpus"
        remove_folder(aside)
        aside.mkdir()
        yield aside
        with replacing(self.output) as place:
            aside.replace(place)
        remove_folder(self.path)


def _require_corpus(output: Path) -> None:
    """Refuse to remove what is no corpus: `--force` is for those."""
    manifest = output / MANIFEST
    if not (manifest.is_file() and FORMAT in manifest.read_text(encoding="utf-8")):
        raise RunError(f"{output} is no prepared corpus; --force leaves it alone")
