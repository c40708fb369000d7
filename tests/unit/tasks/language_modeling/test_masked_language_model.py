from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

import elmo_framework
from elmo_framework.bilm.files.load import bilm_files, read_bilm
from elmo_framework.config.parse import parse
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.errors import BuildError, DataError
from elmo_framework.model.model import Model
from elmo_framework.tasks.language_modeling.masked_language_model import (
    MaskedLanguageModel,
    rows_of,
)
from tests.unit.tasks.language_modeling.test_bi_language_model import TEXT, endless, source_of
from tests.unit.tasks.language_modeling.toy import examples

LAYERS = {"type": "bidirectional_transformer", "num_heads": 2, "head_dim": 4, "num_layers": 2}


def model_of(**keys: object) -> MaskedLanguageModel:
    torch.manual_seed(0)
    raw = {
        "type": "masked_lm",
        "token_encoder": {"type": "char_cnn", "embedding_dim": 4, "filters": [[1, 8]]}
        | {"num_highway": 0, "projection_dim": 6, "max_characters_per_token": 10},
        "context_layers": {**LAYERS, "feedforward_dim": 7},
        "num_samples": None,
        **keys,
    }
    vocabularies = Vocabularies(MaskedLanguageModel.task.count(examples(TEXT)))
    built = parse(Model, raw, source="test.jsonnet").build(vocabularies=vocabularies)
    assert isinstance(built, MaskedLanguageModel)
    return built


def characters(model: MaskedLanguageModel, words: list[str]) -> torch.Tensor:
    return torch.from_numpy(model.bilm.token_encoder.indexer.ids(words))


def test_rows_are_text_from_left_to_right_with_its_own_ids() -> None:
    model = model_of()
    indexer, targets = model.indexers
    batch = next(endless(source_of(model, 2, 8)))
    rows = rows_of(batch)
    spelled = {tuple(indexer.ids([w])[0]): w for s in TEXT for w in s.split()}
    text = {tuple(s.split()) for s in TEXT}
    num_words = 0
    for words, own, mask in zip(*rows, strict=True):
        row = [spelled.get(tuple(batch.characters[w].tolist()), "|") for w in words[mask]]
        for word, target in zip(row, own[mask].tolist(), strict=True):
            if word != "|" and target > 1:
                assert target == targets.ids([word])[0]
                num_words += 1
        for piece in "".join(f" {w} " for w in row).split("|")[1:-1]:
            assert tuple(piece.split()) in text or not piece.split()
    assert len(rows.words) == 4
    assert num_words > 10


def test_words_are_masked_replaced_and_left_in_the_published_rates() -> None:
    model = model_of(mask_rate=0.5).train()
    vectors = torch.arange(100.0)[:, None].expand(100, 6).clone() + 1
    words = torch.randint(100, (200, 100))
    rows = type(rows_of(next(endless(source_of(model, 2, 8)))))(
        words, torch.full_like(words, 5), torch.ones_like(words) > 0
    )
    is_predicted, inputs = model._hidden(rows, vectors)
    is_hidden = (inputs == model.bilm.context_layers.mask_vector).all(2)
    is_changed = ~is_hidden & (inputs[:, :, 0] != words + 1)
    assert not (is_hidden & ~is_predicted).any()
    assert not (is_changed & ~is_predicted).any()
    count = is_predicted.sum()
    assert is_predicted.float().mean().item() == pytest.approx(0.5, abs=0.02)
    assert (is_hidden.sum() / count).item() == pytest.approx(0.8, abs=0.02)
    assert (is_changed.sum() / count).item() == pytest.approx(0.1 * 0.99, abs=0.02)


def test_boundaries_and_padding_are_never_predicted() -> None:
    model = model_of(mask_rate=0.999999)
    batch = next(endless(source_of(model, 2, 8)))
    rows = rows_of(batch)
    is_predicted, _ = model._hidden(rows, model.bilm.token_encoder(batch.characters))
    assert (rows.targets[is_predicted] > 1).all()
    assert rows.mask[is_predicted].all()
    assert is_predicted.any()


def test_each_layer_reads_both_sides_of_a_word() -> None:
    model = model_of()
    layers = model.bilm.context_layers
    words = torch.randn(1, 5, 6).requires_grad_()
    mask = torch.tensor([[True, True, True, True, False]])
    output = layers.read(words, mask, direction="forward").layers
    for layer in output:
        value = layer[0, 2] @ torch.arange(1.0, 7.0)
        (gradient,) = torch.autograd.grad(value, words, retain_graph=True)
        assert ((gradient[0].abs().sum(1) > 0) == mask[0]).all()


def test_evaluation_hides_the_same_words_every_time() -> None:
    model = model_of().eval()
    batch = next(endless(source_of(model, 2, 8)))
    before = torch.get_rng_state()
    first, second = (model(batch) for _ in range(2))
    assert first.num_predictions > 0
    assert torch.equal(first.sum, second.sum)
    assert torch.equal(torch.get_rng_state(), before)
    scores = model.scores(model.sums(first, batch))
    expected = (first.sum / first.num_predictions).item()
    assert scores["loss"] == pytest.approx(expected)
    assert scores["masked_perplexity"] == pytest.approx(torch.tensor(expected).exp().item())


@pytest.mark.parametrize("num_samples", [None, 6])
def test_hidden_words_are_learned(num_samples: int | None) -> None:
    encoder = {"type": "char_cnn", "embedding_dim": 8, "filters": [[1, 16], [2, 16]]}
    model = model_of(
        num_samples=num_samples,
        mask_rate=0.3,
        token_encoder={**encoder, "num_highway": 0, "projection_dim": 16},
        context_layers={**LAYERS, "head_dim": 8, "feedforward_dim": 32},
    ).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    # A hidden word is the one next to it.
    text = [" ".join([word] * 7) for word in ("cat", "dog", "rain", "mat")] * 2
    source = source_of(model, 2, 16, text=text)
    batches = endless(source)
    after = math.inf
    for step in range(1, 301):
        loss = model(next(batches)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            with torch.no_grad():
                after = model.eval()(next(batches)).loss.item()
            if after < 0.5 * math.log(4):
                break
            model.train()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert after < 0.5 * math.log(4)


def test_its_files_give_layers_and_no_probabilities(tmp_path: Path) -> None:
    model = model_of().eval()
    model.save_extras(tmp_path)
    files = bilm_files(tmp_path)
    loaded = elmo_framework.load_bilm(tmp_path, device="cpu")
    (layers,) = loaded.embed([["the", "cat", "sat"]])
    with torch.no_grad():
        expected = model.bilm(characters(model, ["the", "cat", "sat"])[None]).layers[:, 0, 1:-1]
    assert layers.shape == (3, 3, 6)
    torch.testing.assert_close(torch.from_numpy(layers), expected, atol=1e-5, rtol=1e-5)
    assert read_bilm(files).output_dim == 6
    with pytest.raises(DataError, match="predicts masked words from both sides, so it has no"):
        loaded.load_softmax()
    again = model_of()
    torch.nn.init.zeros_(again.softmax.weight)
    again.load_bilm(tmp_path)
    assert torch.equal(again.softmax.weight, model.softmax.weight)


def test_layers_of_the_other_kind_are_refused() -> None:
    lstm = {"type": "elmo_lstm", "cell_size": 8, "projection_dim": 6}
    with pytest.raises(BuildError, match="'elmo_lstm' read one side of a word; a masked_lm needs"):
        model_of(context_layers=lstm)
    with pytest.raises(BuildError, match="see the words that a biLM predicts; use them in a"):
        model_of(type="bilm")


def test_its_layers_have_no_state_to_carry(tmp_path: Path) -> None:
    model_of().eval().save_extras(tmp_path)
    reason = "state is 'carry', and a model that reads both sides of a word has no state"
    with pytest.raises(ValueError, match=reason):
        elmo_framework.load_bilm(tmp_path, state="carry")
    with pytest.raises(ValueError, match=reason):
        elmo_framework.Elmo(module=read_bilm(bilm_files(tmp_path)), state="carry")
    config = {"type": "elmo_token_embedder", "bilm": str(tmp_path), "state": "carry"}
    with pytest.raises(BuildError, match=reason):
        parse(TokenEmbedder, config, source="test.jsonnet").build()
