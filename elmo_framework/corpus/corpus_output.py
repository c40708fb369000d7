"""The folder in which a corpus grows, and what makes an interrupted job go on there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, final

from elmo_framework.corpus.manifest import FORMAT, MANIFEST, Manifest
from elmo_framework.corpus.tokenize_blocks import TokenizedFile
from elmo_framework.errors import RunError
from elmo_framework.io.files import remove_folder, replacing, write_bytes
from elmo_framework.io.resumable_output import ResumableOutput


@final
class CorpusOutput:
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
        self._resumable = ResumableOutput(
            output, flag="--output-dir", check_replaceable=_check_corpus
        )
        self.output, self.path = output, self._resumable.path
        self.locked, self.begin = self._resumable.locked, self._resumable.begin

    def check_overwritable(self, settings: Mapping[str, Any], *, resume: bool, force: bool) -> None:
        """Refuse to replace what the user may want to keep.

        Args:
            settings: what the corpus is made of and how.
            resume: whether to continue an interrupted job.
            force: whether to give up what is there.

        Raises:
            RunError: there is something.
        """
        if not (resume and self.finished(settings)):
            self._resumable.check_overwritable(resume=resume, force=force)

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

    def done(self) -> dict[int, TokenizedFile]:
        """Return the blocks whose drafts are whole, by their number."""
        notes = self._resumable.done(lambda line: TokenizedFile(**json.loads(line)))
        return {note.number: note for note in notes if self.draft(note.number).exists()}

    def mark_done(self, drafted: TokenizedFile) -> None:
        """Note a block whose draft is whole."""
        with self._resumable.journal("done.jsonl") as journal:
            journal.mark_done(json.dumps(asdict(drafted)))

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


def _check_corpus(output: Path) -> None:
    """Refuse to remove what is no corpus: `--force` is for those."""
    manifest = output / MANIFEST
    if not (manifest.is_file() and FORMAT.encode() in manifest.read_bytes()):
        raise RunError(f"{output} is no prepared corpus; --force leaves it alone")
