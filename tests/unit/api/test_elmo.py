from pathlib import Path

import numpy as np
import pytest
import torch

from elmo_framework import Elmo, batch_to_ids
from elmo_framework.bilm.files.load import bilm_files, read_bilm
from elmo_framework.bilm.layer_mix import normalize_layers
from tests.numpy_bilm import NumpyBiLm
from tests.simulated_device import DEVICE, simulated_device

SENTENCES = [["Wörter", "are", "words"], ["a"], ["are", "many", "characters-and-more", "!"]]
BATCHES = [SENTENCES, [["are"], ["words", "!"]], [["a", "a"], ["a"], ["!"], ["many", "words"]]]
WORDS = ["", *sorted({word for batch in BATCHES for words in batch for word in words})]


def make(folder: Path, num_output_representations: int = 1, **keys) -> Elmo:
    files = folder / "options.json", folder / "weights.hdf5"
    return Elmo(*files, num_output_representations, **keys).eval()


def mixed(layers: np.ndarray, weights=(0.0, 0.0, 0.0), gamma: float = 1.0) -> np.ndarray:
    shares = np.exp(weights) / np.exp(weights).sum()
    return gamma * np.einsum("l,ltd->td", shares, layers)


def word_ids(batch: list[list[str]]) -> torch.Tensor:
    rows = [torch.tensor([WORDS.index(word) for word in words]) for words in batch]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def require_rows(vectors: torch.Tensor, expected: list[np.ndarray]) -> None:
    for row, values in zip(vectors.detach().numpy(), expected, strict=True):
        np.testing.assert_allclose(row[: len(values)], values, atol=1e-5)
        assert (row[len(values) :] == 0).all()


def test_ids_are_fifty_a_word_and_zero_at_padding() -> None:
    ids = batch_to_ids([["é", "<S>"], ["a"]])
    assert ids.shape == (2, 2, 50)
    assert ids.dtype == torch.long
    assert ids[0, 0].tolist() == [259, 0xC3 + 1, 0xA9 + 1, 260, *[261] * 46]
    assert ids[0, 1].tolist() == [259, 257, 260, *[261] * 47]
    assert ids[1, 1].tolist() == [0] * 50


def test_vectors_match_layer_mixes_of_the_numpy_reference(folder, numpy_bilm) -> None:
    elmo = make(folder, 2)
    names = [f"scalar_mix_{k}.scalar_parameters.{j}" for k in range(2) for j in range(3)]
    assert set(elmo.state_dict()) == {*names, "scalar_mix_0.gamma", "scalar_mix_1.gamma"}
    values = [0.5, -1.0, 2.0, 0.1, 0.2, 0.3]
    weights = {name: torch.tensor([value]) for name, value in zip(names, values, strict=True)}
    gammas = {"scalar_mix_0.gamma": torch.tensor([1.5]), "scalar_mix_1.gamma": torch.ones(1)}
    elmo.load_state_dict(weights | gammas)
    output = elmo(batch_to_ids(SENTENCES))
    layers = [numpy_bilm.layers(words)[:, 1:-1] for words in SENTENCES]
    first, second = output["elmo_representations"]
    require_rows(first, [mixed(each, values[:3], 1.5) for each in layers])
    require_rows(second, [mixed(each, values[3:]) for each in layers])
    assert output["mask"].tolist() == [[True] * 3 + [False], [True] + [False] * 3, [True] * 4]
    assert elmo.get_output_dim() == first.shape[2] == 8


def test_sentence_boundaries_are_returned_on_request(folder: Path, numpy_bilm: NumpyBiLm) -> None:
    output = make(folder, keep_sentence_boundaries=True)(batch_to_ids(SENTENCES))
    expected = [mixed(numpy_bilm.layers(words)) for words in SENTENCES]
    require_rows(output["elmo_representations"][0], expected)
    assert output["mask"].sum(dim=1).tolist() == [5, 3, 6]


def test_fixed_layer_weights_are_not_trained(folder: Path, numpy_bilm: NumpyBiLm) -> None:
    elmo = make(folder, scalar_mix_parameters=[-90_000_000_000, 1, -90_000_000_000])
    vectors = elmo(batch_to_ids(SENTENCES))["elmo_representations"][0]
    require_rows(vectors, [numpy_bilm.layers(words)[1, 1:-1] for words in SENTENCES])
    assert not any(parameter.requires_grad for parameter in elmo.parameters())


def test_layer_norm_counts_the_boundaries(folder: Path) -> None:
    keys = {"scalar_mix_parameters": [-9e10, 1.0, -9e10]}
    plain = make(folder, keep_sentence_boundaries=True, **keys)(batch_to_ids(SENTENCES))
    layer, mask = plain["elmo_representations"][0], plain["mask"]
    expected = normalize_layers(layer[None], mask)[0, :, 1:-1] * mask[:, 2:, None]
    output = make(folder, do_layer_norm=True, **keys)(batch_to_ids(SENTENCES))
    torch.testing.assert_close(output["elmo_representations"][0], expected)


def test_leading_dimensions_are_flattened_and_restored(folder: Path) -> None:
    elmo, ids = make(folder), batch_to_ids([*SENTENCES, ["one", "more"]])
    flat, nested = elmo(ids), elmo(ids.view(2, 1, 2, *ids.shape[1:]))
    vectors = nested["elmo_representations"][0]
    assert vectors.shape == (2, 1, 2, 4, 8)
    torch.testing.assert_close(vectors.flatten(0, 2), flat["elmo_representations"][0])
    assert torch.equal(nested["mask"].flatten(0, 2), flat["mask"])


@pytest.mark.parametrize("keys", [{}, {"vocab_to_cache": WORDS}])
def test_carried_state_matches_the_numpy_reference(folder, numpy_bilm, keys) -> None:
    elmo, states = make(folder, 2, state="carry", **keys), [None] * 4
    for batch in BATCHES:
        expected = []
        for row, words in enumerate(batch):
            layers, states[row] = numpy_bilm.read(words, states[row])
            expected.append(mixed(layers[:, 1:-1]))
        words = word_ids(batch) if keys else None
        require_rows(elmo(batch_to_ids(batch), words)["elmo_representations"][1], expected)


def test_empty_row_keeps_its_carried_state(folder: Path) -> None:
    elmo, other = make(folder, state="carry"), make(folder, state="carry")
    for each in (elmo, other):
        each(batch_to_ids(SENTENCES))
    elmo(batch_to_ids([["a"], []]))
    ids = batch_to_ids([["a"], ["words"]])
    one, two = elmo(ids)["elmo_representations"][0], other(ids)["elmo_representations"][0]
    torch.testing.assert_close(one[1], two[1])
    assert not torch.allclose(one[0], two[0])


def test_states_are_reset_and_warmed_up(folder: Path) -> None:
    elmo, ids = make(folder, state="carry"), batch_to_ids(SENTENCES)
    cold = elmo(ids)["elmo_representations"][0]
    warm = elmo(ids)["elmo_representations"][0]
    assert not torch.allclose(cold, warm)
    elmo.reset_states()
    torch.testing.assert_close(elmo(ids)["elmo_representations"][0], cold)
    elmo.reset_states()
    elmo.warm_up(SENTENCES)
    torch.testing.assert_close(elmo(ids)["elmo_representations"][0], warm)
    with pytest.raises(ValueError, match="warm_up needs state='carry'"):
        make(folder).warm_up(SENTENCES)


def test_nothing_is_carried_unless_asked_for(folder: Path) -> None:
    elmo, ids = make(folder), batch_to_ids(SENTENCES)
    first, second = elmo(ids), elmo(ids)
    assert torch.equal(*(each["elmo_representations"][0] for each in (first, second)))


def test_cached_words_have_the_vectors_of_their_characters(folder: Path) -> None:
    elmo, ids = make(folder, vocab_to_cache=WORDS), batch_to_ids(SENTENCES)
    plain = make(folder)(ids)
    # The characters are not read: other ones change nothing.
    cached = elmo(torch.ones_like(ids), word_ids(SENTENCES))
    for one, other in zip(plain.values(), cached.values(), strict=True):
        torch.testing.assert_close(one, other)
    nested = elmo(ids[None], word_ids(SENTENCES)[None])["elmo_representations"][0]
    torch.testing.assert_close(nested[0], plain["elmo_representations"][0])


def test_changed_weights_of_a_module_are_read_again(folder: Path) -> None:
    bilm = read_bilm(bilm_files(folder))
    elmo, ids = Elmo(module=bilm).eval(), batch_to_ids(SENTENCES)
    before = elmo(ids)["elmo_representations"][0]
    for parameter in bilm.parameters():
        parameter.mul_(0.5)
    after = elmo(ids)["elmo_representations"][0]
    assert not torch.allclose(after, before, atol=1e-3)
    torch.testing.assert_close(after, Elmo(module=bilm).eval()(ids)["elmo_representations"][0])


def test_cached_words_are_computed_again_after_their_weights_have_changed(folder: Path) -> None:
    bilm = read_bilm(bilm_files(folder))
    elmo, ids = Elmo(module=bilm, vocab_to_cache=WORDS).eval(), batch_to_ids(SENTENCES)
    for factor in (1.0, 0.5):  # also before the first batch
        for parameter in bilm.parameters():
            parameter.mul_(factor * 1.5)
        cached, read = elmo(ids, word_ids(SENTENCES)), elmo(ids)
        torch.testing.assert_close(cached["elmo_representations"], read["elmo_representations"])


def test_cached_words_are_computed_on_the_device_of_the_batch(folder: Path) -> None:
    elmo, ids = make(folder, vocab_to_cache=WORDS), batch_to_ids(SENTENCES)
    expected = elmo(ids)["elmo_representations"][0]
    elmo = make(folder, vocab_to_cache=WORDS)
    with simulated_device():
        inputs = ids.to(DEVICE), word_ids(SENTENCES).to(DEVICE)
        vectors = elmo.to(DEVICE)(*inputs)["elmo_representations"][0].cpu()
    torch.testing.assert_close(vectors, expected)


def test_uncached_word_falls_back_to_characters(folder: Path) -> None:
    elmo, ids = make(folder, vocab_to_cache=WORDS), batch_to_ids(SENTENCES)
    unknown = word_ids(SENTENCES)
    unknown[0, 0] = len(WORDS)
    expected = make(folder)(ids)["elmo_representations"][0]
    torch.testing.assert_close(elmo(ids, unknown)["elmo_representations"][0], expected)


def test_allennlp_weights_load_alone_and_inside_a_model(folder: Path) -> None:
    elmo = make(folder)
    weights = {name: value + 1 for name, value in elmo.state_dict().items()}
    foreign = {"_elmo_lstm._token_embedder._projection.weight": torch.zeros(2)}
    elmo.load_state_dict(weights | foreign)
    assert elmo.scalar_mix_0.gamma.item() == 2
    model = torch.nn.ModuleDict({"inner": make(folder)})
    model.load_state_dict({f"inner.{name}": value for name, value in (weights | foreign).items()})
    assert model["inner"].scalar_mix_0.gamma.item() == 2
    with pytest.raises(RuntimeError, match="_elmo_lstm"):
        make(folder, requires_grad=True).load_state_dict(weights | foreign)


def test_a_frozen_bilm_is_shared_and_no_part_of_the_module(folder: Path) -> None:
    one, other = make(folder), make(folder)
    assert one._bilm is other._bilm
    assert one.bilm is None
    one(batch_to_ids(SENTENCES))["elmo_representations"][0].sum().backward()
    assert all(parameter.grad is not None for parameter in one.parameters())
    assert one.train()._bilm.training is False


def test_a_bilm_that_is_trained_is_part_of_the_module(folder: Path) -> None:
    elmo = make(folder, requires_grad=True).train()
    elmo(batch_to_ids(SENTENCES))["elmo_representations"][0].square().sum().backward()
    assert any(name.startswith("bilm.") for name in elmo.state_dict())
    assert all(parameter.grad is not None for parameter in elmo.parameters())
    with pytest.raises(ValueError, match="vocab_to_cache holds vectors that training would leave"):
        make(folder, requires_grad=True, vocab_to_cache=WORDS)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_module_replaces_the_files(folder: Path, requires_grad: bool) -> None:
    bilm = read_bilm(bilm_files(folder), requires_grad=requires_grad)
    elmo = Elmo(None, None, 1, module=bilm).eval()
    assert (elmo.bilm is bilm) is requires_grad
    ids = batch_to_ids(SENTENCES)
    expected = make(folder)(ids)["elmo_representations"][0]
    torch.testing.assert_close(elmo(ids)["elmo_representations"][0], expected)
    with pytest.raises(ValueError, match="module replaces options_file and weight_file"):
        Elmo("options.json", None, 1, module=bilm)


def test_dropout_is_drawn_for_each_representation(folder: Path) -> None:
    elmo = make(folder, 2, dropout=0.9).train()
    first, second = elmo(batch_to_ids(SENTENCES))["elmo_representations"]
    assert not torch.equal(first, second)
    assert (first[0, :3] == 0).float().mean() > 0.6


def test_padding_and_other_rows_change_nothing(folder: Path) -> None:
    elmo = make(folder)
    together = elmo(batch_to_ids(SENTENCES))["elmo_representations"][0]
    for row, words in enumerate(SENTENCES):
        alone = elmo(batch_to_ids([words]))["elmo_representations"][0][0]
        torch.testing.assert_close(together[row, : len(words)], alone, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"state": "cary"}, "state is 'cary'; choose from carry, reset. Did you mean 'carry'?"),
        ({"num_output_representations": 0}, "num_output_representations is 0; allowed: 1 or more"),
        (
            {"scalar_mix_parameters": [1.0]},
            "scalar_mix_parameters is [1.0] for 3 layers; it takes one number for each",
        ),
    ],
)
def test_wrong_arguments_are_named(folder: Path, keys, message: str) -> None:
    with pytest.raises(ValueError, match=r"allowed|choose from|one number") as caught:
        make(folder, **keys)
    assert str(caught.value) == message


def test_both_files_are_needed() -> None:
    with pytest.raises(ValueError, match="pass both options_file and weight_file"):
        Elmo("options.json", None, 1)


def test_boundaries_at_padding_are_zero_with_layer_norm(folder: Path) -> None:
    elmo = make(folder, keep_sentence_boundaries=True, do_layer_norm=True)
    output = elmo(batch_to_ids(SENTENCES))
    assert not output["elmo_representations"][0][~output["mask"]].any()


def test_ids_are_as_wide_as_the_bilm_reads(tmp_path: Path) -> None:
    numpy_bilm = NumpyBiLm.random(max_characters_per_token=12, projection_dim=4)
    elmo = make(numpy_bilm.save(tmp_path / "narrow"))
    with pytest.raises(ValueError, match=r"inputs has 50 ids a word, and this biLM reads 12; .*12"):
        elmo(batch_to_ids(SENTENCES))
    vectors = elmo(batch_to_ids(SENTENCES, max_characters=12))["elmo_representations"][0]
    require_rows(vectors, [mixed(numpy_bilm.layers(words)[:, 1:-1]) for words in SENTENCES])
