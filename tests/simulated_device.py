"""A device that exists in tests only: its tensors are computed on the CPU but may not be read.

The name of the device is that of PyTorch's `meta`, so that the package takes its code for
accelerators. Each call is recorded, with the waits of the host for a result: reading a number,
copying to the CPU, and results whose size depends on numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("meta")
_Arguments: TypeAlias = Sequence[Any]
_Keywords: TypeAlias = Mapping[str, Any]
_PACKAGE = Path(__file__).parents[1] / "elmo_framework"

_WAITING = {
    *("_local_scalar_dense", "nonzero", "_unique2", "unique_dim", "unique_consecutive"),
    *("masked_select", "equal", "is_nonzero", "bincount", "_linalg_check_errors"),
}
"""Operations whose result the host needs before it continues."""

_WITHOUT_WORK = {
    *("detach", "alias", "view", "_unsafe_view", "t", "transpose", "permute", "expand", "slice"),
    *("select", "split", "split_with_sizes", "chunk", "unsqueeze", "squeeze", "unfold"),
    *("as_strided", "unbind", "view_as", "_reshape_alias", "empty", "empty_like", "new_empty"),
    *("narrow", "empty_strided", "new_empty_strided", "lift_fresh", "_indices", "_values"),
    *("_sparse_coo_tensor_with_dims_and_tensors", "_nnz", "sym_size", "sym_stride", "sym_numel"),
    *("is_coalesced", "_coalesced_", "prim_layout", "set_", "record_stream", "diagonal"),
}
"""Operations that launch nothing: views, and memory without content."""

_MIXING = {"_to_copy", "copy_"}
"""Operations that take tensors of the CPU too."""


class Call(NamedTuple):
    """An operation on the device.

    Attributes:
        name: of the operation.
        tensors: shape and type of its inputs and outputs.
        place: the innermost function of the package, `file:function`; of a backward pass that
            PyTorch has derived, the one that starts it.
    """

    name: str
    tensors: tuple[tuple[tuple[int, ...], torch.dtype], ...]
    place: str


class DeviceTensor(Tensor):
    """A tensor on the simulated device.

    Attributes:
        content: the same tensor on the CPU.
    """

    content: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, content: Tensor, requires_grad: bool = False) -> DeviceTensor:
        made = Tensor._make_wrapper_subclass(
            cls,
            content.size(),
            dtype=content.dtype,
            device=DEVICE,
            layout=content.layout,
            strides=content.stride() if content.layout == torch.strided else None,
            requires_grad=requires_grad,
        )
        return cast(DeviceTensor, made)

    def __init__(self, content: Tensor, requires_grad: bool = False) -> None:
        self.content = content

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"DeviceTensor({tuple(self.shape)}, {self.dtype})"

    def tolist(self) -> Any:
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(
        cls,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        raise RuntimeError(f"{func} on the simulated device outside of `simulated_device`")


class Calls(TorchDispatchMode):
    """Runs operations of the simulated device on the CPU and records them.

    Attributes:
        calls: those that launch work, in their order.
        waits: those for which the host waits.
        copies: to the device: how many numbers each.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.waits: list[Call] = []
        self.copies: list[int] = []

    def clear(self) -> None:
        for each in (self.calls, self.waits, self.copies):
            each.clear()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        inputs = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
        is_target = kwargs.get("device") is not None and torch.device(kwargs["device"]) == DEVICE
        on_device = [each for each in inputs if isinstance(each, DeviceTensor)]
        if not (is_target or on_device):
            return func(*args, **kwargs)
        name = func.overloadpacket.__name__
        if name not in _MIXING:
            _refuse_mixture(name, [each for each in inputs if not isinstance(each, DeviceTensor)])
        is_to_cpu = name == "_to_copy" and "device" in kwargs and not is_target and kwargs["device"]
        is_to_cpu = is_to_cpu or (name == "copy_" and not isinstance(args[0], DeviceTensor))
        if is_target:
            kwargs["device"] = torch.device("cpu")
        outputs = func(*tree_map(_content, args), **tree_map(_content, kwargs))
        if torch.Tag.inplace_view in func.tags:
            with no_dispatch():  # changes the shape of the wrapper too
                func(*args, **kwargs)
        self._record(name, inputs, outputs, is_to_cpu=bool(is_to_cpu), is_from_cpu=not on_device)
        if name == "_local_scalar_dense" or is_to_cpu:
            return outputs
        wrappers = {id(each.content): each for each in on_device}
        return tree_map(lambda leaf: _wrapped(leaf, wrappers), outputs)

    def _record(
        self, name: str, inputs: list[Tensor], outputs: Any, *, is_to_cpu: bool, is_from_cpu: bool
    ) -> None:
        if name in _WITHOUT_WORK:
            return
        produced = [leaf for leaf in tree_flatten(outputs)[0] if isinstance(leaf, Tensor)]
        tensors = tuple((tuple(each.shape), each.dtype) for each in (*inputs, *produced))
        call = Call(name, tensors, _place())
        if name in _WAITING or is_to_cpu or _is_indexing_by_mask(name, inputs):
            self.waits.append(call)
        elif is_from_cpu and inputs and name == "_to_copy":
            self.copies.append(inputs[0].numel())
        else:
            self.calls.append(call)


class _Creation(TorchFunctionMode):
    """Copies from lists to the device as from tensors: PyTorch would drop their numbers."""

    def __torch_function__(
        self, func: Any, types: Any, args: _Arguments = (), kwargs: _Keywords | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func not in (torch.tensor, torch.as_tensor) or kwargs.get("device") is None:
            return func(*args, **kwargs)
        device = kwargs.pop("device")
        return func(*args, **kwargs).to(device)


@contextmanager
def simulated_device() -> Iterator[Calls]:
    """Make tensors on the device `meta` real inside the block, and record its calls."""
    devices = lambda: ["cpu", DEVICE.type]  # noqa: E731
    with (
        patch("torch.optim.optimizer._get_fused_kernels_supported_devices", devices),
        patch("torch.nn.utils.clip_grad._has_foreach_support", return_value=True),
        Calls() as calls,
        _Creation(),
    ):
        yield calls


def _refuse_mixture(name: str, others: list[Tensor]) -> None:
    for each in others:
        if each.dim():
            raise RuntimeError(f"{name} at {_place()} mixes a {tuple(each.shape)} of the CPU")


def _is_indexing_by_mask(name: str, inputs: list[Tensor]) -> bool:
    is_index = name in ("index", "index_put_", "index_put")
    return is_index and any(each.dtype in (torch.bool, torch.uint8) for each in inputs[1:])


def _content(leaf: Any) -> Any:
    return leaf.content if isinstance(leaf, DeviceTensor) else leaf


def _wrapped(leaf: Any, wrappers: Mapping[int, DeviceTensor]) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    return wrappers[id(leaf)] if id(leaf) in wrappers else DeviceTensor(leaf)


def _place() -> str:
    frame = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if _PACKAGE in path.parents:
            return f"{path.relative_to(_PACKAGE)}:{frame.f_code.co_qualname}"
        frame = frame.f_back  # type: ignore[assignment]
    return "?"
