import math

import numpy as np
import pytest
import torch
from torch import Tensor

from elmo_framework.nn.windowed_attention import WindowedAttention, rotated

LENGTHS = [7, 3, 0]
MASK = torch.arange(7) < torch.tensor(LENGTHS)[:, None]


def attention(memory_size: int | None, seed: int = 0) -> WindowedAttention:
    torch.manual_seed(seed)
    return WindowedAttention(6, num_heads=2, head_dim=4, memory_size=memory_size).double()


def vectors() -> Tensor:
    return torch.randn(3, 7, 6, dtype=torch.double, generator=torch.Generator().manual_seed(1))


def turned(vector: np.ndarray, position: int) -> np.ndarray:
    """Multiply complex numbers by exp(i angle): the definition of rotary positions."""
    half = len(vector) // 2
    angles = position * 10_000.0 ** (-2 * np.arange(half) / len(vector))
    product = (vector[:half] + 1j * vector[half:]) * np.exp(1j * angles)
    return np.concatenate([product.real, product.imag])


def by_brute_force(part: WindowedAttention, words: np.ndarray) -> np.ndarray:
    """Attend word by word and head by head in NumPy; a row has no padding."""
    query, keys, output = (
        linear.weight.detach().numpy() for linear in (part.query, part.key_value, part.output)
    )
    inner = part.num_heads * part.head_dim
    outputs = []
    for place, word in enumerate(words):
        first = 0 if part.memory_size is None else max(0, place - part.memory_size)
        last = len(words) if part.memory_size is None else place + 1
        heads = []
        for head in range(part.num_heads):
            own = slice(head * part.head_dim, (head + 1) * part.head_dim)
            asked = turned((query @ word)[own], place)
            seen = [keys @ other for other in words[first:last]]
            scores = np.array(
                [asked @ turned(each[:inner][own], first + k) for k, each in enumerate(seen)]
            ) / math.sqrt(part.head_dim)
            weights = np.exp(scores - scores.max())
            values = np.stack([each[inner:][own] for each in seen])
            heads.append(weights @ values / weights.sum())
        outputs.append(output @ np.concatenate(heads))
    return np.stack(outputs)


@pytest.mark.parametrize("memory_size", [1, 3, 6, 20, None])
def test_attention_equals_brute_force(memory_size) -> None:
    part = attention(memory_size)
    outputs, _ = part(vectors(), MASK)
    for row, length in enumerate(LENGTHS[:2]):
        expected = by_brute_force(part, vectors()[row, :length].numpy())
        torch.testing.assert_close(outputs[row, :length], torch.from_numpy(expected))


@pytest.mark.parametrize("cuts", [[1] * 7, [2, 5], [4, 2, 1], [7]])
@pytest.mark.parametrize("memory_size", [1, 3, 20])
def test_windows_with_memory_equal_the_whole(memory_size, cuts) -> None:
    part, memory, outputs = attention(memory_size), None, []
    whole, end = part(vectors(), MASK)
    for words, mask in zip(vectors().split(cuts, 1), MASK.split(cuts, 1), strict=True):
        read, memory = part(words, mask, memory)
        outputs.append(read)
    torch.testing.assert_close(torch.cat(outputs, 1)[MASK], whole[MASK])
    torch.testing.assert_close(memory, end)


@pytest.mark.parametrize("memory_size", [2, 20])
def test_zeros_are_the_memory_before_the_first_word(memory_size) -> None:
    part = attention(memory_size)
    zeros = torch.zeros(3, memory_size, 6).double(), torch.zeros(3, 1).double()
    without, with_zeros = (part(vectors(), MASK, memory)[0] for memory in (None, zeros))
    torch.testing.assert_close(without[MASK], with_zeros[MASK])


@pytest.mark.parametrize("memory_size", [2, 20])
def test_a_word_has_no_gradient_from_words_that_it_must_not_see(memory_size) -> None:
    part, words = attention(memory_size), vectors()[:1].requires_grad_()
    outputs, _ = part(words, MASK[:1])
    for place in range(7):
        (gradient,) = torch.autograd.grad(outputs[0, place].sum(), words, retain_graph=True)
        sees = gradient[0].abs().sum(1) > 0
        assert sees.tolist() == [place - memory_size <= other <= place for other in range(7)]


def test_memory_has_no_gradient() -> None:
    part, words = attention(2), vectors().requires_grad_()
    _, memory = part(words, MASK)
    assert not any(tensor.requires_grad for tensor in memory)


def test_the_product_of_turned_vectors_depends_on_their_distance() -> None:
    one, other = vectors()[0, :2].unsqueeze(1).expand(2, 9, 6)
    products = rotated(one) @ rotated(other).T
    for distance in range(-8, 9):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    assert len({round(products[0, k].item(), 9) for k in range(9)}) == 9
