"""The best span, against all spans."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from elmo_framework.tasks.question_answering.answer_head import best_answers


def brute_force(
    start: Sequence[float], end: Sequence[float], max_length: int | None
) -> tuple[int, int]:
    spans = [
        (first, last)
        for first in range(len(start))
        for last in range(first, len(end))
        if max_length is None or last - first < max_length
    ]
    return max(spans, key=lambda span: start[span[0]] + end[span[1]])


@pytest.mark.parametrize("max_length", [1, 2, 3, 17, None])
@pytest.mark.parametrize("num_tokens", [1, 2, 5, 23])
def test_best_span_equals_exhaustive_search(num_tokens, max_length):
    generator = torch.Generator().manual_seed(num_tokens)
    start, end = torch.randn(2, 40, num_tokens, generator=generator)

    found = best_answers(start, end, max_length)

    expected = [
        brute_force(*scores, max_length)
        for scores in zip(start.tolist(), end.tolist(), strict=True)
    ]
    assert [tuple(span) for span in found.tolist()] == expected


@pytest.mark.parametrize("max_length", [1, 3, 40, None])
def test_first_and_shortest_of_equal_spans_wins(max_length):
    generator = torch.Generator().manual_seed(3)
    start, end = torch.randint(3, (2, 60, 9), generator=generator).float()
    start[:, 6:] = end[:, 6:] = float("-inf")
    small = torch.rand(60, 9, generator=generator) * 1e-9  # is lost in a sum

    end = torch.where(end == 0, small, end)

    found = best_answers(start, end, max_length)

    expected = [
        brute_force(*scores, max_length) for scores in zip(start.numpy(), end.numpy(), strict=True)
    ]
    assert [tuple(span) for span in found.tolist()] == expected


def test_span_search_needs_no_memory_per_word_pair():
    start, end = torch.zeros(2, 1, 200_000)
    start[0, 7], end[0, 150_000] = 1, 1

    assert best_answers(start, end).tolist() == [[7, 150_000]]


def test_span_ends_at_a_word_that_is_not_padding():
    start = torch.tensor([[0.0, 1.0, float("-inf"), float("-inf")]])
    end = torch.tensor([[5.0, 0.0, float("-inf"), float("-inf")]])

    assert best_answers(start, end, 17).tolist() == [[0, 0]]


def test_max_span_length_limits_the_answer():
    start, end = torch.zeros(1, 30), torch.zeros(1, 30)
    start[0, 3], end[0, 19], end[0, 20] = 9, 4, 8

    assert best_answers(start, end, 17).tolist() == [[3, 19]]
    assert best_answers(start, end, 18).tolist() == [[3, 20]]
