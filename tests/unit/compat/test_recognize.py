"""Configs of AllenNLP are recognized; what is imported for others is tested with `elmo check`."""

from __future__ import annotations

from elmo_framework.compat.allennlp.recognize import mark_of_allennlp
from tests.unit.compat.configs import ALL_CONFIGS, CONFIGS
from tests.unit.compat.test_translate_allennlp import ours


def test_translated_configs_are_not_translated_again() -> None:
    assert all(mark_of_allennlp(raw) is not None for raw in ALL_CONFIGS.values())
    assert all(mark_of_allennlp(ours(name)) is None for name in CONFIGS)
