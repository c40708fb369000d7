"""From a checked configuration to a run, and from a run back to a model."""

from elmo_framework.lazy_import import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
