"""The job behind `elmo embed`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import torch

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
from elmo_framework.embedding.corpus import SentenceFiles
from elmo_framework.embedding.corpus_vectors import CorpusVectors
from elmo_framework.embedding.job import NPY_SUFFIX, STANDARD_OUTPUT, EmbeddingJob, VectorFormat
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
    read_offsets,
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
        stream = stack.enter_context(standard_input(job, group.rank))
        vectors = _corpus_vectors(job, device, stream)
        if group.is_first:
            _prepare(job, vectors, output)
        report_slow_path(device, group)
        group.wait()
        _compute(vectors, output, group.rank)
        group.wait()
        if group.is_first:
            _finish(vectors, output)
            console.info(f"written: {job.output}")


def _corpus_vectors(
    job: EmbeddingJob, device: torch.device, standard_input: BinaryIO | None
) -> CorpusVectors:
    reader = VectorReader(job, device)
    layout = _layout(job, reader.shape)
    tokenizer = build_tokenizer(job.tokenizer)
    corpus = SentenceFiles(job.sentences, tokenizer=tokenizer, standard_input=standard_input)
    keeps_all = job.file_format == "hdf5" and not (job.forget_sentences or job.use_sentence_keys)
    corpus_index = corpus.build_index(
        max_lines=MAX_KEPT_SENTENCES if keeps_all else None, by_document=job.state == "document"
    )
    return CorpusVectors(corpus, corpus_index, reader, layout)


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
    layout, tokenizer = _layout(job, reader.shape), build_tokenizer(job.tokenizer)
    settings = {**_settings(job, reader), **input_settings(files), "tokenizer": job.tokenizer}
    columns = Columns(job.text_column, job.id_column)
    if any(map(is_table, files)):
        settings["columns"] = list(columns)
    elif flag := job.column_flag:
        raise RunError(f"{flag} is for Parquet and Arrow; the input is plain text")
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
                _write_shard(CorpusVectors(corpus, index, reader, layout), path, progress)
                num_written, num_lines = num_written + 1, num_lines + index.num_lines
    console.info(
        f"written: {plural(num_written, 'shard')} with {plural(num_lines, 'sentence')} in {folder}"
    )


def _write_shard(vectors: CorpusVectors, path: Path, progress: ProgressBar) -> None:
    layout, lines = vectors.layout, vectors.corpus.lines
    offsets = layout.create(path, vectors.file_index, lines)
    with layout.file(path).open("r+b") as file:
        write = partial(write_at, file.fileno())
        for _, sentences in vectors.read_chunks(vectors.chunks):
            vectors.write_chunk(sentences, offsets, write, progress)
    vectors.complete(path, offsets)


def _layout(job: EmbeddingJob, shape: VectorShape) -> VectorFileFormat:
    is_quantized = job.dtype == "int8"
    if (converted := _CONVERTED_FORMATS.get((job.file_format, is_quantized))) is not None:
        return converted(shape, is_quantized=is_quantized)
    if job.file_format == "npy":
        return NpyFileFormat(shape) if job.suffix == NPY_SUFFIX else NpyFolderFormat(shape)
    return Hdf5Format(
        shape, keeps_sentences=not job.forget_sentences, uses_sentence_keys=job.use_sentence_keys
    )


def _check_output(job: EmbeddingJob, output: ResumableOutput) -> None:
    inputs = [Input(path, "a file of sentences") for path in job.sentences]
    check_outputs([Output(job.output, "--output-file")], inputs)
    if not (job.resume and output.is_named()):
        output.check_overwritable(resume=job.resume, force=job.force)


def _prepare(job: EmbeddingJob, vectors: CorpusVectors, output: ResumableOutput) -> None:
    index = vectors.corpus_index
    console.info(
        f"{plural(index.num_lines, 'sentence')}, "
        f"{int(index.is_first.sum()):,} of them different, "
        f"with {plural(index.num_words, 'word')}: "
        f"{format_bytes(vectors.layout.num_bytes(vectors.file_index))} for {job.output}"
    )
    create_vectors(
        output,
        {"sentences": index.digest, **_settings(job, vectors.reader)},
        vectors.layout,
        vectors.file_index,
        vectors.corpus.lines,
        resume=job.resume,
    )


def _compute(vectors: CorpusVectors, output: ResumableOutput, rank: Rank) -> None:
    """Compute and write the chunks of this process that are not done."""
    done = set(output.done(int))
    own_chunks = vectors.chunks[rank.index :: rank.world_size]
    missing = [chunk for chunk in own_chunks if chunk not in done]
    if not missing:
        return
    offsets = read_offsets(output)
    total = vectors.num_words(missing)
    description = "embedding" if rank.world_size == 1 else f"embedding, process {rank.index}"
    with (
        stoppable(),
        ProgressBar(description, total=total, unit="token") as progress,
        VectorWriter(output, vectors.layout.file(output.result), rank.index) as writer,
    ):
        for chunk, sentences in vectors.read_chunks(frozenset(missing)):
            vectors.write_chunk(sentences, offsets, writer.write, progress)
            writer.mark_done(chunk)


def _finish(vectors: CorpusVectors, output: ResumableOutput) -> None:
    """Complete the result, and rename it.

    Raises:
        RunError: the disk is full, or damaged.
    """
    with output.repairable():
        if output.result.exists():
            vectors.complete(output.result, read_offsets(output))
        output.finish()
