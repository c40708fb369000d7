"""Configs of AllenNLP 0.8 to 2.10, translated to ours."""

from elmo_framework.lazy_import import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
