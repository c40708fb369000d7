"""The page with the paper's tables: it has what the records have, and names its gaps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import evidence
import pytest
from evidence import PAGE, RESULTS, SECTIONS, further_states, overview, page, states
from figure1 import draw, layer_weights

from elmo_framework.study import Record
from elmo_framework.study.record import write_record

MAX_FILE_BYTES, MAX_BYTES = 200_000, 25_000_000
RECORD = Record(
    config="snli",
    variant="none",
    seed=1,
    fraction=1.0,
    metric="+accuracy",
    validation={"accuracy": 0.5},
    training={"best_step": 100},
    minutes=30.0,
    experiment={
        "model": {"type": "esim"},
        "trainer": {"validation_metric": "+accuracy"},
        "random_seed": 1,
    },
    digests={},
    versions={},
)


def write(results: Path, *records: Record) -> None:
    for record in records:
        write_record(results / "table1/results" / f"{record.name}.json", record)


def row(text: str, name: str) -> list[str]:
    """Return the cells of the first row of the page that starts with a name."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_page_is_what_the_script_makes_of_the_records() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(states(), further_states()), (
        "run experiments/paper/evidence.py"
    )


def test_records_are_small() -> None:
    sizes = {path: path.stat().st_size for path in RESULTS.rglob("*") if path.is_file()}
    assert [path for path, size in sizes.items() if size > MAX_FILE_BYTES] == []
    assert sum(sizes.values()) < MAX_BYTES


def test_a_page_without_records_names_all_runs(tmp_path: Path) -> None:
    empty = states(tmp_path)
    text = page(empty, further_states(tmp_path))
    assert "5 of 5 runs of `bilms.jsonnet` (about 1.5 hours)" in text.replace("\n ", "")
    assert row(text, "SNLI, accuracy")[1:7] == ["88.0", "88.7", "5.8 %", *["not run"] * 3]
    assert text.count("Not run: ") == len(SECTIONS) + 1
    assert "Not run: 100 of 100 runs of `table1.jsonnet`, about " in text
    assert "Not run: this needs the records of Table 1." in text
    _, table1, *_, bilms, _ = overview([*empty, *further_states(tmp_path)]).splitlines()
    assert table1.split()[:3] == ["table1", "100", "100"]
    assert bilms.split() == ["bilms", "5", "5", "1.5"]


def test_values_are_means_of_test_scores(tmp_path: Path) -> None:
    scores = {("none", 1): 0.5, ("none", 2): 0.6, ("mini", 1): 0.775}
    for (variant, seed), score in scores.items():
        write(tmp_path, replace(RECORD, variant=variant, seed=seed, test={"accuracy": score}))
    cells = row(page(states(tmp_path)), "SNLI, accuracy")
    folder = "../experiments/results/table1/results/snli"
    assert cells[4:7] == [
        f"[55.0 ± 7.1]({folder}/none)",
        "not run",
        f"[77.5]({folder}/mini)",
    ]
    assert cells[-1] == "50.0 %"
    assert "[table1](../experiments/results/table1/table.md)" in page(states(tmp_path))


def test_the_best_baseline_without_a_network_is_named(tmp_path: Path) -> None:
    for name, score in (("majority", 0.35), ("bag_of_words", 0.685)):
        for seed in (1, 2):
            write(tmp_path, replace(RECORD, variant=name, seed=seed, test={"accuracy": score}))
    cells = row(page(states(tmp_path)), "SNLI, accuracy")
    assert cells[-2].startswith("[68.5](../experiments/results/table1/results/snli/bag_of_words)")
    assert cells[-2].endswith(", bag of words")


def test_development_scores_are_marked_and_not_mixed(tmp_path: Path) -> None:
    tested = replace(RECORD, variant="mini", test={"accuracy": 0.9})
    other = replace(RECORD, seed=2, validation={"accuracy": 0.6}, test={"accuracy": 0.9})
    write(tmp_path, RECORD, other, tested)
    cells = row(page(states(tmp_path)), "SNLI, accuracy")
    assert cells[4].startswith("[55.0 ± 7.1 *]")
    assert cells[-1] == ""


def test_hours_of_missing_runs_follow_the_records(tmp_path: Path) -> None:
    before = states(tmp_path)[0]
    write(tmp_path, RECORD, replace(RECORD, variant="majority", training={}, minutes=0.1))
    after = states(tmp_path)[0]
    assert after.missing.number == before.missing.number - 1
    # 14 runs of SNLI are left, of 30 minutes and not of the earlier measurement.
    earlier = 15 * evidence.SECTIONS[0].minutes["snli"]
    assert after.missing.hours - before.missing.hours == pytest.approx((14 * 30 - earlier) / 60)


def test_hours_of_a_slower_variant_are_longer(tmp_path: Path) -> None:
    (state,) = (each for each in states(tmp_path) if each.section.study == "appendix")
    alone = {
        variant: replace(state, planned=[(evidence.Cell("snli", variant, 1.0), 1)]).missing.hours
        for variant in ("frozen", "tuned")
    }
    assert alone["tuned"] == pytest.approx(5.5 * alone["frozen"])


def test_layer_weights_are_means_over_seeds_by_place(tmp_path: Path) -> None:
    names = "embedder.token_embedders.elmo.mix.s_{}", "output_embedder.mix.s_{}"
    for seed, first in ((1, 0.2), (2, 0.4)):
        weights = {0: first, 1: 0.5, 2: 0.5 - first}
        monitored = {name.format(n): value for name in names for n, value in weights.items()}
        monitored["embedder.token_embedders.elmo.mix.gamma"] = 3.0
        write(tmp_path, replace(RECORD, variant="mini", seed=seed, monitored=monitored))
    of_table1 = states(tmp_path)[0].records
    rows = list(layer_weights(of_table1))
    assert [(row.task, row.place, row.num_runs) for row in rows] == [
        ("snli", "input", 2),
        ("snli", "output", 2),
    ]
    assert rows[0].weights == pytest.approx((0.3, 0.5, 0.2))
    assert row(page(states(tmp_path)), "snli") == ["snli", "input", "0.30", "0.50", "0.20", "2"]
    draw(rows, tmp_path / "first.svg")
    draw(rows, tmp_path / "again.svg")
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "again.svg").read_bytes()
