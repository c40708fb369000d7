"""ELMo as a whole system: pretrain a biLM, freeze it, train task models on its layers."""

from elmo_framework.version import VERSION as __version__

__all__ = ["__version__"]
