"""ONNX forms of encoders, poolers, attention and masks: sequences in, vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from elmo_framework.encoders.encoder import ComposeEncoder, PassThroughEncoder
from elmo_framework.encoders.feedforward import FeedForwardEncoder
from elmo_framework.encoders.lstm import Recurrent, RecurrentEncoder, RecurrentPooler
from elmo_framework.encoders.pooler import (
    BagOfEmbeddingsPooler,
    CnnPooler,
    MaxPooler,
    SelfAttentivePooler,
)
from elmo_framework.errors import RunError
from elmo_framework.nn.feedforward import Activation, FeedForward
from elmo_framework.onnx_export.graph import Graph, Value

_LEAST = float(np.finfo(np.float32).min)
_ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}

_GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}
"""The order of PyTorch's gates in ONNX: i o f c of i f g o, and z r h of r z n."""


def unsupported(part: object) -> RunError:
    """Return the error about a part of a model that has no ONNX form."""
    return RunError(
        f"no ONNX form of {type(part).__name__}; --format onnx is for taggers, classifiers and "
        "pairs with the embedders embedding, character_encoding and elmo_token_embedder, and the "
        "encoders lstm, gru, feedforward, compose and pass_through"
    )


@singledispatch
def encode(encoder: nn.Module, graph: Graph, inputs: Value, mask: Value) -> Value:
    """Add an encoder: "batch tokens dim" in and out, zero at padding.

    Args:
        encoder: the module.
        graph: that it is added to.
        inputs: its input.
        mask: "batch tokens", true at words.

    Raises:
        RunError: the encoder has no ONNX form.
    """
    raise unsupported(encoder)


@encode.register
def _pass_through(encoder: PassThroughEncoder, graph: Graph, inputs: Value, mask: Value) -> Value:
    return masked(graph, inputs, mask)


@encode.register
def _compose(encoder: ComposeEncoder, graph: Graph, inputs: Value, mask: Value) -> Value:
    for part in encoder.encoders:
        inputs = encode(part, graph, inputs, mask)
    return inputs


@encode.register
def _feedforward(encoder: FeedForwardEncoder, graph: Graph, inputs: Value, mask: Value) -> Value:
    return masked(graph, feedforward(graph, encoder.feedforward, inputs), mask)


@encode.register
def _recurrent(encoder: RecurrentEncoder, graph: Graph, inputs: Value, mask: Value) -> Value:
    outputs, _ = _read(encoder, graph, inputs, mask)
    return outputs


@singledispatch
def pool(pooler: nn.Module, graph: Graph, inputs: Value, mask: Value) -> Value:
    """Add a pooler: "batch tokens dim" in, "batch dim" out; the arguments are those of `encode`."""
    raise unsupported(pooler)


@pool.register
def _max(pooler: MaxPooler, graph: Graph, inputs: Value, mask: Value) -> Value:
    return masked_max(graph, inputs, mask)


@pool.register
def _bag(pooler: BagOfEmbeddingsPooler, graph: Graph, inputs: Value, mask: Value) -> Value:
    return (masked_mean if pooler.averaged else masked_sum)(graph, inputs, mask)


@pool.register
def _self_attentive(pooler: SelfAttentivePooler, graph: Graph, inputs: Value, mask: Value) -> Value:
    scores = graph.linear(inputs, pooler.projection.weight)
    scores = graph.add("Transpose", scores, perm=[0, 2, 1])  # batch 1 tokens
    weights = masked_softmax(graph, scores, graph.add("Unsqueeze", mask, graph.integers(1)))
    pooled = graph.add("MatMul", weights, masked(graph, inputs, mask))
    return graph.add("Squeeze", pooled, graph.integers(1))


@pool.register
def _cnn(pooler: CnnPooler, graph: Graph, inputs: Value, mask: Value) -> Value:
    channels = graph.add("Transpose", masked(graph, inputs, mask), perm=[0, 2, 1])
    lengths = _lengths(graph, mask)
    largest = []
    for convolution in pooler.convolutions:
        assert isinstance(convolution, nn.Conv1d)
        assert convolution.bias is not None
        width = convolution.kernel_size[0]
        # A row is as long as the filter is wide, at least: windows in the padding are not counted.
        padded = graph.add("Pad", channels, graph.integers(0, 0, 0, 0, 0, width - 1))
        values = graph.add(
            "Conv", padded, kernel_of(graph, convolution), graph.weight(convolution.bias)
        )
        values = activate(graph, values, pooler.activation)
        values = graph.add("Transpose", values, perm=[0, 2, 1])
        fewer = graph.add("Sub", lengths, graph.integers(width - 1))
        num_windows = graph.add(
            "Min", graph.add("Max", fewer, graph.integers(pooler.min_windows)), lengths
        )
        steps = _range(graph, graph.add("Shape", values, start=1, end=2))
        is_window = graph.add("Less", steps, num_windows)
        largest.append(masked_max(graph, values, is_window))
    pooled = graph.add("Concat", *largest, axis=1)
    if pooler.projection is None:
        return pooled
    projected = graph.linear(pooled, pooler.projection.weight, pooler.projection.bias)
    return graph.add("Mul", projected, graph.cast(_has_words(graph, mask), np.float32))


@pool.register
def _last(pooler: RecurrentPooler, graph: Graph, inputs: Value, mask: Value) -> Value:
    _, last = _read(pooler, graph, inputs, mask)
    return last


def kernel_of(graph: Graph, convolution: nn.Conv1d) -> Value:
    """Return "filters channels width" of a convolution."""
    filters, channels, width = convolution.weight.shape
    flat = graph.weight(convolution.weight.detach().flatten(1).T)  # a scale for each filter
    shape = graph.integers(filters, channels, width)
    return graph.add("Reshape", graph.add("Transpose", flat, perm=[1, 0]), shape)


def _read(part: Recurrent, graph: Graph, inputs: Value, mask: Value) -> tuple[Value, Value]:
    """Add a recurrent network: its outputs, zero at padding, and its final state."""
    (network,) = part.children()
    assert isinstance(network, nn.LSTM | nn.GRU)
    kind = "lstm" if isinstance(network, nn.LSTM) else "gru"
    num_directions = 2 if network.bidirectional else 1
    lengths = graph.add("Max", _lengths(graph, mask), graph.integers(1))
    lengths = graph.cast(graph.add("Squeeze", lengths, graph.integers(1)), np.int32)
    rows, last = graph.add("Transpose", inputs, perm=[1, 0, 2]), ""
    options: dict[str, Any] = {"hidden_size": network.hidden_size}
    options["direction"] = "bidirectional" if network.bidirectional else "forward"
    if kind == "gru":
        options["linear_before_reset"] = 1
    for layer in range(network.num_layers):
        weights = network.all_weights[layer * num_directions :][:num_directions]
        of_inputs, of_states, *biases = map(torch.stack, zip(*weights, strict=True))
        ordered = [_ordered(weight, kind) for weight in (of_inputs, of_states, *biases)]
        bias = torch.cat(ordered[2:], dim=1) if biases else None
        outputs, last = graph.add_many(
            kind.upper(),
            rows,
            *(_transposed(graph, weight) for weight in ordered[:2]),
            "" if bias is None else graph.weight(bias),
            lengths,
            num_outputs=2,
            **options,
        )
        # tokens directions batch hidden -> tokens batch directions*hidden
        outputs = graph.add("Transpose", outputs, perm=[0, 2, 1, 3])
        rows = graph.add("Reshape", outputs, graph.integers(0, 0, -1))
    states = graph.add("Transpose", last, perm=[1, 0, 2])
    final = graph.add("Reshape", states, graph.integers(0, -1))
    final = graph.add("Mul", final, graph.cast(_has_words(graph, mask), np.float32))
    return masked(graph, graph.add("Transpose", rows, perm=[1, 0, 2]), mask), final


def _ordered(weight: Tensor, kind: str) -> Tensor:
    """Return the weights "directions gates*hidden ..." of PyTorch with the gates of ONNX."""
    gates = weight.detach().chunk(len(_GATES[kind]), dim=1)
    return torch.cat([gates[gate] for gate in _GATES[kind]], dim=1)


def _transposed(graph: Graph, weight: Tensor) -> Value:
    """Return "directions outputs inputs", with a scale for each output if quantized."""
    return graph.add("Transpose", graph.weight(weight.transpose(1, 2)), perm=[0, 2, 1])


def feedforward(graph: Graph, network: FeedForward, inputs: Value) -> Value:
    """Add a feed-forward network, with its maxout layers."""
    for linear, layer in zip(network.linear_layers, network.layers, strict=True):
        assert isinstance(linear, nn.Linear)
        inputs = graph.linear(inputs, linear.weight, linear.bias)
        if layer.pool_size > 1:
            rest = graph.add("Shape", inputs, end=-1)
            shape = graph.add("Concat", rest, graph.integers(layer.dim, layer.pool_size), axis=0)
            pools = graph.add("Reshape", inputs, shape)
            inputs = graph.add("ReduceMax", pools, graph.integers(-1), keepdims=0)
        inputs = activate(graph, inputs, layer.activation)
    return inputs


def activate(graph: Graph, inputs: Value, activation: Activation) -> Value:
    """Add an activation function."""
    return inputs if activation == "linear" else graph.add(_ACTIVATIONS[activation], inputs)


def masked(graph: Graph, inputs: Value, mask: Value) -> Value:
    """Set "batch tokens dim" to zero at padding."""
    return graph.add("Where", _column(graph, mask), inputs, graph.number(0.0))


def masked_sum(graph: Graph, inputs: Value, mask: Value) -> Value:
    """Add the vectors of each row."""
    return graph.add("ReduceSum", masked(graph, inputs, mask), graph.integers(1), keepdims=0)


def masked_mean(graph: Graph, inputs: Value, mask: Value) -> Value:
    """Average the vectors of each row; zeros for a row without any."""
    count = graph.add("Max", _lengths(graph, mask), graph.integers(1))
    return graph.add("Div", masked_sum(graph, inputs, mask), graph.cast(count, np.float32))


def masked_max(graph: Graph, inputs: Value, mask: Value) -> Value:
    """Take the largest value of each dimension of each row; zeros for a row without vectors."""
    present = graph.add("Where", _column(graph, mask), inputs, graph.number(_LEAST))
    largest = graph.add("ReduceMax", present, graph.integers(1), keepdims=0)
    return graph.add("Where", _has_words(graph, mask), largest, graph.number(0.0))


def masked_min(graph: Graph, inputs: Value, mask: Value) -> Value:
    """Take the smallest value of each dimension of each row."""
    return graph.add("Neg", masked_max(graph, graph.add("Neg", inputs), mask))


def masked_softmax(graph: Graph, scores: Value, mask: Value) -> Value:
    """Add a softmax over the last dimension, 0 where the mask is false."""
    present = graph.add("Where", mask, scores, graph.number(_LEAST))
    weights = graph.add("Softmax", present, axis=-1)
    return graph.add("Where", mask, weights, graph.number(0.0))


def aligned(graph: Graph, first: Value, second: Value, second_mask: Value) -> Value:
    """Add, for each vector of the first sequence, the average of the second by dot products."""
    turned = graph.add("Transpose", second, perm=[0, 2, 1])
    row = graph.add("Unsqueeze", second_mask, graph.integers(1))
    weights = masked_softmax(graph, graph.add("MatMul", first, turned), row)
    return graph.add("MatMul", weights, second)


def _lengths(graph: Graph, mask: Value) -> Value:
    """Return the number of words of each row, "batch 1"."""
    return graph.add("ReduceSum", graph.cast(mask, np.int64), graph.integers(1), keepdims=1)


def _has_words(graph: Graph, mask: Value) -> Value:
    return graph.add("Greater", _lengths(graph, mask), graph.integers(0))


def _column(graph: Graph, mask: Value) -> Value:
    return graph.add("Unsqueeze", mask, graph.integers(2))


def _range(graph: Graph, length: Value) -> Value:
    """Return 0, 1, ... as a vector, below a length that is a vector of one number."""
    limit = graph.add("Squeeze", length, graph.integers(0))
    zero, one = (graph.constant(np.array(number, dtype=np.int64)) for number in (0, 1))
    return graph.add("Range", zero, limit, one)


def joined(graph: Graph, values: Sequence[Value]) -> Value:
    """Concatenate vectors along their last dimension."""
    return values[0] if len(values) == 1 else graph.add("Concat", *values, axis=-1)
