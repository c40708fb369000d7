"""Encoders and attentions of AllenNLP."""

from __future__ import annotations

from typing import Any

import pytest

from elmo_framework.compat.allennlp.layers import attention, encoder, feedforward, pooler
from elmo_framework.compat.allennlp.rules import Context, Place


@pytest.mark.parametrize("translate", [encoder, pooler])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("layers", [{}, {"num_layers": 1}])
def test_dropout_of_a_single_layer_is_dropped(
    translate: Any, kind: str, layers: dict[str, int]
) -> None:
    context = Context({})
    values = {"type": kind, "input_size": 3, "hidden_size": 2, "dropout": 0.5, **layers}
    assert "dropout" not in translate(Place(context), values)
    (note,) = context.notes
    assert (note.path, note.kind, note.text) == ("dropout", "dropped", "it is between layers")


def test_dropout_between_layers_is_kept() -> None:
    values = {"type": "lstm", "input_size": 3, "hidden_size": 2, "dropout": 0.5, "num_layers": 2}
    assert encoder(Place(Context({})), values)["dropout"] == 0.5


def test_bilinear_similarity_has_the_dimensions_of_an_attention() -> None:
    context = Context({})
    values = {"type": "bilinear", "tensor_1_dim": 4, "tensor_2_dim": 6}
    ours = attention(Place(context).at("similarity_function"), values)
    expected = {"type": "bilinear", "matrix_1_dim": 4, "matrix_2_dim": 6}
    assert ours == {"matrix_attention": expected}
    assert not context.problems


def test_scaled_similarity_is_refused_with_the_reason() -> None:
    context = Context({})
    values = {"type": "dot_product", "scale_output": True}
    attention(Place(context).at("similarity_function"), values)
    (problem,) = context.problems
    assert problem.message.endswith(
        "only false has: AllenNLP multiplies by the root of the dimension"
    )


@pytest.mark.parametrize("activations", ["gelu", ["relu", "gelu"]])
def test_missing_activation_is_named(activations: Any) -> None:
    context = Context({})
    feedforward(Place(context), {"num_layers": 2, "activations": activations})
    (problem,) = context.problems
    message = "AllenNLP's Activation 'gelu' has no counterpart here"
    assert problem.message == f"{message}; choose from linear, relu, sigmoid, tanh"
