from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import elmo_framework
from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import bilm_files, save_bilm
from elmo_framework.config.parse import parse
from elmo_framework.data.text import DocumentPlace, TextBatch, collate_text
from elmo_framework.errors import DataError
from elmo_framework.layers import layer_source
from elmo_framework.layers.bilm_source import FrozenBiLm, open_frozen, open_layers
from elmo_framework.layers.documents import document_layers, read_documents, running_text

CPU = torch.device("cpu")
TRANSFORMER = {"num_heads": 2, "head_dim": 4, "feedforward_dim": 6}
KINDS: dict[str, dict[str, Any]] = {
    "elmo_lstm": {"cell_size": 6, "projection_dim": 4},
    "gru": {"cell_size": 5},
    "transformer": {**TRANSFORMER, "memory_size": 3},
    "bidirectional_transformer": {**TRANSFORMER, "num_layers": 2, "window_size": 7},
}
CAUSAL = [kind for kind in KINDS if kind != "bidirectional_transformer"]
DOCUMENT = (("It", "rained", "."), (), ("We", "stayed"), ("It", "rained", "."), ("Why", "?"))
OTHER = (("It", "rained", "."),)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    encoder = {"type": "char_cnn", "embedding_dim": 4, "filters": [[1, 4]], "num_highway": 0}
    root = tmp_path_factory.mktemp("documents")
    for kind, options in KINDS.items():
        torch.manual_seed(3)
        parts = {"token_encoder": {**encoder, "projection_dim": 4}}
        layers = {"context_layers": {"type": kind, **options}}
        save_bilm(parse(BiLm, parts | layers, source="test").build(), root / kind)
    return {kind: root / kind for kind in KINDS}


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, folders: dict[str, Path]) -> FrozenBiLm:
    return open_frozen(bilm_files(folders[request.param]))


def batch(*documents: Sequence[Sequence[str]]) -> TextBatch:
    places = [
        DocumentPlace(tuple(map(tuple, each)), number)
        for each in documents
        for number in range(len(each))
    ]
    return collate_text([place.sentences[place.number] for place in places], places=places)


def by_hand(source: FrozenBiLm, document: Sequence[Sequence[str]]) -> list[Tensor]:
    """Read sentence by sentence: forward from the first, backward from the last."""
    layers: dict[int, list[Tensor]] = {number: [] for number in range(len(document))}
    for direction in ("forward", "backward"):
        state, numbers = None, [number for number, words in enumerate(document) if words]
        for number in numbers if direction == "forward" else numbers[::-1]:
            words = ("<S>", *document[number], "</S>")
            read, state = source._read_part(words, direction, state, CPU)
            layers[number].append(read)
    return [
        torch.cat(each, dim=2) if each else torch.zeros(3, 0, source.dim)
        for each in layers.values()
    ]


def assert_equal(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def in_order(read: Any) -> list[Tensor]:
    return [layers for _, layers in sorted(read, key=lambda pair: pair[0])]


def test_boundaries_are_between_sentences() -> None:
    text = running_text(DOCUMENT[:3])
    assert text == ("It", "rained", ".", "</S>", "<S>", "We", "stayed")
    assert running_text([(), ()]) == ()


@pytest.mark.parametrize("kind", CAUSAL)
@pytest.mark.parametrize("max_tokens", [1, 4, 100])
def test_each_direction_continues_in_its_reading_order(kind, max_tokens, folders) -> None:
    source = open_frozen(bilm_files(folders[kind]))
    documents = [DOCUMENT, OTHER, ((),), DOCUMENT[2:]]
    read = read_documents(source, documents, max_tokens=max_tokens, device=CPU)
    assert_equal(in_order(read), [each for one in documents for each in by_hand(source, one)])


def test_batches_have_the_layers_of_whole_documents(source: FrozenBiLm) -> None:
    text, documents = batch(OTHER, DOCUMENT), document_layers(source)
    output = documents.layers(text)
    rows = zip(output.layers.unbind(1), output.mask, strict=True)
    read = in_order(read_documents(source, [OTHER, DOCUMENT], max_tokens=3, device=CPU))
    assert_equal([layers[:, mask] for layers, mask in rows], read)
    assert (output.layers[:, ~output.mask] == 0).all()
    # The same sentence has other vectors in another place.
    assert not torch.allclose(output.layers[1:, 0, :5], output.layers[1:, 1, :5])
    # Two mixes cost one pass.
    assert document_layers(source).layers(text) is output
    assert copy.deepcopy(documents) is documents
    again = pickle.loads(pickle.dumps(documents))
    assert_equal([again.layers(text).layers], [output.layers])


@pytest.mark.parametrize("kind", CAUSAL)
def test_no_direction_sees_what_it_has_not_read(kind: str, folders: dict[str, Path]) -> None:
    bilm = open_frozen(bilm_files(folders[kind])).bilm
    num_steps = len(running_text(DOCUMENT)) + 2
    words = torch.randn(1, num_steps, 4, requires_grad=True)
    output = bilm.contextualize(words, torch.ones(1, num_steps, dtype=torch.bool))
    top, weights = output.layers[-1, 0], torch.tensor([1.0, 2.0, -3.0, 4.0])
    for place in (4, 5, 9):  # the end of a sentence, the beginning of the next, and a later one
        for half, unread in ((slice(0, 4), slice(place + 1, None)), (slice(4, 8), slice(0, place))):
            (gradient,) = torch.autograd.grad(top[place, half] @ weights, words, retain_graph=True)
            sizes = gradient[0].abs().sum(dim=1)
            assert (sizes[unread] == 0).all()
            assert sizes[place - 1 if half.start == 0 else place + 1] > 0


def test_a_cache_has_documents(source: FrozenBiLm, folders: dict[str, Path]) -> None:
    folder = source.fingerprint.path.parent
    cached = open_layers(bilm_files(folder), cache="memory", cache_dtype="float32")
    documents = document_layers(cached)
    documents.precompute_documents(lambda: [DOCUMENT, OTHER], CPU)
    cached._reopen = None  # nothing is computed from here on
    text = batch(DOCUMENT, OTHER)
    assert_equal([documents.layers(text).layers], [document_layers(source).layers(text).layers])
    with pytest.raises(TypeError):
        documents.layers(batch(DOCUMENT[:3]))


def test_single_sentences_are_refused(source: FrozenBiLm) -> None:
    for ask in (
        lambda: document_layers(source).layers(collate_text([["It"]])),
        lambda: document_layers(source).precompute_documents(list, CPU),
    ):
        with pytest.raises(DataError, match="examples of this task are single sentences"):
            ask()


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_sentence_is_read_in_parts(
    kind: str, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    bilm = elmo_framework.load_bilm(folders[kind], device="cpu")
    words = [*"abcdefghijklmnopqrstu"]
    (whole,) = bilm.embed([words])
    parts = torch.zeros(whole.shape)
    for places, dims, layers in bilm.embed_in_parts(words, max_tokens=5):
        parts[:, places, dims] = torch.from_numpy(layers)
    (document,) = bilm.embed_document([words], max_tokens=5)
    assert_equal([parts, torch.from_numpy(document)], [torch.from_numpy(whole)] * 2)
    np.testing.assert_array_equal(bilm.embed([words], max_tokens=5)[0], whole)

    lengths = list[int]()
    read_long = FrozenBiLm.read_long

    def noted(source: FrozenBiLm, words: Sequence[str], **options: Any) -> Iterator[Tensor]:
        lengths.append(options["max_tokens"])
        return read_long(source, words, **options)

    monkeypatch.setattr(layer_source, "_LONGEST_WHOLE", 5)
    monkeypatch.setattr(FrozenBiLm, "read_long", noted)
    short = words[:2]
    long, other = bilm.embed([words, short], max_tokens=1000)
    assert lengths == [5]
    assert_equal([torch.from_numpy(long)], [torch.from_numpy(whole)])
    assert_equal([torch.from_numpy(other)], [torch.from_numpy(bilm.embed([short])[0])])
