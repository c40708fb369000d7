"""ELMo as a whole system: pretrain a biLM, freeze it, train task models on its layers."""

from typing import TYPE_CHECKING, Any

from elmo_framework import version

if TYPE_CHECKING:
    from elmo_framework.experiment.loaded_run import load

__all__ = ["__version__", "load"]

__version__ = version.VERSION


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for, so that `elmo --help` needs no torch."""
    if name == "load":
        from elmo_framework.experiment.loaded_run import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
