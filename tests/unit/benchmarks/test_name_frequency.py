"""Scores of taggers by the rank of the words of names."""

from __future__ import annotations

from pathlib import Path

import name_frequency
import pytest
from name_frequency import main, paired, rarest, rows, word_ranks

from elmo_framework import components
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.errors import RunError
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.study.record import Record, read_records
from elmo_framework.tasks.tagging.task import TaggedSentence
from tests.unit.study.studies import add_record, add_terms

BASELINE = Path(__file__).parents[3] / "experiments/ner/baseline.jsonnet"
RANKS = {"ann": 0, "bob": 5, "zoe": 20}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """Return a config whose data have one name in each sentence."""
    components.load()
    path = tmp_path_factory.mktemp("data") / "names.txt"
    names = [("Ann", "Bob", "Zoe", "Unknown")[number % 4] for number in range(40)]
    path.write_text("".join(f"word{n} O\n{name} B-PER\n\n" for n, name in enumerate(names)))
    paths = [f"{split}_data_path={path}" for split in ("train", "validation")]
    return Config.load(BASELINE, overrides=[*paths, "test_fraction=0.5"]).raw


def add_run(folder: Path, config: dict, variant: str, seed: int, found: set[str]) -> Record:
    """Write the record of a run that finds certain names only."""
    recorded = {**config, "random_seed": seed}
    record = add_record(folder, variant, seed, 0.5, test=0.5, experiment=recorded)
    experiment = parse(Experiment, config, source="test").build()
    for split in ("validation", "test"):
        is_found = [int(example.words[1] in found) for example in experiment.examples(split)]
        add_terms(folder, record, is_found, split=split)
    return record


def test_scores_and_differences_of_each_class(tmp_path: Path, config: dict) -> None:
    pairs = [
        (
            add_run(tmp_path, config, "mini", seed, {"Zoe", "Unknown"} if seed == 1 else {"Zoe"}),
            add_run(tmp_path, config, "none", seed, {"Ann", "Bob"}),
        )
        for seed in (1, 2)
    ]
    table = {row.title: row for row in rows(pairs, tmp_path / "results", RANKS, [10, 30])}
    assert list(table) == [
        "all names",
        "all words below 10",
        "from 10 below 30",
        "from 30 or not in the file",
    ]
    frequent, rare, unknown = list(table.values())[1:]
    assert (frequent.score, frequent.other, frequent.difference.value) == (0, 1, -1)
    assert (rare.score, rare.other, rare.difference.value) == (1, 0, 1)
    assert unknown.score == pytest.approx(0.5)  # with one of the two seeds
    assert rare.difference.interval == pytest.approx((1, 1))
    whole = table["all names"]
    assert whole.num_names == sum(row.num_names for row in (frequent, rare, unknown)) > 40


def test_class_is_that_of_the_rarest_word_of_the_names() -> None:
    words, tags = ("Zoe", "met", "Ann", "Bob"), ("O", "O", "B-PER", "I-PER")
    assert rarest(TaggedSentence(words, tags), RANKS, [1, 10]) == 1
    assert rarest(TaggedSentence(words[1:3], tags[1:3]), RANKS, [1, 10]) == 0
    assert rarest(TaggedSentence(("Eve",), ("U-PER",)), RANKS, [1, 10]) == 2
    assert rarest(TaggedSentence(words, ("O",) * 4), RANKS, [1, 10]) == -1


def test_ranks_are_lines(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("the 0.1 0.2\nof 0.3 0.4\n")
    assert word_ranks(path) == {"the": 0, "of": 1}


def test_seeds_without_a_partner_or_test_scores_are_left_out(tmp_path: Path) -> None:
    for variant, seed, test in [("mini", 1, 0.5), ("mini", 2, 0.5), ("mini", 3, 0.5)]:
        add_record(tmp_path, variant, seed, 0.5, test=test)
    add_record(tmp_path, "none", 2, 0.5, test=0.5)
    add_record(tmp_path, "none", 3, 0.5)
    records = read_records(tmp_path / "results")
    assert [(one.seed, other.seed) for one, other in paired(records, "mini", "none")] == [(2, 2)]
    with pytest.raises(RunError, match="no seed of 'mini' and 'control'"):
        paired(records, "mini", "control")


def test_runs_on_other_data_are_refused(tmp_path: Path, config: dict) -> None:
    ours = add_run(tmp_path, config, "mini", 1, {"Ann"})
    theirs = add_run(tmp_path, config, "none", 1, {"Ann"})
    add_terms(tmp_path, theirs, [1] * 40, digest="other")
    with pytest.raises(RunError, match="scored on different validation data"):
        list(rows([(ours, theirs)], tmp_path / "results", RANKS, [10]))


def test_the_command_prints_a_table(
    tmp_path: Path, config: dict, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    add_run(tmp_path, config, "mini", 1, {"Ann"})
    add_run(tmp_path, config, "none", 1, {"Bob"})
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("ann 1\nbob 1\nzoe 1\n")
    words = ["x", str(tmp_path / "results/ner"), "mini", "none", "--vectors", str(vectors)]
    monkeypatch.setattr(name_frequency.sys, "argv", [*words, "--ranks", "1"])
    assert main() == 0
    assert "| all words below 1 |" in capsys.readouterr().out
