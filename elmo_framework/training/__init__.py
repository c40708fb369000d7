"""The one trainer, and what it takes: optimizers, schedules, checkpoints, callbacks."""

from elmo_framework.lazy_import import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
