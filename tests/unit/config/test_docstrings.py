from elmo_framework.config.docstrings import documented, explanation, summary


class Documented:
    """What it is, in a line
    that continues.

    More of it.

    Args:
        width: how wide.
    """


def test_the_explanation_leaves_out_the_parameters() -> None:
    assert summary(Documented) == "What it is, in a line that continues."
    assert explanation(Documented) == "What it is, in a line\nthat continues.\n\nMore of it."


def test_a_class_does_not_inherit_the_docstring_of_its_family() -> None:
    class Undocumented(Documented): ...

    assert summary(Undocumented) == ""


def test_parameter_descriptions_are_inherited() -> None:
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
