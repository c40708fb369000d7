import copy
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.config.parse import parse
from elmo_framework.config.types import collecting_size_problems
from elmo_framework.data.text import collate_text
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import TextEmbedder, TokenEmbedder
from elmo_framework.embedders.transformer import TransformerTokenEmbedder
from elmo_framework.errors import BuildError
from elmo_framework.layers.transformer_source import (
    Transformer,
    TransformerOptions,
    open_transformer,
)
from elmo_framework.model.part import Reference
from tests.numpy_bilm import NumpyBiLm
from tests.tiny_transformers import DIM

TEXT = collate_text([["the", "dogs", "öl", "a"], [], ["dog"]])
FROZEN = {"train_parameters": False, "last_layer_only": False}


def build(folder: Path, **keys) -> TransformerTokenEmbedder:
    raw = {"type": "pretrained_transformer_mismatched", "model_name": str(folder), **keys}
    return parse(TokenEmbedder, raw, source="test").build()


def words_of(folder: Path, layer: int, **options) -> torch.Tensor:
    layers = open_transformer(folder, TransformerOptions(**options)).layers(TEXT).layers
    return layers[layer, :, 1:-1] * TEXT.mask[:, :, None]


def test_defaults_are_those_of_allennlp(transformer_folder) -> None:
    folder = transformer_folder("bert")
    embedder = build(folder).eval()
    torch.testing.assert_close(embedder(TEXT).detach(), words_of(folder, -1))
    assert embedder.mix is None
    assert embedder.reference is None
    assert all(parameter.requires_grad for parameter in embedder.parameters())
    assert all(name.startswith("transformer.encoder.") for name in embedder.state_dict())
    assert len(list(embedder.parameters_from_file())) == len(list(embedder.parameters()))


def test_trained_transformer_has_its_own_dropout(transformer_folder) -> None:
    embedder = build(transformer_folder("bert"))
    assert not torch.equal(embedder.train()(TEXT), embedder(TEXT))
    assert torch.equal(embedder.eval()(TEXT), embedder(TEXT))
    embedder(TEXT).sum().backward()
    assert all(parameter.grad is not None for parameter in embedder.parameters())


def test_frozen_layers_are_mixed(transformer_folder) -> None:
    folder = transformer_folder("t5")
    embedder = build(folder, **FROZEN, cache_dtype="float32", mix="scalar_mix")
    torch.nn.init.constant_(embedder.mix.scalar_parameters[0], 2.0)
    weights = torch.tensor([2.0, 0.0, 0.0]).softmax(0)
    expected = sum(weight * words_of(folder, layer) for layer, weight in enumerate(weights))
    torch.testing.assert_close(embedder(TEXT).detach(), expected)
    assert sorted(embedder.state_dict()) == [
        "mix.gamma",
        *(f"mix.scalar_parameters.{layer}" for layer in range(3)),
    ]
    assert embedder.reference == Reference(folder, embedder.source.fingerprint.digest)
    assert embedder.num_frozen_parameters > 0
    assert copy.deepcopy(embedder).source is embedder.source


def test_selected_layers_alone_are_cached(transformer_folder) -> None:
    folder = transformer_folder("bert")
    assert build(folder, **FROZEN, layers=[0, -1]).source.num_layers == 2
    top = build(folder, train_parameters=False)
    assert top.source.num_layers == 1
    text = top(TEXT).detach()
    np.testing.assert_allclose(text, words_of(folder, -1).half().float())


def test_dropout_and_projection_follow_the_mix(transformer_folder) -> None:
    embedder = build(transformer_folder("bert"), **FROZEN, projection_dim=3, dropout=0.9)
    plain = build(transformer_folder("bert"), **FROZEN)
    assert embedder.output_dim == 3
    expected = embedder.projection(plain(TEXT)) * TEXT.mask[:, :, None]
    torch.testing.assert_close(embedder.eval()(TEXT), expected)
    assert (embedder.train()(TEXT) != expected).any()


@pytest.mark.parametrize("key", [{"mix": "average"}, {"layers": [0]}])
def test_mix_needs_more_than_the_last_layer(key, transformer_folder) -> None:
    with pytest.raises(BuildError, match="has no effect on the last layer alone"):
        build(transformer_folder("bert"), **key)


def test_wrong_option_has_its_config_path(transformer_folder) -> None:
    raw = {
        "token_embedders": {
            "bert": {
                "type": "pretrained_transformer_mismatched",
                "model_name": str(transformer_folder("bert")),
                "max_length": 100,
            }
        }
    }
    with pytest.raises(BuildError, match=r"token_embedders.bert: .*max_length is 100, and the"):
        parse(TextEmbedder, raw, source="test").build()


def test_size_is_known_without_weights(transformer_folder) -> None:
    folder = transformer_folder("llama")
    with torch.device("meta"), collecting_size_problems() as problems:
        embedder = build(folder, **FROZEN)
    assert (embedder.output_dim, problems) == (DIM, [])


def test_stacked_encoders_cost_one_pass_each(transformer_folder, tmp_path, monkeypatch) -> None:
    vectors = tmp_path / "glove.txt"
    vectors.write_text("the 1 2\ndog 3 4\n")
    elmo = {"type": "elmo_token_embedder", "bilm": str(NumpyBiLm.random().save(tmp_path / "bilm"))}
    bert = {
        "type": "pretrained_transformer_mismatched",
        "model_name": str(transformer_folder("bert")),
        **FROZEN,
    }
    raw = {
        "token_embedders": {
            "bert": bert,
            "bert_average": {**bert, "mix": "average"},
            "elmo": elmo,
            "elmo_top": {**elmo, "mix": "layer"},
            "glove": {"type": "embedding", "pretrained_file": str(vectors), "embedding_dim": 2},
        }
    }
    passes = []
    for part, name in ((BiLm, "contextualize"), (Transformer, "_hidden")):
        original = getattr(part, name)
        monkeypatch.setattr(
            part, name, lambda *args, f=original, of=part: passes.append(of) or f(*args)
        )
    vocabularies = Vocabularies({"words": {"the": 9, "dog": 9}})
    embedder = parse(TextEmbedder, raw, source="test").build(vocabularies=vocabularies)
    text = collate_text([["the", "dog"], ["dog"]], embedder.indexers)
    widths = [each.output_dim for each in embedder.token_embedders.values()]
    assert embedder(text).shape == (2, 2, sum(widths))
    assert sorted(part.__name__ for part in passes) == ["BiLm", "Transformer"]
    assert embedder.token_embedders["bert"].mix is not embedder.token_embedders["bert_average"].mix


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "t5", "roberta"])
def test_tuned_layers_are_listed_from_the_bottom(kind: str, transformer_folder) -> None:
    embedder = build(transformer_folder(kind))
    layers = embedder.layer_parameters()
    assert len(layers) == 3
    listed = [id(parameter) for layer in layers for parameter in layer]
    assert sorted(listed) == sorted(id(parameter) for parameter in embedder.parameters())
    embedder(TEXT)
    lowest = embedder.source.layers(TEXT).layers[-1].sum()
    top = torch.autograd.grad(lowest, layers[-1], allow_unused=True)
    assert any(gradient is not None for gradient in top)
    words = next(name for name, each in embedder.named_parameters() if each is layers[0][0])
    assert "emb" in words or "wte" in words or "shared" in words
    assert build(transformer_folder(kind), **FROZEN).layer_parameters() == ()
