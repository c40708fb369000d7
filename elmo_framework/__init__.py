"""ELMo as a whole system: pretrain a biLM, freeze it, train task models on its layers."""

from importlib import import_module

from elmo_framework import version

# Not from `typing`: see `io.search_path`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from elmo_framework.api.crf import CRF
    from elmo_framework.api.elmo import Elmo, batch_to_ids
    from elmo_framework.api.pretrained import load_bilm
    from elmo_framework.experiment.assembly import load

__all__ = ["CRF", "Elmo", "__version__", "batch_to_ids", "load", "load_bilm"]

__version__ = version.VERSION

_MODULES = {
    "CRF": "api.crf",
    "Elmo": "api.elmo",
    "batch_to_ids": "api.elmo",
    "load": "experiment.assembly",
    "load_bilm": "api.pretrained",
}


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for, so that `elmo --help` needs no torch."""
    if name in _MODULES:
        return getattr(import_module(f"elmo_framework.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
