from typing import Any

import pytest
import torch
from torch import nn

from elmo_framework.config.parse import parse
from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Lazy, collecting_size_problems
from elmo_framework.errors import ConfigError
from elmo_framework.model.initializer import Initializers
from elmo_framework.model.parameter_rules import initialize, penalties, total_penalty
from elmo_framework.model.part import Part
from elmo_framework.model.regularizer import Regularizers


class Rules(Registrable):
    """What a model's block says."""

    def __init__(
        self, initializer: Initializers | None = None, regularizer: Regularizers | None = None
    ) -> None:
        self.initializer, self.regularizer = initializer, regularizer


class Table(Part):
    """A table whose vectors were read from a file."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(3, 2)

    def parameters_from_file(self) -> list[torch.Tensor]:
        return [self.embedding.weight]


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.characters = Table(), nn.Embedding(4, 2, padding_idx=0)
        self.encoder, self.projection = nn.LSTM(2, 2), nn.Linear(2, 2)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.fill_(7.0)


def rules(**block: Any) -> Rules:
    lazy: Lazy[Rules] = parse(Rules, block, source="job.jsonnet")
    return lazy.build()


def initialized(*pairs: Any) -> Network:
    network = Network()
    initialize(network, rules(initializer=[*pairs]).initializer)
    return network


def apply(**block: Any) -> None:
    found, network = rules(**block), Network()
    initialize(network, found.initializer)
    penalties(network, found.regularizer)


def problems(**block: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        apply(**block)
    return [str(problem) for problem in caught.value.problems]


def test_the_first_expression_that_is_found_decides() -> None:
    network = initialized(["_hh_", "zero"], ["encoder", {"type": "constant", "val": 2}])

    assert (network.encoder.weight_hh_l0 == 0).all()
    assert (network.encoder.bias_hh_l0 == 0).all()
    assert (network.encoder.weight_ih_l0 == 2).all()
    assert (network.projection.weight == 7).all()


def test_prevent_keeps_a_parameter_from_later_expressions() -> None:
    network = initialized(["bias", "prevent"], ["projection", "zero"])

    assert (network.projection.bias == 7).all()
    assert (network.projection.weight == 0).all()


def test_the_gates_of_a_parameter_are_those_of_its_module() -> None:
    network = initialized(["bias_hh", "lstm_hidden_bias"])

    assert network.encoder.bias_hh_l0.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]


def test_parameters_read_from_a_file_are_not_initialized() -> None:
    network = initialized(["embedding|characters", "zero"], [".*", {"type": "constant", "val": 3}])

    assert (network.table.embedding.weight == 7).all()
    assert (network.characters.weight == 0).all()
    assert (network.projection.bias == 3).all()


def test_the_vector_of_padding_is_zero() -> None:
    network = initialized(["characters", {"type": "constant", "val": 3}])

    assert network.characters.weight.tolist() == [[0, 0], [3, 3], [3, 3], [3, 3]]


def test_all_problems_are_reported_with_their_paths() -> None:
    pairs = [["projecton.weight", "zero"], ["bias", "orthogonal"], ["table", "zero"]]

    assert problems(initializer=pairs) == [
        "initializer[0][0]: 'projecton.weight' matches no parameter's name; the nearest are "
        "'projection.weight', 'projection.bias', 'characters.weight'",
        "initializer[1][1]: cannot fill 'encoder.bias_ih_l0': its shape is [8]; two dimensions "
        "are needed",
        "initializer[2][1]: every match is read from a file: 'table.embedding.weight'",
    ]
    (problem,) = problems(regularizer=[["nothing", "l2"]])
    assert problem.startswith("regularizer[0][0]: 'nothing' matches no parameter's name")


def test_problems_are_noted_while_a_config_is_checked() -> None:
    with collecting_size_problems() as found:
        initialize(Network(), rules(initializer=[["x_y", "zero"]]).initializer)

    assert [problem.path for problem in found] == ["initializer[0][0]"]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([["(", "zero"]], "initializer[0][0]: Input should be a regular expression (missing )"),
        ([["x"]], "initializer[0]: expected [str, Initializer], not ['x']"),
        ([["x", "zeros"]], "initializer[0][1].type: unknown Initializer 'zeros'"),
        ([["x", {"type": "normal", "sdt": 1}]], "initializer[0][1].sdt: unknown key of normal"),
        ({"x": "zero"}, "initializer: expected list[[str, Initializer]], not {'x': 'zero'}"),
    ],
)
def test_a_malformed_rule_is_refused(pairs: Any, message: str) -> None:
    assert message in problems(initializer=pairs)[0]


def test_first_regularizer_penalizes_a_trained_parameter() -> None:
    network = Network()
    pairs = [["bias", {"alpha": 0.0}], ["projection", {"alpha": 0.5}], [".*", {"type": "l1"}]]
    found = penalties(network, rules(regularizer=pairs).regularizer)
    network.table.requires_grad_(False)
    network.encoder.requires_grad_(False)

    total = sum(total_penalty(found))

    assert isinstance(total, torch.Tensor)
    assert total.item() == pytest.approx(0.5 * 4 * 49 + 0.01 * 8 * 7)


def test_without_rules_parameters_are_unchanged() -> None:
    network = Network()
    initialize(network, None)

    assert all((parameter == 7).all() for parameter in network.parameters())
    assert penalties(network, None) == []
