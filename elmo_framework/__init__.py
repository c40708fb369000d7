"""ELMo as a whole system: pretrain a biLM, freeze it, train task models on its layers."""

from elmo_framework import version
from elmo_framework.lazy_import import attach_stub

__version__ = version.VERSION

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
