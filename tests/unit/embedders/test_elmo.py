import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.published import PACKAGED
from elmo_framework.bilm.layer_output import LayerOutput, framed_mask
from elmo_framework.config.parse import parse
from elmo_framework.data.text import DocumentPlace, TextBatch, collate_text
from elmo_framework.embedders.elmo import ElmoTokenEmbedder
from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.errors import BuildError, DataError
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.model.part import Reference
from tests.numpy_bilm import NumpyBiLm

SENTENCES = [["Wörter", "are", "words"], [], ["a"], ["are", "many", "characters-and-more", "!"]]


class WordLengths(LayerSource):
    """Two layers without a biLM: the length of each word, and the same plus one."""

    sentences = ()

    def compute(self, text, state=None) -> LayerOutput:
        mask = framed_mask(text.mask)
        lengths = torch.zeros(mask.shape)
        for row, words in zip(lengths, text.words, strict=True):
            row[1 : len(words) + 1] = torch.tensor([float(len(word)) for word in words])
        layers = torch.stack([lengths, lengths + 1])[..., None].expand(-1, -1, -1, self.dim)
        return LayerOutput(layers * mask[:, :, None], mask, {})

    def precompute(self, sentences, device) -> None:
        self.sentences = sentences()


@pytest.fixture
def numpy_bilm() -> NumpyBiLm:
    return NumpyBiLm.random()


@pytest.fixture
def folder(numpy_bilm: NumpyBiLm, tmp_path: Path) -> Path:
    return numpy_bilm.save(tmp_path / "bilm")


def build(**keys) -> ElmoTokenEmbedder:
    raw = {
        "type": "elmo_token_embedder",
        **{k: str(v) if isinstance(v, Path) else v for k, v in keys.items()},
    }
    return parse(TokenEmbedder, raw, source="test").build()


def batch(embedder: ElmoTokenEmbedder, sentences=SENTENCES) -> TextBatch:
    return collate_text(sentences, embedder.indexers)


def test_words_are_the_mix_of_the_layers_of_the_numpy_reference(folder, numpy_bilm) -> None:
    embedder = build(bilm=folder, cache_dtype="float32").eval()
    weights = torch.tensor([0.5, -1.0, 2.0])
    for parameter, value in zip(embedder.mix.scalar_parameters, weights, strict=True):
        torch.nn.init.constant_(parameter, value.item())
    torch.nn.init.constant_(embedder.mix.gamma, 1.5)
    vectors, shares = embedder(batch(embedder)).detach(), weights.softmax(dim=0).numpy()
    assert vectors.shape == (4, 4, embedder.output_dim)
    for row, words in enumerate(SENTENCES):
        layers = numpy_bilm.layers(words)[:, 1:-1]
        expected = 1.5 * np.einsum("l,ltd->td", shares, layers)
        np.testing.assert_allclose(vectors[row, : len(words)], expected, atol=1e-5)
        assert (vectors[row, len(words) :] == 0).all()


def test_any_source_of_layers_can_be_embedded(folder: Path, monkeypatch) -> None:
    source = WordLengths(num_layers=2, dim=3)
    monkeypatch.setattr("elmo_framework.embedders.elmo.open_layers", lambda *_, **__: source)
    embedder = build(bilm=folder, mix="average").eval()
    embedder.precompute(lambda: SENTENCES, torch.device("cpu"))
    vectors = embedder(batch(embedder)).detach()
    assert source.sentences is SENTENCES
    assert vectors.shape == (4, 4, embedder.output_dim) == (4, 4, 3)
    for row, words in enumerate(SENTENCES):
        expected = [len(word) + 0.5 for word in words] + [0.0] * (4 - len(words))
        assert vectors[row, :, 0].tolist() == expected


def test_a_bilm_is_found_by_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGED, "mini", folder)
    named, placed = build(bilm="mini"), build(bilm=folder)
    assert named.reference == placed.reference


def test_layer_norm_counts_the_boundaries_as_allennlp_does(folder, numpy_bilm) -> None:
    mix = {"type": "scalar_mix", "layer_norm": True, "scalar_mix_parameters": [-9e10, 1, -9e10]}
    embedder = build(bilm=folder, cache_dtype="float32", mix=mix).eval()
    layers = [numpy_bilm.layers(words)[1] for words in SENTENCES if words]
    everything = np.concatenate(layers)
    expected = (layers[0][1:-1] - everything.mean()) / np.sqrt(everything.var() + 1e-12)
    vectors = embedder(batch(embedder)).detach()
    np.testing.assert_allclose(vectors[0, :3], expected, atol=1e-5)


def test_two_files_are_as_good_as_their_folder(folder: Path) -> None:
    files = {"options_file": folder / "options.json", "weight_file": folder / "weights.hdf5"}
    one, other = build(bilm=folder).eval(), build(**files).eval()
    assert torch.equal(one(batch(one)), other(batch(other)))


@pytest.mark.parametrize(
    "keys",
    [(), ("options_file",), ("weight_file",), ("bilm", "options_file"), ("bilm", "weight_file")],
)
def test_a_bilm_is_named_in_exactly_one_way(folder: Path, keys) -> None:
    paths = {
        "bilm": folder,
        "options_file": folder / "options.json",
        "weight_file": folder / "weights.hdf5",
    }
    given = ", ".join(keys) or "none of the keys of a biLM"
    with pytest.raises(BuildError) as caught:
        build(**{key: paths[key] for key in keys})
    assert str(caught.value) == (
        f"test: (top level): ElmoTokenEmbedder: given: {given}; "
        "allowed: bilm alone, or options_file and weight_file together"
    )


def test_dropout_and_projection_follow_the_mix(folder: Path) -> None:
    embedder = build(bilm=folder, projection_dim=3, dropout=0.9)
    plain = build(bilm=folder).eval()
    text = batch(embedder)
    expected = embedder.projection(plain(text)) * text.mask[:, :, None]
    assert embedder.output_dim == 3
    torch.testing.assert_close(embedder.eval()(text), expected)
    torch.manual_seed(0)
    dropped = torch.nn.functional.dropout(plain(text), 0.9)
    torch.manual_seed(0)
    trained = embedder.train()(text)
    torch.testing.assert_close(trained, embedder.projection(dropped) * text.mask[:, :, None])


def test_frozen_bilm_is_not_a_submodule(folder: Path) -> None:
    embedder = build(bilm=folder)
    embedder(batch(embedder)).sum().backward()
    names = ["mix.gamma", *(f"mix.scalar_parameters.{layer}" for layer in range(3))]
    assert sorted(embedder.state_dict()) == names
    assert sorted(name for name, _ in embedder.named_parameters()) == names
    assert all(parameter.grad is not None for parameter in embedder.parameters())
    assert not any(isinstance(module, BiLm) for module in embedder.modules())


def test_frozen_bilm_reports_its_files_and_size(folder: Path) -> None:
    embedder, weights = build(bilm=folder), NumpyBiLm.random().weights
    assert embedder.reference == Reference(folder / "weights.hdf5", embedder.reference.digest)
    assert embedder.num_frozen_parameters == sum(values.size for values in weights.values())


@pytest.mark.parametrize("cache", ["disk", "memory", "none"])
@pytest.mark.parametrize("name", ["deepcopy", "pickle"])
def test_a_copy_computes_the_same_bits(
    folder: Path, name: str, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "cache"))
    embedder = build(bilm=folder, cache=cache).eval()
    embedder.precompute(lambda: SENTENCES, torch.device("cpu"))
    expected = embedder(batch(embedder))
    copied = copy.deepcopy(embedder) if name == "deepcopy" else pickle.loads(pickle.dumps(embedder))
    assert torch.equal(copied(batch(embedder)), expected)


def test_a_pickle_refuses_another_bilm(folder: Path) -> None:
    NumpyBiLm.random(seed=1).save(folder)
    pickled = pickle.dumps(build(bilm=folder))
    NumpyBiLm.random(seed=2).save(folder)
    with pytest.raises(DataError, match=r"weights.hdf5: another encoder is here now than when"):
        pickle.loads(pickled)


def test_several_frozen_embedders_cost_one_pass(folder: Path, monkeypatch) -> None:
    passes, contextualize = [], BiLm.contextualize
    monkeypatch.setattr(BiLm, "contextualize", lambda *a: passes.append(1) or contextualize(*a))
    first, second = build(bilm=folder), build(bilm=folder, mix="average")
    text = batch(first)
    first(text)
    second(text)
    assert len(passes) == 1


def test_trained_bilm_is_a_submodule_with_gradients(folder: Path) -> None:
    embedder = build(bilm=folder, requires_grad=True)
    embedder(batch(embedder)).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in embedder.parameters())
    assert "bilm.token_encoder.char_cnn.table" in embedder.state_dict()
    assert embedder.reference is None
    assert embedder.num_frozen_parameters == 0


def test_copy_of_a_trained_bilm_reads_its_own_weights(folder: Path) -> None:
    embedder = build(bilm=folder, requires_grad=True).eval()
    expected = embedder(batch(embedder)).detach()
    for copied in (copy.deepcopy(embedder), pickle.loads(pickle.dumps(embedder))):
        assert torch.equal(copied(batch(copied)), expected)
        for parameter in copied.bilm.parameters():
            parameter.data.zero_()
        assert not torch.equal(copied(batch(copied)), expected)
        assert torch.equal(embedder(batch(embedder)), expected)


def test_each_embedder_names_its_own_files(folder: Path, numpy_bilm, tmp_path: Path) -> None:
    copy_of_files = numpy_bilm.save(tmp_path / "copy")
    first, second = build(bilm=folder), build(bilm=copy_of_files)
    assert first.source is second.source
    assert first.reference.path == folder / "weights.hdf5"
    assert second.reference == Reference(copy_of_files / "weights.hdf5", first.reference.digest)


def test_trained_bilm_weights_count_as_read_from_a_file(folder: Path) -> None:
    tuned, frozen = build(bilm=str(folder), requires_grad=True), build(bilm=str(folder))
    assert tuned.bilm is not None
    found = {id(parameter) for parameter in tuned.parameters_from_file()}
    assert found == {id(parameter) for parameter in tuned.bilm.parameters()} != set()
    assert list(frozen.parameters_from_file()) == []


def test_trained_and_frozen_bilms_have_equal_outputs(folder: Path) -> None:
    trained = build(bilm=folder, requires_grad=True).eval()
    frozen = build(bilm=folder, cache_dtype="float32").eval()
    torch.testing.assert_close(trained(batch(trained)), frozen(batch(frozen)))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_bilm_drops_nothing_in_training(folder: Path, requires_grad: bool) -> None:
    embedder = build(bilm=folder, requires_grad=requires_grad, dropout=0, cache="none").train()
    bilm = embedder.bilm or embedder.source.bilm
    first, second = embedder(batch(embedder)), embedder(batch(embedder))
    assert torch.equal(first, second)
    assert not any(module.training for module in bilm.modules())


def test_state_is_reset_by_default(folder: Path) -> None:
    embedder = build(bilm=folder).eval()
    first = embedder(batch(embedder))
    embedder(batch(embedder, [["other"], ["words"]]))
    assert torch.equal(embedder(batch(embedder)), first)
    assert embedder.carried_state() == {}


@pytest.mark.parametrize("requires_grad", [False, True])
def test_carried_rows_continue_from_their_last_words(
    folder: Path, numpy_bilm: NumpyBiLm, requires_grad: bool
) -> None:
    """A larger batch, one with an empty row, a smaller one and a larger one again."""
    embedder = build(bilm=folder, state="carry", mix="layer", requires_grad=requires_grad).eval()
    states = [None] * 3
    batches = [[["a"], ["b", "c"]], [["d"], [], ["e", "f", "g"]], [["h"]], [["i"], ["j"], ["k"]]]
    for sentences in batches:
        vectors = embedder(batch(embedder, sentences)).detach()
        for row, words in enumerate(sentences):
            if words:
                layers, states[row] = numpy_bilm.read(words, states[row])
                found = vectors[row, : len(words)]
                np.testing.assert_allclose(found, layers[-1, 1:-1], atol=1e-5)


def test_the_carried_state_can_be_put_aside_and_taken_back(folder: Path) -> None:
    embedder = build(bilm=folder, state="carry").eval()
    cold = embedder(batch(embedder))
    kept = embedder.carried_state()
    warm = embedder(batch(embedder))
    embedder.load_carried_state({})
    assert torch.equal(embedder(batch(embedder)), cold)
    embedder.load_carried_state(kept)
    assert torch.equal(embedder(batch(embedder)), warm)
    assert not torch.allclose(cold, warm)


def test_the_carried_state_is_not_saved_with_the_weights(folder: Path) -> None:
    embedder = build(bilm=folder, state="carry")
    before = list(embedder.state_dict())
    embedder(batch(embedder))
    assert list(embedder.state_dict()) == before


def test_a_model_is_sized_without_reading_weights(folder: Path) -> None:
    (folder / "weights.hdf5").unlink()
    with torch.device("meta"):
        embedder = build(bilm=folder, projection_dim=3)
    assert embedder.output_dim == 3
    assert embedder.num_frozen_parameters > 0
    assert all(parameter.is_meta for parameter in embedder.parameters())


def test_a_wrong_mix_names_its_place(folder: Path) -> None:
    with pytest.raises(BuildError, match=r"test: mix: SingleLayerMix: index is 3"):
        build(bilm=folder, mix={"type": "layer", "index": 3})


def test_tuned_layers_are_listed_from_the_bottom(folder: Path) -> None:
    embedder = build(bilm=folder, requires_grad=True)
    words, *context = embedder.layer_parameters()
    assert {id(each) for each in words} == {
        id(each) for each in embedder.bilm.token_encoder.parameters()
    }
    assert len(context) == embedder.source.num_layers - 1
    listed = {id(each) for layer in [words, *context] for each in layer}
    assert listed == {id(each) for each in embedder.bilm.parameters()}
    assert build(bilm=folder).layer_parameters() == ()


def test_sentences_of_a_document_continue_each_other(folder: Path) -> None:
    document = tuple(tuple(words) for words in SENTENCES)
    places = [DocumentPlace(document, number) for number in range(len(document))]
    embedder = build(bilm=folder, state="document", cache="memory", dropout=0.0).eval()
    embedder.precompute_documents(lambda: [document], torch.device("cpu"))
    vectors = embedder(collate_text(SENTENCES, places=places))
    alone = build(bilm=folder, cache="none", dropout=0.0).eval()(collate_text(SENTENCES))
    assert vectors.shape == alone.shape
    assert not torch.allclose(vectors[0], alone[0], atol=1e-2)
    assert (vectors[1] == 0).all()
    with pytest.raises(BuildError, match="state 'document' is for a frozen biLM"):
        build(bilm=folder, state="document", requires_grad=True)
