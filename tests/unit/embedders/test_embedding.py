import logging
import pickle
import struct
from collections import Counter
from pathlib import Path

import pytest
import torch

from elmo_framework.config.parse import parse
from elmo_framework.data.text import TextBatch, collate_text
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.embedding import EmbeddingTokenEmbedder
from elmo_framework.embedders.text_embedder import TokenEmbedder

WORDS = Vocabularies({"words": Counter({"The": 2, "the": 1, "dog": 2, "ran": 1})})


def embedder(
    words: Vocabularies = WORDS, *, weights_follow: bool = False, **options: object
) -> EmbeddingTokenEmbedder:
    torch.manual_seed(1)
    config = {"type": "embedding", "embedding_dim": 2, **options}
    lazy = parse(TokenEmbedder, config, source="a.jsonnet")
    built = lazy.build(vocabularies=words, weights_follow=weights_follow)
    assert isinstance(built, EmbeddingTokenEmbedder)
    return built


def batch(built: EmbeddingTokenEmbedder, *sentences: str) -> TextBatch:
    return collate_text([sentence.split() for sentence in sentences], built.indexers)


def vectors(built: EmbeddingTokenEmbedder, *sentences: str) -> list[list[list[float]]]:
    return built(batch(built, *sentences)).tolist()


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 2\ndog 3 6\ncat 100 100\n")
    return str(path)


def test_each_word_has_its_own_vector_and_padding_is_zero():
    [[the, dog, again], [ran, *padding]] = vectors(embedder(), "the dog the", "ran")

    assert the == again
    assert len({tuple(the), tuple(dog), tuple(ran)}) == 3
    assert padding == [[0.0, 0.0], [0.0, 0.0]]


def test_vectors_are_projected_and_padding_stays_zero():
    built = embedder(projection_dim=3)
    [[_, dog], [_, padding]] = vectors(built, "the dog", "ran")
    table, layer = built.embedding.weight, built.projection
    expected = table[built.indexer.vocabulary.id("dog")] @ layer.weight.T + layer.bias

    assert built.output_dim == 3
    assert dog == pytest.approx(expected.tolist())
    assert padding == [0.0, 0.0, 0.0]


def test_unknown_words_share_a_vector_that_is_not_zero():
    [[cat, mouse]] = vectors(embedder(), "cat mouse")

    assert cat == mouse
    assert any(cat)


def test_the_vectors_have_length_one_on_average():
    many = Vocabularies({"words": Counter({f"w{i}": 1 for i in range(2000)})})

    weight = embedder(many, embedding_dim=30).embedding.weight[1:]

    assert float(weight.detach().square().sum(dim=1).mean()) == pytest.approx(1.0, abs=0.02)
    assert float(weight.detach().abs().max()) <= (3 / 30) ** 0.5


def test_lowercase_merges_counts_before_min_count():
    built = embedder(lowercase=True, min_count=3)

    assert built.indexer.vocabulary.items[2:] == ("the",)
    [[upper, lower, dog, unknown]] = vectors(built, "THE the dog cat")
    assert upper == lower != dog == unknown


def test_case_is_distinguished_by_default():
    [[upper, lower]] = vectors(embedder(), "The the")

    assert upper != lower


def test_embedders_that_read_words_alike_share_their_ids():
    assert embedder().indexer.key == embedder(embedding_dim=9, trainable=False).indexer.key
    keys = {
        embedder(lowercase=low, min_count=n).indexer.key for low in (False, True) for n in (1, 2)
    }
    assert len(keys) == 4


def test_an_indexer_can_be_sent_to_another_process():
    indexer = embedder(lowercase=True).indexer

    again = pickle.loads(pickle.dumps(indexer))

    assert again.key == indexer.key
    assert again.ids(["The", "cat"]).tolist() == indexer.ids(["The", "cat"]).tolist()


def test_vectors_start_from_a_file(file, caplog):
    with caplog.at_level(logging.INFO):
        built = embedder(pretrained_file=file, lowercase=True)

    assert vectors(built, "The dog") == [[[1.0, 2.0], [3.0, 6.0]]]
    assert caplog.messages == [f"{file}: vectors for 2 of 3 words (66.7 %), and for 1 unseen one"]


def test_only_a_table_with_a_file_counts_as_read_from_one(file):
    with_file, without = embedder(pretrained_file=file), embedder()

    assert [p is with_file.embedding.weight for p in with_file.parameters_from_file()] == [True]
    assert list(without.parameters_from_file()) == []


def test_words_that_the_file_lacks_start_from_zeros(file):
    [[ran, unknown]] = vectors(embedder(pretrained_file=file, missing="zeros"), "ran mouse")

    assert ran == unknown == [0.0, 0.0]


def test_words_that_the_file_lacks_are_drawn_like_those_it_has(file):
    many = Counter({f"w{i}": 1 for i in range(3000)}) + Counter(["the", "dog"])

    built = embedder(Vocabularies({"words": many}), pretrained_file=file)

    ids = torch.tensor(
        [i for i, item in enumerate(built.indexer.vocabulary.items) if item[0] == "w"]
    )
    drawn = built.embedding.weight.detach()[ids]
    assert float(drawn.mean()) == pytest.approx(3.0, abs=0.1)
    assert float(drawn.std()) == pytest.approx(3.5**0.5, abs=0.1)
    assert not built.embedding.weight[0].any()


def test_words_that_the_file_lacks_can_start_from_its_mean(file):
    [[ran, unknown, the]] = vectors(embedder(pretrained_file=file, missing="mean"), "ran mouse the")

    assert ran == unknown == [2.0, 4.0]
    assert the == [1.0, 2.0]


def test_words_that_the_file_lacks_can_start_as_without_a_file(file):
    built, plain = embedder(pretrained_file=file, missing="random"), embedder()

    assert vectors(built, "ran mouse") == vectors(plain, "ran mouse")
    assert vectors(built, "the") == [[[1.0, 2.0]]]


def test_a_word_can_have_the_vector_of_its_lower_case(file):
    built = embedder(pretrained_file=file, missing="zeros", case_fallback=True)

    assert vectors(built, "The the Dog Cat") == [
        [[1.0, 2.0], [1.0, 2.0], [3.0, 6.0], [100.0, 100.0]]
    ]
    assert vectors(embedder(pretrained_file=file, missing="zeros"), "The") == [[[0.0, 0.0]]]


def test_the_exact_form_comes_before_the_lower_case(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 2\nThe 7 8\n")

    built = embedder(pretrained_file=str(path), case_fallback=True)

    assert vectors(built, "The the") == [[[7.0, 8.0], [1.0, 2.0]]]


def test_exact_form_takes_precedence_over_lower_case(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("dog 1 2\nDog 7 8\n")

    built = embedder(pretrained_file=str(path), case_fallback=True)

    assert vectors(built, "Dog dog DOG") == [[[7.0, 8.0], [1.0, 2.0], [1.0, 2.0]]]


def test_a_word_can_be_looked_up_in_lower_case_without_a_file():
    [[dog, upper, unknown]] = vectors(embedder(case_fallback=True), "dog DOG mouse")

    assert dog == upper != unknown


def test_vectors_can_be_brought_to_the_length_one(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("the 3 4\ndog 0 0\n")

    built = embedder(pretrained_file=str(path), normalize=True, missing="zeros")

    assert vectors(built, "the dog") == [[[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]]


@pytest.mark.parametrize("missing", ["normal", "zeros", "mean", "random"])
def test_padding_is_zero_for_every_kind_of_missing_word(file, missing):
    built = embedder(pretrained_file=file, missing=missing)

    assert not built.embedding.weight[0].any()


def test_words_that_training_lacks_have_the_vectors_of_the_file(file):
    built = embedder(pretrained_file=file, max_unseen_words=1)

    assert vectors(built, "cat the") == [[[100.0, 100.0], [1.0, 2.0]]]
    assert built.indexer.key != embedder().indexer.key


def test_max_unseen_words_limits_unseen_words(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 2\ncat 3 4\nmouse 5 6\nowl 7 8\n")
    built = embedder(pretrained_file=str(path), max_unseen_words=2, missing="zeros")

    assert vectors(built, "cat mouse owl") == [[[3.0, 4.0], [5.0, 6.0], [0.0, 0.0]]]
    everything = embedder(pretrained_file=str(path), max_unseen_words=None, missing="zeros")
    assert vectors(everything, "owl") == [[[7.0, 8.0]]]


def test_in_lower_case_other_words_in_upper_case_do_not_count(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("The 9 9\nParis 9 9\nthe 1 2\nparis 3 4\nOwl 9 9\nowl 5 6\nmouse 7 8\n")
    options = {"lowercase": True, "max_unseen_words": 2, "missing": "zeros"}

    built = embedder(pretrained_file=str(path), **options)

    assert vectors(built, "THE Paris Owl mouse") == [
        [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [0.0, 0.0]]
    ]


@pytest.mark.parametrize(("max_words", "expected"), [(0, []), (1, ["cat"]), (2, ["cat", "ran"])])
def test_unseen_words_include_lower_case_training_words(tmp_path, max_words, expected):
    path = tmp_path / "vectors.txt"
    path.write_text("cat 1 2\nran 3 4\nowl 5 6\n")
    ran = Vocabularies({"words": Counter({"RAN": 1})})

    built = embedder(ran, pretrained_file=str(path), case_fallback=True, max_unseen_words=max_words)

    assert [*built.unseen.rows] == expected
    assert vectors(built, "RAN") == [[[3.0, 4.0]]]


def test_rare_training_words_have_pretrained_vectors(file):
    built = embedder(pretrained_file=file, min_count=2, missing="zeros")

    assert built.indexer.vocabulary.items[2:] == ("The", "dog")
    assert vectors(built, "the dog ran") == [[[1.0, 2.0], [3.0, 6.0], [0.0, 0.0]]]
    assert [*built.unseen.rows] == ["the", "cat"]


def test_vectors_of_words_that_training_lacks_are_not_trained(file):
    built = embedder(pretrained_file=file)
    optimizer = torch.optim.SGD(built.parameters(), lr=1.0)

    built(batch(built, "the cat")).sum().backward()
    optimizer.step()

    assert vectors(built, "the cat") == [[[0.0, 1.0], [100.0, 100.0]]]


def test_unseen_words_are_saved_with_the_weights(file):
    built = embedder(pretrained_file=file, lowercase=True)
    bare = {"type": "embedding", "embedding_dim": 2, "pretrained_file": file, "lowercase": True}
    again = parse(TokenEmbedder, bare, source="run").build(vocabularies=WORDS, weights_follow=True)
    (indexer,) = again.indexers

    again.load_state_dict(built.state_dict())

    assert indexer.key == built.indexer.key
    assert again(collate_text([["Cat", "the", "mouse"]], [indexer])).tolist() == vectors(
        built, "Cat the mouse"
    )


def test_invalid_words_of_a_binary_file_are_left_out(tmp_path):
    path = tmp_path / "vectors.bin"
    words = ["the", "line\nfeed", "", "cat", "owl"]
    records = (
        f"{word} ".encode() + struct.pack("<2f", row, -row)
        for row, word in enumerate(words, start=1)
    )
    path.write_bytes(b"5 2\n" + b"".join(records))
    built, again = (
        embedder(pretrained_file=str(path), weights_follow=is_loaded) for is_loaded in (False, True)
    )

    again.load_state_dict(built.state_dict())

    for each in (built, again):
        assert each.unseen.rows == {"cat": 1, "owl": 2}
        assert vectors(each, "the cat owl") == [[[1.0, -1.0], [4.0, -4.0], [5.0, -5.0]]]


def test_it_tells_which_words_the_file_has(file):
    built = embedder(pretrained_file=file, lowercase=True)

    known = [built.has_vector(word) for word in ("the", "THE", "cat", "ran", "mouse", "")]
    assert known == [True, True, True, False, False, False]
    assert embedder().has_vector("the") is None


def test_file_is_not_needed_if_weights_follow(tmp_path):
    config = {"type": "embedding", "embedding_dim": 2, "pretrained_file": str(tmp_path / "gone")}
    lazy = parse(TokenEmbedder, config, source="a.jsonnet")

    built = lazy.build(vocabularies=WORDS, weights_follow=True)

    built.load_state_dict(embedder().state_dict())
    assert vectors(built, "the dog") == vectors(embedder(), "the dog")


def test_gradients_reach_the_vectors_of_words_only():
    built = embedder()

    built(batch(built, "the dog", "the")).sum().backward()

    reached = built.embedding.weight.grad.any(dim=1)
    items = built.indexer.vocabulary.items
    assert [item for item, has in zip(items, reached, strict=True) if has] == ["dog", "the"]


def test_vectors_that_are_not_trained_have_no_gradient():
    assert not embedder(trainable=False).embedding.weight.requires_grad
    assert embedder().embedding.weight.requires_grad


@pytest.mark.parametrize("missing", ["normal", "zeros", "mean", "random"])
def test_no_word_has_to_be_as_frequent_as_min_count(file, missing: str) -> None:
    built = embedder(pretrained_file=file, min_count=9, missing=missing)
    ((the, dog, unknown),) = vectors(built, "the dog ran")
    assert [the, dog] == [[1.0, 2.0], [3.0, 6.0]]
    assert any(unknown) is (missing != "zeros")
