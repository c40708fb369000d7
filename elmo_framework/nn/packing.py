"""Convert padded rows to packed steps without padding, and back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Packing:
    """Layout of the words of padded rows, ordered by steps.

    Rows are sorted by length, longest first, so that the unfinished rows of a step come first:
    step t has `sizes[t]` words, and `sizes` never increases.

    Attributes:
        order: the rows, longest first.
        positions: for each word, step by step, its index in the flattened padded rows.
        sizes: number of words of each step; no step is empty.
        num_tokens: the length of the padded rows.
        is_full: whether no row has padding, as far as is known without waiting for a device. Then
            packing only transposes, and nothing is copied to a device.
    """

    order: Int[Tensor, " batch"]
    positions: Int[Tensor, " words"]
    sizes: list[int]
    num_tokens: int
    is_full: bool = False

    @classmethod
    def of(cls, mask: Bool[Tensor, "batch tokens"]) -> Packing:
        """Compute the layout from a mask; padding follows the words of a row.

        A mask on an accelerator is waited for, once.
        """
        if not mask.is_cpu:
            return cls.of(mask.cpu()).to(mask.device)
        num_rows, num_tokens = mask.shape
        if mask.numel() and mask.all():
            order, steps = torch.arange(num_rows), torch.arange(num_tokens)
            positions = (order * num_tokens + steps[:, None]).flatten()
            return cls(order, positions, [num_rows] * num_tokens, num_tokens, is_full=True)
        order = mask.sum(dim=1).argsort(descending=True, stable=True)
        step, rank = mask.index_select(0, order).T.nonzero(as_tuple=True)
        return cls(
            order=order,
            positions=order[rank] * num_tokens + step,
            sizes=[size for size in mask.sum(dim=0).tolist() if size],
            num_tokens=num_tokens,
        )

    def to(self, device: torch.device) -> Packing:
        """Copy to a device without synchronizing with it."""
        if self.is_full:
            return self
        order = self.order.to(device, non_blocking=True)
        return replace(self, order=order, positions=self.positions.to(device, non_blocking=True))

    def pack(self, inputs: Float[Tensor, "batch tokens dim"]) -> Float[Tensor, "words dim"]:
        """Return the words of padded rows.

        Raises:
            ValueError: the rows are not those of the mask.
        """
        if inputs.shape[:2] != (len(self.order), self.num_tokens):
            raise ValueError(
                f"the inputs have {tuple(inputs.shape[:2])} rows and words, and the mask has "
                f"{(len(self.order), self.num_tokens)}"
            )
        if self.is_full:
            return inputs.transpose(0, 1).flatten(0, 1)
        return inputs.flatten(0, 1).index_select(0, self.positions)

    def unpack(self, packed: Float[Tensor, "words dim"]) -> Float[Tensor, "batch tokens dim"]:
        """Convert packed words to rows padded with zeros."""
        num_rows, dim = len(self.order), packed.shape[1]
        if self.is_full:
            return packed.view(self.num_tokens, num_rows, dim).transpose(0, 1)
        places = packed.new_zeros(num_rows * self.num_tokens, dim)
        filled = places.index_copy(0, self.positions, packed)
        return filled.view(num_rows, self.num_tokens, dim)

    def sort(self, rows: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim"]:
        """Sort values of whole rows into the order of the packing."""
        return rows if self.is_full else rows.index_select(0, self.order)

    def restore(self, rows: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim"]:
        """Undo `sort`."""
        return rows if self.is_full else rows.index_select(0, self.order.argsort())


def reversed_rows(
    inputs: Shaped[Tensor, "batch tokens *dim"], mask: Bool[Tensor, "batch tokens"]
) -> Shaped[Tensor, "batch tokens *dim"]:
    """Reverse the words of each row within its length; padding remains at the end."""
    batch, num_tokens = mask.shape
    steps = torch.arange(num_tokens, device=mask.device)
    sources = torch.where(mask, mask.sum(dim=1, keepdim=True) - 1 - steps, steps)
    starts = torch.arange(batch, device=mask.device)[:, None] * num_tokens
    flat = inputs.flatten(0, 1).index_select(0, (starts + sources).flatten())
    return flat.view_as(inputs)
