"""ONNX forms of task models: taggers, classifiers and pairs."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.model.head import Head
from elmo_framework.nn.crf import ConditionalRandomField
from elmo_framework.onnx_export.graph import Graph, Value
from elmo_framework.onnx_export.sequences import (
    aligned,
    encode,
    feedforward,
    joined,
    masked_max,
    masked_mean,
    masked_min,
    pool,
    unsupported,
)
from elmo_framework.onnx_export.words import Words, embed
from elmo_framework.tasks.classification.basic_classifier import BasicClassifier
from elmo_framework.tasks.classification.bcn import BiattentiveClassifier, OutputLayer
from elmo_framework.tasks.entailment.esim import Esim
from elmo_framework.tasks.tagging.tagger import Tagger


@singledispatch
def add_head(head: Head[Any], words: Words) -> str:
    """Add a task model with its outputs, and return the kind of its predictions.

    Returns:
        `tags`, `label`, or `label_of_pair`.

    Raises:
        RunError: a part of it has no ONNX form.
    """
    raise unsupported(head)


@add_head.register(Tagger)
def _tagger(head: Tagger, words: Words) -> str:
    graph, mask = words.graph, words.mask
    encoded = embed(head.embedder, words)
    if head.encoder is not None:
        encoded = encode(head.encoder, graph, encoded, mask)
    encoded = _with(head.output_embedder, words, encoded)
    if head.output_encoder is not None:
        encoded = encode(head.output_encoder, graph, encoded, mask)
    logits = graph.linear(encoded, head.projection.weight, head.projection.bias)
    graph.output(logits, "logits", ["batch", "tokens", len(head.labels)], np.float32)
    if head.crf is None:
        tags = graph.add("ArgMax", logits, axis=2, keepdims=0)
    else:
        tags = _best_tags(graph, head.crf, logits, mask)
    graph.output(tags, "tags", ["batch", "tokens"], np.int64)
    return "tags"


@add_head.register
def _basic(head: BasicClassifier, words: Words) -> str:
    graph, mask = words.graph, words.mask
    encoded = encode(head.encoder, graph, embed(head.embedder, words), mask)
    pooled = pool(head.pooler, graph, _with(head.output_embedder, words, encoded), mask)
    if head.feedforward is not None:
        pooled = feedforward(graph, head.feedforward, pooled)
    logits = graph.linear(pooled, head.projection.weight, head.projection.bias)
    return _label(graph, logits, head)


@add_head.register
def _bcn(head: BiattentiveClassifier, words: Words) -> str:
    graph, mask = words.graph, words.mask
    embedded = embed(head.embedder, words)
    if head.pre_encode_feedforward is not None:
        embedded = feedforward(graph, head.pre_encode_feedforward, embedded)
    encoded = encode(head.encoder, graph, embedded, mask)
    other = aligned(graph, encoded, encoded, mask)
    compared = [encoded, graph.add("Sub", encoded, other), graph.add("Mul", encoded, other)]
    integrated = encode(head.integrator, graph, joined(graph, compared), mask)
    integrated = _with(head.output_embedder, words, integrated)
    pools = [each(graph, integrated, mask) for each in (masked_max, masked_mean, masked_min)]
    pools.append(pool(head.self_attentive, graph, integrated, mask))
    return _label(graph, _output_layer(graph, head.output_layer, joined(graph, pools)), head)


@add_head.register
def _esim(head: Esim, words: Words) -> str:
    graph, mask = words.graph, words.mask
    encoded = encode(head.encoder, graph, embed(head.embedder, words), mask)
    encoded = _with(head.output_embedder, words, encoded)
    first, second = graph.halves(encoded)  # premises, then hypotheses
    first_mask, second_mask = graph.halves(mask)
    both = [aligned(graph, first, second, second_mask), aligned(graph, second, first, first_mask)]
    other = graph.add("Concat", *both, axis=0)
    compared = [
        encoded,
        other,
        graph.add("Sub", encoded, other),
        graph.add("Mul", encoded, other),
    ]
    projected = feedforward(graph, head.projection_feedforward, joined(graph, compared))
    inferred = encode(head.inference_encoder, graph, projected, mask)
    pools = [each(graph, inferred, mask) for each in (masked_mean, masked_max)]
    pair = joined(graph, graph.halves(joined(graph, pools)))
    hidden = feedforward(graph, head.output_feedforward, pair)
    logits = graph.linear(hidden, head.output_logit.weight, head.output_logit.bias)
    _label(graph, logits, head)
    return "label_of_pair"


def _with(embedder: TokenEmbedder | None, words: Words, vectors: Value) -> Value:
    return vectors if embedder is None else joined(words.graph, [vectors, embed(embedder, words)])


def _output_layer(graph: Graph, layer: OutputLayer, inputs: Value) -> Value:
    parts = dict(layer.named_children())
    if parts.keys() == {"maxout"}:
        return feedforward(graph, parts["maxout"], inputs)  # type: ignore[arg-type]
    if parts.keys() != {"feedforward", "projection"}:
        raise unsupported(layer)
    hidden = feedforward(graph, parts["feedforward"], inputs)  # type: ignore[arg-type]
    projection = parts["projection"]
    return graph.linear(hidden, projection.weight, projection.bias)  # type: ignore[arg-type]


def _label(graph: Graph, logits: Value, head: Any) -> str:
    if head.temperature is not None:
        divisor = graph.constant(np.array(head.temperature, dtype=np.float32))
        logits = graph.add("Div", logits, divisor)
    graph.output(logits, "logits", ["batch", head.num_labels], np.float32)
    return "label"


def _best_tags(graph: Graph, crf: ConditionalRandomField, logits: Value, mask: Value) -> Value:
    """Add Viterbi decoding, as `best_sequences` does."""
    transitions = graph.constant((crf.transitions + crf.inner_constraint).detach().numpy())
    start, end = (
        graph.constant((scores + allowed).detach().numpy())
        for scores, allowed in (
            (crf.start_transitions, crf.start_constraint),
            (crf.end_transitions, crf.end_constraint),
        )
    )
    stay = graph.constant(np.arange(len(crf.transitions), dtype=np.int64)[None])
    emissions = graph.add("Transpose", logits, perm=[1, 0, 2])
    zero = graph.constant(np.array(0, dtype=np.int64))
    first = graph.add("Gather", emissions, zero, axis=0)

    def forward(best: Value, emission: Value, moved: Value) -> Any:
        scores = graph.add("Add", graph.add("Unsqueeze", best, graph.integers(2)), transitions)
        previous = graph.add("ArgMax", scores, axis=1, keepdims=0)
        highest = graph.add("ReduceMax", scores, graph.integers(1), keepdims=0)
        best = graph.add("Where", moved, graph.add("Add", highest, emission), best)
        return [best], [graph.add("Where", moved, previous, stay)]

    best, pointers = graph.scan(
        forward,
        [(graph.add("Add", first, start), np.float32)],
        [(emissions, np.float32), (_moves(graph, mask), np.bool_)],
        outputs=[np.int64],
        keep_states=True,
    )
    last = graph.add("ArgMax", graph.add("Add", best, end), axis=1, keepdims=1)
    return graph.add("Where", mask, _followed(graph, last, pointers), zero)


def _followed(graph: Graph, last: Value, pointers: Value) -> Value:
    """Follow pointers "tokens batch tags" from the last tags "batch 1": "batch tokens"."""

    def step(tag: Value, pointer: Value) -> Any:
        return [graph.add("GatherElements", pointer, tag, axis=1)], [tag]

    states, sequences = [(last, np.int64)], [(pointers, np.int64)]
    (tags,) = graph.scan(step, states, sequences, outputs=[np.int64], is_reversed=True)
    return graph.add("Transpose", graph.add("Squeeze", tags, graph.integers(2)), perm=[1, 0])


def _moves(graph: Graph, mask: Value) -> Value:
    """Return "tokens batch 1", true where a word follows another.

    The first step changes nothing: its word is in the state that the loop starts from.
    """
    length = graph.add("Squeeze", graph.add("Shape", mask, start=1, end=2), graph.integers(0))
    zero, one = (graph.constant(np.array(number, dtype=np.int64)) for number in (0, 1))
    follows = graph.add("Greater", graph.add("Range", zero, length, one), zero)
    moves = graph.add("And", mask, graph.add("Unsqueeze", follows, graph.integers(0)))
    return graph.add("Unsqueeze", graph.add("Transpose", moves, perm=[1, 0]), graph.integers(2))
