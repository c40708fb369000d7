from collections import Counter

import pytest
import torch
from torch import Tensor, nn

import elmo_framework.encoders.lstm
import elmo_framework.encoders.pooler  # noqa: F401
from elmo_framework.config.parse import parse
from elmo_framework.data.text import collate_text
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.character_encoding import CharacterEncodingTokenEmbedder
from elmo_framework.embedders.text_embedder import TokenEmbedder

CNN = {"type": "cnn", "num_filters": 4, "ngram_filter_sizes": [2, 6]}
SENTENCES = [["Anna", "naps", "Anna"], ["Rain"], [], ["naps", "ünïcödé"]]


def embedder(encoder: object = CNN, **options: object) -> CharacterEncodingTokenEmbedder:
    torch.manual_seed(1)
    embedding = {"embedding_dim": 3}
    config = {"type": "character_encoding", "embedding": embedding, "encoder": encoder, **options}
    words = Counter(word for sentence in SENTENCES for word in sentence)
    vocabularies = Vocabularies({"words": words})
    built = parse(TokenEmbedder, config, source="a.jsonnet").build(vocabularies=vocabularies)
    assert isinstance(built, CharacterEncodingTokenEmbedder)
    return built.double().eval()


def embedded(built: CharacterEncodingTokenEmbedder, sentences: list[list[str]]) -> Tensor:
    return built(collate_text(sentences, built.indexers))


def test_word_vector_pools_its_bytes_and_boundary_marks():
    built = embedder("bag_of_embeddings")

    table = built.embedding.weight
    expected = table[torch.tensor([257, 0x61 + 1, 0xC3 + 1, 0xA9 + 1, 258])].sum(dim=0)

    torch.testing.assert_close(embedded(built, [["aé"]])[0, 0], expected)


def test_characters_of_the_data_have_vectors_and_others_share_one():
    built = embedder("bag_of_embeddings", characters="vocabulary")

    # 11 characters of the sentences, padding and unknown ones.
    table = built.embedding.weight
    assert table.shape == (2 + len(set("AnnanapsRainünïcödé")), 3)
    n = built.indexer.ids(["n"])[0, 0]
    a = built.indexer.ids(["a"])[0, 0]
    expected = table[torch.tensor([n, a, 1])].sum(dim=0)

    assert (n, a) == (2, 3)  # by frequency
    torch.testing.assert_close(embedded(built, [["naZ"]])[0, 0], expected)


def test_characters_beyond_the_maximum_are_not_read():
    built = embedder(characters="vocabulary", max_characters_per_token=3)

    [[cut, prefix, other]] = embedded(built, [["Annas", "Ann", "Ana"]])

    assert torch.equal(cut, prefix)
    assert not torch.equal(cut, other)


@pytest.mark.parametrize("characters", ["bytes", "vocabulary"])
@pytest.mark.parametrize("encoder", [CNN, {"type": "lstm", "hidden_size": 2}])
def test_a_batch_equals_its_words_one_by_one(encoder, characters):
    built = embedder(encoder, characters=characters)

    found = embedded(built, SENTENCES)

    assert found.shape == (4, 3, built.output_dim)
    for row, words in enumerate(SENTENCES):
        for position, word in enumerate(words):
            torch.testing.assert_close(found[row, position], embedded(built, [[word]])[0, 0])
        assert not found[row, len(words) :].any()


def test_a_batch_without_words_gives_zeros():
    assert not embedded(embedder(), [[], []]).any()


def test_each_distinct_word_is_encoded_once():
    built = embedder()
    rows = []
    built.encoder.register_forward_hook(lambda _, inputs, __: rows.append(len(inputs[0])))

    embedded(built, SENTENCES)

    assert rows == [4]


def test_gradients_are_those_of_encoding_every_word():
    once, each = embedder(), embedder()
    weights = torch.randn(4, 3, once.output_dim, generator=torch.Generator().manual_seed(2))

    (embedded(once, SENTENCES) * weights).sum().backward()
    for row, words in enumerate(SENTENCES):
        for position, word in enumerate(words):
            (embedded(each, [[word]])[0, 0] * weights[row, position]).sum().backward()

    for parameter, expected in zip(once.parameters(), each.parameters(), strict=True):
        assert parameter.grad.any()
        torch.testing.assert_close(parameter.grad, expected.grad)


def test_dropout_differs_between_occurrences_of_a_word():
    built = embedder({**CNN, "num_filters": 100, "conv_layer_activation": "tanh"}, dropout=0.5)

    [[first, _, second], *_] = embedded(built.train(), SENTENCES)

    assert 0.3 < float((first == 0).double().mean()) < 0.7
    assert not torch.equal(first, second)


def test_a_long_word_is_cut():
    built = embedder(max_characters_per_token=4)

    [[cut, prefix, other]] = embedded(built, [["abc", "ab", "ac"]])

    assert torch.equal(cut, prefix)
    assert not torch.equal(cut, other)


def test_padding_has_no_vector():
    assert isinstance(embedder().embedding, nn.Embedding)
    assert not embedder().embedding.weight[0].any()
