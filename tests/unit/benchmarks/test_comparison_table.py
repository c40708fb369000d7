from __future__ import annotations

import pytest
from comparison_table import Key, figures_of, ratio, summary, table

OURS = [
    {"load_s": 2.0, "rows": [{"config": "1u", "tokens_per_s": 10.0, "seconds": 4}]},
    {"load_s": 1.0, "rows": [{"config": "1u", "tokens_per_s": 30.0, "seconds": 2}]},
    {"load_s": 4.0, "rows": [{"config": "1u", "tokens_per_s": 20.0, "seconds": 3}]},
]
THEIRS = [
    {
        "load_s": 6.0,
        "rows": [
            {"config": "1u", "tokens_per_s": 5.0},
            {"config": "64s", "tokens_per_s": 8.0},
        ],
    }
]
SINGLE = Key("1u", "tokens_per_s")


def test_rounds_are_collected_and_non_metrics_ignored() -> None:
    assert figures_of(OURS) == {
        Key("-", "load_s"): [2.0, 1.0, 4.0],
        SINGLE: [10.0, 30.0, 20.0],
    }


def test_a_line_without_rows_has_its_figures_as_a_whole() -> None:
    assert figures_of([{"tokens_per_s": 3.0}]) == {Key("-", "tokens_per_s"): [3.0]}


def test_medians_of_the_same_configuration_are_compared() -> None:
    assert ratio(SINGLE, figures_of(OURS), figures_of(THEIRS)) == pytest.approx(4.0)


def test_missing_metric_is_compared_with_the_best_of_the_other() -> None:
    ours = {Key("best", "tokens_per_s"): [24.0]}
    assert ratio(Key("best", "tokens_per_s"), ours, figures_of(THEIRS)) == pytest.approx(3.0)


def test_of_seconds_and_memory_less_is_better() -> None:
    assert ratio(Key("-", "load_s"), figures_of(OURS), figures_of(THEIRS)) == pytest.approx(3.0)


def test_a_figure_that_the_other_lacks_has_no_ratio() -> None:
    ours = {Key("-", "import_s"): [1.0]}
    assert ratio(Key("-", "import_s"), ours, figures_of(THEIRS)) is None


def test_table_shows_ratios_only_for_our_metrics() -> None:
    lines = table({"ours": figures_of(OURS), "another": figures_of(THEIRS)}).splitlines()
    assert lines[0].endswith("| times better than another |")
    assert "| ours | 1u | tokens_per_s | 20 [10..30] | 4.00 |" in lines
    assert "| another | 1u | tokens_per_s | 5 [5..5] |  |" in lines


def test_summary_compares_with_the_fastest_other() -> None:
    slow = [{"rows": [{"config": "1u", "tokens_per_s": 2.0}]}]
    measured = {
        "ours": figures_of(OURS),
        "slow": figures_of(slow),
        "another": figures_of(THEIRS),
    }
    lines = summary({"embedding": measured, "alone": {"ours": figures_of(OURS)}}).splitlines()
    assert lines[0] == "| work | configuration | ours | fastest other | times faster |"
    assert lines[2:] == ["| embedding: ours | 1u | 20 | another | 4.00 |"]
