"""Files of biLMs: bilm-tf's HDF5, our own, and published models."""

from elmo_framework.lazy_import import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
