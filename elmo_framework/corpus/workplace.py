"""The folder in which a corpus grows, and what makes an interrupted job go on there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, final

from elmo_framework.common.errors import RunError
from elmo_framework.common.files import remove_folder, replacing, write_bytes, write_text
from elmo_framework.common.unfinished import UnfinishedFolder, damaged
from elmo_framework.corpus.drafting import Drafted
from elmo_framework.corpus.manifest import FORMAT, MANIFEST, Manifest


@final
class Workplace:
    """The folder `CORPUS.partial` beside a corpus `CORPUS`; gone when the corpus is there.

    | name | what |
    |---|---|
    | `settings.json` | how lines are cut |
    | `draft-NNNNN.npz` | the words of one block of text |
    | `done.jsonl` | the blocks whose drafts are whole, with the digest of each, a line each |
    | `corpus` | what gets the name of the corpus |
    | `corpus.json` | the manifest of the corpus, once it is whole |

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
        folder = UnfinishedFolder(output, flag="--output-dir", require_ours=_require_corpus)
        self.output, self.path = output, folder.path
        self.locked, self.begin, self._require_free = (
            folder.locked,
            folder.begin,
            folder.require_free,
        )
        self._journal = self.path / "done.jsonl"

    def require_free(self, settings: Mapping[str, Any], *, resume: bool, force: bool) -> None:
        """Refuse a place where something is that the user may want to keep.

        Args:
            settings: what the corpus is made of and how.
            resume: whether the user wants to go on with what an interrupted job has left.
            force: whether the user gives up what is there.

        Raises:
            RunError: there is.
        """
        if not (resume and self.finished(settings)):
            self._require_free(resume=resume, force=force)

    def finished(self, settings: Mapping[str, Any]) -> Manifest | None:
        """Return the manifest of the corpus, where a job ended between naming it and tidying up.

        Args:
            settings: what the corpus is made of and how.
        """
        written, named = self.path / MANIFEST, self.output / MANIFEST
        if not (written.is_file() and named.is_file()):
            return None
        is_ours = written.read_bytes() == named.read_bytes()
        manifest = Manifest.read(self.output) if is_ours else None
        return manifest if manifest is not None and manifest.settings == settings else None

    def draft(self, number: int) -> Path:
        """Return where the draft of a block is."""
        return self.path / f"draft-{number:05}.npz"

    def done(self) -> dict[int, Drafted]:
        """Return the blocks whose drafts are whole, by their number."""
        if not self._journal.exists():
            return {}
        try:
            lines = self._journal.read_text(encoding="utf-8").splitlines()
            notes = [Drafted(**json.loads(line)) for line in lines]
        except (ValueError, TypeError) as error:
            raise damaged(self._journal, error) from error
        return {note.number: note for note in notes if self.draft(note.number).exists()}

    def note(self, drafted: Drafted) -> None:
        """Note a block whose draft is whole."""
        notes = [*self.done().values(), drafted]
        write_text(self._journal, "".join(f"{json.dumps(asdict(note))}\n" for note in notes))

    @contextmanager
    def result(self) -> Iterator[Path]:
        """Give a folder to write the corpus in, its manifest too; at the end it has its name."""
        aside = self.path / "corpus"
        remove_folder(aside)
        aside.mkdir()
        yield aside
        write_bytes(self.path / MANIFEST, (aside / MANIFEST).read_bytes())
        with replacing(self.output) as place:
            aside.replace(place)

    def remove(self) -> None:
        """Remove the folder."""
        remove_folder(self.path)


def _require_corpus(output: Path) -> None:
    """Refuse to remove what is no corpus: `--force` is for those."""
    manifest = output / MANIFEST
    if not (manifest.is_file() and FORMAT.encode() in manifest.read_bytes()):
        raise RunError(f"{output} is no prepared corpus; --force leaves it alone")
