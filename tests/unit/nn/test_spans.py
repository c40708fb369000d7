import math
import random
from itertools import combinations

import pytest
import torch

from elmo_framework.nn.spans import (
    SpanWindows,
    non_crossing_spans,
    num_spans,
    span_attention,
    weighted_windows,
)

SENTENCES = torch.tensor([0, 0, 0, 1, 1, 2])


def test_a_window_ends_with_its_sentence():
    windows = SpanWindows.of(SENTENCES, 3)

    assert windows.inside.int().tolist() == [
        [1, 1, 1],
        [1, 1, 0],
        [1, 0, 0],
        [1, 1, 0],
        [1, 0, 0],
        [1, 0, 0],
    ]
    assert windows.positions[0].tolist() == [0, 1, 2]
    assert windows.positions[5].tolist() == [5, 5, 5]


def test_a_text_without_words_has_no_windows():
    assert SpanWindows.of(SENTENCES[:0], 3).inside.shape == (0, 3)


def test_attention_is_the_softmax_over_the_words_of_a_span():
    scores = [0.5, -1.0, 2.0, 0.0, 1.0, 3.0]
    windows = SpanWindows.of(SENTENCES, 3)

    attention = span_attention(torch.tensor(scores), windows)

    for start, width in windows.inside.nonzero().tolist():
        powers = [math.exp(score) for score in scores[start : start + width + 1]]
        expected = [power / sum(powers) for power in powers] + [0.0] * (2 - width)
        assert attention[start, width].tolist() == pytest.approx(expected, abs=1e-6)


def test_large_scores_outside_a_span_have_no_effect():
    attention = span_attention(torch.tensor([0.0, 500.0]), SpanWindows.of(SENTENCES[:2], 2))

    assert attention.tolist() == [[[1, 0], [0, 1]], [[1, 0], [1, 0]]]


def test_pooled_vectors_are_weighted_sums():
    torch.manual_seed(1)
    values, scores = torch.randn(6, 4, dtype=torch.float64), torch.randn(6, dtype=torch.float64)
    windows = SpanWindows.of(SENTENCES, 3)
    attention = span_attention(scores, windows)

    pooled = weighted_windows(values, windows.positions, attention)

    for start, width in windows.inside.nonzero().tolist():
        inside = slice(start, start + width + 1)
        expected = scores[inside].softmax(0) @ values[inside]
        torch.testing.assert_close(pooled[start, width], expected)


def crosses(one: tuple[int, int], other: tuple[int, int]) -> bool:
    (start, end), (start_2, end_2) = sorted([one, other])
    return start < start_2 <= end < end_2


def plainly_best(ranked: list[tuple[int, int]], limit: int) -> list[int]:
    chosen: list[int] = []
    for number, span in enumerate(ranked):
        if len(chosen) < limit and not any(crosses(span, ranked[each]) for each in chosen):
            chosen.append(number)
    return chosen


def selected(ranked: list[tuple[int, int]], limit: int) -> list[int]:
    return non_crossing_spans([start for start, _ in ranked], [end for _, end in ranked], limit)


@pytest.mark.parametrize("seed", range(30))
def test_selection_equals_comparison_of_all_pairs(seed: int):
    ranked = list(combinations(range(9), 2)) + [(word, word) for word in range(9)]
    random.Random(seed).shuffle(ranked)

    for limit in (1, 4, 12, 100):
        assert selected(ranked, limit) == plainly_best(ranked, limit)


def test_nested_or_adjacent_spans_do_not_cross():
    assert selected([(0, 5), (0, 2), (3, 5), (1, 2), (4, 4)], 5) == [0, 1, 2, 3, 4]


def test_without_spans_none_are_selected():
    assert selected([], 3) == []


@pytest.mark.parametrize("max_width", [1, 2, 3, 9])
def test_spans_are_counted(max_width: int):
    inside = SpanWindows.of(SENTENCES, max_width).inside

    assert num_spans([3, 2, 0, 1], max_width) == inside.sum()
