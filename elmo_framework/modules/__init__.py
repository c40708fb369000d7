"""AllenNLP's import paths of its ELMo modules; the code is elsewhere, but for thin classes."""

from elmo_framework.lazy_import import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
