"""Beam search, against all sequences."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

START, END, NUM_WORDS = 0, 1, 4


def random_step(seed: int) -> tuple[Callable[..., tuple[Tensor, tuple[Tensor, ...]]], Tensor]:
    """A model whose next word depends on the last one and on a state, which changes."""
    generator = torch.Generator().manual_seed(seed)
    by_word = 2 * torch.randn(NUM_WORDS, NUM_WORDS, generator=generator)
    by_state = torch.randn(3, NUM_WORDS, generator=generator)
    states = torch.randn(2, 3, generator=generator)

    def step(last: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        (values,) = state
        logits = by_word[last] + values @ by_state
        logits[:, START] = float("-inf")
        return logits.log_softmax(dim=1), (values.roll(1, dims=1) + last[:, None] / 3,)

    return step, states


def log_probability(step, state: Tensor, words: tuple[int, ...]) -> float:
    states, last, total = (state[None],), torch.tensor([START]), 0.0
    for word in (*words, END):
        log_p, states = step(last, states)
        total += log_p[0, word].item()
        last = torch.tensor([word])
    return total


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_wide_beam_equals_exhaustive_search(seed, penalty):
    from plugins.question_generation.beam_search import beam_search

    step, states = random_step(seed)
    max_length = 4
    options = {"start": START, "end": END, "max_length": max_length, "length_penalty": penalty}

    found = beam_search(step, (states,), beam_size=2**max_length, **options)

    for row, hypothesis in enumerate(found):
        scores = {
            words: log_probability(step, states[row], words)
            for length in range(max_length + 1)
            for words in product(range(2, NUM_WORDS), repeat=length)
        }
        best = max(scores, key=lambda words: scores[words] / (len(words) + 1) ** penalty)
        assert hypothesis.ids == best
        assert hypothesis.log_probability == pytest.approx(scores[best], abs=1e-5)


def test_beam_of_one_is_greedy_search():
    from plugins.question_generation.beam_search import beam_search

    step, states = random_step(3)

    (found, _) = beam_search(step, (states,), start=START, end=END, beam_size=1, max_length=6)

    last, state, words, ended = torch.tensor([START]), (states[:1],), [], {}
    total = 0.0
    for _ in range(7):
        log_p, state = step(last, state)
        ended[tuple(words)] = total + log_p[0, END].item()
        log_p[0, END] = float("-inf")
        last = log_p.argmax(dim=1)
        total += log_p[0, last].item()
        words.append(int(last))
    assert found.ids == max(ended, key=ended.__getitem__)


def test_longest_sequence_has_max_length_words():
    from plugins.question_generation.beam_search import beam_search

    def step(last: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        return torch.tensor([[-99.0, -5.0, -0.1]]).expand(len(last), -1), states

    (found,) = beam_search(
        step, (torch.zeros(1, 1),), start=0, end=1, beam_size=2, max_length=3, length_penalty=2.0
    )

    assert found.ids == (2, 2, 2)
    assert found.log_probability == pytest.approx(-5.3)
