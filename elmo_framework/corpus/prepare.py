"""Prepare a corpus: tokenize text, number its words, and split off held-out sentences.

The `ResumableOutput` of the job has the files of `TokenizedBlocks`, and these:

| name | content |
|---|---|
| `corpus` | the folder that is renamed to the output |
| `corpus.json` | the manifest of the complete corpus |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from elmo_framework import console
from elmo_framework.config.job_part import JobPart
from elmo_framework.console import plural
from elmo_framework.corpus.assemble import assemble
from elmo_framework.corpus.blocks import text_files
from elmo_framework.corpus.job import PreparationJob
from elmo_framework.corpus.manifest import KIND, MANIFEST, SPLITS, Manifest
from elmo_framework.corpus.tables import BOUNDARIES, LONGEST_WORD, require_pieces
from elmo_framework.corpus.tokenize import TextTokenizer
from elmo_framework.corpus.tokenized_blocks import TokenizedBlocks
from elmo_framework.corpus.vocabulary_file import SPECIAL_WORDS, read_vocabulary_file
from elmo_framework.data.formats.text_files import STANDARD_INPUT
from elmo_framework.errors import RunError, error_path
from elmo_framework.io.files import remove_folder, repairable, replacing, write_text
from elmo_framework.io.resumable_output import AGAIN, START_OVER, ResumableOutput, stoppable

_FEW_WORDS = 1_000_000
_MANY_UNKNOWN = 0.1
_START_ALL_PARTS_OVER = "remove {path} to start all parts over, or choose another {flag}"


def prepare(job: PreparationJob) -> None:
    """Write a corpus, or tokenize a part of it; it does not depend on the number of processes.

    Raises:
        ElmoFrameworkError: a file cannot be read or written, or there is nothing to train on.
        StoppedError: the user interrupted the job, which can be resumed.
    """
    _require_one_vocabulary(job)
    if job.output.name in ("", ".."):
        raise RunError(f"--output-dir {job.output}: a corpus needs a new folder; choose a name")
    output = ResumableOutput(
        job.output,
        flag="--output-dir",
        check_replaceable=_check_corpus,
        start_over=_START_ALL_PARTS_OVER if job.part is not None or job.merge else START_OVER,
    )
    files = _text_files(job, output)
    tokenizer = TextTokenizer(job.tokenizer, job.sentence_splitter or job.tokenizer, job.packages)
    tokenizer.build()  # reports errors before anything is written
    blocks = TokenizedBlocks(files, tokenizer, output)
    if job.part is not None:
        _prepare_part(job, job.part, blocks, output)
        return
    resume = job.resume or job.merge
    with output.locked():
        settings = _settings(job, files, tokenizer)
        if not (resume and _finished(output, settings)):
            blocks.require_no_running_part()
            output.check_overwritable(resume=resume, force=job.force)
            if job.merge:
                blocks.check_parts()
        # Report errors of these before anything is written.
        if job.num_pieces is not None:
            require_pieces(job.num_pieces)
        vocabulary = None if job.vocabulary is None else read_vocabulary_file(job.vocabulary)
        with stoppable(), output.repairable():
            output.begin(blocks.settings, resume=resume)
            paths = blocks.all_paths() if job.merge else blocks.tokenize(job.num_processes)[0]
            manifest = _finished(output, settings)
            if manifest is None:
                manifest = _assemble(job, paths, vocabulary, settings, output)
            output.finish()
    _report(job.output, manifest)


def _text_files(job: PreparationJob, output: ResumableOutput) -> list[Path]:
    """Return the files of the text, without those of this job, which a pattern may match."""
    own = output.path.absolute()
    return [file for file in text_files(job.texts) if own not in file.absolute().parents]


def _prepare_part(
    job: PreparationJob, part: JobPart, blocks: TokenizedBlocks, output: ResumableOutput
) -> None:
    """Tokenize the blocks of a part that are not done."""
    if STANDARD_INPUT in job.texts:
        raise RunError("--part needs files whose blocks several jobs can read, not -")
    if job.force:
        raise RunError("--part shares a folder with other jobs; remove --force")
    with stoppable(AGAIN), repairable(output.path, advice=AGAIN), blocks.shared(part):
        paths, num_words = blocks.tokenize(job.num_processes, part)
    console.info(
        f"part {part}: {plural(len(paths), 'block')} with {plural(num_words, 'word')} in "
        f"{output.path}; when all parts are done, make the corpus with --merge"
    )


def _require_one_vocabulary(job: PreparationJob) -> None:
    if job.vocabulary is not None and (job.min_count > 1 or job.max_vocabulary_size is not None):
        raise RunError(
            "--vocabulary uses all words of a file; remove --min-count and "
            "--max-vocabulary-size, which select counted words"
        )


def _assemble(
    job: PreparationJob,
    blocks: Sequence[Path],
    vocabulary: list[str] | None,
    settings: Mapping[str, Any],
    output: ResumableOutput,
) -> Manifest:
    console.info("numbering the words ...")
    root = output.path / "corpus"
    remove_folder(root)
    root.mkdir()
    only_file = error_path(job.texts[0]) if len(job.texts) == 1 else nullcontext()
    with only_file:
        entries, counts = assemble(
            blocks,
            root,
            held_out=job.held_out,
            vocabulary=vocabulary,
            min_count=job.min_count,
            max_size=job.max_vocabulary_size,
            num_pieces=job.num_pieces,
        )
    manifest = Manifest(settings, counts, tuple(entries))
    write_text(root / MANIFEST, manifest.text())
    write_text(output.path / MANIFEST, manifest.text())
    with replacing(output.output) as temporary:
        root.replace(temporary)
    return manifest


def _check_corpus(output: Path) -> None:
    """Raise RunError if the output is not a corpus, and so must not be removed by `--force`."""
    manifest = output / MANIFEST
    if not (manifest.is_file() and KIND.encode() in manifest.read_bytes()):
        raise RunError(f"{output} is not a prepared corpus; --force will not overwrite it")


def _finished(output: ResumableOutput, settings: Mapping[str, Any]) -> Manifest | None:
    """Return the manifest if a job with these settings ended between renaming and cleanup."""
    written, renamed = output.path / MANIFEST, output.output / MANIFEST
    if not (written.is_file() and renamed.is_file()):
        return None
    is_same = written.read_bytes() == renamed.read_bytes()
    manifest = Manifest.read(output.output) if is_same else None
    return manifest if manifest is not None and manifest.settings == settings else None


def _settings(
    job: PreparationJob, files: Sequence[Path], tokenizer: TextTokenizer
) -> dict[str, Any]:
    settings = {
        "texts": [str(file if file == STANDARD_INPUT else file.absolute()) for file in files],
        "tokenizer": tokenizer.tokenizer,
        "sentence_splitter": tokenizer.sentence_splitter,
        "held_out": job.held_out,
        "vocabulary": None if job.vocabulary is None else str(job.vocabulary.absolute()),
        "min_count": job.min_count,
        "max_vocabulary_size": job.max_vocabulary_size,
    }
    return settings if job.num_pieces is None else settings | {"pieces": job.num_pieces}


def _report(output: Path, manifest: Manifest) -> None:
    counts = manifest.counts
    console.info(f"written: {output}")
    for split in SPLITS:
        number = counts["parts"][split]
        sentences, words = plural(number["sentences"], "sentence"), plural(number["words"], "word")
        ratio = _unknown_ratio(number)
        console.info(f"  {split}: {sentences}, {words}, {ratio:.2%} of them not in the vocabulary")
    num_words = counts["distinct_words"] - len(BOUNDARIES)
    num_in_vocabulary = counts["vocabulary"] - len(SPECIAL_WORDS)
    console.info(f"  {num_words:,} distinct words; the vocabulary has {num_in_vocabulary:,}")
    if "pieces" in counts:
        per_word = counts["pieces"]["per_word"]
        console.info(f"  {counts['pieces']['distinct']:,} pieces, {per_word:.2f} in a word")
    for warning in _warnings(manifest):
        console.info(f"warning: {warning}")


def _warnings(manifest: Manifest) -> Iterator[str]:
    counts = manifest.counts
    training, held_out = (counts["parts"][split] for split in SPLITS)
    if training["words"] < _FEW_WORDS:
        yield (
            f"{plural(training['words'], 'word')}: enough to try the commands, too few for a "
            "useful biLM: small ones need about 10 million, the published ones had 800 million"
        )
    if not held_out["sentences"]:
        is_number = manifest.settings["held_out"] >= 1
        advice = (
            "a larger number to --held-out: equal sentences are held out together or not at all"
            if is_number
            else "a number of sentences to --held-out"
        )
        yield (
            "no held-out sentences: train without early stopping by perplexity, with "
            f"`-o validation_data_path=null`, or pass {advice}"
        )
    if _unknown_ratio(training) > _MANY_UNKNOWN:
        yield (
            f"{_unknown_ratio(training):.0%} of the words are not in the vocabulary, and will be "
            "learned as <UNK>: does it have the same language, case and tokenization?"
        )
    yield from _strange_words(counts)


def _strange_words(counts: Mapping[str, Any]) -> Iterator[str]:
    if (cut := counts["cut_words"])["distinct"]:
        words, times = plural(cut["distinct"], "word"), plural(cut["all"], "time")
        yield (
            f"longer than {LONGEST_WORD} bytes: {words} ({times} "
            "in the training part): a biLM sees only their beginning"
        )
    if number := counts["boundary_words"]:
        yield (
            f"the training part contains <S> or </S> {plural(number, 'time')}: training adds these "
            "sentence boundaries itself; remove them"
        )


def _unknown_ratio(part: Mapping[str, int]) -> float:
    return part["unknown_words"] / max(1, part["words"])
