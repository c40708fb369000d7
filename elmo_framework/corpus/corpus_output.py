"""The resumable output of `elmo prepare`."""

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
    """The folder `CORPUS.partial` next to a corpus `CORPUS`; removed when the corpus is complete.

    | name | content |
    |---|---|
    | `settings.json` | the options of the tokenizer |
    | `draft-NNNNN.npz` | one tokenized block of text |
    | `done.jsonl` | the finished blocks with their digests, one per line |
    | `corpus` | the folder that is renamed to `CORPUS` |
    | `corpus.json` | the manifest of the complete corpus |

    Args:
        output: the folder of the corpus.

    Raises:
        RunError: the name is not that of a new folder.
    """

    def __init__(self, output: Path) -> None:
        if output.name in ("", ".."):
            raise RunError(f"--output-dir {output}: a corpus needs a new folder; choose a name")
        self._resumable = ResumableOutput(
            output, flag="--output-dir", check_replaceable=_check_corpus
        )
        self.output, self.path = output, self._resumable.path
        self.locked, self.begin = self._resumable.locked, self._resumable.begin

    def check_overwritable(self, settings: Mapping[str, Any], *, resume: bool, force: bool) -> None:
        """Refuse to overwrite a corpus or an interrupted job; see `ResumableOutput`."""
        if not (resume and self.finished(settings)):
            self._resumable.check_overwritable(resume=resume, force=force)

    def finished(self, settings: Mapping[str, Any]) -> Manifest | None:
        """Return the manifest if a job with these settings ended between renaming and cleanup."""
        written, renamed = self.path / MANIFEST, self.output / MANIFEST
        if not (written.is_file() and renamed.is_file()):
            return None
        is_same = written.read_bytes() == renamed.read_bytes()
        manifest = Manifest.read(self.output) if is_same else None
        return manifest if manifest is not None and manifest.settings == settings else None

    def block_path(self, number: int) -> Path:
        """Return the path of a tokenized block."""
        return self.path / f"draft-{number:05}.npz"

    def done(self) -> dict[int, TokenizedFile]:
        """Return the finished blocks by number."""
        files = self._resumable.done(lambda line: TokenizedFile(**json.loads(line)))
        return {file.number: file for file in files if self.block_path(file.number).exists()}

    def mark_done(self, file: TokenizedFile) -> None:
        """Record a finished block."""
        with self._resumable.journal("done.jsonl") as journal:
            journal.mark_done(json.dumps(asdict(file)))

    @contextmanager
    def result(self) -> Iterator[Path]:
        """Yield a folder for the corpus with its manifest, and rename it at the end."""
        folder = self.path / "corpus"
        remove_folder(folder)
        folder.mkdir()
        yield folder
        write_bytes(self.path / MANIFEST, (folder / MANIFEST).read_bytes())
        with replacing(self.output) as temporary:
            folder.replace(temporary)

    def remove(self) -> None:
        """Remove the folder."""
        remove_folder(self.path)


def _check_corpus(output: Path) -> None:
    """Raise RunError if the output is not a corpus, and so must not be removed by `--force`."""
    manifest = output / MANIFEST
    if not (manifest.is_file() and FORMAT.encode() in manifest.read_bytes()):
        raise RunError(f"{output} is not a prepared corpus; --force will not overwrite it")
