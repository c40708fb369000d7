"""The import path `allennlp.modules.elmo`."""

from elmo_framework.api.elmo import Elmo, batch_to_ids

__all__ = ["Elmo", "batch_to_ids"]
