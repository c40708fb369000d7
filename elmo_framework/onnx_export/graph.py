"""Build ONNX graphs: nodes from their inputs, weights, and loops over steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from elmo_framework.io.extras import import_extra

OPSET, IR_VERSION = 18, 9
"""Read by onnxruntime from 1.14."""

EXTRA = "onnx"

Value: TypeAlias = str
"""The name of a value in a graph."""

_LEAST_QUANTIZED = 1024
"""Smaller weights stay float32: they are most of the rounding error and none of the size."""


class Graph:
    """An ONNX graph under construction.

    Args:
        is_int8: whether large weights are stored as int8 with a scale for each row. onnxruntime
            multiplies them once, when it loads the model, and computes in float32.

    Raises:
        RunError: the extra `onnx` is not installed.
    """

    def __init__(self, *, is_int8: bool = False) -> None:
        self._onnx = import_extra("onnx", EXTRA)
        self._is_int8 = is_int8
        self._nodes: list[Any] = []
        self._weights: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._names = 0
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Value] = {}

    def input(self, name: str, dims: Sequence[str | int]) -> Value:
        """Declare an input of int64; a dimension with a name has any size."""
        self._inputs.append(self._info(name, np.dtype(np.int64), dims))
        return name

    def output(self, value: Value, name: str, dims: Sequence[str | int], dtype: Any) -> None:
        """Declare a value as an output."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._info(name, np.dtype(dtype), dims))

    def add(self, operator: str, *inputs: Value, **attributes: Any) -> Value:
        """Add a node with one output, and return the output."""
        return self.add_many(operator, *inputs, num_outputs=1, **attributes)[0]

    def add_many(
        self, operator: str, *inputs: Value, num_outputs: int, **attributes: Any
    ) -> list[Value]:
        """Add a node, and return its outputs."""
        outputs = [self._name(operator) for _ in range(num_outputs)]
        node = self._onnx.helper.make_node(operator, [*inputs], outputs, **attributes)
        self._nodes.append(node)
        return outputs

    def integers(self, *numbers: int) -> Value:
        """Return a constant vector of int64, such as axes or a shape."""
        return self.constant(np.array(numbers, dtype=np.int64))

    def number(self, number: float) -> Value:
        """Return a constant scalar of float32."""
        return self.constant(np.array(number, dtype=np.float32))

    def constant(self, array: NDArray[Any]) -> Value:
        """Return a constant; equal ones are stored once."""
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self._stored(array)
        return self._constants[key]

    def weight(self, weight: Tensor | NDArray[np.float32]) -> Value:
        """Return a weight as a constant; the last dimension is that of the product's outputs."""
        array = weight.detach().cpu().float().numpy() if isinstance(weight, Tensor) else weight
        array = np.ascontiguousarray(array, dtype=np.float32)
        if not (self._is_int8 and array.ndim > 1 and array.size >= _LEAST_QUANTIZED):
            return self.constant(array)
        # A scale for each output of each matrix of a stack.
        scales = np.maximum(np.abs(array).max(axis=-2, keepdims=True), 1e-12) / 127
        quantized = self._stored(np.rint(array / scales).astype(np.int8))
        restored = self.add("Cast", quantized, to=self._onnx.TensorProto.FLOAT)
        return self.add("Mul", restored, self.constant(scales.astype(np.float32)))

    def table(self, table: Tensor) -> Value:
        """Return a table of vectors as a constant; with int8, each row has its own scale."""
        vectors = table.detach().cpu().float()
        if not self._is_int8:
            return self.constant(vectors.numpy())
        return self.add("Transpose", self.weight(vectors.T.contiguous()), perm=[1, 0])

    def cast(self, value: Value, dtype: Any) -> Value:
        return self.add("Cast", value, to=self._type(np.dtype(dtype)))

    def halves(self, value: Value) -> list[Value]:
        """Split a value into two along its first dimension."""
        outputs = [self._name("half") for _ in range(2)]
        node = self._onnx.helper.make_node("Split", [value], outputs, axis=0, num_outputs=2)
        self._nodes.append(node)
        return outputs

    def linear(self, inputs: Value, weight: Tensor, bias: Tensor | None = None) -> Value:
        """Add `x W^T + b`, with the weight as PyTorch has it: "outputs inputs"."""
        product = self.add("MatMul", inputs, self.weight(weight.detach().T))
        return product if bias is None else self.add("Add", product, self.weight(bias))

    def slice(self, value: Value, start: int, end: int, axis: int) -> Value:
        bounds = (self.integers(number) for number in (start, end, axis))
        return self.add("Slice", value, *bounds)

    def scan(
        self,
        step: Callable[..., tuple[Sequence[Value], Sequence[Value]]],
        states: Sequence[tuple[Value, Any]],
        sequences: Sequence[tuple[Value, Any]],
        *,
        outputs: Sequence[Any],
        axis: int = 0,
        is_reversed: bool = False,
        keep_states: bool = False,
    ) -> list[Value]:
        """Add a loop over the steps of sequences.

        Args:
            step: adds the nodes of one step: from the states and the elements of the sequences to
                the new states and the outputs. It may use values of this graph.
            states: the first values, with their types.
            sequences: with their types.
            outputs: the types of the outputs.
            axis: that of the steps, in sequences and outputs.
            is_reversed: whether the last step comes first.
            keep_states: whether the last states are returned too.

        Returns:
            The last states if kept, and the outputs of all steps in the order of the sequences.
        """
        outer, self._nodes = self._nodes, []
        infos = [
            self._info(self._name("step"), np.dtype(t), None) for _, t in (*states, *sequences)
        ]
        names = [info.name for info in infos]
        new_states, new_outputs = step(*names)
        kinds = [*(dtype for _, dtype in states), *outputs]
        results: list[Any] = []
        for value, dtype in zip((*new_states, *new_outputs), kinds, strict=True):
            # A result can be neither an input nor another result.
            is_taken = value in names or value in (info.name for info in results)
            name = self.add("Identity", value) if is_taken else value
            results.append(self._info(name, np.dtype(dtype), None))
        body = self._onnx.helper.make_graph(self._nodes, self._name("body"), infos, results)
        self._nodes = outer
        directions = [int(is_reversed)]
        values = self.add_many(
            "Scan",
            *(value for value, _ in (*states, *sequences)),
            num_outputs=len(results),
            body=body,
            num_scan_inputs=len(sequences),
            scan_input_axes=[axis] * len(sequences),
            scan_output_axes=[axis] * len(outputs),
            scan_input_directions=directions * len(sequences),
            scan_output_directions=directions * len(outputs),
        )
        return values if keep_states else values[len(states) :]

    def model(self) -> bytes:
        """Return the file of the model."""
        helper = self._onnx.helper
        used = _names_read(self._nodes)
        weights = [weight for weight in self._weights if weight.name in used]
        graph = helper.make_graph(
            self._nodes, "elmo_framework", self._inputs, self._outputs, weights
        )
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(
            graph, opset_imports=opsets, producer_name="elmo_framework", ir_version=IR_VERSION
        )
        return bytes(model.SerializeToString())

    def _stored(self, array: NDArray[Any]) -> Value:
        name = self._name("constant")
        self._weights.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind.lower()}_{self._names}"

    def _info(self, name: str, dtype: np.dtype[Any], dims: Sequence[str | int] | None) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self._type(dtype), dims)

    def _type(self, dtype: np.dtype[Any]) -> int:
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(dtype))


def _names_read(nodes: Iterable[Any]) -> set[str]:
    """Return the values that nodes read, also those in loops."""
    names = set[str]()
    for node in nodes:
        names.update(node.input)
        for attribute in node.attribute:
            names |= _names_read(attribute.g.node)
    return names
