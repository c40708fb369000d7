"""Attention with rotary positions to a fixed number of past words, or to all words of a row.

Each word attends to itself and to at most `memory_size` words before it. So the result does not
depend on where running text is cut into windows: the memory that one window leaves for the next
has the words that the next may look back at (as in Transformer-XL, Dai et al. 2019).
"""

from __future__ import annotations

from typing import TypeAlias, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.nn.highway import Linear

Memory: TypeAlias = tuple[Tensor, Tensor]
"""The past inputs of each row, "batch memory dim", the last one rightmost, and their number,
"batch 1"."""

_BASE = 10_000.0
"""Of the wavelengths of rotary positions (Su et al. 2021, section 3.3)."""


@final
class WindowedAttention(nn.Module):
    """Multi-head attention by PyTorch's scaled dot product.

    Args:
        dim: dimension of the inputs and outputs.
        num_heads: number of heads.
        head_dim: dimension of each head; must be even.
        memory_size: number of words before a word that it attends to; None for all words of a
            row, before and after it.
    """

    def __init__(self, dim: int, *, num_heads: int, head_dim: int, memory_size: int | None) -> None:
        super().__init__()
        self.num_heads, self.head_dim, self.memory_size = num_heads, head_dim, memory_size
        inner = num_heads * head_dim
        self.query = Linear(dim, inner, bias=False)
        self.key_value = Linear(dim, 2 * inner, bias=False)
        self.output = Linear(inner, dim, bias=False)

    def forward(
        self,
        words: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        memory: tuple[Tensor, ...] | None = None,
    ) -> tuple[Float[Tensor, "batch tokens dim"], tuple[Tensor, ...]]:
        """Attend.

        Args:
            words: normalized; the values at padding do not matter.
            mask: true at words, which come first.
            memory: a `Memory` that the same rows left; nothing was read before when None.

        Returns:
            The outputs, and the memory after the last word of each row; without a `memory_size`
            an empty one.
        """
        past = words.new_zeros(len(words), 0, words.shape[2]) if memory is None else memory[0]
        lengths = words.new_zeros(len(words), 1) if memory is None else memory[1]
        seen = torch.cat([past.to(words.dtype), words], dim=1)
        offset = past.shape[1]
        key, value = self.key_value(seen).chunk(2, dim=2)
        allowed = self._allowed(mask, lengths, offset)
        attended = functional.scaled_dot_product_attention(
            rotated(self._heads(self.query(words)), offset),
            rotated(self._heads(key)),
            self._heads(value),
            attn_mask=allowed,
            is_causal=allowed is None,
        )
        outputs = self.output(attended.transpose(1, 2).flatten(2))
        if self.memory_size is None:
            return outputs, ()
        return outputs, _remembered(seen.detach(), mask, lengths, self.memory_size)

    def _heads(
        self, products: Float[Tensor, "batch tokens inner"]
    ) -> Float[Tensor, "batch heads tokens head_dim"]:
        return products.view(*products.shape[:2], self.num_heads, self.head_dim).transpose(1, 2)

    def _allowed(self, mask: Tensor, lengths: Tensor, offset: int) -> Tensor | None:
        """Return which places each word may see, "batch 1 tokens places"; None for all before it.

        Padding sees itself, because a softmax needs a term.
        """
        steps = torch.arange(mask.shape[1], device=mask.device)
        own = steps[:, None] == steps
        if self.memory_size is None:
            return (mask[:, None, :] | own)[:, None]
        if not offset and mask.shape[1] <= self.memory_size + 1:
            return None  # padding follows the words, so no word sees it
        places = torch.arange(offset + mask.shape[1], device=mask.device)
        distance = steps[:, None] + offset - places
        is_near = (distance >= 0) & (distance <= self.memory_size)
        is_filled = places >= offset - lengths
        return (is_near & is_filled[:, None, :])[:, None]


def rotated(
    vectors: Float[Tensor, "*batch tokens dim"], first_position: int = 0
) -> Float[Tensor, "*batch tokens dim"]:
    """Turn pairs of numbers by an angle that grows with the position (Su et al. 2021).

    The product of two turned vectors depends on their distance alone. Number i is paired with
    number i + dim / 2.
    """
    num_tokens, dim = vectors.shape[-2:]
    wide = torch.promote_types(vectors.dtype, torch.float32)
    steps = torch.arange(num_tokens, device=vectors.device, dtype=wide) + first_position
    pairs = torch.arange(dim // 2, device=vectors.device, dtype=wide)
    angles = steps[:, None] * _BASE ** (-2 * pairs / dim)
    cosine, sine = angles.cos(), angles.sin()
    first, second = vectors.chunk(2, dim=-1)
    turned = torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
    return turned.to(vectors.dtype)


def _remembered(seen: Tensor, mask: Tensor, lengths: Tensor, size: int) -> Memory:
    """Return the last words of each row, those of its memory included."""
    num_words = mask.sum(dim=1)
    offset = seen.shape[1] - mask.shape[1]
    padded = functional.pad(seen, (0, 0, size - offset, 0))
    rows = torch.arange(len(seen), device=seen.device)[:, None] * padded.shape[1]
    places = rows + num_words[:, None] + torch.arange(size, device=seen.device)
    past = padded.flatten(0, 1).index_select(0, places.flatten())
    past = past.view(len(seen), size, seen.shape[2])
    filled = (lengths + num_words[:, None]).clamp(max=size).to(lengths.dtype)
    # Numbers that are not words must not stay: zeros are the state before the first word.
    is_filled = torch.arange(size, device=seen.device) >= size - filled
    return past * is_filled[:, :, None], filled
