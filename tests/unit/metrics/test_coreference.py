"""The scores of coreference against their definitions, worked by hand and by brute force."""

from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest

from elmo_framework.metrics.coreference import ConllCoref, MentionRecall, Resolution

A, B, C, D, E, F, G, H, J = ((word, word) for word in range(9))


def scores(*documents: tuple[Any, Any]) -> dict[str, float]:
    """Score pairs of right and predicted clusters."""
    metric, total = ConllCoref(), {}
    for key, response in documents:
        for name, value in metric.count(Resolution(tuple(response), ()), key).items():
            total[name] = total.get(name, 0.0) + value
    return metric.score(total)


def three(found: dict[str, float], metric: str) -> tuple[float, float, float]:
    return tuple(found[f"{metric}_{side}"] for side in ("precision", "recall", "f1"))


def test_scores_of_the_example_in_the_scorer_paper():
    # Pradhan et al. (2014), figure 1: key {a b c} {d e f g}, response {a b} {c d} {f g h i}.
    found = scores(([[A, B, C], [D, E, F, G]], [[A, B], [C, D], [F, G, H, J]]))

    assert found["muc_recall"] == pytest.approx(2 / 5)
    assert found["muc_precision"] == pytest.approx(2 / 5)
    assert found["muc_f1"] == pytest.approx(0.40)
    recall = (4 / 3 + 1 / 3 + 1 / 4 + 4 / 4) / 7
    precision = (4 / 2 + 1 / 2 + 1 / 2 + 4 / 4) / 8
    assert round(found["b_cubed_recall"], 2) == round(recall, 2) == 0.42
    assert found["b_cubed_recall"] == pytest.approx(recall)
    assert found["b_cubed_precision"] == pytest.approx(precision) == pytest.approx(0.50)
    assert found["b_cubed_f1"] == pytest.approx(2 * recall * precision / (recall + precision))
    # phi4({a b c}, {a b}) = 4/5 and phi4({d e f g}, {f g h i}) = 4/8.
    assert found["ceaf_recall"] == pytest.approx(1.3 / 2)
    assert found["ceaf_precision"] == pytest.approx(1.3 / 3)
    assert found["ceaf_f1"] == pytest.approx(0.52)
    assert three(found, "mention_identification") == pytest.approx((6 / 8, 6 / 7, 0.8))


def test_coref_score_is_the_mean_of_three():
    found = scores(([[A, B, C], [D, E]], [[A, B], [D, E, F]]))

    for side in ("precision", "recall", "f1"):
        parts = [found[f"{name}_{side}"] for name in ("muc", "b_cubed", "ceaf")]
        assert found[f"coref_{side}"] == pytest.approx(sum(parts) / 3)


def test_correct_clusters_score_one_in_any_order():
    found = scores(([[A, B, C], [D, E]], [[E, D], [C, A, B]]))

    assert set(found.values()) == {1.0}
    assert len(found) == 15


@pytest.mark.parametrize(
    ("key", "response"), [([], []), ([[A, B]], []), ([], [[A, B]]), ([[A, B]], [[C, D]])]
)
def test_disjoint_clusters_score_zero(key: Any, response: Any):
    assert set(scores((key, response)).values()) == {0.0}


def test_empty_sums_score_zero():
    assert set(ConllCoref().score({}).values()) == {0.0}
    assert MentionRecall().score({}) == {"mention_recall": 0.0}


def test_scores_of_one_merged_cluster():
    found = scores(([[A, B], [C, D]], [[A, B, C, D]]))

    assert three(found, "muc") == pytest.approx((2 / 3, 1, 0.8))
    assert three(found, "b_cubed") == pytest.approx((0.5, 1, 2 / 3))
    assert three(found, "ceaf") == pytest.approx((2 / 3, 1 / 3, 4 / 9))


def test_singletons_count_on_both_sides():
    # No links for MUC; the other two count a cluster of one like any other.
    found = scores(([[A], [B]], [[A], [C]]))

    assert three(found, "muc") == (0, 0, 0)
    assert three(found, "b_cubed") == pytest.approx((0.5, 0.5, 0.5))
    assert three(found, "ceaf") == pytest.approx((0.5, 0.5, 0.5))


def test_a_predicted_singleton_costs_precision_only():
    plain = scores(([[A, B]], [[A, B]]))
    more = scores(([[A, B]], [[A, B], [C]]))

    assert three(more, "muc") == three(plain, "muc") == (1, 1, 1)
    assert three(more, "b_cubed") == pytest.approx((2 / 3, 1, 0.8))
    assert three(more, "ceaf") == pytest.approx((1 / 2, 1, 2 / 3))


def test_repeated_correct_mention_counts_in_its_first_cluster():
    once = scores(([[A, B], [C, D]], [[A, B], [C, D]]))

    assert scores(([[A, B], [C, D]], [[A, B, B], [C, D, A]])) == once
    assert scores(([[A, B], [C, D]], [[A, B], [C, D], [A, D]])) == once


def test_mention_listed_twice_in_a_gold_cluster_counts_twice():
    # As the scorer counts: three links of the key, of which the response has two.
    found = scores(([[A, B, A], [C, D]], [[A, B], [C, D]]))

    assert three(found, "muc") == pytest.approx((1, 2 / 3, 0.8))
    recall = (2 / 3 + 2 / 3 + 1 + 1) / 5
    assert three(found, "b_cubed") == pytest.approx((1, recall, 2 * recall / (1 + recall)))
    # phi4({a b a}, {a b}) = 2 * 3 / 5: each a of the key is in the response.
    assert three(found, "ceaf") == pytest.approx((1.1, 1.1, 1.1))
    assert three(found, "mention_identification") == (1, 1, 1)


def test_gold_clusters_with_a_common_mention_are_not_merged():
    # As the scorer counts: it asks for the last cluster of B, and adds up the sizes of both.
    found = scores(([[A, B], [B, C]], [[A, B, C]]))

    assert three(found, "muc") == pytest.approx((1 / 2, 1 / 2, 1 / 2))
    assert three(found, "b_cubed") == pytest.approx(
        ((2 + 2 + 2) / 3 / 3, (2 + 2 + 2) / 2 / 4, 12 / 17)
    )
    assert three(found, "ceaf") == pytest.approx((0.8, 0.4, 1.6 / 3))
    assert three(found, "mention_identification") == (1, 1, 1)
    assert scores(([[A, B], [B, C]], [[A, B], [C]]))["muc_recall"] == 0
    assert scores(([[A, B], [B, C]], [[A], [B, C]]))["muc_recall"] == 1 / 2


def test_repeated_wrong_mention_counts_in_each_cluster():
    # The scorer removes what it has mapped to the key before, and it maps nothing else.
    found = scores(([[A, B], [C, D]], [[A, B, J], [C, D, J]]))

    assert three(found, "muc") == pytest.approx((2 / 4, 1, 2 / 3))
    assert three(found, "b_cubed") == pytest.approx(((4 / 3 + 4 / 3) / 6, 1, 8 / 13))
    assert three(found, "ceaf") == pytest.approx((0.8, 0.8, 0.8))
    assert three(found, "mention_identification") == pytest.approx((4 / 5, 1, 8 / 9))
    assert three(scores(([[A, B]], [[A, J, J]])), "ceaf") == pytest.approx((0.4, 0.4, 0.4))


def test_mentions_with_other_boundaries_are_wrong():
    found = scores(([[(0, 1), (5, 5)]], [[(0, 2), (5, 5)]]))

    assert three(found, "mention_identification") == (0.5, 0.5, 0.5)
    assert three(found, "muc") == (0, 0, 0)
    assert three(found, "b_cubed") == pytest.approx((0.25, 0.25, 0.25))
    assert three(found, "ceaf") == pytest.approx((0.5, 0.5, 0.5))


def test_documents_are_summed_before_division():
    first, second = ([[A, B, C]], [[A, B]]), ([[A, B]], [[A, B]])

    found = scores(first, second)

    assert three(found, "muc") == pytest.approx((1, 2 / 3, 0.8))
    assert found["b_cubed_recall"] == pytest.approx((4 / 3 + 2) / 5)
    assert found["ceaf_recall"] == pytest.approx((0.8 + 1) / 2)
    assert found != {name: (scores(first)[name] + scores(second)[name]) / 2 for name in found}


def test_mention_recall_is_the_ratio_of_mentions_in_spans():
    metric = MentionRecall()

    sums = metric.count(Resolution((), (A, B, (3, 4))), [[A, C], [(3, 4), (3, 5)]])

    assert metric.score(sums) == {"mention_recall": 0.5}


def by_definition(key: Any, response: Any) -> dict[str, float]:
    """Recall of the three metrics from their definitions, the map of CEAF by trying all."""
    key, response = [set(held) for held in key], [set(held) for held in response]
    pieces = [
        sum(bool(one & other) for other in response) + len(one - set().union(*response))
        for one in key
    ]
    muc = sum(len(one) - count for one, count in zip(key, pieces, strict=True))
    b_cubed = [
        sum(len(one & other) for other in response if mention in other) / len(one)
        for one in key
        for mention in one
    ]
    padded = response + [set()] * max(0, len(key) - len(response))
    best = max(
        sum(
            2 * len(one & other) / (len(one) + len(other))
            for one, other in zip(key, order, strict=False)
        )
        for order in permutations(padded, len(key))
    )
    return {
        "muc": muc / max(1, sum(len(one) - 1 for one in key)),
        "b_cubed": sum(b_cubed) / len(b_cubed),
        "ceaf": best / len(key),
    }


@pytest.mark.parametrize("seed", range(40))
def test_scores_equal_their_definitions(seed: int):
    random = np.random.default_rng(seed)

    def clusters() -> list[list[tuple[int, int]]]:
        mentions = [
            (int(word), int(word)) for word in random.permutation(12)[: random.integers(4, 12)]
        ]
        cuts = sorted(random.choice(range(1, len(mentions)), random.integers(1, 4), replace=False))
        bounds = [0, *map(int, cuts), len(mentions)]
        return [mentions[a:b] for a, b in pairwise(bounds)]

    key, response = clusters(), clusters()
    found = scores((key, response))

    recall, precision = by_definition(key, response), by_definition(response, key)
    for name in recall:
        assert found[f"{name}_recall"] == pytest.approx(recall[name])
        assert found[f"{name}_precision"] == pytest.approx(precision[name])
