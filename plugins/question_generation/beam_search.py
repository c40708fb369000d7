"""Beam search over sequences of words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

States: TypeAlias = tuple[Tensor, ...]
"""Tensors with one row for each hypothesis."""

Step: TypeAlias = Callable[[Tensor, States], tuple[Tensor, States]]
"""From the last words and the states to log probabilities "hypotheses words" and new states."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A sequence that has ended.

    Attributes:
        ids: its words, without the end.
        log_probability: of the words and the end.
    """

    ids: tuple[int, ...]
    log_probability: float


@torch.no_grad()
def beam_search(
    step: Step,
    states: States,
    *,
    start: int,
    end: int,
    beam_size: int,
    max_length: int,
    length_penalty: float = 0.0,
) -> list[Hypothesis]:
    """Find the sequence with the highest log probability / length ** length_penalty for each row.

    The length counts the end. A sequence has at most `max_length` words and then ends. With a beam
    that holds all sequences, the result is that of exhaustive search.

    Args:
        step: computes the log probabilities of the next word.
        states: before the first word, with one row for each sequence to find.
        start: the word before the first.
        end: the word that ends a sequence.
        beam_size: the number of hypotheses that are continued.
        max_length: the maximum number of words.
        length_penalty: 0 for none; larger values prefer longer sequences.
    """
    num_rows = len(states[0])
    states = tuple(state.repeat_interleave(beam_size, dim=0) for state in states)
    last = torch.full((num_rows * beam_size,), start, device=states[0].device)
    # At first, all hypotheses of a row are the same: only one of them counts.
    totals = torch.full((num_rows, beam_size), float("-inf"), device=last.device)
    totals[:, 0] = 0
    words = last.new_zeros(num_rows, beam_size, 0)
    best: list[Hypothesis | None] = [None] * num_rows
    for length in range(1, max_length + 2):
        log_p, states = step(last, states)
        log_p = log_p.view(num_rows, beam_size, -1)
        _end_hypotheses(best, words, totals + log_p[:, :, end], length, length_penalty)
        if length > max_length or _is_decided(best, totals, max_length, length_penalty):
            break
        totals, words, chosen = _continued(totals, words, log_p, end)
        states = tuple(state.index_select(0, chosen) for state in states)
        last = words[:, :, -1].reshape(-1)
    return [hypothesis or Hypothesis((), float("-inf")) for hypothesis in best]


def _continued(
    totals: Float[Tensor, "rows beams"],
    words: Int[Tensor, "rows beams length"],
    log_p: Float[Tensor, "rows beams vocabulary"],
    end: int,
) -> tuple[Tensor, Tensor, Int[Tensor, " hypotheses"]]:
    """Return the best continuations, and which hypothesis each of them continues."""
    num_rows, num_beams, num_words = log_p.shape
    scores = totals[:, :, None] + log_p
    scores[:, :, end] = float("-inf")
    totals, places = scores.view(num_rows, -1).topk(num_beams, dim=1)
    beams, next_words = places // num_words, places % num_words
    rows = torch.arange(num_rows, device=beams.device)[:, None]
    chosen = (rows * num_beams + beams).reshape(-1)
    earlier = words.reshape(num_rows * num_beams, -1).index_select(0, chosen)
    continued = torch.cat([earlier, next_words.reshape(-1, 1)], dim=1)
    return totals, continued.view(num_rows, num_beams, -1), chosen


def _end_hypotheses(
    best: list[Hypothesis | None],
    words: Int[Tensor, "rows beams length"],
    totals: Float[Tensor, "rows beams"],
    length: int,
    length_penalty: float,
) -> None:
    """Replace the best hypothesis of each row if one that ends now is better."""
    for row, (total, beam) in enumerate(zip(*(x.tolist() for x in totals.max(dim=1)), strict=True)):
        earlier = best[row]
        if total == float("-inf"):
            continue
        if earlier is None or _normalized(total, length, length_penalty) > _normalized(
            earlier.log_probability, len(earlier.ids) + 1, length_penalty
        ):
            best[row] = Hypothesis(tuple(words[row, beam].tolist()), total)


def _is_decided(
    best: list[Hypothesis | None],
    totals: Float[Tensor, "rows beams"],
    max_length: int,
    length_penalty: float,
) -> bool:
    """Return whether no hypothesis can become the best: log probabilities only fall."""
    for hypothesis, total in zip(best, totals.max(dim=1).values.tolist(), strict=True):
        if hypothesis is None:
            return False
        bound = _normalized(total, max_length + 1, length_penalty)
        length = len(hypothesis.ids) + 1
        if bound > _normalized(hypothesis.log_probability, length, length_penalty):
            return False
    return True


def _normalized(log_probability: float, length: int, penalty: float) -> float:
    return log_probability / float(length**penalty)
