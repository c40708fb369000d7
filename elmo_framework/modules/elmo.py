"""The import path `allennlp.modules.elmo`."""

from elmo_framework.api import elmo

__all__ = ["Elmo", "batch_to_ids"]

Elmo = elmo.Elmo
batch_to_ids = elmo.batch_to_ids
