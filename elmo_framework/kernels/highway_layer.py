"""Highway LSTM layers, all steps in one call: compiled from `highway_layer.c`."""

from __future__ import annotations

from ctypes import Structure, byref, c_int, c_long, c_void_p
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import torch
from torch import Tensor

from elmo_framework.kernels.backend import require_shape
from elmo_framework.kernels.blocked_product import blocked, is_blocked, product_address
from elmo_framework.kernels.compiler import library, pointers
from elmo_framework.kernels.highway_step import FORGET_GATE, backward_address, step_address

_library = library(
    Path(__file__).with_suffix(".c"),
    fast_math=False,
    functions={"highway_forward": [*[c_void_p] * 3], "highway_backward": [*[c_void_p] * 8]},
)


_NUMBERS = "num_steps", "size", "width", "forget", "is_backward", "threads"


class _CLayer(Structure):
    """`highway_layer` of `highway_layer.c`."""

    _fields_ = (
        *((name, c_long) for name in _NUMBERS),
        *((name, c_void_p) for name in ("product", "step", "back", "starts", "recurrent")),
        *((name, c_void_p) for name in ("carried", "mask")),
        *((name, c_void_p) for name in ("gates", "memory", "hidden", "outputs")),
    )


@dataclass(frozen=True)
class CompiledHighwayLayer:
    """A highway LSTM layer over packed rows, in float32 on the CPU.

    Attributes:
        recurrent_weight: "gates hidden".
        sizes: number of unfinished rows at each step; never increasing.
        is_backward: whether rows are read from their ends.
        forget_gate: index of f in the order of gates; see `FORGET_GATE`.
    """

    recurrent_weight: Tensor
    sizes: tuple[int, ...]
    is_backward: bool
    forget_gate: int = FORGET_GATE

    def is_supported(self, *tensors: Tensor | None) -> bool:
        """Return whether the compiled functions can compute it, from these tensors."""
        return (
            is_blocked(self.recurrent_weight, "float32")
            and _library(*tensors) is not None
            and None not in _addresses()
        )

    def forward(
        self, gates: Tensor, carried: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Read all words; the states of rows are zero before their first step.

        Args:
            gates: "words gates": the sums without those of h; replaced by the activations.
            carried: "words hidden": W_k x; None without a highway.
            mask: "rows hidden": factor of h for the next step; None for 1.

        Returns:
            For each word: h, c before it, and h before it, times the mask.
        """
        width, size = self.recurrent_weight.shape
        require_shape("gates", gates, sum(self.sizes), width)
        if carried is not None:
            require_shape("carried", carried, len(gates), size)
        if mask is not None:
            require_shape("mask", mask, max(self.sizes[0], len(mask)), size)
        outputs, memory, hidden = gates.new_empty(3, len(gates), size)
        sums = gates.new_empty(self.sizes[0], width)
        self._call("highway_forward", carried, mask, (gates, memory, hidden, outputs), (sums,))
        return outputs, memory, hidden

    def backward(
        self,
        of_outputs: Tensor,
        gates: Tensor,
        carried: Tensor | None,
        mask: Tensor | None,
        memory: Tensor,
    ) -> tuple[Tensor, Tensor | None]:
        """Backpropagate through all steps.

        Args:
            of_outputs: "words hidden": the gradients of h.
            gates: the activations.
            carried: as in `forward`.
            mask: as in `forward`.
            memory: returned by `forward`.

        Returns:
            "words gates" and "words hidden": the gradients of the sums and of `carried`.
        """
        rows, size = self.sizes[0], memory.shape[1]
        of_output, of_hidden = memory.new_empty(2, rows, size)
        of_sums = torch.empty_like(gates)
        of_carried = None if carried is None else torch.empty_like(carried)
        tensors = of_output, of_hidden, memory.new_zeros(rows, size), of_sums, of_carried
        saved = gates, memory, None, None
        self._call("highway_backward", carried, mask, saved, (of_outputs.contiguous(), *tensors))
        return of_sums, of_carried

    def _call(
        self,
        name: str,
        carried: Tensor | None,
        mask: Tensor | None,
        of_words: tuple[Tensor | None, ...],
        arguments: tuple[Tensor | None, ...],
    ) -> None:
        functions, addresses = _library(carried, mask, *of_words, *arguments), _addresses()
        assert functions is not None
        assert None not in addresses  # the compiled code would call it
        weight = self.recurrent_weight if name == "highway_forward" else self.recurrent_weight.T
        packed = blocked(weight, "float32")
        assert packed is not None
        width, size = self.recurrent_weight.shape
        starts = torch.tensor([0, *accumulate(self.sizes)], dtype=torch.int64)
        layer = _CLayer(
            *(len(self.sizes), size, width, self.forget_gate, self.is_backward),
            torch.get_num_threads(),
            *addresses,
            *pointers(starts, packed.blocks, carried, mask, *of_words),
        )
        failed = c_int(0)
        getattr(functions, name)(byref(layer), *pointers(*arguments), byref(failed))
        if failed.value:
            raise MemoryError("not enough memory for the products of an LSTM layer")


def _addresses() -> tuple[int | None, ...]:
    """Return the addresses of what the compiled code calls; None without a compiler."""
    return product_address(), step_address(), backward_address()
