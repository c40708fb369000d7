"""Layers and taggers as parts of other libraries: scikit-learn and spaCy."""

from elmo_framework.lazy_import import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
