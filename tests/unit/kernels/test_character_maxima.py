"""Maxima by tables of characters equal those of convolutions in float64."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from elmo_framework.kernels import character_maxima as module
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.kernels.character_maxima import CharacterTables, Convolution, has_tables

needs_compiler = pytest.mark.skipif(module._library() is None, reason="needs a C compiler")
NUM_IDS, PADDING, LENGTH, WIDTHS = 30, 29, 12, (1, 2, 3, 7)


def parameters(num_filters: int) -> tuple[Tensor, list[Convolution]]:
    generator = torch.Generator().manual_seed(num_filters)
    vectors = torch.randn(NUM_IDS, 5, generator=generator)
    vectors[0] = 0
    return vectors, [
        Convolution(
            torch.randn(num_filters, 5, width, generator=generator),
            torch.randn(num_filters, generator=generator),
        )
        for width in WIDTHS
    ]


def ids(num_words: int) -> Tensor:
    """Return words of all lengths, 0 among their ids; the last one is only zeros."""
    words = torch.full((num_words, LENGTH), PADDING)
    for number, word in enumerate(words):
        length = number % (LENGTH + 1)
        word[:length] = torch.arange(length) * (number + 3) % (PADDING - 1) + 1
        word[1 : max(1, length - 1) : 5] = 0
    words[-1] = 0
    return words


def expected(vectors: Tensor, convolutions: list[Convolution], words: Tensor) -> Tensor:
    characters = vectors.double()[words].transpose(1, 2)
    return torch.cat(
        [
            functional.conv1d(characters, weight.double(), bias.double()).amax(dim=2)
            for weight, bias in convolutions
        ],
        dim=1,
    )


@needs_compiler
@pytest.mark.parametrize("num_filters", [1, 64, 70, 100, 128])
@pytest.mark.parametrize("num_words", [1, 2, 40])
def test_maxima_equal_those_of_convolutions(num_words: int, num_filters: int) -> None:
    vectors, convolutions = parameters(num_filters)
    words = ids(num_words)
    maxima = CharacterTables(vectors, convolutions, PADDING).maxima(words)
    of_convolutions = expected(vectors, convolutions, words)
    torch.testing.assert_close(maxima.double(), of_convolutions, rtol=1e-6, atol=1e-5)


@needs_compiler
def test_windows_after_a_word_count() -> None:
    """With negative weights, the largest sum is that of padding, which is 0 here."""
    vectors = torch.ones(NUM_IDS, 1)
    vectors[PADDING] = 0
    convolutions = [Convolution(-torch.ones(1, 1, width), torch.zeros(1)) for width in WIDTHS]
    maxima = CharacterTables(vectors, convolutions, PADDING).maxima(ids(LENGTH + 2)[1:-1])
    assert maxima[:5].eq(0).all()
    assert maxima[-1].tolist() == [-1, -2, -3, -7], "a word without padding has no such window"


@needs_compiler
def test_words_shorter_than_a_convolution_are_refused() -> None:
    vectors, convolutions = parameters(3)
    words = ids(4)[:, : max(WIDTHS) - 1]
    with pytest.raises(ValueError, match="words of 6 characters; a convolution is 7 wide"):
        CharacterTables(vectors, convolutions, PADDING).maxima(words)


@needs_compiler
@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_word_does_not_depend_on_others(num_threads: int) -> None:
    tables, words = CharacterTables(*parameters(70), PADDING), ids(40)
    alone = torch.cat([tables.maxima(word[None]) for word in words])
    threads = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    together = tables.maxima(words)
    torch.set_num_threads(threads)
    assert torch.equal(together, alone)


@needs_compiler
def test_numbers_that_are_none_are_passed_on() -> None:
    vectors, convolutions = parameters(64)
    vectors[7] = torch.nan
    words = torch.tensor([[1, 7, 2, *[PADDING] * 9], [1, 2, 3, *[PADDING] * 9]])
    maxima = CharacterTables(vectors, convolutions, PADDING).maxima(words)
    assert maxima[0].isnan().all()
    assert maxima[1].isfinite().all()


@needs_compiler
@pytest.mark.parametrize("unknown", [-1, NUM_IDS])
def test_unknown_ids_are_refused(unknown: int) -> None:
    words = ids(5)
    words[3, 2] = unknown
    with pytest.raises(IndexError, match=f"not below {NUM_IDS}"):
        CharacterTables(*parameters(3), PADDING).maxima(words)


@needs_compiler
def test_other_tensors_have_no_tables() -> None:
    vectors, convolutions = parameters(3)
    tables = CharacterTables(vectors, convolutions, PADDING)
    assert has_tables(vectors)
    assert not has_tables(vectors.double())
    with accelerator_code():
        assert not has_tables(vectors)
        with pytest.raises(TypeError, match="on the CPU"):
            tables.maxima(ids(1))


@needs_compiler
def test_no_words_have_no_maxima() -> None:
    assert CharacterTables(*parameters(3), PADDING).maxima(ids(1)[:0]).shape == (0, 12)
