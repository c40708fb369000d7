"""Word sense disambiguation: which sense of WordNet a word has in its sentence."""

from elmo_framework.lazy_import import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
