import gc
from pathlib import Path

import pytest
import torch

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import BiLmFiles, bilm_files, read_bilm, reference
from elmo_framework.data.text import TextBatch, collate_text
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.layers.bilm_source import FrozenBiLm, TrainedBiLm, open_frozen, open_layers
from elmo_framework.layers.cache.cached_layers import CachedLayers
from tests.numpy_bilm import NumpyBiLm


def loaded(files: BiLmFiles) -> FrozenBiLm:
    return open_frozen(files)


@pytest.fixture
def frozen(numpy_bilm: NumpyBiLm, tmp_path: Path) -> FrozenBiLm:
    return loaded(bilm_files(numpy_bilm.save(tmp_path / "frozen")))


@pytest.fixture
def num_passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Its length is how often a biLM was run."""
    passes, contextualize = [], BiLm.contextualize

    def counted(self: BiLm, *arguments):
        passes.append(1)
        return contextualize(self, *arguments)

    monkeypatch.setattr(BiLm, "contextualize", counted)
    return passes


def batch(frozen: FrozenBiLm) -> TextBatch:
    return collate_text([["a", "b"], ["c"]], [frozen.bilm.token_encoder.indexer])


def test_equal_files_are_loaded_once(frozen: FrozenBiLm, numpy_bilm, tmp_path: Path) -> None:
    assert loaded(bilm_files(numpy_bilm.save(tmp_path / "copy"))) is frozen


def test_other_files_are_another_bilm(frozen: FrozenBiLm, tmp_path: Path) -> None:
    other = NumpyBiLm.random(seed=1).save(tmp_path / "other")
    assert loaded(bilm_files(other)) is not frozen


def test_one_without_weights_is_never_taken_for_one_with_them(
    frozen: FrozenBiLm, tmp_path: Path
) -> None:
    files = bilm_files(tmp_path / "frozen")
    with torch.device("meta"):
        checked = loaded(files)
    assert checked is not frozen
    assert loaded(files) is frozen


def test_unused_bilms_are_freed(tmp_path: Path) -> None:
    files = bilm_files(NumpyBiLm.random(seed=2).save(tmp_path))
    held = loaded(files)
    held.bilm.marked = True
    del held
    gc.collect()
    assert not hasattr(loaded(files).bilm, "marked")


def test_the_same_batch_is_read_once(frozen: FrozenBiLm, num_passes) -> None:
    text = batch(frozen)
    assert frozen.layers(text) is frozen.layers(text)
    assert len(num_passes) == 1


def test_an_equal_batch_is_another_batch(frozen: FrozenBiLm, num_passes) -> None:
    first, second = frozen.layers(batch(frozen)), frozen.layers(batch(frozen))
    assert len(num_passes) == 2
    assert torch.equal(first.layers, second.layers)


def test_a_batch_with_an_initial_state_is_not_cached(frozen, num_passes) -> None:
    text = batch(frozen)
    plain = frozen.layers(text)
    carried = frozen.layers(text, plain.state)
    assert not torch.allclose(carried.layers, plain.layers)
    assert frozen.layers(text) is plain
    assert len(num_passes) == 2


def test_layers_have_no_gradient(frozen: FrozenBiLm) -> None:
    assert not frozen.layers(batch(frozen)).layers.requires_grad


SENTENCES = [["Wörter", "are", "words"], [], ["a"]]
KINDS = {
    FrozenBiLm: {},
    CachedLayers: {"cache": "memory", "cache_dtype": "float32"},
    TrainedBiLm: {"requires_grad": True},
}


@pytest.fixture
def files(tmp_path: Path) -> BiLmFiles:
    return bilm_files(NumpyBiLm.random().save(tmp_path))


@pytest.mark.parametrize("kind", KINDS)
def test_sources_have_the_same_shape_and_layers(files: BiLmFiles, kind: type) -> None:
    frozen, source = open_layers(files), open_layers(files, **KINDS[kind])
    assert type(source) is kind
    assert (source.num_layers, source.dim) == (frozen.num_layers, frozen.dim)
    text = collate_text(SENTENCES, source.indexers)
    source.precompute(lambda: SENTENCES, torch.device("cpu"))
    found, expected = source.layers(text), frozen.layers(text)
    assert found.layers.requires_grad is (kind is TrainedBiLm)
    assert torch.equal(found.mask, expected.mask)
    torch.testing.assert_close(found.layers.detach(), expected.layers)
    carried = source.layers(text, expected.state).layers.detach()
    torch.testing.assert_close(carried, frozen.layers(text, expected.state).layers)
    assert not torch.allclose(carried, expected.layers)


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_weights_have_a_fingerprint_and_a_size(files: BiLmFiles, kind: type) -> None:
    source = open_layers(files, **KINDS[kind])
    if kind is TrainedBiLm:
        assert (source.fingerprint, source.num_frozen_parameters) == (None, 0)
        assert source.module is not None
    else:
        size = sum(weights.size for weights in NumpyBiLm.random().weights.values())
        assert (source.fingerprint, source.num_frozen_parameters) == (reference(files), size)
        assert source.module is None


def test_sources_are_shared_unless_trained_or_opened_otherwise(files: BiLmFiles) -> None:
    options = [{}, {"cache": "disk"}, {"cache": "memory"}, {"precision": "bfloat16"}]
    sources = [open_layers(files, **each) for each in options]
    assert [open_layers(files, **each) for each in options] == sources
    assert len({*sources, open_layers(files, cache="disk", cache_dtype="float32")}) == 5
    assert open_layers(files, cache_dtype="float32") is sources[0]
    trained = [open_layers(files, requires_grad=True) for _ in range(2)]
    assert trained[0] is not trained[1]
    with accelerator_code():  # prepares other products, whose last bits differ
        assert open_layers(files) is not sources[0]


def test_trained_layers_follow_the_weights(files: BiLmFiles) -> None:
    source = open_layers(files, requires_grad=True)
    text = collate_text(SENTENCES, source.indexers)
    before = source.layers(text).layers.detach()
    for parameter in source.module.parameters():
        parameter.data.mul_(2)
    assert not torch.equal(source.layers(text).layers, before)


def test_a_batch_is_read_again_after_its_weights_have_changed(
    numpy_bilm: NumpyBiLm, tmp_path: Path
) -> None:
    bilm = read_bilm(bilm_files(numpy_bilm.save(tmp_path / "built")))
    source = FrozenBiLm(bilm)
    text = batch(source)
    before = source.layers(text).layers.clone()
    assert source.layers(text) is source.layers(text)
    for parameter in bilm.parameters():
        parameter.mul_(0.5)
    after = source.layers(text).layers
    assert not torch.allclose(after, before, atol=1e-3)
    torch.testing.assert_close(after, source.layers(batch(source)).layers)
