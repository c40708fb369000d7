"""Which faults are found in a source, what they are called, and which tests are tried on them."""

from __future__ import annotations

from pathlib import Path

import mutants as campaign
import pytest
from faults import FAULTS
from mutation import Edit, chosen, mutants_of, named, python_edits

ROOT = Path(__file__).parents[3]
SOURCE = '''
"""A module."""
LIMIT = 3


@register("name")
def scaled(values: list[int] | None, factor: float = 0.5, is_on: bool = True) -> float:
    """Scale them."""
    assert values, "none"
    if not values and factor < LIMIT:
        raise ValueError(f"{factor + 1}")
    _note(values)
    total = torch.sum(values, dim=1)
    return -total * factor
'''
CHANGED = {
    "LIMIT = 4",
    "factor: float = 1.0",
    "is_on: bool = False",
    "if (not (not values and factor < LIMIT)):",
    "if values and",
    "not values or factor",
    "factor <= LIMIT",
    "    None\n",
    "total = values\n",
    "torch.sum(values, )",
    "dim=2)",
    "return total * factor",
    "-total / factor",
}
C_SOURCE = """/* Adds + and compares <. */
#define LANES 16
float sum(float *x, long n) {
    float total = 0.0f;
    for (long k = 0; k < n; ++k) {
        if (x[k] >= 2.0f)
            total += x[k] * fabsf(x[k]);
        x[k] = total;
    }
    return total;
}
"""
C_CHANGED = {
    "total = 1.0f;",
    "k <= n;",
    "if (!(x[k] >= 2.0f))",
    "x[k] > 2.0f",
    ">= 0.5f",
    "total -= x[k]",
    "x[k] / fabsf",
    "* (x[k]);",
    "2.0f)\n            ;\n",
    "(x[k]);\n        ;\n",
}


def changed_texts(tmp_path: Path, name: str, source: str) -> list[str]:
    (tmp_path / name).write_text(source)
    return [m.apply(source.encode()).decode() for m in mutants_of(tmp_path, name)]


@pytest.mark.parametrize(
    ("name", "source", "changed"), [("a.py", SOURCE, CHANGED), ("a.c", C_SOURCE, C_CHANGED)]
)
def test_all_that_a_program_does_is_changed_and_nothing_else(
    tmp_path: Path, name: str, source: str, changed: set[str]
) -> None:
    texts = changed_texts(tmp_path, name, source)
    assert len(texts) == len(set(texts)) == len(changed)
    for part in changed:
        assert part not in source
        assert sum(part in text for text in texts) == 1, part


def test_python_stays_python() -> None:
    for name in ("nn/crf.py", "data/data_loader.py", "metrics/coreference.py"):
        path = ROOT / "elmo_framework" / name
        source = path.read_bytes()
        for mutant in named(path.name, source, python_edits(source)):
            compile(mutant.apply(source), path.name, "exec")


def test_a_name_stays_the_same_when_other_lines_change() -> None:
    first, second = b"x = 1\n", b"y = 'new'\nx = 1\n"
    (before,), (after,) = (named("a.py", s, python_edits(s)) for s in (first, second))
    assert (before.line, after.line) == (1, 2)
    assert before.identity == after.identity
    assert before.difference(first) == after.difference(second) == "- x = 1\n+ x = 2"


def test_equal_lines_have_different_names() -> None:
    source = b"x = 1\nx = 1\n"
    assert len({mutant.identity for mutant in named("a.py", source, python_edits(source))}) == 2


def test_every_file_has_a_mutant_before_one_has_two() -> None:
    files = [
        named(f"{name}.py", b"x" * 99, [Edit("constant", at, at + 1, b"y") for at in range(size)])
        for name, size in (("large", 40), ("small", 2), ("single", 1))
    ]
    first, again = (chosen(files, 3, seed=1) for _ in range(2))
    assert first == again != chosen(files, 3, seed=2)
    assert {mutant.path for mutant in first} == {"large.py", "small.py", "single.py"}
    assert set(first) < set(chosen(files, 20, seed=1))
    assert len(chosen(files, 99, seed=1)) == 43


def test_every_fault_is_in_its_file_once() -> None:
    for fault in FAULTS:
        text = (ROOT / fault.path).read_text(encoding="utf-8")
        assert text.count(fault.before) == 1, fault
        assert fault.before != fault.after


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("elmo_framework/nn/crf.py", "tests/unit/nn"),
        ("elmo_framework/tasks/srl/example.py", "tests/unit/tasks/srl"),
    ],
)
def test_tests_are_those_of_the_mirrored_folder(path: str, folder: str) -> None:
    assert campaign.tests_folder(path) == folder
    assert (ROOT / folder).is_dir()


def test_mutant_runs_tests_of_its_file_and_function(tmp_path: Path) -> None:
    path, folder = "elmo_framework/nn/a.py", "tests/unit/nn"
    source = b"def first(x=1):\n    return x\n\n\ndef second():\n    return 2\n"
    for file in (path, f"{folder}/test_a.py"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_bytes(source)
    own, other = f"{folder}/test_a.py", f"{folder}/test_b.py"
    tests = {"2": [f"{other}::one", f"{own}::one"], "6": [f"{other}::two"]}
    default, *_, constant = named(path, source, python_edits(source))
    for held, expected in (
        ({path: tests}, {default: [own, f"{other}::one"], constant: [own, f"{other}::two"]}),
        ({}, {default: [own], constant: [own]}),
    ):
        for mutant, names in expected.items():
            assert campaign.tests_of(mutant, campaign.Coverage(held), tmp_path) == names
    (tmp_path / own).unlink()
    assert campaign.tests_of(default, campaign.Coverage({}), tmp_path) == [folder]
