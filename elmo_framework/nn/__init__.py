"""Tensors in, tensors out: the modules that the models are made of."""

from elmo_framework.lazy_import import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
