"""Prepare a corpus: tokenize text, number its words, and split off held-out sentences."""

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
"""The text that one process tokenizes at a time, and that is lost if it is killed."""


@dataclass(frozen=True)
class PreparationJob:
    """Arguments of `prepare`.

    Attributes:
        texts: files, folders, patterns; `-` is standard input.
        output: the folder of the corpus.
        tokenizer: splits sentences into words: a registered name, or JSON as in a config.
        sentence_splitter: the tokenizer that splits lines into sentences; by default the same.
        held_out: a ratio of the distinct sentences if below 1, otherwise the maximum number.
        vocabulary: a file with the vocabulary of the softmax; counted by default.
        min_count: minimum count of a counted word.
        max_vocabulary_size: maximum number of counted words, without the three special ones.
        num_processes: number of tokenizing processes.
        resume: whether to resume an interrupted job.
        force: whether to overwrite an existing corpus.
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
    """Write a corpus; it does not depend on the number of processes.

    Raises:
        ElmoFrameworkError: a file cannot be read or written, or there is nothing to train on.
        StoppedError: the user interrupted the job, which can be resumed.
    """
    _require_one_vocabulary(job)
    output = CorpusOutput(job.output)
    with output.locked():
        files = text_files(job.texts)
        options = TextTokenizerOptions(
            job.tokenizer, job.sentence_splitter or job.tokenizer, job.packages
        )
        settings = _settings(job, files, options)
        output.check_overwritable(settings, resume=job.resume, force=job.force)
        # Report errors of these before anything is written.
        options.build()
        selection = _selection(job)
        with stoppable(), repairable(output.path, advice=RESUME):
            output.begin(_tokenizer_settings(options), resume=job.resume)
            blocks = _tokenize(job, files, options, output)
            manifest = output.finished(settings)
            if manifest is None:
                manifest = _assemble(blocks, selection, settings, output)
            output.remove()
    report(job.output, manifest)


def _require_one_vocabulary(job: PreparationJob) -> None:
    if job.vocabulary is not None and (job.min_count > 1 or job.max_vocabulary_size is not None):
        raise RunError(
            "--vocabulary uses all words of a file; remove --min-count and "
            "--max-vocabulary-size, which select counted words"
        )


def _selection(job: PreparationJob) -> SplitOptions:
    words = None if job.vocabulary is None else read_vocabulary_file(job.vocabulary)
    return SplitOptions(job.held_out, words, job.min_count, job.max_vocabulary_size)


def _assemble(
    blocks: Sequence[Path],
    selection: SplitOptions,
    settings: Mapping[str, Any],
    output: CorpusOutput,
) -> Manifest:
    console.info("numbering the words ...")
    with output.result() as root:
        entries, counts = assemble(blocks, selection, root)
        manifest = Manifest(settings, counts, tuple(entries))
        write_text(root / MANIFEST, manifest.text())
    return manifest


def _tokenizer_settings(options: TextTokenizerOptions) -> dict[str, Any]:
    return {
        "tokenizer": options.tokenizer,
        "sentence_splitter": options.sentence_splitter,
        "block_bytes": BLOCK_BYTES,
    }


def _tokenize(
    job: PreparationJob,
    files: Sequence[Path],
    options: TextTokenizerOptions,
    output: CorpusOutput,
) -> list[Path]:
    """Tokenize all blocks that are not done, and return the files of all."""
    sizes = [size_on_disk(file) for file in files]
    total = None if STANDARD_INPUT in files else sum(sizes)
    num_processes = 1 if total is not None and total <= BLOCK_BYTES else job.num_processes
    with ProgressBar("tokenizing", total=total, unit="byte") as progress:
        tokenizing = _Tokenizing(output, progress)
        tasks = tokenizing.tasks(read_blocks(files, BLOCK_BYTES))
        for file in tokenize_blocks(tasks, options, num_processes):
            output.mark_done(file)
            tokenizing.count(file)
    return tokenizing.paths()


@final
class _Tokenizing:
    """Progress over the blocks of a text."""

    def __init__(self, output: CorpusOutput, progress: ProgressBar) -> None:
        self._output, self._progress = output, progress
        self._done = output.done()
        self._num_blocks = self._num_words = 0

    def tasks(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, Path]]:
        """Yield the blocks to tokenize, with the paths of their files.

        Raises:
            RunError: the text is not the one that the interrupted job read.
        """
        for block in blocks:
            self._num_blocks += 1
            done = self._done.get(block.number)
            if done is None:
                yield block, self._output.block_path(block.number)
            elif done.digest == block.digest:
                self.count(done)
            else:
                raise self._changed()
        if any(number >= self._num_blocks for number in self._done):
            raise self._changed()

    def count(self, file: TokenizedFile) -> None:
        """Count a block as done."""
        self._num_words += file.num_words
        self._progress.advance(file.num_bytes, note=plural(self._num_words, "word"))

    def paths(self) -> list[Path]:
        """Return the files of all blocks."""
        return [self._output.block_path(number) for number in range(self._num_blocks)]

    def _changed(self) -> RunError:
        return RunError(
            f"{self._output.path}: the text is not the one that the interrupted job read; "
            "pass the same text, or start over with --force and without --resume"
        )


def _settings(
    job: PreparationJob, files: Sequence[Path], options: TextTokenizerOptions
) -> dict[str, Any]:
    return {
        "texts": [str(file if file == STANDARD_INPUT else file.absolute()) for file in files],
        "tokenizer": options.tokenizer,
        "sentence_splitter": options.sentence_splitter,
        "held_out": job.held_out,
        "vocabulary": None if job.vocabulary is None else str(job.vocabulary.absolute()),
        "min_count": job.min_count,
        "max_vocabulary_size": job.max_vocabulary_size,
    }
