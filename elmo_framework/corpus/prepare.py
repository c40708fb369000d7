"""The job behind `elmo prepare`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from elmo_framework import console
from elmo_framework.console import ProgressBar, plural
from elmo_framework.corpus.assemble import SplitOptions, assemble
from elmo_framework.corpus.blocks import Block, read_blocks, size_on_disk, text_files
from elmo_framework.corpus.corpus_output import CorpusOutput
from elmo_framework.corpus.manifest import MANIFEST, Manifest
from elmo_framework.corpus.report import report
from elmo_framework.corpus.tokenize_blocks import (
    TextTokenizerOptions,
    TokenizedFile,
    tokenize_blocks,
)
from elmo_framework.corpus.vocabulary_file import read_vocabulary_file
from elmo_framework.data.formats.text_files import STANDARD_INPUT
from elmo_framework.errors import RunError
from elmo_framework.io.files import repairable, write_text
from elmo_framework.io.resumable_output import RESUME, stoppable

BLOCK_BYTES = 8 << 20
"""The text that one process cuts at a time, and that is lost when it is killed."""


@dataclass(frozen=True)
class PreparationJob:
    """What is prepared, and how.

    Attributes:
        texts: files, folders, patterns; `-` is standard input.
        output: the folder of the corpus.
        tokenizer: what makes words of a sentence: a registered name, or JSON as in a config.
        sentence_splitter: the tokenizer that makes sentences of a line; the same unless given.
        held_out: a share of the different sentences when it is below 1, else how many at most.
        vocabulary: a file of the words that the softmax knows; counted unless given.
        min_count: how often a counted word must be there.
        max_vocabulary_size: how many counted words are kept besides the three special ones.
        num_processes: how many cut text side by side.
        resume: whether to go on with the work of an interrupted job.
        force: whether to replace a corpus that is there.
        packages: plugins that register a tokenizer.
    """

    texts: Sequence[Path]
    output: Path
    tokenizer: Any = "whitespace"
    sentence_splitter: Any = None
    held_out: float = 0.01
    vocabulary: Path | None = None
    min_count: int = 1
    max_vocabulary_size: int | None = None
    num_processes: int = 1
    resume: bool = False
    force: bool = False
    packages: Sequence[str] = ()


def prepare(job: PreparationJob) -> None:
    """Make a corpus of text.

    The corpus does not depend on the number of processes.

    Raises:
        ElmoFrameworkError: a file cannot be read or written, or there is nothing to train on.
        StoppedError: the user interrupted; what is done is kept.
    """
    _require_one_vocabulary(job)
    workplace = CorpusOutput(job.output)
    with workplace.locked():
        files = text_files(job.texts)
        recipe = TextTokenizerOptions(
            job.tokenizer, job.sentence_splitter or job.tokenizer, job.packages
        )
        settings = _settings(job, files, recipe)
        workplace.check_overwritable(settings, resume=job.resume, force=job.force)
        # What is wrong with these is found before anything is written.
        recipe.build()
        selection = _selection(job)
        with stoppable(), repairable(workplace.path, advice=RESUME):
            workplace.begin(_cutting(recipe), resume=job.resume)
            drafts = _draft(job, files, recipe, workplace)
            manifest = workplace.finished(settings)
            if manifest is None:
                manifest = _assembled(drafts, selection, settings, workplace)
            workplace.remove()
    report(job.output, manifest)


def _require_one_vocabulary(job: PreparationJob) -> None:
    if job.vocabulary is not None and (job.min_count > 1 or job.max_vocabulary_size is not None):
        raise RunError(
            "--vocabulary takes the words of a file as they are; leave out --min-count and "
            "--max-vocabulary-size, which choose among counted ones"
        )


def _selection(job: PreparationJob) -> SplitOptions:
    given = None if job.vocabulary is None else read_vocabulary_file(job.vocabulary)
    return SplitOptions(job.held_out, given, job.min_count, job.max_vocabulary_size)


def _assembled(
    drafts: Sequence[Path],
    selection: SplitOptions,
    settings: Mapping[str, Any],
    workplace: CorpusOutput,
) -> Manifest:
    """Make the corpus of the drafts of all blocks."""
    console.info("numbering the words ...")
    with workplace.result() as root:
        entries, counts = assemble(drafts, selection, root)
        manifest = Manifest(settings, counts, tuple(entries))
        write_text(root / MANIFEST, manifest.text())
    return manifest


def _cutting(recipe: TextTokenizerOptions) -> dict[str, Any]:
    return {
        "tokenizer": recipe.tokenizer,
        "sentence_splitter": recipe.sentence_splitter,
        "block_bytes": BLOCK_BYTES,
    }


def _draft(
    job: PreparationJob,
    files: Sequence[Path],
    recipe: TextTokenizerOptions,
    workplace: CorpusOutput,
) -> list[Path]:
    """Cut all blocks that are not done, and return the drafts of all."""
    sizes = [size_on_disk(file) for file in files]
    total = None if STANDARD_INPUT in files else sum(sizes)
    num_processes = 1 if total is not None and total <= BLOCK_BYTES else job.num_processes
    with ProgressBar("cutting into words", total=total, unit="byte") as progress:
        drafting = _Tokenizing(workplace, progress)
        tasks = drafting.tasks(read_blocks(files, BLOCK_BYTES))
        for drafted in tokenize_blocks(tasks, recipe, num_processes):
            workplace.mark_done(drafted)
            drafting.count(drafted)
    return drafting.drafts()


@final
class _Tokenizing:
    """Which blocks there are, and what is done of them."""

    def __init__(self, workplace: CorpusOutput, progress: ProgressBar) -> None:
        self._workplace, self._progress = workplace, progress
        self._done = workplace.done()
        self._num_blocks = self._num_words = 0

    def tasks(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, Path]]:
        """Yield the blocks to cut.

        Raises:
            RunError: the text is not the one that the interrupted job read.
        """
        for block in blocks:
            self._num_blocks += 1
            done = self._done.get(block.number)
            if done is None:
                yield block, self._workplace.draft(block.number)
            elif done.digest == block.digest:
                self.count(done)
            else:
                raise self._changed()
        if any(number >= self._num_blocks for number in self._done):
            raise self._changed()

    def count(self, drafted: TokenizedFile) -> None:
        """Count a block as done."""
        self._num_words += drafted.num_words
        self._progress.advance(drafted.num_bytes, note=plural(self._num_words, "word"))

    def drafts(self) -> list[Path]:
        """Return the drafts of all blocks."""
        return [self._workplace.draft(number) for number in range(self._num_blocks)]

    def _changed(self) -> RunError:
        return RunError(
            f"{self._workplace.path}: the text is not the one that the interrupted job read; "
            "give the same, or pass --force without --resume to begin anew"
        )


def _settings(
    job: PreparationJob, files: Sequence[Path], recipe: TextTokenizerOptions
) -> dict[str, Any]:
    """Return what the corpus is made of and how."""
    return {
        "texts": [str(file if file == STANDARD_INPUT else file.absolute()) for file in files],
        "tokenizer": recipe.tokenizer,
        "sentence_splitter": recipe.sentence_splitter,
        "held_out": job.held_out,
        "vocabulary": None if job.vocabulary is None else str(job.vocabulary.absolute()),
        "min_count": job.min_count,
        "max_vocabulary_size": job.max_vocabulary_size,
    }
