"""A small sense-tagged corpus, and the files of a test set in the framework's format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BANK, SHORE = "bank%1:17:00::", "bank%1:14:00::"
TAKE, HAPPEN = "take%2:40:00::", "take_place%2:30:00::"
FIRST_OF_BANK, FIRST_OF_DUCK = "bank%1:17:01::", "duck%1:05:00::"

SEMCOR: list[dict[str, Any]] = [
    {"tokens": ["the", "bank", "paid"], "senses": {"1": [BANK]}},
    {"tokens": ["a", "river", "bank"], "senses": {"2": [SHORE]}},
    {"tokens": ["the", "muddy", "bank"], "senses": {"2": [SHORE]}},
    {"tokens": ["It", "took_place", "there"], "senses": {"1": [HAPPEN]}},
    {"tokens": ["they", "took", "both", "."], "senses": {"1": [TAKE, HAPPEN]}},
]
INDEX = f"""\
bank%1:14:00:: 09213565 2 20
{FIRST_OF_BANK} 09213434 1 20
{FIRST_OF_DUCK} 01846331 1 8
duck%2:38:00:: 02037090 1 0
"""
XML = """\
<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en" source="small"><text id="d0"><sentence id="d0.s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="d0.s0.t0" lemma="Bank" pos="NOUN">bank</instance>
<instance id="d0.s0.t1" lemma="take_place" pos="VERB">took place</instance>
<instance id="d0.s0.t2" lemma="duck" pos="NOUN">duck</instance>
</sentence></text></corpus>
"""
KEYS = f"d0.s0.t0 {BANK} {SHORE}\nd0.s0.t1 {HAPPEN}\nd0.s0.t2 duck%1:13:00::\n"


def write_semcor(folder: Path) -> Path:
    path = folder / "semcor.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in SEMCOR))
    return path


def write_test_set(folder: Path) -> Path:
    (folder / "small.gold.key.txt").write_text(KEYS)
    path = folder / "small.data.xml"
    path.write_text(XML)
    return path


def write_index(folder: Path) -> Path:
    path = folder / "index.sense"
    path.write_text(INDEX)
    return path
