import random

import numpy as np
import pytest
import torch
from torch import Tensor

from elmo_framework.bilm.bilm import BiLm, with_boundaries
from elmo_framework.bilm.token_encoder import CharCnnTokenEncoder
from elmo_framework.data.text import TextBatch, collate_text
from elmo_framework.layers.word_vector_cache import WordVectorCache
from tests.numpy_bilm import NumpyBiLm
from tests.unit.conftest import SENTENCES

ROW_BYTES = 4 * 8
"""Of a vector of the fixture, in double precision."""


@pytest.fixture
def words(bilm: BiLm) -> WordVectorCache:
    return WordVectorCache(bilm.token_encoder)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many words each call of a token encoder was given."""
    sizes, forward = [], CharCnnTokenEncoder.forward

    def noted(self: CharCnnTokenEncoder, characters: Tensor) -> Tensor:
        sizes.append(len(characters))
        return forward(self, characters)

    monkeypatch.setattr(CharCnnTokenEncoder, "forward", noted)
    return sizes


def text(*sentences: str) -> TextBatch:
    return collate_text([sentence.split() for sentence in sentences])


def test_sentences_have_boundaries_and_padding_is_zero(
    numpy_bilm: NumpyBiLm, words: WordVectorCache
) -> None:
    vectors = words.framed(collate_text(SENTENCES))
    assert vectors.shape == (4, 6, 4)
    for row, sentence in zip(vectors, SENTENCES, strict=True):
        framed = ["<S>", *sentence, "</S>"] if sentence else []
        for vector, word in zip(row, framed, strict=False):
            expected = numpy_bilm.word(numpy_bilm.symbols(word))
            np.testing.assert_allclose(vector, expected, atol=1e-12)
        assert (row[len(framed) :] == 0).all()


def test_sentences_without_words_are_padding(words: WordVectorCache) -> None:
    vectors = words.framed(collate_text([[], []]))
    assert vectors.shape == (2, 3, 4)
    assert (vectors == 0).all()


def test_a_word_is_encoded_once(words: WordVectorCache, encoded: list[int]) -> None:
    words.framed(text("a rose is a rose"))
    words.framed(text("is a rose", "a"))
    words.framed(text("a new rose"))
    assert encoded == [5, 1]


def test_ids_have_the_vectors_of_their_words(
    bilm: BiLm, words: WordVectorCache, encoded: list[int]
) -> None:
    indexer = bilm.token_encoder.indexer
    batch = collate_text([["a", "rose"], [], ["is", "a", "rose"]], [indexer])
    ids = with_boundaries(batch.ids[indexer.key], indexer)
    torch.testing.assert_close(words.of_ids(ids), words.framed(batch), rtol=0, atol=1e-12)
    words.of_ids(ids[:1])
    assert encoded == [2, 5, 3]  # boundaries; rows with theirs; words


@pytest.mark.parametrize("shape", [(2, 3, 12), (0, 3, 12)])
def test_ids_of_padding_alone_are_zeros(words: WordVectorCache, shape: tuple[int, ...]) -> None:
    vectors = words.of_ids(torch.zeros(shape, dtype=torch.long))
    assert torch.equal(vectors, torch.zeros(*shape[:2], 4, dtype=torch.float64))


def test_a_full_table_forgets_and_gives_the_same_again(bilm: BiLm, encoded: list[int]) -> None:
    words = WordVectorCache(bilm.token_encoder, max_bytes=6 * ROW_BYTES)
    first = words.framed(text("a b c"))
    words.framed(text("d e"))
    torch.testing.assert_close(words.framed(text("a b c")), first)
    assert encoded == [5, 4, 5]


def test_a_batch_larger_than_the_table_fits(bilm: BiLm) -> None:
    small, large = (
        WordVectorCache(bilm.token_encoder, max_bytes=1),
        WordVectorCache(bilm.token_encoder),
    )
    for batch in (text("a b c d"), text("x"), text("f g h i j k l", "a")):
        torch.testing.assert_close(small.framed(batch), large.framed(batch))


def test_many_unknown_words_are_encoded_in_parts(
    words: WordVectorCache, encoded: list[int]
) -> None:
    vectors = words.framed(text(" ".join(str(number) for number in range(2000))))
    assert encoded == [1024, 978]
    torch.testing.assert_close(words.framed(text("1999"))[0, 1], vectors[0, 2000])


def test_a_word_has_the_same_vector_in_any_company(bilm: BiLm) -> None:
    bilm.float()
    chosen = random.Random(0)
    spelled = [chosen.choice("abcdefgh") * chosen.randint(1, 60) for _ in range(30)] + ["ß", "€"]
    together = WordVectorCache(bilm.token_encoder).framed(collate_text([spelled]))[0, 1:-1]
    for word, vector in zip(spelled, together, strict=True):
        alone = WordVectorCache(bilm.token_encoder).framed(collate_text([[word]]))[0, 1]
        torch.testing.assert_close(alone, vector, atol=1e-6, rtol=0)


def test_a_cache_filled_in_inference_mode_can_grow_later(words: WordVectorCache) -> None:
    with torch.inference_mode():
        inside = words.framed(text("a b"))
    outside = words.framed(text("a b c"))
    torch.testing.assert_close(outside[:, :3], inside[:, :3])
    assert not outside.requires_grad


def test_mixed_precision_does_not_stay_in_the_table(bilm: BiLm) -> None:
    bilm.float()
    narrow, plain = WordVectorCache(bilm.token_encoder), WordVectorCache(bilm.token_encoder)
    with torch.autocast("cpu", torch.bfloat16):
        narrow.framed(text("a b c"))
    assert torch.equal(narrow.framed(text("a b c")), plain.framed(text("a b c")))
