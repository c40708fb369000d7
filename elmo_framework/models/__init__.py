"""AllenNLP's import path of archives; the base class of models is in `elmo_framework.model`."""

from elmo_framework.lazy_import import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
