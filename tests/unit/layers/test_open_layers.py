from pathlib import Path

import pytest
import torch

from elmo_framework.bilm.files.load import BiLmFiles, bilm_files, reference
from elmo_framework.data.text import collate_text
from elmo_framework.layers.bilm_source import FrozenBiLm, TrainedBiLm
from elmo_framework.layers.cache.cached_layers import CachedLayers
from elmo_framework.layers.open_layers import open_layers
from tests.numpy_bilm import NumpyBiLm

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


def test_trained_layers_follow_the_weights(files: BiLmFiles) -> None:
    source = open_layers(files, requires_grad=True)
    text = collate_text(SENTENCES, source.indexers)
    before = source.layers(text).layers.detach()
    for parameter in source.module.parameters():
        parameter.data.mul_(2)
    assert not torch.equal(source.layers(text).layers, before)
