"""Coreference resolution: cluster the mentions of the entities of a document."""

from elmo_framework.lazy_import import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
