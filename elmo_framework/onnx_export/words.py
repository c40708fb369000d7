"""ONNX forms of the biLM and of token embedders: words in, vectors out.

A model reads the distinct words of a batch, each once: `characters`, and the tables of other
embedders. `places` says which of them is where: row 0 is padding, and 1 and 2 are the boundaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.context_layers import ElmoLstmContextLayers
from elmo_framework.bilm.layer_mix import (
    EPSILON,
    AverageMix,
    LayerMix,
    ScalarMix,
    SingleLayerMix,
)
from elmo_framework.bilm.token_encoder import CharCnnTokenEncoder
from elmo_framework.data.characters import ByteIndexer, ElmoCharacterIndexer
from elmo_framework.embedders.character_encoding import CharacterEncodingTokenEmbedder
from elmo_framework.embedders.elmo import ElmoTokenEmbedder
from elmo_framework.embedders.embedding import EmbeddingTokenEmbedder
from elmo_framework.embedders.text_embedder import TextEmbedder
from elmo_framework.layers.bilm_source import FrozenBiLm, TrainedBiLm
from elmo_framework.layers.cache.cached_layers import CachedLayers
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.nn.elmo_lstm import ElmoLstm, ProjectedLstm
from elmo_framework.nn.highway import HighwayLayer
from elmo_framework.onnx_export.graph import Graph, Value
from elmo_framework.onnx_export.sequences import (
    activate,
    joined,
    kernel_of,
    masked,
    pool,
    unsupported,
)

FIRST_WORD = 3
"""The first row of a word; the rows before are padding and the boundaries."""


@dataclass
class Words:
    """The words of a batch in a graph.

    Attributes:
        graph: that they are the input of.
        kept: the words whose vectors are kept; None for all.
        places: "batch steps", the row of the word at each step, boundaries included.
        framed_mask: "batch steps", true at words and boundaries.
        mask: "batch tokens", true at words.
        tables: what the loader needs to know of each input but `places`, by its name.
    """

    graph: Graph
    kept: frozenset[str] | None = None
    places: Value = field(init=False)
    framed_mask: Value = field(init=False)
    mask: Value = field(init=False)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    _bilms: dict[int, tuple[object, BiLmLayers]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = self.graph
        self.places = graph.input("places", ["batch", "steps"])
        self.framed_mask = graph.add("Greater", self.places, graph.integers(0))
        inner = graph.slice(self.places, 1, -1, axis=1)
        self.mask = graph.add("GreaterOrEqual", inner, graph.integers(FIRST_WORD))
        self._inner = inner

    def table(self, key: str, description: Mapping[str, Any], dims: Sequence[str]) -> Value:
        """Return an input with a row for each distinct word; equal ones are declared once."""
        for name, known in self.tables.items():
            if known == description:
                return name
        taken = sum(name.startswith(key) for name in self.tables)
        name = f"{key}_{taken}" if taken else key
        self.tables[name] = dict(description)
        return self.graph.input(name, ["words", *dims])

    def at_tokens(self, vectors: Value) -> Value:
        """Place vectors of the distinct words: "batch tokens dim", zero at padding."""
        return masked(self.graph, self.graph.add("Gather", vectors, self._inner), self.mask)

    def layers(self, bilm: BiLm) -> BiLmLayers:
        """Return the layers of a biLM; those of the same one are computed once."""
        if id(bilm) not in self._bilms:
            self._bilms[id(bilm)] = bilm, _bilm_layers(self, bilm)
        return self._bilms[id(bilm)][1]


@dataclass(frozen=True)
class BiLmLayers:
    """The layers of a biLM in a graph.

    Attributes:
        graph: that has them.
        layers: each "directions steps batch dim", in reading order.
        lengths: the number of steps of each row, at least 1.
        framed_mask: as of `Words`.
    """

    graph: Graph
    layers: Sequence[Value]
    lengths: Value
    framed_mask: Value

    def at_tokens(self, layer: Value, mask: Value) -> Value:
        """Return a layer, or a sum of layers, as "batch tokens dim", zero at padding."""
        graph = self.graph
        directions = [graph.add("Squeeze", part, graph.integers(0)) for part in graph.halves(layer)]
        backward = _turned(graph, directions[1], self.lengths)
        both = graph.add("Concat", directions[0], backward, axis=2)
        words = graph.slice(both, 1, -1, axis=0)
        return masked(graph, graph.add("Transpose", words, perm=[1, 0, 2]), mask)


@singledispatch
def embed(embedder: nn.Module, words: Words) -> Value:
    """Add a token embedder: "batch tokens dim", zero at padding.

    Raises:
        RunError: it has no ONNX form.
    """
    raise unsupported(embedder)


@embed.register
def _text(embedder: TextEmbedder, words: Words) -> Value:
    vectors = [embed(part, words) for part in embedder.token_embedders.values()]
    return joined(words.graph, vectors)


@embed.register
def _embedding(embedder: EmbeddingTokenEmbedder, words: Words) -> Value:
    indexer, graph = embedder.indexer, words.graph
    known = [*indexer.vocabulary.items, *indexer.unseen]
    vectors = torch.cat([embedder.embedding.weight, embedder.unseen.vectors[1:]])
    rows = [*range(len(known))]
    if words.kept is not None:
        # Words are looked up in other forms, such as lower case.
        rows = sorted({*range(_NUM_SPECIAL), *indexer.ids([*words.kept]).tolist()})
    description = {
        "kind": "words",
        "words": [known[row] for row in rows][_NUM_SPECIAL:],
        "lowercase": indexer.lowercase,
        "case_fallback": indexer.case_fallback,
    }
    table, ids = graph.table(vectors.detach()[rows]), words.table("words", description, [])
    return _projected(embedder.projection, words.at_tokens(graph.add("Gather", table, ids)), words)


_NUM_SPECIAL = 2
"""Padding and unknown words come first in a vocabulary."""


@embed.register
def _characters(embedder: CharacterEncodingTokenEmbedder, words: Words) -> Value:
    graph = words.graph
    if not isinstance(embedder.indexer, ByteIndexer):
        raise unsupported(embedder.indexer)
    description = {"kind": "bytes", "max_characters": embedder.indexer.max_characters}
    ids = words.table("bytes", description, ["bytes"])
    inputs = graph.add("Gather", graph.table(embedder.embedding.weight), ids)
    mask = graph.add("Greater", ids, graph.integers(0))
    return words.at_tokens(pool(embedder.encoder, graph, inputs, mask))


@embed.register
def _elmo(embedder: ElmoTokenEmbedder, words: Words) -> Value:
    if embedder.carries_state:
        raise unsupported(embedder)
    layers = words.layers(bilm_of(embedder.source))
    if isinstance(embedder.source, CachedLayers) and embedder.source.dtype == "float16":
        layers = _rounded(layers)
    assert embedder.mix is not None
    vectors = layers.at_tokens(_mix(embedder.mix, layers), words.mask)
    return _projected(embedder.projection, vectors, words)


def _projected(projection: nn.Module, vectors: Value, words: Words) -> Value:
    if isinstance(projection, nn.Identity):
        return vectors
    assert isinstance(projection, nn.Linear)
    graph, weight, bias = words.graph, projection.weight, projection.bias
    return masked(graph, graph.linear(vectors, weight, bias), words.mask)


def _rounded(layers: BiLmLayers) -> BiLmLayers:
    """Round layers as the layer cache does, so that they are those that the head was trained on."""
    graph = layers.graph
    halves = [graph.cast(layer, np.float16) for layer in layers.layers]
    return replace(layers, layers=[graph.cast(half, np.float32) for half in halves])


def bilm_of(source: LayerSource) -> BiLm:
    """Return the biLM whose layers a source gives.

    Raises:
        RunError: it is not a biLM.
    """
    if isinstance(source, CachedLayers):
        source = source.frozen
    if isinstance(source, FrozenBiLm):
        return source.bilm
    if isinstance(source, TrainedBiLm) and isinstance(source.module, BiLm):
        return source.module
    raise unsupported(source)


@singledispatch
def _mix(mix: LayerMix, layers: BiLmLayers) -> Value:
    raise unsupported(mix)


@_mix.register
def _scalar(mix: ScalarMix, layers: BiLmLayers) -> Value:
    weights = mix.gamma * torch.cat(list(mix.scalar_parameters)).softmax(dim=0)
    values = layers.layers
    if mix.normalizes:
        values = [_normalized(layers, value) for value in values]
    return _weighted(layers.graph, values, weights)


@_mix.register
def _average(mix: AverageMix, layers: BiLmLayers) -> Value:
    num_layers = len(layers.layers)
    return _weighted(layers.graph, layers.layers, mix.gamma.expand(num_layers) / num_layers)


@_mix.register
def _single(mix: SingleLayerMix, layers: BiLmLayers) -> Value:
    return _weighted(layers.graph, [layers.layers[mix.index]], mix.gamma)


def _weighted(graph: Graph, layers: Sequence[Value], weights: Tensor) -> Value:
    terms = [
        graph.add("Mul", layer, graph.number(weight))
        for layer, weight in zip(layers, weights.tolist(), strict=True)
    ]
    return graph.add("Sum", *terms)


def _normalized(layers: BiLmLayers, layer: Value) -> Value:
    """Normalize a layer over all words and dimensions of the batch, as `normalize_layers` does."""
    graph = layers.graph
    present = graph.cast(graph.add("Transpose", layers.framed_mask, perm=[1, 0]), np.float32)
    present = graph.add("Unsqueeze", present, graph.integers(2))
    dims = graph.cast(graph.add("Shape", layer, start=3), np.float32)
    count = graph.add("Mul", graph.add("ReduceSum", present, keepdims=0), dims)
    count = graph.add("Mul", count, graph.number(2.0))  # directions
    total = graph.add("ReduceSum", graph.add("Mul", layer, present), keepdims=0)
    centered = graph.add("Sub", layer, graph.add("Div", total, count))
    inside = graph.add("Mul", centered, present)
    squares = graph.add("ReduceSum", graph.add("Mul", inside, inside), keepdims=0)
    variance = graph.add("Add", graph.add("Div", squares, count), graph.number(EPSILON))
    return graph.add("Div", centered, graph.add("Sqrt", variance))


def _bilm_layers(words: Words, bilm: BiLm) -> BiLmLayers:
    encoder, context, graph = bilm.token_encoder, bilm.context_layers, words.graph
    if not isinstance(encoder, CharCnnTokenEncoder) or encoder.norm is not None:
        raise unsupported(encoder)
    if not isinstance(context, ElmoLstmContextLayers):
        raise unsupported(context)
    steps = graph.add("Transpose", words.places, perm=[1, 0])
    vectors = graph.add("Gather", _word_vectors(words, encoder), steps)  # steps batch dim
    mask = graph.add("Unsqueeze", graph.add("Greater", steps, graph.integers(0)), graph.integers(2))
    vectors = graph.add("Where", mask, vectors, graph.number(0.0))
    lengths = graph.cast(words.framed_mask, np.int64)
    lengths = graph.add("ReduceSum", lengths, graph.integers(1), keepdims=0)
    lengths = graph.add("Max", lengths, graph.integers(1))
    both = [
        graph.add("Unsqueeze", direction, graph.integers(0))
        for direction in (vectors, _turned(graph, vectors, lengths))
    ]
    layers = [graph.add("Concat", *both, axis=0)]  # directions steps batch dim
    stacks = context.forward_lstm, context.backward_lstm
    for number, cells in enumerate(zip(*(_cells(stack) for stack in stacks), strict=True)):
        outputs = _read_layer(graph, cells, layers[-1])
        if number and context.forward_lstm.use_skip_connections:
            outputs = graph.add("Add", outputs, layers[-1])
        layers.append(outputs)
    return BiLmLayers(graph, layers, lengths, words.framed_mask)


def _cells(stack: ElmoLstm) -> list[ProjectedLstm]:
    return [cell for cell in stack.cells if isinstance(cell, ProjectedLstm)]


def _turned(graph: Graph, rows: Value, lengths: Value) -> Value:
    """Reverse "steps batch dim" within the length of each row."""
    return graph.add("ReverseSequence", rows, lengths, time_axis=0, batch_axis=1)


def _word_vectors(words: Words, encoder: CharCnnTokenEncoder) -> Value:
    """Add the token encoder: the vectors of the distinct words, "words dim"."""
    graph, cnn = words.graph, encoder.char_cnn
    if not isinstance(encoder.indexer, ElmoCharacterIndexer):
        raise unsupported(encoder.indexer)
    widths = [part.kernel_size[0] for part in cnn.convolutions if isinstance(part, nn.Conv1d)]
    maximum = encoder.indexer.max_characters
    description = {"kind": "characters", "max_characters": maximum, "margin": max(widths)}
    ids = words.table("characters", description, ["characters"])
    table = nn.functional.pad(cnn.table.detach(), (0, 0, 1, 0))  # id 0 is a vector of zeros
    channels = graph.add("Gather", graph.table(table), ids)
    channels = graph.add("Transpose", channels, perm=[0, 2, 1])
    maxima = []
    for convolution in cnn.convolutions:
        assert isinstance(convolution, nn.Conv1d)
        assert convolution.bias is not None
        kernel = kernel_of(graph, convolution)
        values = graph.add("Conv", channels, kernel, graph.weight(convolution.bias))
        maxima.append(graph.add("ReduceMax", values, graph.integers(2), keepdims=0))
    vectors = activate(graph, joined(graph, maxima), cnn.activation)
    for layer in encoder.highway.layers:
        assert isinstance(layer, HighwayLayer)
        gate = graph.add("Sigmoid", graph.linear(vectors, layer.carry.weight, layer.carry.bias))
        new = graph.linear(vectors, layer.transform.weight, layer.transform.bias)
        difference = graph.add("Sub", graph.add("Relu", new), vectors)
        vectors = graph.add("Add", vectors, graph.add("Mul", gate, difference))
    if encoder.projection is not None:
        vectors = graph.linear(vectors, encoder.projection.weight, encoder.projection.bias)
    return vectors


def _read_layer(graph: Graph, cells: Sequence[ProjectedLstm], inputs: Value) -> Value:
    """Add an LSTM layer with projection and clipping, both directions side by side.

    ONNX's LSTM has no projection and clips no cell state, so this is a loop over steps.
    """
    size, first = cells[0].cell_size, cells[0]
    # In the order i f o j: the first three take a sigmoid.
    order = torch.cat([torch.arange(size) + gate * size for gate in (0, 2, 3, 1)])
    gates = _input_gates(graph, cells, inputs, order)
    recurrent = graph.weight(torch.stack([cell.recurrent_weight[order].T for cell in cells]))
    weights = [cell.projection_weight for cell in cells if cell.projection_weight is not None]
    projection = graph.weight(torch.stack([weight.T for weight in weights])) if weights else None
    batch = graph.add("Shape", inputs, start=2, end=3)

    def zeros(dim: int) -> Value:
        dims = graph.add("Concat", graph.integers(2), batch, graph.integers(dim), axis=0)
        return graph.add("Expand", graph.number(0.0), dims)

    def step(hidden: Value, memory: Value, inputs_of_gates: Value) -> Any:
        product = graph.add("MatMul", hidden, recurrent)
        total = graph.add("Add", product, inputs_of_gates)
        sigmoids, new = _split(graph, total, 3 * size, size)
        inner, forget, outer = _split(graph, graph.add("Sigmoid", sigmoids), size, size, size)
        added = graph.add("Mul", inner, graph.add("Tanh", new))
        memory = graph.add("Add", graph.add("Mul", forget, memory), added)
        memory = _clipped(graph, memory, first.cell_clip)
        hidden = graph.add("Mul", outer, graph.add("Tanh", memory))
        if projection is not None:
            product = graph.add("MatMul", hidden, projection)
            hidden = _clipped(graph, product, first.projection_clip)
        return [hidden, memory], [hidden]

    states = [(zeros(first.output_dim), np.float32), (zeros(size), np.float32)]
    (outputs,) = graph.scan(step, states, [(gates, np.float32)], outputs=[np.float32], axis=1)
    return outputs


def _input_gates(
    graph: Graph, cells: Sequence[ProjectedLstm], inputs: Value, order: Tensor
) -> Value:
    """Add the part of the gates that needs no state: "directions steps batch gates"."""
    weight = torch.stack([cell.input_weight[order].T for cell in cells])
    bias = torch.stack([cell.bias_of_gates()[order] for cell in cells])
    _, input_dim, num_gates = weight.shape
    # One product for all words, and not one for each step.
    flat = graph.add("Reshape", inputs, graph.integers(len(cells), -1, input_dim))
    gates = graph.add("MatMul", flat, graph.weight(weight))
    gates = graph.add("Add", gates, graph.weight(bias[:, None]))
    shape = graph.add("Shape", inputs, end=3)
    extended = graph.add("Concat", shape, graph.integers(num_gates), axis=0)
    return graph.add("Reshape", gates, extended)


def _split(graph: Graph, value: Value, *sizes: int) -> list[Value]:
    parts = graph.integers(*sizes)
    return graph.add_many("Split", value, parts, num_outputs=len(sizes), axis=-1)


def _clipped(graph: Graph, value: Value, limit: float | None) -> Value:
    if limit is None:
        return value
    return graph.add("Clip", value, graph.number(-limit), graph.number(limit))
