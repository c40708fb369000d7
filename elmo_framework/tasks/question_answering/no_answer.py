"""The score of the option that a question has no answer."""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.nn.attention import masked_softmax

_HIDDEN_DIM = 80  # Clark and Gardner 2018, section 3.3


@final
class NoAnswerScore(nn.Module):
    """Scores the option of no answer (Clark and Gardner 2018, section 3.3).

    With the states x_i, y_i that the scores s_i, g_i of starts and ends are computed from, and the
    states r_i after attention:

        v_1 = sum_i softmax(s)_i x_i,  v_2 = sum_i softmax(g)_i y_i,  v_3 = sum_i softmax(w r)_i r_i
        z = W_2 relu(W_1 [v_1; v_2; v_3] + b_1) + b_2

    Args:
        start_dim: dimension of x.
        end_dim: dimension of y.
        state_dim: dimension of r.
    """

    def __init__(self, start_dim: int, end_dim: int, state_dim: int) -> None:
        super().__init__()
        # A bias would not change the softmax over words.
        self.attention = nn.Linear(state_dim, 1, bias=False)
        self.hidden = nn.Linear(start_dim + end_dim + state_dim, _HIDDEN_DIM)
        self.output = nn.Linear(_HIDDEN_DIM, 1)

    def forward(
        self,
        starts: tuple[Float[Tensor, "batch words start"], Float[Tensor, "batch words"]],
        ends: tuple[Float[Tensor, "batch words end"], Float[Tensor, "batch words"]],
        states: Float[Tensor, "batch words state"],
        mask: Bool[Tensor, "batch words"],
    ) -> Float[Tensor, " batch"]:
        """Return z.

        Args:
            starts: x and s.
            ends: y and g.
            states: r.
            mask: true at words.
        """
        weighted = (starts, ends, (states, self.attention(states).squeeze(2)))
        vectors = [
            (masked_softmax(scores, mask)[:, None] @ each).squeeze(1) for each, scores in weighted
        ]
        hidden = torch.relu(self.hidden(torch.cat(vectors, dim=1)))
        score: Tensor = self.output(hidden).squeeze(1)
        return score
