"""Configs of AllenNLP are recognized; what is imported for others is tested with `elmo check`."""

from __future__ import annotations

import pytest

from elmo_framework.commands.main import main
from elmo_framework.compat.allennlp.recognize import mark_of_allennlp
from tests.conftest import ROOT
from tests.unit.compat.configs import ALL_CONFIGS, CONFIGS
from tests.unit.compat.test_translate_allennlp import ours


def test_options_of_bilm_tf_are_answered_with_the_recipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = str(ROOT / "tests/fixtures/bilm_tf/options.json")
    for command in (["check", options], ["train", options, "-s", "no-such-run"]):
        assert main(command) == 2
        assert "write a config that imports them" in capsys.readouterr().err


def test_translated_configs_are_not_translated_again() -> None:
    assert all(mark_of_allennlp(raw) is not None for raw in ALL_CONFIGS.values())
    assert all(mark_of_allennlp(ours(name)) is None for name in CONFIGS)
