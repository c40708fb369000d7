"""The loss and the clusters against an enumeration of all choices of antecedents."""

import math
from itertools import product

import pytest
import torch

from elmo_framework.tasks.coreference.antecedents import antecedent_loss, resolved, with_dummy


def random_choices(num_spans: int, num_antecedents: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(num_spans, num_antecedents, dtype=torch.float64, generator=generator)
    for span in range(num_spans):
        scores[span, span:] = -math.inf
    return with_dummy(scores)


def all_choices(num_spans: int, num_antecedents: int) -> list[tuple[int, ...]]:
    return list(product(*(range(min(i, num_antecedents) + 1) for i in range(num_spans))))


def is_right(chosen: tuple[int, ...], clusters: list[int], num_antecedents: int) -> bool:
    """Whether each span has an antecedent of its cluster, or none when there is none."""
    for span, back in enumerate(chosen):
        gold = {
            k
            for k in range(1, min(span, num_antecedents) + 1)
            if clusters[span] and clusters[span - k] == clusters[span]
        }
        if back not in (gold or {0}):
            return False
    return True


@pytest.mark.parametrize("num_antecedents", [1, 2, 5])
@pytest.mark.parametrize("clusters", [[1, 0, 1, 2, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]])
def test_the_loss_equals_an_enumeration(clusters: list[int], num_antecedents: int):
    choices = random_choices(5, num_antecedents, seed=3)
    weights = {
        chosen: math.exp(sum(float(choices[span, back]) for span, back in enumerate(chosen)))
        for chosen in all_choices(5, num_antecedents)
    }
    right = sum(w for chosen, w in weights.items() if is_right(chosen, clusters, num_antecedents))

    loss = antecedent_loss(choices, torch.tensor(clusters))

    assert float(loss) == pytest.approx(-math.log(right / sum(weights.values())))


def test_loss_has_gradients_without_spans():
    scores = torch.full((1, 3), -math.inf, requires_grad=True)
    antecedent_loss(with_dummy(scores), torch.tensor([1])).backward()
    nothing = antecedent_loss(with_dummy(torch.zeros(0, 3)), torch.zeros(0, dtype=torch.long))

    assert scores.grad.tolist() == [[0, 0, 0]]
    assert float(nothing) == 0


def linked(chosen: tuple[int, ...]) -> set[frozenset[int]]:
    """The sets of spans that links join, found by joining them again and again."""
    groups = [{span, span - back} for span, back in enumerate(chosen) if back]
    joined = True
    while joined:
        joined = False
        for one in groups:
            for other in groups:
                if one is not other and one & other:
                    one |= other
                    groups.remove(other)
                    joined = True
                    break
            if joined:
                break
    return set(map(frozenset, groups))


@pytest.mark.parametrize("seed", range(8))
def test_clusters_equal_exhaustive_search(seed: int):
    choices = random_choices(6, 4, seed)
    best = max(
        all_choices(6, 4),
        key=lambda chosen: sum(float(choices[span, back]) for span, back in enumerate(chosen)),
    )
    spans = [(number, number + 1) for number in range(6)]

    found = resolved(spans, choices.argmax(dim=1).tolist())

    assert {frozenset(m.start for m in held) for held in found.clusters} == linked(best)
    assert list(found.spans) == spans


def test_clusters_are_in_document_order():
    spans = [(0, 0), (1, 3), (2, 2), (5, 5), (6, 7)]

    found = resolved(spans, [0, 0, 0, 1, 3])

    assert found.clusters == (((1, 3), (6, 7)), ((2, 2), (5, 5)))
