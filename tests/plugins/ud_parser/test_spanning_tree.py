"""The decoder, against exhaustive search over all trees."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray


def decode(scores: NDArray[np.float64]) -> list[int]:
    from plugins.ud_parser.spanning_tree import maximum_spanning_tree

    return maximum_spanning_tree(scores)


def is_tree(heads: tuple[int, ...] | list[int]) -> bool:
    """Whether one word has the head 0 and each word leads to it."""

    def leads_to_root(word: int) -> bool:
        for _ in heads:
            word = heads[word - 1] if word else 0
        return word == 0

    return list(heads).count(0) == 1 and all(map(leads_to_root, range(1, len(heads) + 1)))


def total(scores: NDArray[np.float64], heads: tuple[int, ...] | list[int]) -> float:
    return float(sum(scores[index, head] for index, head in enumerate(heads)))


def best_total(scores: NDArray[np.float64]) -> float:
    """The best score of all trees with one root."""
    trees = filter(is_tree, product(range(len(scores) + 1), repeat=len(scores)))
    return max(total(scores, heads) for heads in trees)


@pytest.mark.parametrize("num_words", [1, 2, 3, 4, 5])
def test_tree_equals_the_best_of_all_trees(num_words: int) -> None:
    generator = np.random.default_rng(num_words)
    for _ in range(30 if num_words < 5 else 8):
        scores = generator.normal(scale=3, size=(num_words, num_words + 1))
        heads = decode(scores)
        assert is_tree(heads)
        assert total(scores, heads) == pytest.approx(best_total(scores))


def test_tied_and_extreme_scores_give_a_best_tree() -> None:
    generator = np.random.default_rng(0)
    for scale in (1.0, 1e-6, 1e6):
        for _ in range(10):
            scores = scale * generator.integers(0, 3, size=(4, 5)).astype(float)
            heads = decode(scores)
            assert is_tree(heads)
            assert total(scores, heads) == pytest.approx(best_total(scores))


def test_cycle_inside_a_cycle_is_broken() -> None:
    scores = np.full((4, 5), -10.0)
    scores[0, 2] = scores[1, 1] = 9.0  # words 1 and 2 point at each other
    scores[1, 3] = scores[2, 1] = 8.0  # and their cycle and word 3 at each other
    scores[3, 0] = scores[2, 4] = 1.0
    heads = decode(scores)
    assert is_tree(heads)
    assert total(scores, heads) == pytest.approx(best_total(scores))


def test_one_root_even_if_each_word_prefers_it() -> None:
    scores = np.zeros((3, 4))
    scores[:, 0] = [5.0, 7.0, 6.0]
    heads = decode(scores)
    assert heads[1] == 0
    assert heads.count(0) == 1


def test_own_head_is_never_chosen() -> None:
    scores = np.zeros((3, 4))
    scores[[0, 1, 2], [1, 2, 3]] = 100.0
    assert is_tree(decode(scores))


def test_long_chain_of_contractions_is_a_tree() -> None:
    """Each pair of neighbors is a cycle, at each level of contraction."""
    num_words = 256
    scores = np.full((num_words, num_words + 1), -100.0)
    for word in range(num_words):
        for bit in range(8):
            scores[word, (word ^ (1 << bit)) + 1] = -bit
    scores[17, 0] = -50.0
    heads = decode(scores)
    assert is_tree(heads)
    assert heads[17] == 0


def test_sentence_without_words_has_an_empty_tree() -> None:
    assert decode(np.zeros((0, 1))) == []
