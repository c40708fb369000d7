import errno
import multiprocessing
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock

from elmo_framework.bilm.files.load import bilm_files
from elmo_framework.data.text import TextBatch, collate_text
from elmo_framework.errors import DataError, RunError
from elmo_framework.layers import shared_source
from elmo_framework.layers.bilm_source import FrozenBiLm, open_frozen, open_layers
from elmo_framework.layers.cache import cached_layers, layer_cache, verified_blocks
from elmo_framework.layers.cache.cached_layers import CachedLayers
from elmo_framework.layers.cache.layer_cache import CacheKey
from elmo_framework.layers.cache.shards import Shards
from tests.numpy_bilm import NumpyBiLm

SENTENCES = [["Wörter", "are", "words"], [], ["a"], ["are", "many", "characters-and-more", "!"]]
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "cache"))
    return tmp_path / "cache" / "layers"


@pytest.fixture
def folder(numpy_bilm: NumpyBiLm, tmp_path: Path) -> Path:
    return numpy_bilm.save(tmp_path / "bilm")


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[str, ...], ...]]:
    """The batches that a biLM was run on."""
    batches, compute = [], FrozenBiLm.compute

    def noted(self: FrozenBiLm, text: TextBatch, *arguments):
        batches.append(text.words)
        return compute(self, text, *arguments)

    monkeypatch.setattr(FrozenBiLm, "compute", noted)
    return batches


def opened(
    folder: Path, *, in_memory: bool = False, dtype="float32", precision="float32"
) -> CachedLayers:
    """As a new process would open it."""
    shared_source._shared.clear()
    cache = "memory" if in_memory else "disk"
    files = bilm_files(folder)
    source = open_layers(files, cache=cache, cache_dtype=dtype, precision=precision)
    assert isinstance(source, CachedLayers)
    return source


def prepared(folder: Path, sentences=SENTENCES, **keys) -> CachedLayers:
    stored = opened(folder, **keys)
    stored.precompute(lambda: sentences, CPU)
    return stored


def plain(folder: Path, sentences=SENTENCES):
    return open_frozen(bilm_files(folder)).compute(collate_text(sentences))


def shard_of(cache: Path) -> Path:
    (shard,) = cache.glob("*/0*")
    return shard


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float16", 2e-3)])
def test_cached_layers_equal_computed_ones(folder: Path, in_memory, dtype, tolerance) -> None:
    expected = plain(folder)
    found = prepared(folder, in_memory=in_memory, dtype=dtype).layers(collate_text(SENTENCES))
    assert found.layers.dtype == torch.float32
    assert torch.equal(found.mask, expected.mask)
    scale = expected.layers.abs().max().item()
    torch.testing.assert_close(found.layers, expected.layers, rtol=0, atol=tolerance * scale)


def test_a_warm_layer_cache_neither_loads_nor_calls_the_bilm(folder, computed, monkeypatch) -> None:
    prepared(folder)
    computed.clear()
    monkeypatch.setattr(CachedLayers, "_load", lambda self: pytest.fail("loaded"))
    stored = prepared(folder, [*reversed(SENTENCES), SENTENCES[0]])
    for batch in (SENTENCES, SENTENCES[:1], [[]], [["a"], ["a"]]):
        stored.layers(collate_text(batch))
    assert computed == []


def test_each_distinct_sentence_is_computed_and_cached_once(folder: Path, cache, computed) -> None:
    prepared(folder, [["a", "b"], ["a", "b"], ["ab"], ["c"]])
    prepared(folder, [["c"], ["d"], ["ab"]])
    sentences = [words for batch in computed for words in batch]
    assert sorted(sentences) == [("a", "b"), ("ab",), ("c",), ("d",)]
    (report,) = layer_cache.reports()
    assert report.num_sentences == 4


@pytest.mark.parametrize(
    ("precision", "is_read"), [("float32", True), ("bfloat16", True), ("int8", False)]
)
def test_layers_of_an_earlier_arithmetic_are_computed_again(
    folder: Path, cache: Path, computed, precision: str, is_read: bool
) -> None:
    stored = prepared(folder, precision=precision)
    # The key of the first version, whose int8 had one scale for all rows.
    former = CacheKey(
        stored.fingerprint.digest, stored.num_layers, stored.dim, "float32", precision
    )
    (path,) = cache.glob("[!.]*")
    path.rename(cache / former.key)
    computed.clear()
    prepared(folder, precision=precision)
    assert (not computed) == is_read


def test_sentences_with_the_same_letters_are_distinguished(folder: Path) -> None:
    alike = [["1:a", "b"], ["1", ":ab"], ["a b"], ["a", "b"], ["\ud800"]]
    stored = prepared(folder, alike)
    found, expected = stored.layers(collate_text(alike)), plain(folder, alike)
    torch.testing.assert_close(found.layers, expected.layers, rtol=0, atol=1e-5)


def test_a_batch_with_an_uncached_sentence_is_not_cached(folder, computed) -> None:
    stored = prepared(folder)
    computed.clear()
    sentences = [["a"], ["un", "known"]]
    found = stored.layers(collate_text(sentences))
    assert torch.equal(found.layers, plain(folder, sentences).layers)
    stored.layers(collate_text(sentences))
    assert len(computed) == 3
    assert opened(folder).layers(collate_text([["a"]])) is not None


def test_computed_layers_are_rounded_like_cached_ones(folder: Path) -> None:
    stored = prepared(folder, dtype="float16")
    text = collate_text([["un", "known"], ["words"]])
    assert torch.equal(stored.layers(text).layers, plain(folder, text.words).layers.half().float())
    alone = stored.layers(collate_text(SENTENCES[:1])).layers[:, 0]
    beside = stored.layers(collate_text([SENTENCES[0], ["un", "known"]])).layers[:, 0]
    nearly_all = (alone == beside).double().mean()
    assert nearly_all > 0.99  # numbers between two roundings may fall to either side


def test_reading_alone_creates_no_layer_cache(folder: Path, cache: Path) -> None:
    opened(folder).layers(collate_text(SENTENCES))
    assert not cache.exists()


def test_the_last_batch_is_read_once(folder: Path) -> None:
    stored, text = prepared(folder), collate_text(SENTENCES)
    assert stored.layers(text) is stored.layers(text)
    assert stored.layers(collate_text(SENTENCES)) is not stored.layers(text)


def test_padding_changes_nothing(folder: Path) -> None:
    stored = prepared(folder)
    together = stored.layers(collate_text(SENTENCES)).layers
    for row, words in enumerate(SENTENCES):
        alone = stored.layers(collate_text([words])).layers[:, 0]
        assert torch.equal(together[:, row, : alone.shape[1]], alone)
        assert not together[:, row, alone.shape[1] :].any()


def test_stores_differ_by_weights_and_by_numbers(folder: Path, tmp_path: Path) -> None:
    other = NumpyBiLm.random(seed=1).save(tmp_path / "other")
    prepared(folder)
    prepared(folder, dtype="float16")
    prepared(other)
    assert len({report.key for report in layer_cache.reports()}) == 3


def test_large_builds_are_split_into_several_shards(folder, cache, monkeypatch) -> None:
    monkeypatch.setattr(cached_layers, "_SHARD_BYTES", 1)
    stored = prepared(folder)
    assert len(list(cache.glob("*/0*"))) == 3
    found = stored.layers(collate_text(SENTENCES)).layers
    torch.testing.assert_close(found, plain(folder).layers, rtol=0, atol=1e-5)


def test_the_size_is_shown_before_the_layers_are_computed(folder, capsys) -> None:
    prepared(folder, [["a", "b"], ["c"]], dtype="float16")
    dim = NumpyBiLm.random().layers(["a"]).shape[-1]
    log = capsys.readouterr().err.splitlines()[0]
    size = layer_cache.format_bytes((4 + 3) * 3 * dim * 2)
    assert log == f"layers of 2 sentences (3 words) are computed once and cached: {size}"


@pytest.mark.parametrize("name", ["vectors.bin", "entries.npy"])
def test_a_truncated_shard_is_built_again(folder: Path, cache, capsys, computed, name) -> None:
    prepared(folder)
    damaged = shard_of(cache)
    with (damaged / name).open("r+b") as file:
        file.truncate((damaged / name).stat().st_size - 4)
    computed.clear()
    stored = prepared(folder)
    found = stored.layers(collate_text(SENTENCES)).layers
    assert len(computed) == 1
    log = capsys.readouterr().err
    assert re.search(f"{damaged}: damaged: {name} .*; its sentences are computed again", log)
    torch.testing.assert_close(found, plain(folder).layers, rtol=0, atol=1e-5)
    computed.clear()
    prepared(folder)
    assert computed == []


def changed(path: Path, *, at: int = -1) -> Path:
    """Flip the bits of one byte of a file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 255
    path.write_bytes(content)
    return path


def test_a_shard_whose_checksums_have_a_damaged_header_is_built_again(
    folder: Path, cache, capsys, computed
) -> None:
    prepared(folder)
    # NumPy tokenizes a header that Python cannot parse, and this one ends too early for that.
    header = b"{'descr': ("
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    (shard_of(cache) / "checksums.npy").write_bytes(content)
    computed.clear()
    prepared(folder)
    assert len(computed) == 1
    assert "damaged: checksums.npy cannot be read; its sentences" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["vectors.bin", "entries.npy", "checksums.npy"])
def test_a_shard_with_a_changed_byte_is_built_again(
    folder: Path, cache, capsys, computed, name
) -> None:
    before = prepared(folder).layers(collate_text(SENTENCES)).layers
    damaged = shard_of(cache)
    changed(damaged / name)
    computed.clear()
    assert torch.equal(prepared(folder).layers(collate_text(SENTENCES)).layers, before)
    assert len(computed) == 1
    log = capsys.readouterr().err
    assert re.search(f"{damaged}: damaged: .* has changed; its sentences are computed again", log)
    computed.clear()
    prepared(folder)
    assert computed == []
    assert capsys.readouterr().err == ""


def test_a_shard_without_checksums_is_built_again(folder, cache, capsys, computed) -> None:
    prepared(folder)
    (shard_of(cache) / "checksums.npy").unlink()
    computed.clear()
    prepared(folder)
    assert "an earlier version wrote it without checksums; its sentences are" in (
        capsys.readouterr().err
    )
    assert len(computed) == 1


def test_reading_recomputes_the_sentences_of_a_damaged_shard(
    folder, cache, capsys, computed
) -> None:
    prepared(folder)
    damaged = changed(shard_of(cache) / "vectors.bin")
    computed.clear()
    stored, content = opened(folder), damaged.read_bytes()
    found = [stored.layers(collate_text([words])).layers for words in (["a"], ["a"])]
    expected = plain(folder, [["a"]]).layers
    assert all(torch.equal(layers, expected) for layers in found)
    assert len(computed) == 3
    assert capsys.readouterr().err.count("block 0 of vectors.bin has changed; its sentences") == 1
    assert damaged.read_bytes() == content


def test_only_the_blocks_that_are_read_are_verified(folder, cache, monkeypatch, capsys) -> None:
    monkeypatch.setattr(verified_blocks, "BLOCK_BYTES", 64)
    prepared(folder)  # the longest sentence first
    changed(shard_of(cache) / "vectors.bin", at=0)
    stored = prepared(folder, [["a"]])
    assert stored.layers(collate_text([["a"]])) is not None
    assert "damaged" not in capsys.readouterr().err
    stored.precompute(lambda: SENTENCES, CPU)
    assert "block 0 of vectors.bin has changed" in capsys.readouterr().err


def test_blocks_are_verified_once(folder, monkeypatch) -> None:
    prepared(folder)
    sums, crc32 = [], verified_blocks.crc32
    monkeypatch.setattr(verified_blocks, "crc32", lambda data: sums.append(1) or crc32(data))
    stored = prepared(folder)
    assert len(sums) == 1
    for _ in range(3):
        stored.layers(collate_text(SENTENCES))
    assert len(sums) == 1


def test_a_sound_shard_in_the_place_of_a_damaged_one_stays(folder, cache, computed) -> None:
    prepared(folder)
    shard = shard_of(cache)
    sound = (shard / "vectors.bin").read_bytes()
    changed(shard / "vectors.bin")
    late = opened(folder)
    late._shards.verify([["a"]])
    assert late._shards.damaged == [shard]
    # Another process has repaired the store in the meantime.
    (shard / "vectors.bin").write_bytes(sound)
    computed.clear()
    late.precompute(lambda: SENTENCES, CPU)
    assert computed == []
    assert shard.exists()


def test_leftovers_of_a_killed_builder_are_removed(folder, cache, computed) -> None:
    key = opened(folder)._key.key
    aside = cache / key / ".00000.writing"
    aside.mkdir(parents=True)
    (aside / "vectors.bin").write_bytes(b"half")
    assert not opened(folder)._shards
    prepared(folder)
    assert not aside.exists()
    assert shard_of(cache).name == "00000"


def test_a_builder_that_fails_leaves_the_finished_shards(folder, cache, monkeypatch) -> None:
    monkeypatch.setattr(cached_layers, "_SHARD_BYTES", 1)
    compute = FrozenBiLm.compute

    def failing(self, text, *arguments):
        if text.words == (("a",),):
            raise KeyboardInterrupt
        return compute(self, text, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(FrozenBiLm, "compute", failing)
        with pytest.raises(KeyboardInterrupt):
            prepared(folder)
    assert len(opened(folder)._shards) == 2
    assert len(prepared(folder)._shards) == 3


def test_a_full_disk_falls_back_to_computing(folder, cache, capsys, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "vectors.bin")

    monkeypatch.setattr(np, "save", full)
    stored = prepared(folder)
    log = capsys.readouterr().err
    assert "No space left on device: 'vectors.bin'; layers that are not cached are" in log
    assert torch.equal(stored.layers(collate_text(SENTENCES)).layers, plain(folder).layers)
    assert not list(cache.glob("*/*0*"))


def test_an_unusable_cache_folder_falls_back_to_computing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "file"))
    stored = prepared(folder)
    assert torch.equal(stored.layers(collate_text(SENTENCES)).layers, plain(folder).layers)


def test_a_cache_that_would_exceed_the_limit_is_not_built(
    folder, capsys, monkeypatch, computed
) -> None:
    monkeypatch.setenv("ELMO_CACHE_LIMIT", "1KB")
    prepared(folder)
    log = capsys.readouterr().err
    assert "layer caches may take 1.0 kB ($ELMO_CACHE_LIMIT) and use " in log
    assert "layers that are not cached are computed for each batch" in log
    assert computed == []
    prepared(folder, in_memory=True)
    assert computed != []


def test_an_invalid_size_limit_is_an_error(folder, monkeypatch) -> None:
    monkeypatch.setenv("ELMO_CACHE_LIMIT", "much")
    with pytest.raises(RunError, match=r"ELMO_CACHE_LIMIT is 'much'; allowed: as 500MB or 20GB"):
        prepared(folder)


@pytest.mark.parametrize(
    ("text", "size"), [("12", 12), ("1.5GB", 1_500_000_000), (" 20 mb ", 20_000_000)]
)
def test_limits_are_bytes_or_have_a_unit(monkeypatch, text: str, size: int) -> None:
    monkeypatch.setenv("ELMO_CACHE_LIMIT", text)
    assert layer_cache.size_limit() == size


def test_an_in_memory_layer_cache_writes_nothing(folder: Path, cache: Path, computed) -> None:
    stored = prepared(folder, in_memory=True)
    computed.clear()
    stored.layers(collate_text(SENTENCES))
    assert computed == []
    assert not cache.exists()


def _build(
    folder: Path, log: "multiprocessing.Queue[str]", counts: "multiprocessing.Queue[int]"
) -> None:
    torch.set_num_threads(1)  # the others did not come along into this process
    layer_cache.console.info = log.put
    calls, compute = [], FrozenBiLm.compute

    def slow(self: FrozenBiLm, text: TextBatch, *arguments):
        calls.append(1)
        return compute(self, text, *arguments)

    FrozenBiLm.compute = slow
    prepared(folder)
    counts.put(len(calls))


def test_of_two_processes_that_build_at_once_one_computes(folder: Path, cache: Path) -> None:
    context = multiprocessing.get_context("fork")
    log, counts = context.Queue(), context.Queue()
    builders = [
        context.Process(target=_build, args=(folder, log, counts), daemon=True) for _ in range(2)
    ]
    cache.mkdir(parents=True)
    lock = FileLock(cache / f".{opened(folder)._key.key}.lock")
    with lock:  # so that both find it taken
        for builder in builders:
            builder.start()
        for _ in builders:
            assert "waiting for it" in log.get(timeout=60)
    found = sorted(counts.get(timeout=60) for _ in builders)
    for builder in builders:
        builder.join()
    assert found == [0, 1]
    assert len(opened(folder)._shards) == 3


def test_a_waiting_builder_reports_it(folder: Path, cache: Path, capsys, monkeypatch) -> None:
    store = opened(folder)._layer_cache
    acquire, attempts = FileLock.acquire, []

    def taken(self: FileLock, *arguments, **keys):
        attempts.append(keys)
        if len(attempts) == 1:
            raise layer_cache.Timeout("lock")
        return acquire(self, *arguments, **keys)

    monkeypatch.setattr(layer_cache.FileLock, "acquire", taken)
    with store.locked():
        pass
    assert "another process computes the layers of this cache; waiting for it" in (
        capsys.readouterr().err
    )
    assert attempts == [{"timeout": 0}, {}]


def test_stores_are_cleared_one_by_one(folder: Path, cache: Path) -> None:
    prepared(folder)
    (report,) = layer_cache.reports()
    assert layer_cache.clear(report.key) == report.num_bytes
    assert layer_cache.reports() == []
    with pytest.raises(RunError, match="unknown layer cache"):
        layer_cache.clear(report.key)


def test_a_layer_cache_in_use_is_not_cleared(folder: Path, cache: Path) -> None:
    prepared(folder)
    (report,) = layer_cache.reports()
    with (
        FileLock(cache / f".{report.key}.lock"),
        pytest.raises(RunError, match="another process writes to this layer cache"),
    ):
        layer_cache.clear(report.key)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_layers_that_were_read_ahead_are_not_read_again(folder, dtype, monkeypatch) -> None:
    stored, text = prepared(folder, dtype=dtype), collate_text(SENTENCES)
    expected = stored.compute(text)
    ahead = stored.read_ahead(text)
    assert [layers.dtype for layers in ahead.read_ahead.values()] == [getattr(torch, dtype)]
    assert stored.read_ahead(ahead) is ahead
    monkeypatch.setattr(Shards, "read", lambda *_: pytest.fail("read"))
    found = stored.compute(ahead)
    assert torch.equal(found.layers, expected.layers)
    assert torch.equal(found.mask, expected.mask)
    assert found.layers.dtype == torch.float32


def test_what_is_not_cached_is_not_read_ahead(folder: Path) -> None:
    uncached = collate_text([["a"], ["uncached"]])
    assert prepared(folder).read_ahead(uncached) is uncached


def test_sources_read_ahead_side_by_side(folder: Path) -> None:
    first, second = prepared(folder), prepared(folder, dtype="float16")
    text = second.read_ahead(first.read_ahead(collate_text(SENTENCES)))
    assert len(text.read_ahead) == 2
    assert not torch.equal(first.compute(text).layers, second.compute(text).layers)


def test_a_carried_state_takes_no_layers_that_were_read_ahead(folder: Path, computed) -> None:
    stored = prepared(folder)
    text = stored.read_ahead(collate_text([["a"]]))
    state = stored.frozen.compute(text).state
    computed.clear()
    stored.compute(text, state)
    assert computed == [(("a",),)]


def test_numbers_that_float16_cannot_hold_are_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute = FrozenBiLm.compute

    def larger(self: FrozenBiLm, *arguments):
        output = compute(self, *arguments)
        return replace(output, layers=output.layers * 1e6)

    monkeypatch.setattr(FrozenBiLm, "compute", larger)
    not_cached = open_layers(bilm_files(folder), cache="memory")
    with pytest.raises(DataError, match="float16 cannot hold; set cache_dtype to float32"):
        not_cached.compute(collate_text([["a"]]))
    with pytest.raises(DataError, match="float16 cannot hold; set cache_dtype to float32"):
        prepared(folder, dtype="float16")
    prepared(folder, dtype="float32")
