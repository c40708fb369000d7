"""The job of `elmo embed`: its vectors, its two forms, and going on after a crash."""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from elmo_framework.bilm.files.load import bilm_files, read_bilm
from elmo_framework.bilm.layer_output import LayerOutput
from elmo_framework.commands.main import main
from elmo_framework.embedding import corpus_vectors, vector_reader
from elmo_framework.embedding import embed as embedding
from elmo_framework.embedding.embed import embed
from elmo_framework.embedding.job import EmbeddingJob
from elmo_framework.embedding.layer_selector import LayerSelector
from elmo_framework.embedding.vector_file_format import Hdf5Format
from elmo_framework.embedding.vector_output import VectorWriter
from elmo_framework.embedding.vector_reader import VectorReader
from elmo_framework.errors import DataError, RunError, StoppedError
from elmo_framework.io import resumable_output
from elmo_framework.io.outputs import Output, check_outputs
from elmo_framework.io.resumable_output import ResumableOutput
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.layers import layer_source
from elmo_framework.layers.bilm_source import FrozenBiLm
from elmo_framework.layers.documents import read_documents
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.training import process_group
from tests.unit.embedding.conftest import TEXT

Jobs = Callable[..., EmbeddingJob]


def expected(job: EmbeddingJob, text: list[str] = TEXT) -> list[np.ndarray]:
    """The layers of each sentence, read alone."""
    source = FrozenBiLm(read_bilm(bilm_files(Path(job.bilm))))
    read = [next(source.read([line.split()])) for line in text]
    return [layers[:, 1:-1].numpy() for _, layers in read]


def hdf5(path: Path) -> list[np.ndarray]:
    with h5py.File(path) as file:
        return [file[str(index)][...] for index in range(len(file) - ("sentence_to_index" in file))]


def npy(path: Path) -> list[np.ndarray]:
    vectors = np.load(path / "vectors.npy", mmap_mode="r")
    index = np.load(path / "index.npy", mmap_mode="r")
    return [np.array(vectors[offset : offset + length]) for offset, length in index]


def assert_close(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert [part.shape for part in found] == [part.shape for part in wanted]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-6)


def test_an_hdf5_file_has_a_dataset_for_each_line(job: Jobs) -> None:
    embed(job())
    assert_close(hdf5(job().output), expected(job()))
    with h5py.File(job().output) as file:
        sentences = json.loads(file["sentence_to_index"][0])
    numbered = {line.strip(): str(index) for index, line in enumerate(TEXT)}
    assert sentences == numbered


def test_an_array_has_a_slice_for_each_line(job: Jobs, tmp_path: Path) -> None:
    embed(job(format="npy", output=tmp_path / "out"))
    assert_close([part.swapaxes(0, 1) for part in npy(tmp_path / "out")], expected(job()))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bilm", "out", "text.txt"]


def test_every_file_of_a_folder_of_vectors_is_protected(job: Jobs, tmp_path: Path) -> None:
    embed(job(format="npy", output=tmp_path / "out"))
    for path in (tmp_path / "out").iterdir():
        with pytest.raises(RunError, match="is a part of the folder of vectors"):
            check_outputs([Output(path, "--output-file", force=True)], [])


@pytest.mark.parametrize("layers", ["all", "top"])
def test_one_npy_file_has_the_words_of_all_lines(job: Jobs, layers: str) -> None:
    output = job().output.with_suffix(".npy")
    embed(job(format="npy", output=output, layers=layers))
    lines = expected(job())  # each "layers words dim", also those that equal a line before
    wanted = [x.swapaxes(0, 1) for x in lines] if layers == "all" else [x[-1] for x in lines]
    found = np.load(output)
    assert found.shape[0] == sum(len(line.split()) for line in TEXT)
    np.testing.assert_allclose(found, np.concatenate(wanted), atol=2e-6)


@pytest.mark.parametrize("layers", ["all", "top"])
def test_standard_output_has_an_object_for_each_line(
    job: Jobs, layers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    embed(job(output=Path("-"), layers=layers, dtype="float16"))
    out, err = capsys.readouterr()
    objects = [json.loads(line) for line in out.splitlines()]
    assert [found["words"] for found in objects] == [line.split() for line in TEXT]
    wanted = [x if layers == "all" else x[-1] for x in expected(job())]
    for found, numbers in zip(objects, wanted, strict=True):
        half = np.asarray(found["vectors"], np.float16).reshape(numbers.shape)
        np.testing.assert_allclose(half, numbers, rtol=1e-3, atol=1e-3)
    assert objects[1]["vectors"] == ([[], [], []] if layers == "all" else [])
    assert err == ""


def test_numbers_in_json_give_the_same_floats_again(
    job: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    embed(job())
    embed(job(output=Path("-")))
    objects = map(json.loads, capsys.readouterr().out.splitlines())
    for found, numbers in zip(objects, hdf5(job().output), strict=True):
        assert np.float32(found["vectors"]).tobytes() == numbers.tobytes()


def test_no_line_for_standard_output_is_an_error(job: Jobs, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(DataError, match="no lines to embed"):
        embed(job(output=Path("-"), sentences=[tmp_path / "empty.txt"]))


def test_the_sentences_are_never_the_output(job: Jobs, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is also an input"):
        embed(job(output=tmp_path / "text.txt", force=True))
    assert (tmp_path / "text.txt").read_text().splitlines() == TEXT


@pytest.mark.parametrize("layers", ["top", "average", "0", "1"])
@pytest.mark.parametrize("form", ["hdf5", "npy"])
def test_one_vector_a_word_has_no_axis_of_layers(job: Jobs, layers: str, form: str) -> None:
    chosen = {"top": lambda x: x[-1], "average": lambda x: x.mean(0)}.get(layers)
    embed(job(layers=layers, format=form))
    wanted = [chosen(x) if chosen else x[int(layers)] for x in expected(job())]
    assert_close((hdf5 if form == "hdf5" else npy)(job().output), wanted)


def test_float16_is_the_rounded_result(job: Jobs) -> None:
    embed(job())
    whole = hdf5(job().output)
    embed(job(dtype="float16", force=True))
    for half, one in zip(hdf5(job().output), whole, strict=True):
        assert half.dtype == np.float16
        np.testing.assert_array_equal(half, one.astype(np.float16))


@pytest.mark.parametrize(
    ("dtype", "factor"), [("float16", 1e6), ("int8", math.inf), ("float16", math.nan)]
)
def test_numbers_that_a_type_cannot_hold_are_reported(
    job: Jobs, monkeypatch: pytest.MonkeyPatch, dtype: str, factor: float
) -> None:
    compute = FrozenBiLm.compute

    def larger(source: FrozenBiLm, *arguments: Any) -> LayerOutput:
        output = compute(source, *arguments)
        return replace(output, layers=output.layers * factor)

    monkeypatch.setattr(FrozenBiLm, "compute", larger)
    options = {"format": "npy", "output": Path("-"), "output_dir": job().output.with_name("out")}
    with pytest.raises(DataError, match=r"sentence that begins with '.+' has numbers that float16"):
        embed(job(dtype=dtype, **options))
    if factor == 1e6:
        embed(job(**options | {"output_dir": job().output.with_name("wide")}))


def test_equal_sentences_are_computed_once(job: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    read = LayerSource.read

    def spied(self: LayerSource, sentences: list[list[str]], **options: Any) -> Iterator[Any]:
        seen.extend(" ".join(words) for words in sentences)
        return read(self, sentences, **options)

    monkeypatch.setattr(LayerSource, "read", spied)
    embed(job())
    assert seen == ["Words are words .", "a b", "are many more", "one"]


def test_several_files_are_numbered_on(job: Jobs, tmp_path: Path) -> None:
    packed = tmp_path / "more.txt.gz"
    packed.write_bytes(gzip.compress(b"one more\n\n", mtime=0))
    embed(job(sentences=[packed, tmp_path / "text.txt"], forget_sentences=True))
    assert_close(hdf5(job().output), expected(job(), ["one more", "", *TEXT]))


def test_sentences_can_be_the_keys(job: Jobs, tmp_path: Path) -> None:
    text = tmp_path / "keys.txt"
    text.write_text("a b\none more\n")
    embed(job(sentences=[text], use_sentence_keys=True))
    with h5py.File(job().output) as file:
        assert set(file) == {"a b", "one more"}


def test_repeated_sentence_is_not_a_valid_key(job: Jobs, tmp_path: Path) -> None:
    text = tmp_path / "keys.txt"
    text.write_text("a b\na b\n")
    message = f"{text}:2: 'a b' cannot name a dataset (an earlier line has the same words)"
    with pytest.raises(DataError) as caught:
        embed(job(sentences=[text], use_sentence_keys=True))
    assert str(caught.value).startswith(message)


def test_zero_byte_is_not_a_valid_key(job: Jobs, tmp_path: Path) -> None:
    text = tmp_path / "keys.txt"
    text.write_text("a b\nn\0ul\n")
    with pytest.raises(DataError, match=r"keys.txt:2: .* \(HDF5 does not allow this name\)"):
        embed(job(sentences=[text], use_sentence_keys=True))


class Killed(BaseException):
    """Stands for a signal that no one can catch."""


@pytest.mark.parametrize("calls", [1, 2, 3])
@pytest.mark.parametrize("name", ["out.hdf5", "out.npy", "out"])
def test_a_resumed_job_leaves_the_same_bytes(
    job: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, calls: int
) -> None:
    form, whole = "hdf5" if name == "out.hdf5" else "npy", tmp_path / f"whole-{name}"
    output = tmp_path / name
    monkeypatch.setattr(corpus_vectors, "_BATCHES_PER_CHUNK", 1)
    embed(job(output=whole, format=form, max_tokens=3))
    write, left = VectorWriter.write, calls

    def killing(self: VectorWriter, vectors: np.ndarray, place: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        write(self, vectors, place)

    with monkeypatch.context() as patch:
        patch.setattr(VectorWriter, "write", killing)
        with pytest.raises(Killed):
            embed(job(output=output, format=form, max_tokens=3))
    with (tmp_path / f"{name}.partial/done-0.txt").open("a") as journal:
        journal.write("1")  # half a line
    assert not output.exists()
    embed(job(output=output, format=form, max_tokens=3, resume=True))
    assert list(contents(output).values()) == list(contents(whole).values())
    assert not (tmp_path / f"{name}.partial").exists()


def contents(path: Path) -> dict[str, bytes]:
    files = path.iterdir() if path.is_dir() else [path]
    return {file.name if path.is_dir() else "": file.read_bytes() for file in files}


def killed_at(owner: object, name: str, job: EmbeddingJob, patch: pytest.MonkeyPatch) -> None:
    """Start a job that is killed where it calls a function."""

    def killing(*_: object) -> None:
        raise Killed

    with patch.context() as patched:
        patched.setattr(owner, name, killing)
        with pytest.raises(Killed):
            embed(job)


def interrupted(job: EmbeddingJob, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_at(ResumableOutput, "finish", job, monkeypatch)


def test_different_job_does_not_resume(job: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(job(), monkeypatch)
    with pytest.raises(
        RunError, match="layers was 'all' and is 'average', dtype was 'float32' and is"
    ):
        embed(job(resume=True, layers="average", dtype="float16"))
    with pytest.raises(RunError, match="resume it with --resume, or start over with --force"):
        embed(job())


def test_a_job_that_has_computed_nothing_is_not_gone_on_with(
    job: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_at(VectorWriter, "write", job(), monkeypatch)
    embed(job(layers="top"))
    assert hdf5(job().output)[0].ndim == 2


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("form", ["hdf5", "npy"])
def test_resume_does_not_recompute_a_finished_result(
    job: Jobs, monkeypatch: pytest.MonkeyPatch, form: str, force: bool
) -> None:
    def killing(folder: Path) -> None:
        if any(folder.glob("done*")):
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(resumable_output, "remove_folder", killing)
        with pytest.raises(Killed):
            embed(job(format=form))
    before = contents(job().output)
    assert job().output.with_name("out.hdf5.partial").exists()
    with pytest.raises(RunError, match="already exists; pass --force to overwrite it"):
        embed(job(format=form))
    with pytest.raises(RunError, match="layers was 'all' and is '2'"):
        embed(job(format=form, layers="top", resume=True, force=force))
    monkeypatch.setattr(LayerSource, "read", None)
    embed(job(format=form, resume=True, force=force))
    assert contents(job().output) == before
    assert not job().output.with_name("out.hdf5.partial").exists()


def test_slow_path_reason_is_reported_once(
    job: Jobs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(process_group, "slow_path_reason", lambda: "install a compiler")
    embed(job())
    assert capsys.readouterr().err.count("which is slower: install a compiler\n") == 1


def test_a_sigterm_ends_a_job_that_resumes_to_the_same_bytes(
    job: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_vectors, "_BATCHES_PER_CHUNK", 1)
    embed(job(output=tmp_path / "whole", format="hdf5", max_tokens=3))
    mark_done = VectorWriter.mark_done

    def stopping(self: VectorWriter, chunk: int) -> None:
        mark_done(self, chunk)
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(VectorWriter, "mark_done", stopping)
        with pytest.raises(StoppedError, match="interrupted; resume with --resume"):
            embed(job(max_tokens=3))
    assert job().output.with_name("out.hdf5.partial").exists()
    embed(job(max_tokens=3, resume=True))
    assert contents(job().output) == contents(tmp_path / "whole")


def test_a_pipe_is_refused_as_it_is_read_twice(job: Jobs, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RunError, match="is a pipe, which can be read once only"):
        embed(job(sentences=[tmp_path / "pipe"]))


def test_running_job_is_reported_first(job: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(job(), monkeypatch)
    with (
        ResumableOutput(job().output, flag="--output-file").locked(),
        pytest.raises(RunError, match="another job is writing here; wait for it"),
    ):
        embed(job())


def test_a_link_to_a_result_is_replaced_by_the_result(job: Jobs, tmp_path: Path) -> None:
    embed(job(output=tmp_path / "other", format="npy"))
    before = contents(tmp_path / "other")
    (tmp_path / "linked").symlink_to("other")
    embed(job(output=tmp_path / "linked", format="npy", layers="top", force=True))
    assert npy(tmp_path / "linked")[0].ndim == 2
    assert contents(tmp_path / "other") == before


def test_a_result_is_replaced_by_force_alone(job: Jobs) -> None:
    embed(job())
    with pytest.raises(RunError, match="already exists; pass --force to overwrite it"):
        embed(job())
    embed(job(force=True, layers="top"))
    assert hdf5(job().output)[0].ndim == 2


def test_force_leaves_other_folders_alone(job: Jobs, tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    with pytest.raises(RunError, match="contains other files"):
        embed(job(output=tmp_path / "papers", format="npy", force=True))


def test_a_full_disk_is_seen_before_the_work(job: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")._replace(free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(RunError, match="more, and the disk has 100 bytes; choose another disk"):
        embed(job())
    assert not job().output.with_name("out.hdf5.partial").exists()


@pytest.mark.parametrize("name", ["vectors.npy", "done-0.txt"])
def test_full_disk_names_the_file_and_how_to_resume(
    job: Jobs, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def full(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == name:
            raise full_disk()

    embed(job(output=job().output.with_name("whole"), format="npy"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RunError, match=r"vectors.npy: No space left .* resume with --resume"):
            embed(job(format="npy"))
    embed(job(format="npy", resume=True))
    assert contents(job().output) == contents(job().output.with_name("whole"))


def test_unwritable_progress_is_reported(tmp_path: Path) -> None:
    (tmp_path / "vectors").touch()
    (tmp_path / "out.partial").mkdir()
    output = ResumableOutput(tmp_path / "out", flag="--output-file")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with VectorWriter(output, tmp_path / "vectors", 0) as writer:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        try:
            with pytest.raises(RunError, match=r"vectors: File too large; .* resume with --resume"):
                writer.mark_done(3)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "out.partial/done-0.txt").read_bytes()


def test_a_disk_that_fills_before_any_vector_names_the_folder(
    job: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise full_disk()

    monkeypatch.setattr(Hdf5Format, "create", full)
    with pytest.raises(RunError, match=r"out.hdf5.partial: No space left .* resume with --resume"):
        embed(job())


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_too_many_sentences_in_memory_are_refused(
    job: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "MAX_KEPT_SENTENCES", 3)
    with pytest.raises(DataError, match=r"text.txt:4: .* pass --forget-sentences, or --format npy"):
        embed(job())
    embed(job(forget_sentences=True))
    assert len(hdf5(job().output)) == len(TEXT)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("latin.txt", b"ok\nW\xf6rter\n", r"latin.txt:2: not valid UTF-8 text"),
        ("cut.gz", gzip.compress(b"many words here\n", mtime=0)[:-9], r"cut.gz: cannot be read"),
        ("plain.gz", b"words\n", r"plain.gz: cannot be read: Not a gzipped file"),
        ("empty.txt", b"", r"empty.txt: no lines to embed"),
    ],
)
def test_unreadable_text_is_named(
    job: Jobs, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        embed(job(sentences=[tmp_path / name]))


def test_unknown_layers_are_refused(job: Jobs) -> None:
    with pytest.raises(RunError, match=r"--layers: unknown layers 'tops'; .*'top'\?"):
        embed(job(layers="tops"))


def test_result_above_the_file_size_limit_is_refused_early(job: Jobs) -> None:
    before = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match="`ulimit -f` allows 4,096") as caught:
            embed(job())
    finally:
        setrlimit(RLIMIT_FSIZE, before)
    assert caught.value.filename == str(job().output)
    embed(job())


DOCUMENTS = ["a b c", "b", "", "a b c", "c a", ""]


@pytest.mark.parametrize("max_tokens", [3, 4096])
def test_documents_are_read_as_running_text(job: Jobs, tmp_path, capsys, max_tokens) -> None:
    (tmp_path / "text.txt").write_text("\n".join(DOCUMENTS) + "\n")
    (tmp_path / "more.txt").write_text("b c\n")
    files = [tmp_path / "text.txt", tmp_path / "more.txt"]
    source = FrozenBiLm(read_bilm(bilm_files(Path(job().bilm))))
    documents = [
        [line.split() for line in part] for part in (DOCUMENTS[:3], DOCUMENTS[3:], ["b c"])
    ]
    read = read_documents(source, documents, device=torch.device("cpu"))
    wanted = [layers[:, 1:-1].numpy() for _, layers in sorted(read, key=lambda pair: pair[0])]
    options = {"sentences": files, "state": "document", "max_tokens": max_tokens}
    embed(job(**options))
    assert_close(hdf5(job().output), wanted)
    embed(job(**options, format="npy", output=tmp_path / "out"))
    assert_close([part.swapaxes(0, 1) for part in npy(tmp_path / "out")], wanted)
    capsys.readouterr()
    embed(job(**options, output=Path("-")))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["words"] for line in lines] == [words for part in documents for words in part]
    for line, layers in zip(lines, wanted, strict=True):
        np.testing.assert_allclose(np.reshape(line["vectors"], layers.shape), layers, atol=2e-6)
    assert not np.allclose(wanted[0], wanted[3])  # equal lines of two documents


def test_a_file_that_is_read_twice_has_two_documents(job: Jobs, tmp_path, capsys) -> None:
    (tmp_path / "text.txt").write_text("a b c\nb\n")
    options = {"sentences": [tmp_path / "text.txt"] * 2, "state": "document"}
    embed(job(**options))
    vectors = hdf5(job().output)
    assert_close(vectors[2:], vectors[:2])
    capsys.readouterr()
    embed(job(**options, output=Path("-")))
    lines = [json.loads(line)["vectors"] for line in capsys.readouterr().out.splitlines()]
    assert lines[2:] == lines[:2]


def test_documents_over_several_pools_are_the_same(job: Jobs, tmp_path, monkeypatch) -> None:
    (tmp_path / "text.txt").write_text("\n".join(DOCUMENTS * 3) + "\n")
    options = {"state": "document", "max_tokens": 4}
    embed(job(**options))
    monkeypatch.setattr(corpus_vectors, "_BATCHES_PER_CHUNK", 1)
    embed(job(**options, output=tmp_path / "again.hdf5"))
    assert_close(hdf5(tmp_path / "again.hdf5"), hdf5(job().output))


def test_a_transformer_reads_no_documents(job: Jobs, transformer_folder) -> None:
    with pytest.raises(RunError, match="--state document: only a biLM reads documents"):
        embed(job(bilm=transformer_folder("bert"), state="document"))


@pytest.mark.parametrize("pool", ["none", "mean"])
@pytest.mark.parametrize("layers", ["all", "top", "1", "average"])
def test_an_accelerator_copies_what_is_written_alone(
    job: Jobs, tmp_path: Path, monkeypatch, layers: str, pool: str
) -> None:
    embed(job(layers=layers, pool=pool, dtype="float16", output=tmp_path / "cpu.hdf5"))
    copied, copy = list[tuple[torch.dtype, int]](), layer_source._copied

    def noted(batches: Iterator[Any]) -> Iterator[Any]:
        for batch, numbers in copy(batches):
            copied.append((numbers.dtype, numbers[..., 0, 0, 0].numel()))
            yield batch, numbers

    monkeypatch.setattr(layer_source, "_copied", noted)
    with accelerator_code():
        embed(job(layers=layers, pool=pool, dtype="float16", output=tmp_path / "gpu.hdf5"))
    dtype = torch.float16 if pool == "none" else torch.float32
    assert {*copied} == {(dtype, 3 if layers == "all" else 1)}
    for one, other in zip(hdf5(tmp_path / "gpu.hdf5"), hdf5(tmp_path / "cpu.hdf5"), strict=True):
        assert one.dtype == other.dtype == np.float16
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)


def test_documents_and_mixes_are_copied_whole(job: Jobs, tmp_path: Path, monkeypatch) -> None:
    options = {"layers": "top", "dtype": "float16", "format": "npy"}
    embed(job(**options, state="document", output=tmp_path / "cpu"))
    with accelerator_code():
        embed(job(**options, state="document", output=tmp_path / "gpu"))
        assert VectorReader(job(layers="top"), torch.device("cpu"))._reduce is not None
        mix = LayerSelector("mix", itemgetter(0), is_mix=True)
        monkeypatch.setattr(vector_reader, "layer_selector", lambda *_, **__: mix)
        assert VectorReader(job(), torch.device("cpu"))._reduce is None
    for one, other in zip(npy(tmp_path / "gpu"), npy(tmp_path / "cpu"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)


def test_batches_are_larger_on_an_accelerator(job: Jobs) -> None:
    reader = VectorReader(job(), torch.device("cpu"))
    assert reader.max_tokens == 4096
    with accelerator_code():
        assert VectorReader(job(), torch.device("cpu")).max_tokens == 16384
        assert VectorReader(job(max_tokens=7), torch.device("cpu")).max_tokens == 7


@pytest.mark.parametrize(
    ("name", "hint"), [("v.hd5", " Did you mean '.hdf5'?"), ("v.npz", " Did you"), ("v.txt", "")]
)
def test_an_unknown_suffix_is_refused(
    tmp_path: Path, name: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("a b\n")
    output = tmp_path / name
    command = ["embed", "mini", str(tmp_path / "a.txt"), "--output-file", str(output)]
    assert main(command) == 2
    assert f"or pass --format.{hint}" in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize(
    ("name", "is_folder"), [("v.HDF5", False), ("v.Npy", False), ("v.v2", True), ("v.1", True)]
)
def test_suffixes_in_capitals_and_versions_are_taken(
    tmp_path: Path, name: str, is_folder: bool
) -> None:
    (tmp_path / "a.txt").write_text("a b\n")
    output = tmp_path / name
    assert main(["embed", "mini", str(tmp_path / "a.txt"), "--output-file", str(output)]) == 0
    assert output.is_dir() is is_folder
