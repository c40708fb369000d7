"""Conditional random field over the tags of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

_FORBIDDEN = -10000.0


class Constraints(NamedTuple):
    """Allowed tags and transitions.

    Attributes:
        start: true for a tag that may come first.
        inner: true where the tag of the row may be followed by the tag of the column.
        end: true for a tag that may come last.
    """

    start: Bool[Tensor, " tags"]
    inner: Bool[Tensor, "tags tags"]
    end: Bool[Tensor, " tags"]


class ConditionalRandomField(nn.Module):
    """Scores sequences of tags (Lafferty et al. 2001), as the tagger of section 4 does.

        score(y) = start[y_1] + sum_t emissions[t, y_t] + sum_t transitions[y_t, y_t+1] + end[y_n]
        log p(y) = score(y) - log sum_y' exp score(y')

    Padding follows the words of a row; a row without words has log p = 0.

    Args:
        num_tags: number of tags.
        include_start_end_transitions: whether the start and the end have learned scores; they
            are 0 otherwise.
        constraints: the sequences that `best_tags` may return; None for all. They change neither
            the score nor its normalizer, so training considers every sequence.
    """

    start_constraint: Tensor
    inner_constraint: Tensor
    end_constraint: Tensor

    def __init__(
        self,
        num_tags: int,
        *,
        include_start_end_transitions: bool = False,
        constraints: Constraints | None = None,
    ) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        nn.init.xavier_normal_(self.transitions)
        if include_start_end_transitions:
            self.start_transitions: Tensor = nn.Parameter(torch.randn(num_tags))
            self.end_transitions: Tensor = nn.Parameter(torch.randn(num_tags))
        else:
            self.register_buffer("start_transitions", torch.zeros(num_tags), persistent=False)
            self.register_buffer("end_transitions", torch.zeros(num_tags), persistent=False)
        for name, added in penalties(constraints, num_tags).items():
            self.register_buffer(f"{name}_constraint", added, persistent=False)

    def log_likelihood(
        self,
        emissions: Float[Tensor, "batch tokens tags"],
        tags: Int[Tensor, "batch tokens"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, " batch"]:
        """Return log p of a sequence of tags for each row; ids at padding are ignored."""
        emissions = emissions.to(self.transitions.dtype)
        score = self._score(emissions, tags.masked_fill(~mask, 0), mask)
        normalizer = _log_normalizer(
            emissions,
            mask,
            start=self.start_transitions,
            transitions=self.transitions,
            end=self.end_transitions,
        )
        return (score - normalizer) * mask.any(dim=1)

    def marginal_scores(
        self,
        emissions: Float[Tensor, "batch tokens tags"],
        mask: Bool[Tensor, "batch tokens"],
        *,
        temperature: float = 1.0,
    ) -> Float[Tensor, "batch tokens tags"]:
        """Return log p(y_t = tag) of each word, up to a constant for each row.

        The sums over all other tags are those of the forward-backward algorithm; like the
        normalizer of `log_likelihood`, they take every sequence. Values at padding have no meaning.

        Args:
            emissions: of each tag at each word.
            mask: true for words.
            temperature: divides the scores of sequences.
        """
        emissions = emissions.to(self.transitions.dtype)
        start, end = self.start_transitions, self.end_transitions
        transitions: Tensor = self.transitions
        if temperature != 1.0:
            emissions, transitions = emissions / temperature, transitions / temperature
            start, end = start / temperature, end / temperature
        first, *others = emissions.unbind(1)
        forward, backward = [start + first], [end.expand_as(first)]
        for emission in others:
            extended = forward[-1][:, :, None] + transitions
            forward.append(torch.logsumexp(extended, dim=1) + emission)
        for emission, is_word in zip(others[::-1], mask.unbind(1)[:0:-1], strict=True):
            extended = transitions + (emission + backward[-1])[:, None]
            before = torch.logsumexp(extended, dim=2)
            backward.append(torch.where(is_word[:, None], before, backward[-1]))
        return torch.stack(forward, dim=1) + torch.stack(backward[::-1], dim=1)

    def temperature_slope(
        self,
        emissions: Float[Tensor, "batch tokens tags"],
        tags: Int[Tensor, "batch tokens"],
        mask: Bool[Tensor, "batch tokens"],
        *,
        temperature: float,
    ) -> float:
        """Return the slope of -log p of sequences along the inverse of the temperature, summed.

        With the scores divided by the temperature, -log p is convex in its inverse, and its slope
        is the expected score of a sequence minus that of the given one.
        """
        inverse = torch.tensor(1 / temperature, dtype=torch.float64, requires_grad=True)
        copy: ConditionalRandomField = deepcopy(self).double().requires_grad_(False)
        emissions = emissions.double()
        with torch.no_grad():
            own = copy._score(emissions, tags.masked_fill(~mask, 0), mask)[mask.any(dim=1)]
        with torch.enable_grad():
            normalizer = _log_normalizer(
                emissions * inverse,
                mask,
                start=copy.start_transitions * inverse,
                transitions=copy.transitions * inverse,
                end=copy.end_transitions * inverse,
            )
            (expected,) = torch.autograd.grad(normalizer[mask.any(dim=1)].sum(), inverse)
        return float(expected - own.sum())

    @torch.no_grad()
    def best_tags(
        self,
        emissions: Float[Tensor, "batch tokens tags"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Int[Tensor, "batch tokens"]:
        """Return the best allowed sequence of each row (Viterbi), 0 at padding.

        If none is allowed, return one that violates the fewest constraints.
        """
        start, transitions, end = self.decoding_scores()
        emissions = emissions.to(self.transitions.dtype)
        return best_sequences(emissions, mask, start=start, transitions=transitions, end=end)

    def decoding_scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scores of the first tag, of transitions and of the last tag, constrained."""
        return (
            self.start_transitions + self.start_constraint,
            self.transitions + self.inner_constraint,
            self.end_transitions + self.end_constraint,
        )

    def _score(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        num_tags = len(self.transitions)
        emitted = emissions.gather(2, tags[:, :, None])[:, :, 0]
        pairs = tags[:, :-1] * num_tags + tags[:, 1:]
        # An embedding, because the backward pass of indexing is not deterministic.
        moved = F.embedding(pairs, self.transitions.view(-1, 1))[:, :, 0]
        last = tags.gather(1, (mask.sum(dim=1, keepdim=True) - 1).clamp(min=0))
        bounds = F.embedding(tags[:, :1], self.start_transitions[:, None])
        bounds = bounds + F.embedding(last, self.end_transitions[:, None])
        return (emitted * mask).sum(dim=1) + (moved * mask[:, 1:]).sum(dim=1) + bounds[:, 0, 0]


def _log_normalizer(
    emissions: Tensor, mask: Tensor, *, start: Tensor, transitions: Tensor, end: Tensor
) -> Tensor:
    total = start + emissions[:, 0]  # batch tags
    for emission, is_word in zip(emissions.unbind(1)[1:], mask.unbind(1)[1:], strict=True):
        extended = torch.logsumexp(total[:, :, None] + transitions, dim=1) + emission
        total = torch.where(is_word[:, None], extended, total)
    return torch.logsumexp(total + end, dim=1)


@torch.no_grad()
def mean_crf(
    crfs: Sequence[ConditionalRandomField], orders: Sequence[Int[Tensor, " tags"]]
) -> ConditionalRandomField:
    """Return a CRF with the mean transitions of several, and the constraints of the first.

    Args:
        crfs: one or more.
        orders: for each of them, the ids of the tags of the first.
    """
    pooled: ConditionalRandomField = deepcopy(crfs[0])
    for name in ("transitions", "start_transitions", "end_transitions"):
        values = []
        for crf, order in zip(crfs, orders, strict=True):
            value = getattr(crf, name)
            for dim in range(value.dim()):
                value = value.index_select(dim, order.to(value.device))
            values.append(value.double())
        getattr(pooled, name).copy_(torch.stack(values).mean(dim=0))
    return pooled


@torch.no_grad()
def best_sequences(
    emissions: Float[Tensor, "batch tokens tags"],
    mask: Bool[Tensor, "batch tokens"],
    *,
    start: Float[Tensor, " tags"],
    transitions: Float[Tensor, "tags tags"],
    end: Float[Tensor, " tags"],
) -> Int[Tensor, "batch tokens"]:
    """Return the tags of the highest score for each row (Viterbi), 0 at padding.

    Args:
        emissions: the score of each tag at each word.
        mask: true at words, false at padding, which follows the words.
        start: the score of each tag as the first one.
        transitions: the score of a transition from the tag of the row to that of the column.
        end: the score of each tag as the last one.
    """
    stay = torch.arange(len(transitions), device=mask.device).expand_as(emissions[:, 0])
    best = start + emissions[:, 0]
    pointers, are_words = [stay], mask[:, :, None]
    for emission, is_word in zip(emissions.unbind(1)[1:], are_words.unbind(1)[1:], strict=True):
        scores, previous = (best[:, :, None] + transitions).max(dim=1)
        best = torch.where(is_word, scores + emission, best)
        pointers.append(previous)
    steps = torch.where(are_words, torch.stack(pointers, dim=1), stay[:, None]).unbind(1)[1:]
    tags = [(best + end).argmax(dim=1, keepdim=True)]
    for previous in reversed(steps):
        tags.append(previous.gather(1, tags[-1]))
    return torch.cat(tags[::-1], dim=1).masked_fill(~mask, 0)


def penalties(constraints: Constraints | None, num_tags: int) -> dict[str, Tensor]:
    """Return the penalties of `start`, `inner` and `end` for decoding: 0 where allowed."""
    if constraints is None:
        everywhere = torch.ones(num_tags, num_tags, dtype=torch.bool)
        constraints = Constraints(everywhere[0], everywhere, everywhere[0])
    return {name: _penalty(allowed) for name, allowed in constraints._asdict().items()}


def _penalty(allowed: Tensor) -> Tensor:
    # Not `torch.where`: on the device `meta` PyTorch imports its compiler for it.
    penalty = torch.full(allowed.shape, _FORBIDDEN)
    penalty[allowed] = 0
    return penalty
