"""Configs of ours are recognized without the rules that translate those of AllenNLP."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from elmo_framework.compat.allennlp.recognize import mark_of_allennlp
from tests.unit.compat.configs import ALL_CONFIGS, CONFIGS
from tests.unit.compat.test_translate_allennlp import ours

CHECK = """
import sys
import elmo_framework
assert elmo_framework.main(["check", *sys.argv[1:]]) == 0
elmo_framework.load  # imports what loads a run
print(*(name for name in sys.modules if name.startswith("elmo_framework.compat.allennlp.")))
"""


def test_config_of_ours_imports_no_rule_of_translation(tmp_path: Path) -> None:
    path = tmp_path / "ours.json"
    path.write_text(json.dumps(ours("simple_tagger")))
    # In a process of its own: the rules are imported here already.
    command = [sys.executable, "-c", CHECK, path]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = [name.rpartition(".")[2] for name in printed.splitlines()[-1].split()]
    assert sorted(names) == ["arguments", "load", "recognize"]


def test_translated_configs_are_not_translated_again() -> None:
    assert all(mark_of_allennlp(raw) is not None for raw in ALL_CONFIGS.values())
    assert all(mark_of_allennlp(ours(name)) is None for name in CONFIGS)
