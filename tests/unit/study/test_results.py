"""Results of a study, against values worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from elmo_framework.analysis.statistics import Resamples, holm
from elmo_framework.errors import DataError
from elmo_framework.experiment.terms import ExampleTerms, score_function
from elmo_framework.study.folder import StudyFolder
from elmo_framework.study.report import write_results
from elmo_framework.study.results import Results, Section, VariantRow
from tests.unit.study.studies import (
    CONFIG,
    METRIC,
    add_record,
    add_run,
    add_terms,
    add_trials,
    study_state,
)

GRID = {"type": "grid", "space": {"trainer.optimizer.lr": [0.1, 0.2, 0.3]}}
GOOD = [[1, 1, 1, 1, 1, 0, 1, 1], [1, 1, 1, 0, 1, 1, 1, 1]]
POOR = [[1, 0, 0, 1, 1, 0, 1, 0], [1, 1, 0, 0, 0, 0, 1, 0]]


def results(folder: Path, **changes: object) -> Results:
    return Results.of(study_state(folder, **changes), num_resamples=500)


def rows(section: Section) -> dict[str, VariantRow]:
    return {row.variant: row for row in section.rows}


def add_pair(folder: Path) -> None:
    """Write the runs of `mini` and `none` with two seeds."""
    for variant, runs in (("mini", GOOD), ("none", POOR)):
        for seed, is_correct in enumerate(runs, start=1):
            add_run(folder, variant, seed, is_correct)


def test_mean_and_deviation_are_those_of_the_seeds(tmp_path: Path) -> None:
    for seed, score in ((1, 0.8), (2, 0.9)):
        add_record(tmp_path, "mini", seed, score, minutes=seed)
    row = rows(results(tmp_path).sections[0])["mini"]
    assert row.mean.value == pytest.approx(0.85)
    assert row.deviation == pytest.approx(0.1 / 2**0.5)
    assert row.minutes == 1.5


def test_interval_over_seeds_is_that_of_student(tmp_path: Path) -> None:
    for seed, score in ((1, 0.8), (2, 0.9)):
        add_record(tmp_path, "mini", seed, score)
    section = results(tmp_path).sections[0]
    # 12.7062 is the quantile of Student's t at 97.5 % with one degree of freedom.
    expected = (0.85 - 12.7062 * 0.05, 0.85 + 12.7062 * 0.05)
    mean = rows(section)["mini"].mean
    assert mean.interval == pytest.approx(expected, abs=1e-5)
    assert mean.p is None  # of the hypothesis that a score is 0
    assert section.obstacle == "the records have no terms of the examples"


def test_file_of_terms_that_is_missing_is_named(tmp_path: Path) -> None:
    add_run(tmp_path, "mini", 1, [1, 0, 1])
    add_record(tmp_path, "mini", 2, 0.9)
    assert results(tmp_path).sections[0].obstacle == (
        "results/ner/mini/seed-2.validation.npz is missing"
    )


def test_rounding_is_no_variance_between_seeds(tmp_path: Path) -> None:
    scores = {"mini": [0.80, 0.82], "none": [0.70, 0.72]}  # 0.82 - 0.72 is 0.1 but for rounding
    for variant, of_variant in scores.items():
        for seed, score in enumerate(of_variant, start=1):
            add_record(tmp_path, variant, seed, score)
    (comparison,) = results(tmp_path).sections[0].comparisons
    assert (comparison.difference.interval, comparison.difference.p) == (None, None)


def test_differences_over_seeds_are_paired_t_tests(tmp_path: Path) -> None:
    scores = {"mini": [0.9, 0.8, 0.83], "none": [0.7, 0.71, 0.6]}
    for variant, of_variant in scores.items():
        for seed, score in enumerate(of_variant, start=1):
            add_record(tmp_path, variant, seed, score)
    (comparison,) = results(tmp_path, seeds=[1, 2, 3]).sections[0].comparisons
    expected = ttest_rel(scores["mini"], scores["none"])
    assert comparison.difference.value == pytest.approx(0.52 / 3)
    assert comparison.difference.interval == pytest.approx(tuple(expected.confidence_interval()))
    assert comparison.difference.p == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("others", [{1: 0.7, 2: 0.71}, {1: 0.7, 2: 0.71, 4: 0.6}])
def test_runs_of_different_seeds_are_compared_by_welch(
    tmp_path: Path, others: dict[int, float]
) -> None:
    scores = {"mini": {1: 0.9, 2: 0.8, 3: 0.83}, "none": others}
    for variant, of_variant in scores.items():
        for seed, score in of_variant.items():
            add_record(tmp_path, variant, seed, score)
    (comparison,) = results(tmp_path, seeds=[1, 2, 3, 4]).sections[0].comparisons
    expected = ttest_ind([*scores["mini"].values()], [*others.values()], equal_var=False)
    assert comparison.difference.interval == pytest.approx(tuple(expected.confidence_interval()))
    assert comparison.difference.p == pytest.approx(expected.pvalue)


def test_equal_scores_of_different_seeds_have_a_difference_without_an_interval(
    tmp_path: Path,
) -> None:
    for variant, seeds, score in (("mini", (1, 2), 0.9), ("none", (1, 3), 0.7)):
        for seed in seeds:
            add_record(tmp_path, variant, seed, score)
    (comparison,) = results(tmp_path, seeds=[1, 2, 3]).sections[0].comparisons
    assert comparison.difference.value == pytest.approx(0.2)
    assert (comparison.difference.interval, comparison.difference.p) == (None, None)


def test_with_terms_intervals_are_over_seeds_and_examples(tmp_path: Path) -> None:
    add_pair(tmp_path)
    (section,) = results(tmp_path).sections
    folder = StudyFolder(tmp_path)
    names = [f"ner/{variant}/seed-{seed}" for variant in ("mini", "none") for seed in (1, 2)]
    terms = [ExampleTerms.load(folder.terms(name, "validation")) for name in names]
    resamples = Resamples(terms, score_function(CONFIG, source=""), [METRIC], num_resamples=500)
    assert section.obstacle == ""
    assert rows(section)["mini"].mean == resamples.mean(METRIC, [0, 1])
    (comparison,) = section.comparisons
    paired = resamples.difference(METRIC, [0, 1], [2, 3], is_paired=True)
    assert comparison.difference == paired
    assert comparison.difference.value == pytest.approx(0.875 - 0.4375)


def test_terms_that_contradict_the_record_are_not_used(tmp_path: Path) -> None:
    add_pair(tmp_path)
    add_record(tmp_path, "mini", 1, sum(GOOD[0]) / len(GOOD[0]) - 0.001)
    (section,) = results(tmp_path).sections
    assert section.obstacle == "the terms of the examples do not give the scores of the records"


def test_runs_on_different_examples_are_not_resampled_together(tmp_path: Path) -> None:
    add_pair(tmp_path)
    add_terms(tmp_path, add_record(tmp_path, "none", 2, 1.0), [1] * 8, digest="other")
    (section,) = results(tmp_path).sections
    assert section.obstacle == "the runs are scored on different examples"


def test_damaged_terms_are_an_error(tmp_path: Path) -> None:
    add_pair(tmp_path)
    StudyFolder(tmp_path).terms("ner/none/seed-1", "validation").write_bytes(b"PK damaged")
    with pytest.raises(DataError, match=r"seed-1\.validation\.npz"):
        results(tmp_path)


def test_holm_correction_is_over_the_whole_study(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for config in ("ner", "pos"):
        for variant, size in (("mini", 0.1), ("none", 0.0)):
            for seed in (1, 2, 3):
                score = 0.5 + size + 0.05 * generator.random()
                add_record(tmp_path, variant, seed, score, config=config)
    configs = {name: {"config": CONFIG} for name in ("ner", "pos")}
    sections = results(tmp_path, configs=configs, seeds=[1, 2, 3]).sections
    comparisons = [section.comparisons[0] for section in sections]
    p_values = [each.difference.p or 0.0 for each in comparisons]
    assert [each.p_holm for each in comparisons] == holm(p_values)
    assert min(each.p_holm or 0.0 for each in comparisons) == 2 * min(p_values)


def test_a_missing_run_is_listed_and_not_averaged(tmp_path: Path) -> None:
    add_record(tmp_path, "mini", 1, 0.8)
    summary = results(tmp_path)
    row = rows(summary.sections[0])["mini"]
    assert (len(row.runs), row.num_planned) == (1, 2)
    assert summary.missing == {
        "ner/mini/seed-2": "not started",
        "ner/none/seed-1": "not started",
        "ner/none/seed-2": "not started",
    }
    assert "none" not in rows(summary.sections[0])


def test_a_failed_run_is_listed_with_its_message(tmp_path: Path) -> None:
    state = study_state(tmp_path)
    state.failed["ner/none/seed-1"] = "its process was ended by SIGKILL"
    for name in ("ner/none/seed-1", "ner/none/seed-2"):
        log = state.folder.log(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(
            "2026-11-22T10:00:00.123+00:00 ner/none/seed-1\nerror: no space left\n"
            "2026-11-22T11:00:00.123+00:00 ner/none/seed-1\nepoch 1/2\n\nerror: the loss is nan\n"
        )
    missing = Results.of(state).missing
    assert missing["ner/none/seed-1"] == "failed: its process was ended by SIGKILL"
    assert missing["ner/none/seed-2"] == "not finished; its log ends with: error: the loss is nan"


def test_test_data_are_shown_only_for_scored_runs(tmp_path: Path) -> None:
    add_record(tmp_path, "mini", 1, 0.8, test=0.7)
    add_record(tmp_path, "mini", 2, 0.9)
    development, held_out = results(tmp_path).sections
    assert [development.split, held_out.split] == ["validation", "test"]
    assert [run.score for run in rows(development)["mini"].runs] == [0.8, 0.9]
    assert [run.score for run in rows(held_out)["mini"].runs] == [0.7]


def test_rows_are_sorted_by_fraction(tmp_path: Path) -> None:
    for fraction in (1.0, 0.1):
        for variant in ("mini", "none"):
            add_record(tmp_path, variant, 1, 0.5 + 0.1 * fraction, fraction=fraction)
    (section,) = results(tmp_path, fractions=[1.0, 0.1]).sections
    assert [row.fraction for row in section.rows] == [0.1, 0.1, 1.0, 1.0]
    assert [each.better.fraction for each in section.comparisons] == [0.1, 1.0]


def test_only_the_best_trial_is_in_the_table(tmp_path: Path) -> None:
    tried = {"000": [1, 0, 0, 0], "001": [1, 1, 1, 0], "002": [1, 1, 0, 0]}
    add_trials(tmp_path, tried)
    summary = results(tmp_path, search=GRID, variants={"mini": {}}, comparisons=[])
    (run,) = rows(summary.sections[0])["mini"].runs
    assert (run.record.trial, run.score) == ("001", 0.75)
    (search,) = summary.searches
    assert [trial.runs[0].plan.trial for trial in search.trials] == ["001", "002", "000"]
    assert summary.missing == {"ner/mini/trial-001-seed-2": "not started"}


def test_runs_that_a_search_adds_later_are_missing(tmp_path: Path) -> None:
    state = study_state(tmp_path, search=GRID, variants={"mini": {}}, comparisons=[])
    # Three trials with the first seed; then the best one with the second seed.
    assert state.num_runs_by_state() == {"missing": 4}


@pytest.mark.parametrize(("sign", "worse", "better"), [("+", 0, 1), ("-", 1, 0)])
def test_the_best_trial_is_as_sure_as_its_resamples(
    tmp_path: Path, sign: str, worse: int, better: int
) -> None:
    metric = f"{sign}{METRIC}"
    config = {**CONFIG, "trainer": {**CONFIG["trainer"], "validation_metric": metric}}
    trials = {"000": [worse] * 6, "001": [better] * 6, "002": [better] * 6}
    add_trials(tmp_path, trials, metric=metric)
    summary = results(
        tmp_path,
        configs={"ner": {"config": config}},
        search=GRID,
        variants={"mini": {}},
        comparisons=[],
    )
    chances = {each.runs[0].plan.trial: each.probability for each in summary.searches[0].trials}
    assert chances == {"000": 0.0, "001": 0.5, "002": 0.5}


def test_a_pruned_trial_has_no_score(tmp_path: Path) -> None:
    add_trials(tmp_path, {"000": [1, 0, 0, 0], "001": [1, 1, 0, 0]})
    add_record(tmp_path, "mini", 1, 0.99, trial="002", is_pruned=True)
    summary = results(tmp_path, search=GRID, variants={"mini": {}}, comparisons=[])
    last = summary.searches[0].trials[-1]
    assert (last.runs[0].plan.trial, last.score, last.state) == ("002", None, "pruned")
    assert summary.missing["ner/mini/trial-002-seed-1"] == "pruned"
    assert [run.record.trial for run in rows(summary.sections[0])["mini"].runs] == ["001"]


def test_where_smaller_is_better_the_smallest_trial_is_first(tmp_path: Path) -> None:
    metric = "-perplexity"
    config = {**CONFIG, "trainer": {**CONFIG["trainer"], "validation_metric": metric}}
    for trial, score in (("000", 30.0), ("001", 20.0), ("002", 40.0)):
        add_record(tmp_path, "mini", 1, score, trial=trial, metric=metric)
    summary = results(
        tmp_path,
        configs={"ner": {"config": config}},
        search=GRID,
        variants={"mini": {}},
        comparisons=[],
    )
    assert [each.score for each in summary.searches[0].trials] == [20.0, 30.0, 40.0]


def test_added_records_are_further_rows(tmp_path: Path) -> None:
    add_pair(tmp_path)
    add_run(tmp_path, "word_classifier", 1, [1, 0, 1, 0, 1, 0, 1, 0])
    add_run(tmp_path, "word_classifier", 2, [1, 1, 1, 1, 1, 1, 1, 1], config="srl")
    (section,) = results(tmp_path).sections
    assert [(row.variant, row.num_planned) for row in section.rows] == [
        ("mini", 2),
        ("none", 2),
        ("word_classifier", 0),
    ]
    assert section.obstacle == ""


def test_records_of_other_runs_are_counted(tmp_path: Path) -> None:
    add_pair(tmp_path)
    assert results(tmp_path).others == []
    add_run(tmp_path, "word_classifier", 1, [1, 0, 1, 0, 1, 0, 1, 0])
    add_run(tmp_path, "mini", 3, [1, 0, 1, 0, 1, 0, 1, 0])
    for config in ("srl", "sst", "snli"):
        add_run(tmp_path, "mini", 1, [1, 1, 1, 1, 1, 1, 1, 1], config=config)
    names = ["ner/mini/seed-3", "snli/mini/seed-1", "srl/mini/seed-1", "sst/mini/seed-1"]
    assert results(tmp_path).others == names
    write_results(study_state(tmp_path))
    found = f"4 records of runs that this study does not have: {', '.join(names[:3])}, ..."
    assert found in (tmp_path / "table.md").read_text()


def test_trials_of_a_renamed_variant_are_no_rows(tmp_path: Path) -> None:
    add_pair(tmp_path)
    add_trials(tmp_path, {"000": [1] * 8, "001": [0] * 8}, variant="earlier")
    (section,) = results(tmp_path).sections
    assert [row.variant for row in section.rows] == ["mini", "none"]


def test_a_trial_of_two_seeds_has_their_mean(tmp_path: Path) -> None:
    search = {"type": "list", "trials": [{}, {"trainer.optimizer.lr": 0.2}], "num_seeds": 2}
    for trial, scores in (("000", (0.9, 0.1)), ("001", (0.6, 0.7))):
        for seed, score in enumerate(scores, start=1):
            add_record(tmp_path, "mini", seed, score, trial=trial)
    summary = results(
        tmp_path, search=search, variants={"mini": {}}, comparisons=[], seeds=[1, 2, 3]
    )
    scores_of_trials = {each.runs[0].plan.trial: each.score for each in summary.searches[0].trials}
    assert scores_of_trials == {"001": pytest.approx(0.65), "000": pytest.approx(0.5)}
    assert summary.missing == {"ner/mini/trial-001-seed-3": "not started"}


def test_a_trial_waits_for_all_of_its_seeds(tmp_path: Path) -> None:
    search = {"type": "list", "trials": [{}], "num_seeds": 2}
    add_record(tmp_path, "mini", 1, 0.9, trial="000")
    summary = results(tmp_path, search=search, variants={"mini": {}}, comparisons=[])
    (trial,) = summary.searches[0].trials
    assert (trial.score, trial.state) == (None, "not started")
