import json
from math import log, nan
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from elmo_framework import load_encoder
from elmo_framework.api import PretrainedBiLm
from elmo_framework.errors import DataError, RunError
from elmo_framework.layers.transformer_files import read_language_model, read_tokenizer
from tests.tiny_transformers import MAX_PIECES

SENTENCES = [["the", "dogs", "öl"], [], ["dog"], ["the", "dogs", "öl"], ["a", "", "dog"]]
BEGIN = {"gpt2": 0, "llama": 3}


def bits_of_model(folder: Path, words) -> list[float]:
    """The bits of each word, from the softmax over all pieces after each prefix."""
    tokenizer, model = read_tokenizer(folder).backend_tokenizer, read_language_model(folder)
    space = " " if folder.name == "gpt2" else ""
    context, bits = [BEGIN[folder.name]], []
    for word in words:
        total = 0.0
        for piece in tokenizer.encode(space + word, add_special_tokens=False).ids if word else []:
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([context])).logits[0, -1].double()
            total -= logits.log_softmax(0)[piece].item() / log(2)
            context.append(piece)
        bits.append(total if word else nan)
    return bits


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_bits_equal_the_softmax_of_the_model(kind: str, transformer_folder) -> None:
    folder = transformer_folder(kind)
    scores = load_encoder(folder, device="cpu").score(SENTENCES)
    for words, score in zip(SENTENCES, scores, strict=True):
        np.testing.assert_allclose(score.forward, bits_of_model(folder, words), atol=1e-4)
        assert np.isnan(score.backward).all()
        assert np.isnan([score.begin, score.end]).all()
        assert score.total.forward == pytest.approx(np.nansum(score.forward))
        assert score.num_predictions == (len(list(filter(None, words))), 0)


def test_nothing_is_predicted_of_words_without_pieces(transformer_folder) -> None:
    (score,) = load_encoder(transformer_folder("gpt2"), device="cpu").score([["", ""]])
    assert np.isnan([*score.forward, *score.total]).all()
    assert score.num_predictions == (0, 0)


def test_long_sentence_has_half_a_window_of_context(transformer_folder) -> None:
    folder = transformer_folder("llama")
    words = ["dog", "the"] * 25
    (score,) = load_encoder(folder, device="cpu").score([words])
    size = MAX_PIECES - 1
    first = bits_of_model(folder, words[:size])
    np.testing.assert_allclose(score.forward[:size], first, atol=1e-4)
    second = bits_of_model(folder, words[size // 2 : size // 2 + size])
    kept = size - size // 2
    np.testing.assert_allclose(score.forward[size : size + size // 2], second[kept:], atol=1e-4)
    last = bits_of_model(folder, words[-size:])
    assert score.forward[-1] == pytest.approx(last[-1], abs=1e-4)


def test_unknown_pieces_mark_their_words(transformer_folder) -> None:
    (score,) = load_encoder(transformer_folder("llama"), device="cpu").score([["dog", "日"]])
    assert score.is_unknown.tolist() == [False, True]


@pytest.mark.parametrize("kind", ["bert", "roberta", "t5"])
def test_transformer_without_next_words_is_refused(kind: str, transformer_folder) -> None:
    folder = transformer_folder(kind)
    with pytest.raises(DataError, match="no probability of the next word; score with a causal"):
        load_encoder(folder, device="cpu").score(SENTENCES)


def test_model_that_reads_both_ways_is_refused(transformer_folder, monkeypatch) -> None:
    folder = transformer_folder("llama")
    encoder = load_encoder(folder, device="cpu")
    model = read_language_model(folder)
    forward = type(model).forward

    def looking_ahead(self, input_ids, **options):
        return forward(self, input_ids=input_ids.flip(1), **options)

    monkeypatch.setattr(type(model), "forward", looking_ahead)
    with pytest.raises(DataError, match="reads both ways"):
        encoder.load_softmax()


def test_documents_are_refused(transformer_folder) -> None:
    with pytest.raises(RunError, match="carries no state"):
        load_encoder(transformer_folder("gpt2"), device="cpu").score_documents([SENTENCES])


def test_load_encoder_embeds_as_its_options_say(transformer_folder) -> None:
    folder = transformer_folder("bert")
    encoder = load_encoder(folder, device="cpu")
    vectors = encoder.embed(SENTENCES)
    assert [each.shape for each in vectors] == [(3, len(words), 16) for words in SENTENCES]
    assert np.array_equal(vectors[0], vectors[3])
    read = list(encoder.embed_iter(iter(SENTENCES)))
    assert all(np.allclose(one, other, atol=1e-5) for one, other in zip(vectors, read, strict=True))
    top = load_encoder(folder, device="cpu", layers=[-1]).embed(SENTENCES)
    np.testing.assert_allclose(top[0], vectors[0][-1:], atol=1e-5)
    first = load_encoder(folder, device="cpu", sub_token_mode="first").embed(SENTENCES)
    assert not np.allclose(first[0][:, 1], vectors[0][:, 1])


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("layers", "top", "layers is 'top'; expected a list of numbers"),
        ("layers", -1, "layers is -1; expected a list of numbers"),
        ("sub_token_mode", "sum", "sub_token_mode is 'sum'; choose from avg, first, last, mean"),
        ("precision", "half", "precision is 'half'; choose from bfloat16, float32, int8"),
        ("max_length", 0, "max_length is 0; with 2 special tokens it must be 4 or more"),
    ],
)
def test_load_encoder_refuses_unknown_options(transformer_folder, option, value, message) -> None:
    with pytest.raises(ValueError, match=message):
        load_encoder(transformer_folder("bert"), device="cpu", **{option: value})


def test_bits_of_bfloat16_are_near_those_of_float32(transformer_folder) -> None:
    folder = transformer_folder("gpt2")
    exact, rounded = (
        load_encoder(folder, device="cpu", precision=precision).score(SENTENCES)[0].forward
        for precision in ("float32", "bfloat16")
    )
    assert not np.array_equal(exact, rounded)
    np.testing.assert_allclose(rounded, exact, rtol=0.05)


def test_load_encoder_loads_bilms(tmp_path: Path) -> None:
    encoder = load_encoder("mini", device="cpu")
    assert isinstance(encoder, PretrainedBiLm)
    with pytest.raises(ValueError, match="are for transformers"):
        load_encoder("mini", sub_token_mode="last")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(DataError, match=r"no model\.safetensors"):
        load_encoder(tmp_path)
