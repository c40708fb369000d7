"""The job behind `elmo embed`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_framework import console
from elmo_framework.console import ProgressBar, format_bytes, plural
from elmo_framework.corpus.blocks import text_files
from elmo_framework.data.data_loader import Rank
from elmo_framework.data.tokenizer import build_tokenizer
from elmo_framework.embedding.arrow_files import Columns
from elmo_framework.embedding.converted_formats import (
    ConvertedFormat,
    ParquetFormat,
    QuantizedHdf5Format,
    QuantizedNpyFormat,
    SafetensorsFormat,
)
from elmo_framework.embedding.corpus import CorpusIndex, SentenceFiles
from elmo_framework.embedding.job import STANDARD_OUTPUT, EmbeddingJob, VectorFormat
from elmo_framework.embedding.json_lines import write_json_lines
from elmo_framework.embedding.shards import ShardFolder, input_settings, is_table, read_shards
from elmo_framework.embedding.vector_file_format import (
    Hdf5Format,
    NpyFileFormat,
    NpyFolderFormat,
    VectorFileFormat,
    VectorShape,
)
from elmo_framework.embedding.vector_output import (
    VectorWriter,
    create_vectors,
    read_places,
    vector_output,
    write_at,
)
from elmo_framework.embedding.vector_reader import VectorReader, standard_input
from elmo_framework.errors import RunError
from elmo_framework.io.files import repairable
from elmo_framework.io.outputs import Input, Output, check_outputs
from elmo_framework.io.resumable_output import ResumableOutput, stoppable
from elmo_framework.kernels.product import ARITHMETIC
from elmo_framework.training.process_group import (
    ProcessGroup,
    choose_device,
    process_group,
    report_slow_path,
)

MAX_KEPT_SENTENCES = 1_000_000
"""How many lines an HDF5 file may have that keeps all sentences in one JSON text."""

_SHARD_SUFFIXES: Mapping[VectorFormat, str] = {
    "npy": "",
    "hdf5": ".hdf5",
    "parquet": ".parquet",
    "safetensors": ".safetensors",
}

_CONVERTED_FORMATS: Mapping[tuple[VectorFormat, bool], type[ConvertedFormat]] = {
    ("npy", True): QuantizedNpyFormat,
    ("hdf5", True): QuantizedHdf5Format,
    ("parquet", False): ParquetFormat,
    ("parquet", True): ParquetFormat,
    ("safetensors", False): SafetensorsFormat,
    ("safetensors", True): SafetensorsFormat,
}
"""By the format, and whether vectors are quantized."""

_BATCHES_A_POOL = 32
"""Sorted by length are the sentences of so many full batches at a time."""


def embed(job: EmbeddingJob) -> None:
    """Embed sentences; the processes that `torchrun` started share the work.

    Lines with the same words are computed once, and the result does not depend on the number of
    processes.

    Raises:
        ElmoFrameworkError: a file cannot be read or written, or the job asks for what is not
            there.
        StoppedError: the user interrupted; what is done is kept.
    """
    device = choose_device(job.device)
    with process_group(device, advice="continue the rest with --resume") as group:
        if job.output_dir is not None:
            if group.rank.world_size > 1:
                raise RunError(
                    "torchrun shares one --output-file; with --output-dir, start a job per --part"
                )
            _embed_part(job, job.output_dir, device)
        elif job.output == STANDARD_OUTPUT:
            write_json_lines(job, sys.stdout, device=device, rank=group.rank)
        else:
            _embed(job, device, group)


def _embed(job: EmbeddingJob, device: torch.device, group: ProcessGroup) -> None:
    output = vector_output(job.output)
    with ExitStack() as stack:
        if group.is_first:
            stack.enter_context(output.locked())
            _check_output(job, output)
        parts = _parts(job, device, stack.enter_context(standard_input(job, group.rank)))
        if group.is_first:
            _prepare(job, parts, output)
        report_slow_path(device, group)
        group.wait()
        _compute(parts, output, group.rank)
        group.wait()
        if group.is_first:
            _finish(parts, output)
            console.info(f"written: {job.output}")


class _Parts(NamedTuple):
    """The objects that every process of a job has.

    Attributes:
        corpus: the sentences.
        corpus_index: their lengths and digests.
        file_index: the same for the file, where a pooled sentence has one word.
        reader: computes their vectors.
        layout: of the result file.
        pool_words: the number of words that are sorted by length together.
        settings: must be equal for a job to resume the work of another.
    """

    corpus: SentenceFiles
    corpus_index: CorpusIndex
    file_index: CorpusIndex
    reader: VectorReader
    layout: VectorFileFormat
    pool_words: int
    settings: dict[str, Any]

    def pools(self) -> range:
        """Return the numbers of all pools; words are dealt out to them in their order."""
        return range(-(-self.corpus_index.num_words // self.pool_words))

    def num_words(self, pools: Sequence[int]) -> int:
        corpus_index = self.corpus_index
        offsets = corpus_index.offsets
        if corpus_index.documents is not None:
            offsets = offsets[corpus_index.documents]
        is_inside = corpus_index.is_first & np.isin(offsets // self.pool_words, pools)
        return int(corpus_index.lengths[is_inside].sum(dtype=np.int64))

    def pool(self, line: int) -> int:
        """Return the pool of a line: the one in which the first word of it, or its document, is."""
        return int(self.corpus_index.offsets[self.document(line)]) // self.pool_words

    def document(self, line: int) -> int:
        """Return the first line of the document of a line; without documents the line itself."""
        documents = self.corpus_index.documents
        return line if documents is None else int(documents[line])


def _parts(job: EmbeddingJob, device: torch.device, standard_input: BinaryIO | None) -> _Parts:
    reader = VectorReader(job, device)
    layout = _layout(job, reader.form)
    tokenizer = build_tokenizer(job.tokenizer)
    corpus = SentenceFiles(job.sentences, tokenizer=tokenizer, standard_input=standard_input)
    keeps_all = job.file_format == "hdf5" and not (job.forget_sentences or job.use_sentence_keys)
    corpus_index = corpus.build_index(
        max_lines=MAX_KEPT_SENTENCES if keeps_all else None, by_document=job.state == "document"
    )
    settings = {"sentences": corpus_index.digest, **_settings(job, reader)}
    pool_words = _BATCHES_A_POOL * reader.max_tokens
    file_index = corpus_index if job.pool == "none" else corpus_index.as_pooled()
    return _Parts(corpus, corpus_index, file_index, reader, layout, pool_words, settings)


def _settings(job: EmbeddingJob, reader: VectorReader) -> dict[str, Any]:
    """Return what must be equal for a job to resume the work of another, but for the sentences."""
    settings = {
        "biLM": reader.digest,
        "layers": reader.layers,
        "dtype": job.dtype,
        "format": job.file_format,
        "precision": ARITHMETIC[job.precision],
        "max_tokens": reader.max_tokens,
        "keeps_sentences": not job.forget_sentences,
        "uses_sentence_keys": job.use_sentence_keys,
    }
    if job.state != "reset":
        settings["state"] = job.state
    if job.max_length is not None or job.sub_token_mode is not None:
        settings["options"] = reader.variant
    if job.pool != "none":
        settings["pool"] = job.pool
    return settings


def _embed_part(job: EmbeddingJob, folder: Path, device: torch.device) -> None:
    """Write the shards of one part that do not exist."""
    with standard_input(job, Rank(0, 1)) as stream:
        if stream is not None:
            raise RunError("--output-dir needs files whose shards several jobs can read, not -")
    files = text_files(job.sentences)
    reader = VectorReader(job, device)
    layout, tokenizer = _layout(job, reader.form), build_tokenizer(job.tokenizer)
    settings = {**_settings(job, reader), **input_settings(files), "tokenizer": job.tokenizer}
    columns = Columns(job.text_column, job.id_column)
    if any(map(is_table, files)):
        settings["columns"] = list(columns)
    shards = ShardFolder(folder, settings, suffix=_SHARD_SUFFIXES[job.file_format])
    num_written = num_lines = 0
    with (
        stoppable("run the same command again"),
        repairable(folder, advice="run the same command again"),
        ProgressBar(f"embedding, part {job.part}", total=None, unit="token") as progress,
    ):
        shards.create()
        for shard in read_shards(files, job.part, columns):
            with shards.writing(shard) as path:
                if path is None:
                    continue
                corpus = SentenceFiles([shard.lines(tokenizer)], tokenizer=tokenizer)
                index = corpus.build_index()
                file_index = index if job.pool == "none" else index.as_pooled()
                pool_words = _BATCHES_A_POOL * reader.max_tokens
                parts = _Parts(corpus, index, file_index, reader, layout, pool_words, settings)
                _write_shard(parts, path, progress)
                num_written, num_lines = num_written + 1, num_lines + index.num_lines
    console.info(
        f"written: {plural(num_written, 'shard')} with {plural(num_lines, 'sentence')} in {folder}"
    )


def _write_shard(parts: _Parts, path: Path, progress: ProgressBar) -> None:
    layout = parts.layout
    places = layout.create(path, parts.file_index, parts.corpus.lines)
    with layout.file(path).open("r+b") as file:

        def write(vectors: NDArray[Any], place: int) -> None:
            write_at(file.fileno(), vectors, place)

        for _, sentences in _pools(parts, frozenset(parts.pools())):
            _embed_pool(parts, sentences, places, write, progress)
    if parts.reader.form.is_pooled:
        _write_blank(parts, places, layout.file(path))
    layout.complete(path, parts.file_index, parts.corpus.lines, places)


def _layout(job: EmbeddingJob, form: VectorShape) -> VectorFileFormat:
    is_quantized = job.dtype == "int8"
    if (converted := _CONVERTED_FORMATS.get((job.file_format, is_quantized))) is not None:
        return converted(form, is_quantized=is_quantized)
    if job.file_format == "npy":
        return NpyFileFormat(form) if job.output.suffix == ".npy" else NpyFolderFormat(form)
    return Hdf5Format(
        form, keeps_sentences=not job.forget_sentences, uses_sentence_keys=job.use_sentence_keys
    )


def _check_output(job: EmbeddingJob, output: ResumableOutput) -> None:
    inputs = [Input(path, "a file of sentences") for path in job.sentences]
    check_outputs([Output(job.output, "--output-file")], inputs)
    if not (job.resume and output.is_named()):
        output.check_overwritable(resume=job.resume, force=job.force)


def _prepare(job: EmbeddingJob, parts: _Parts, output: ResumableOutput) -> None:
    corpus_index = parts.corpus_index
    console.info(
        f"{plural(corpus_index.num_lines, 'sentence')}, "
        f"{int(corpus_index.is_first.sum()):,} of them different, "
        f"with {plural(corpus_index.num_words, 'word')}: "
        f"{format_bytes(parts.layout.num_bytes(parts.file_index))} for {job.output}"
    )
    create_vectors(
        output,
        parts.settings,
        parts.layout,
        parts.file_index,
        parts.corpus.lines,
        resume=job.resume,
    )


def _compute(parts: _Parts, output: ResumableOutput, rank: Rank) -> None:
    """Compute and write the pools of this process that are not done."""
    done = set(output.done(int))
    todo = [pool for pool in parts.pools()[rank.index :: rank.world_size] if pool not in done]
    if not todo:
        return
    places = read_places(output)
    total = parts.num_words(todo)
    description = "embedding" if rank.world_size == 1 else f"embedding, process {rank.index}"
    with (
        stoppable(),
        ProgressBar(description, total=total, unit="token") as progress,
        VectorWriter(output, parts.layout.file(output.result), rank.index) as writer,
    ):
        for pool, sentences in _pools(parts, frozenset(todo)):
            _embed_pool(parts, sentences, places, writer.write, progress)
            writer.mark_done(pool)


def _finish(parts: _Parts, output: ResumableOutput) -> None:
    """Complete the result, and rename it.

    Raises:
        RunError: the disk is full, or damaged.
    """
    with output.repairable():
        if output.result.exists():
            places = read_places(output)
            if parts.reader.form.is_pooled:
                _write_blank(parts, places, parts.layout.file(output.result))
            parts.layout.complete(output.result, parts.file_index, parts.corpus.lines, places)
        output.finish()


def _write_blank(parts: _Parts, places: NDArray[np.int64], file: Path) -> None:
    """Write the zeros of blank lines, which are in no pool; equal lines share a place."""
    index = parts.corpus_index
    with file.open("r+b") as vectors:
        for line in np.flatnonzero(index.is_first & (index.lengths == 0)).tolist():
            vectors.seek(places[line])
            vectors.write(bytes(parts.reader.form.num_bytes))


def _embed_pool(
    parts: _Parts,
    sentences: dict[int, list[str]],
    places: NDArray[np.int64],
    write: Callable[[NDArray[Any], int], None],
    progress: ProgressBar,
) -> None:
    lines = list(sentences)
    groups = groupby(lines, key=parts.document)
    documents = [[sentences[line] for line in group] for _, group in groups]
    for index, vectors in parts.reader.read(documents):
        write(parts.layout.to_file_layout(vectors), int(places[lines[index]]))
        progress.advance(len(sentences[lines[index]]))


def _pools(parts: _Parts, wanted: frozenset[int]) -> Iterator[tuple[int, dict[int, list[str]]]]:
    """Yield the wanted pools: the words of their lines, by the line's number in the input."""
    index = parts.corpus_index
    lines = (
        (parts.pool(number), number, line)
        for number, line in enumerate(parts.corpus.lines())
        if index.is_first[number] and index.lengths[number]
    )
    for pool, members in groupby(lines, key=itemgetter(0)):
        if pool in wanted:
            yield pool, {number: parts.corpus.words(line) for _, number, line in members}
