"""A decoder that attends to a passage and copies words from it."""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

_TINY = 1e-12


@final
class CopyDecoder(nn.Module):
    """An LSTM with attention (Bahdanau et al. 2015) and copying (See et al. 2017).

    With the encoded words h_i, the last word y and the last context c:

        s = LSTM([y; c]),  e_i = v tanh(W_h h_i + W_s s + b),  a = softmax(e),  c = sum_i a_i h_i
        p_vocabulary = softmax(V tanh(U [s; c])),  g = sigmoid(w [c; s; y])
        p(word) = g p_vocabulary(word) + (1 - g) sum of a_i over the places i of the word

    Args:
        num_words: the size of the vocabulary.
        encoded_dim: the dimension of h.
        embedding_dim: the dimension of y.
        hidden_dim: the dimension of s.
        dropout: the dropout rate of y and of the input of V.
    """

    def __init__(
        self, num_words: int, encoded_dim: int, embedding_dim: int, hidden_dim: int, dropout: float
    ) -> None:
        super().__init__()
        self.num_words = num_words
        self.embedding = nn.Embedding(num_words, embedding_dim)
        self.initial = nn.Linear(encoded_dim, 2 * hidden_dim)
        self.lstm = nn.LSTMCell(embedding_dim + encoded_dim, hidden_dim)
        self.attended = nn.Linear(encoded_dim, hidden_dim)
        self.attending = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.attention = nn.Linear(hidden_dim, 1, bias=False)
        self.projection = nn.Linear(hidden_dim + encoded_dim, hidden_dim)
        self.vocabulary = nn.Linear(hidden_dim, num_words)
        self.gate = nn.Linear(encoded_dim + hidden_dim + embedding_dim, 1)
        self.dropout = nn.Dropout(dropout)

    def start(
        self, encoded: Float[Tensor, "batch tokens encoded"], mask: Bool[Tensor, "batch tokens"]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the state before the first word: of the LSTM, its cell, and the last context."""
        sizes = mask.sum(dim=1, keepdim=True).clamp(min=1)
        mean = encoded.masked_fill(~mask[:, :, None], 0).sum(dim=1) / sizes
        hidden, cell = torch.tanh(self.initial(mean)).chunk(2, dim=1)
        return hidden.contiguous(), cell.contiguous(), torch.zeros_like(mean)

    def step(
        self,
        last: Int[Tensor, " batch"],
        state: tuple[Tensor, Tensor, Tensor],
        encoded: Float[Tensor, "batch tokens encoded"],
        keys: Float[Tensor, "batch tokens hidden"],
        mask: Bool[Tensor, "batch tokens"],
        source_ids: Int[Tensor, "batch tokens"],
        num_unknown: int,
    ) -> tuple[Float[Tensor, "batch words"], tuple[Tensor, Tensor, Tensor]]:
        """Return the log probabilities of the next word, and the next state.

        Args:
            last: the last word; one that was copied from outside the vocabulary is unknown.
            state: of `start` or of the last step.
            encoded: the words of the passage.
            keys: `keys` of these.
            mask: false at padding.
            source_ids: the ids of the words of the passage.
            num_unknown: the number of ids above the vocabulary.
        """
        hidden, cell, context = state
        word = self.dropout(self.embedding(last))
        hidden, cell = self.lstm(torch.cat([word, context], dim=1), (hidden, cell))
        scores = self.attention(torch.tanh(keys + self.attending(hidden)[:, None])).squeeze(2)
        weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=1)
        context = (weights[:, None] @ encoded).squeeze(1)
        output = torch.tanh(self.projection(torch.cat([hidden, context], dim=1)))
        from_vocabulary = self.vocabulary(self.dropout(output)).softmax(dim=1)
        gate = torch.sigmoid(self.gate(torch.cat([context, hidden, word], dim=1)))
        probabilities = functional.pad(gate * from_vocabulary, (0, num_unknown))
        probabilities = probabilities.scatter_add(1, source_ids, (1 - gate) * weights)
        return probabilities.clamp(min=_TINY).log(), (hidden, cell, context)

    def keys(
        self, encoded: Float[Tensor, "batch tokens encoded"]
    ) -> Float[Tensor, "batch tokens hidden"]:
        """Return W_h h + b, which is the same in all steps."""
        keys: Tensor = self.attended(encoded)
        return keys
