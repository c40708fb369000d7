"""Attention by a trilinear score, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from elmo_framework.nn.trilinear_attention import (
    BiAttention,
    TrilinearScore,
    TrilinearSelfAttention,
)

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
