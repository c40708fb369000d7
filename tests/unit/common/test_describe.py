import pytest

from elmo_framework.common.describe import (
    Row,
    UnknownNameError,
    describe,
    documented,
    explanation,
    find_family,
    find_member,
    summary,
    supplied,
)
from tests.unit.common.example import (
    Embedding,
    Encoder,
    GradientDescent,
    LstmEncoder,
    TokenEmbedder,
)


def test_a_component_is_described_by_a_row_for_each_key() -> None:
    assert describe(Embedding) == [
        Row("embedding_dim", "int > 0", "required", "width of a vector, for each word."),
        Row("pretrained_file", "Path | None", "null", "vectors to start from."),
    ]


def test_the_options_of_a_component_are_described_below_it() -> None:
    assert describe(GradientDescent) == [
        Row("optimizer", "Optimizer", '"adam"', ""),
        Row("warmup", "Warmup", '{"steps": 0}', ""),
        Row("warmup.steps", "int", "required", "how many updates it takes."),
        Row("warmup.start", "float", "0.0", ""),
        Row("callbacks", "list[Observer]", "[]", ""),
        Row("by_group", "dict[str, list[Observer]] | None", "null", ""),
        Row("num_epochs", "int", "20", ""),
        Row("grad_norm", "float | None", "null", ""),
    ]


@pytest.mark.parametrize("name", ["token_embedder", "TokenEmbedder"])
def test_a_family_is_found_by_its_name_in_either_form(name: str) -> None:
    assert find_family(name).__name__ == TokenEmbedder.__name__


def test_an_unknown_family_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match=r"^'Encodr' is no family; .* Did you mean 'encod"):
        find_family("Encodr")


def test_a_member_is_found_by_its_name() -> None:
    assert find_member(Encoder, "lstm") is LstmEncoder
    with pytest.raises(UnknownNameError, match=r"^'lstn' is no encoder; .* Did you mean 'lstm'\?$"):
        find_member(Encoder, "lstn")


def test_what_the_framework_supplies_is_told_apart() -> None:
    assert supplied(Embedding) == {"vocabularies": "the words.", "device": ""}


class Documented:
    """What it is, in a line
    that goes on.

    More of it.

    Args:
        width: how wide.
    """


def test_the_explanation_leaves_out_the_parameters() -> None:
    assert summary(Documented) == "What it is, in a line that goes on."
    assert explanation(Documented) == "What it is, in a line\nthat goes on.\n\nMore of it."


def test_a_class_does_not_inherit_the_docstring_of_its_family() -> None:
    class Undocumented(Documented): ...

    assert summary(Undocumented) == ""


def test_a_class_inherits_what_is_said_about_parameters_and_the_nearest_wins() -> None:
    class Deep(Documented):
        """Has one more.

        Attributes:
            depth: how deep.
        """

    class Wide(Deep):
        """Says one again.

        Args:
            width: how very wide.
        """

    assert documented(Wide) == {"width": "how very wide.", "depth": "how deep."}
    assert documented(Deep) == {"width": "how wide.", "depth": "how deep."}
    assert explanation(Wide) == "Says one again."
