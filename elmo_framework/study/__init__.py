"""A family of runs as one experiment: plan it, run what is missing, keep small records."""

from elmo_framework.lazy_import import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
