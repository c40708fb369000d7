from itertools import combinations

import pytest
import torch

from elmo_framework.nn.span_pruning import non_crossing_spans


def crosses(one: tuple[int, int], other: tuple[int, int]) -> bool:
    (start, end), (start_2, end_2) = sorted([one, other])
    return start < start_2 <= end < end_2


def plainly_best(scores: list[float], spans: list[tuple[int, int]], limit: int) -> list[int]:
    chosen: list[int] = []
    for number in sorted(range(len(spans)), key=lambda each: (-scores[each], each)):
        if len(chosen) < limit and not any(crosses(spans[number], spans[c]) for c in chosen):
            chosen.append(number)
    return sorted(chosen, key=lambda each: spans[each])


@pytest.mark.parametrize("seed", range(30))
def test_selection_equals_comparison_of_all_pairs(seed: int):
    generator = torch.Generator().manual_seed(seed)
    spans = list(combinations(range(9), 2)) + [(word, word) for word in range(9)]
    scores = torch.randn(len(spans), generator=generator)
    starts, ends = torch.tensor(spans).T

    for limit in (1, 4, 12, 100):
        kept = non_crossing_spans(scores, starts, ends, limit).tolist()
        assert kept == plainly_best(scores.tolist(), spans, limit)


def test_nested_or_adjacent_spans_do_not_cross():
    spans = torch.tensor([[0, 5], [0, 2], [3, 5], [1, 2], [4, 4]])

    kept = non_crossing_spans(torch.arange(5.0), spans[:, 0], spans[:, 1], 5)

    assert spans[kept].tolist() == [[0, 2], [0, 5], [1, 2], [3, 5], [4, 4]]


def test_of_equal_scores_the_first_is_better():
    spans = torch.tensor([[0, 1], [1, 2], [2, 3]])

    kept = non_crossing_spans(torch.zeros(3), spans[:, 0], spans[:, 1], 3)

    assert kept.tolist() == [0, 2]


def test_of_no_spans_none_are_kept():
    nothing = torch.zeros(0, dtype=torch.long)

    assert non_crossing_spans(torch.zeros(0), nothing, nothing, 3).tolist() == []
