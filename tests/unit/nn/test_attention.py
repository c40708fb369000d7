import numpy as np
import pytest
import torch
from torch import Tensor, nn

from elmo_framework.nn.attention import (
    BiAttention,
    TrilinearScore,
    TrilinearSelfAttention,
    masked_softmax,
    self_alignment,
    soft_alignment,
)

FIRST_LENGTHS, SECOND_LENGTHS, DIM = (3, 4, 0, 2), (2, 3, 3, 0), 5


def mask(lengths):
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def sequences(lengths, seed):
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths), DIM)
    drawn = torch.randn(shape, dtype=torch.float64, generator=generator)
    return drawn * mask(lengths)[:, :, None]


def average(queries, keys):
    """A plain NumPy reference, one word after the other."""
    if not len(keys):
        return np.zeros_like(queries)
    rows = []
    for query in queries:
        weights = np.exp(keys @ query)
        rows.append((weights[:, None] * keys).sum(axis=0) / weights.sum())
    return np.array(rows).reshape(queries.shape)


@pytest.mark.parametrize("row", range(4))
def test_alignment_is_an_average_of_the_other_sequence(row):
    first, second = sequences(FIRST_LENGTHS, 1), sequences(SECOND_LENGTHS, 2)

    of_first, of_second = soft_alignment(first, mask(FIRST_LENGTHS), second, mask(SECOND_LENGTHS))

    own = first[row, : FIRST_LENGTHS[row]].numpy()
    other = second[row, : SECOND_LENGTHS[row]].numpy()
    np.testing.assert_allclose(of_first[row, : len(own)], average(own, other), atol=1e-12)
    np.testing.assert_allclose(of_second[row, : len(other)], average(other, own), atol=1e-12)


def test_padding_has_no_share():
    first, second = sequences(FIRST_LENGTHS, 1), sequences(SECOND_LENGTHS, 2)
    longer = torch.cat([second, second.new_zeros(4, 3, DIM)], dim=1)
    longer_mask = torch.cat([mask(SECOND_LENGTHS), torch.zeros(4, 3, dtype=torch.bool)], dim=1)

    of_first, of_second = soft_alignment(first, mask(FIRST_LENGTHS), second, mask(SECOND_LENGTHS))
    longer_first, longer_second = soft_alignment(first, mask(FIRST_LENGTHS), longer, longer_mask)

    torch.testing.assert_close(longer_first, of_first, rtol=0, atol=1e-12)
    torch.testing.assert_close(longer_second[:, :3], of_second, rtol=0, atol=1e-12)


def test_an_empty_sequence_gives_zeros():
    first, second = sequences(FIRST_LENGTHS, 1), sequences(SECOND_LENGTHS, 2)

    of_first, of_second = soft_alignment(first, mask(FIRST_LENGTHS), second, mask(SECOND_LENGTHS))

    assert not of_first[3].any()
    assert not of_second[2].any()


def test_self_alignment_equals_alignment_with_a_copy():
    inputs = sequences(FIRST_LENGTHS, 1)

    found = self_alignment(inputs, mask(FIRST_LENGTHS))

    copied, _ = soft_alignment(inputs, mask(FIRST_LENGTHS), inputs, mask(FIRST_LENGTHS))
    torch.testing.assert_close(found, copied, rtol=0, atol=0)


def test_gradients_reach_every_word_and_no_padding():
    first = sequences(FIRST_LENGTHS, 1).requires_grad_()
    second = sequences(SECOND_LENGTHS, 2).requires_grad_()

    of_first, of_second = soft_alignment(first, mask(FIRST_LENGTHS), second, mask(SECOND_LENGTHS))
    pairs = ((of_first, FIRST_LENGTHS), (of_second, SECOND_LENGTHS))
    sum((held * mask(lengths)[:, :, None]).square().sum() for held, lengths in pairs).backward()

    assert (first.grad[:2].abs().sum(dim=2) > 0).equal(mask(FIRST_LENGTHS)[:2])
    assert (second.grad[:2].abs().sum(dim=2) > 0).equal(mask(SECOND_LENGTHS)[:2])


def test_masked_softmax_sums_to_one_or_is_zero():
    scores = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    allowed = torch.tensor([[True, False, True], [False, False, False]])

    shares = masked_softmax(scores, allowed)

    expected = torch.tensor([[1.0, 3.0]]).softmax(dim=1)
    torch.testing.assert_close(shares[:1, ::2], expected)
    assert not shares[~allowed].any()


DIM = 3
LENGTHS = [(5, 2), (3, 4), (1, 1)]  # of passage and question


def seeded(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    module = kind(DIM).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


def rows(lengths: list[int], *, padding: float = 0.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    held = torch.full((*mask.shape, DIM), padding, dtype=torch.float64)
    for row, length in zip(held, lengths, strict=True):
        row[:length] = torch.randn(length, DIM, generator=generator, dtype=torch.float64)
    return held, mask


def score(weight: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    return float(weight[0] @ x + weight[1] @ y + weight[2] @ (x * y))


def softmax(values: list[float]) -> np.ndarray:
    raised = np.exp(np.array(values) - max(values))
    return raised / raised.sum()


def bi_attention(weight: np.ndarray, passage: np.ndarray, question: np.ndarray) -> np.ndarray:
    scores = [[score(weight, p, q) for q in question] for p in passage]
    attended = [softmax(row) @ question for row in scores]
    summary = softmax([max(row) for row in scores]) @ passage
    return np.array(
        [np.concatenate([p, a, p * a, p * summary]) for p, a in zip(passage, attended, strict=True)]
    )


def self_attention(weight: np.ndarray, nothing: float, inputs: np.ndarray) -> np.ndarray:
    found = []
    for i, x in enumerate(inputs):
        raised = [0.0 if i == j else np.exp(score(weight, x, y)) for j, y in enumerate(inputs)]
        attended = np.array(raised) @ inputs / (np.exp(nothing) + sum(raised))
        found.append(np.concatenate([x, attended, x * attended]))
    return np.array(found)


def test_the_score_is_the_sum_of_three_products():
    module = seeded(TrilinearScore)
    left, right = rows([4])[0], rows([4, 6])[0][1:]
    weight = module.weight.detach().numpy()

    found = module(left, right)[0]

    expected = [[score(weight, x, y) for y in right[0].numpy()] for x in left[0].numpy()]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("padding", [0.0, 7.0])
def test_bi_attention_equals_its_equations_despite_padding(padding):
    module = seeded(BiAttention)
    passage, passage_mask = rows([p for p, _ in LENGTHS], padding=padding)
    question, question_mask = rows([q for _, q in LENGTHS], padding=padding)
    weight = module.score.weight.detach().numpy()

    found = module(passage, question, passage_mask, question_mask)

    assert found.shape[2] == module.output_dim
    for row, (p, q) in enumerate(LENGTHS):
        expected = bi_attention(weight, passage[row, :p].numpy(), question[row, :q].numpy())
        torch.testing.assert_close(found[row, :p], torch.from_numpy(expected))


@pytest.mark.parametrize("padding", [0.0, 7.0])
def test_self_attention_equals_its_equation_despite_padding(padding):
    module = seeded(TrilinearSelfAttention)
    lengths = [p for p, _ in LENGTHS]
    inputs, mask = rows(lengths, padding=padding)
    weight = module.score.weight.detach().numpy()

    found = module(inputs, mask)

    assert found.shape[2] == module.output_dim
    for row, length in enumerate(lengths):
        expected = self_attention(weight, module.nothing.item(), inputs[row, :length].numpy())
        torch.testing.assert_close(found[row, :length], torch.from_numpy(expected))


def test_a_word_alone_attends_to_nothing():
    module = seeded(TrilinearSelfAttention)
    inputs, mask = rows([1])

    found = module(inputs, mask)

    assert found[0, 0].tolist() == [*inputs[0, 0].tolist(), 0, 0, 0, 0, 0, 0]


def test_word_attends_to_nothing_if_the_bias_is_large():
    module = seeded(TrilinearSelfAttention)
    nn.init.constant_(module.nothing, 1000)
    inputs, mask = rows([4])

    assert not module(inputs, mask)[:, :, DIM:].any()


def test_a_row_without_words_stays_finite():
    bi, own = seeded(BiAttention), seeded(TrilinearSelfAttention)
    nothing, mask = torch.zeros(1, 2, DIM, dtype=torch.float64), torch.zeros(1, 2).bool()

    assert bi(nothing, nothing, mask, mask).isfinite().all()
    assert own(nothing, mask).isfinite().all()


def test_large_scores_stay_finite():
    module = seeded(TrilinearSelfAttention)
    inputs, mask = rows([5])

    found = module((inputs * 1e4).requires_grad_(), mask)
    found.sum().backward()

    assert found.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in module.parameters())


def test_gradients_reach_every_parameter_and_are_right():
    bi, own = seeded(BiAttention), seeded(TrilinearSelfAttention)
    passage, passage_mask = rows([4, 2])
    question, question_mask = rows([2, 3])

    def both(passage: Tensor, question: Tensor, *parameters: Tensor) -> Tensor:
        attended = bi(passage, question, passage_mask, question_mask)
        return torch.cat([attended, own(passage, passage_mask)], dim=2)

    parameters = (*bi.parameters(), *own.parameters())
    inputs = (passage.requires_grad_(), question.requires_grad_(), *parameters)
    assert torch.autograd.gradcheck(both, inputs)
    both(passage, question).square().sum().backward()
    assert all(parameter.grad.any() for parameter in parameters)
