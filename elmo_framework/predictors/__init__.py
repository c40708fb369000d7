"""AllenNLP's import path of predictors, whose outputs have the keys of AllenNLP."""

from elmo_framework.lazy_import import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
