"""Results of a study, from its records alone: means, intervals, differences, best settings."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from elmo_framework.analysis.scored_run import EvaluationSplit
from elmo_framework.analysis.statistics import NUM_RESAMPLES, Estimate, error_reduction, holm
from elmo_framework.study.job import log_tail
from elmo_framework.study.plan import Cell
from elmo_framework.study.record import CellKey, Record, read_records
from elmo_framework.study.state import PlannedRun, StudyState
from elmo_framework.study.uncertainty import RunScore, Uncertainty


@dataclass(frozen=True)
class VariantRow:
    """A variant of a config, trained on a fraction of the data with several seeds.

    Attributes:
        variant: its name.
        fraction: of the training data.
        runs: those that have a score.
        num_planned: the number of runs in the study, of which `Results.missing` has the others; 0
            for records of a variant that is not in the study.
        mean: of their scores.
        minutes: of training, the mean over the runs.
    """

    variant: str
    fraction: float
    runs: Sequence[RunScore]
    num_planned: int
    mean: Estimate
    minutes: float

    @property
    def deviation(self) -> float | None:
        """The standard deviation over seeds (n - 1); None for a single run."""
        scores = [run.score for run in self.runs]
        return statistics.stdev(scores) if len(scores) > 1 else None


@dataclass(frozen=True)
class VariantComparison:
    """A difference that the study asks for.

    Attributes:
        better: the row expected to be better.
        worse: the other, of the same config and fraction.
        difference: `better` minus `worse`.
        p_holm: its p, corrected for all comparisons of the study on the same split.
    """

    better: VariantRow
    worse: VariantRow
    difference: Estimate
    p_holm: float | None

    @property
    def error_reduction(self) -> float | None:
        sign = 1 if self.better.runs[0].metric.startswith("+") else -1
        return error_reduction(self.better.mean.value, self.worse.mean.value, sign=sign)


@dataclass(frozen=True)
class Section:
    """The scores of a config on one split.

    Attributes:
        config: its name.
        split: `validation` or `test`.
        metric: with its sign.
        obstacle: why the intervals are over seeds only; empty if they are over examples too.
        rows: by fraction, and by variant in the order of the study.
        comparisons: of rows of the same fraction.
    """

    config: str
    split: EvaluationSplit
    metric: str
    obstacle: str
    rows: Sequence[VariantRow]
    comparisons: Sequence[VariantComparison]


@dataclass(frozen=True)
class TrialResult:
    """A trial of a search.

    Attributes:
        runs: with the first seeds.
        score: on the validation data, the mean of the runs; None if one failed, was pruned or has
            not ended.
        state: why it has no score; empty if it has one.
        probability: in how many of the resamples of the validation data it is the best; None
            without terms of the examples.
    """

    runs: Sequence[PlannedRun]
    score: float | None
    state: str
    probability: float | None


@dataclass(frozen=True)
class SearchResult:
    """The search of a variant of a config on a fraction, with the best trial first."""

    cell: CellKey
    metric: str
    trials: Sequence[TrialResult]


@dataclass(frozen=True)
class Results:
    """Everything that tables and pictures of a study show.

    Attributes:
        sections: by config, development data first.
        searches: of each config, variant and fraction, if the study has a search.
        missing: why a run has no score, by its name.
        records: of all finished runs.
        others: the names of records in the folder that are of no run of the study, and not shown.
    """

    sections: Sequence[Section]
    searches: Sequence[SearchResult]
    missing: Mapping[str, str]
    records: Sequence[Record]
    others: Sequence[str]

    @classmethod
    def of(cls, state: StudyState, *, num_resamples: int = NUM_RESAMPLES) -> Results:
        """Summarize the records that a study has now.

        Args:
            state: of the study.
            num_resamples: number of bootstrap resamples for intervals and p-values.

        Raises:
            RunError: a record is damaged.
            DataError: terms of examples are damaged.
        """
        runs = state.runs()
        records = [record for run in runs if (record := state.record(run.plan)) is not None]
        splits: list[EvaluationSplit] = ["validation"]
        if any(record.test is not None for record in records):
            splits.append("test")
        in_folder = read_records(state.folder.results)
        sections = [
            section
            for split in splits
            for section in _sections(state, runs, in_folder, split, num_resamples)
        ]
        missing = {run.plan.name: reason for run in runs if (reason := missing_reason(state, run))}
        others = _names_of_others(state, runs, in_folder)
        return cls(sections, _searches(state, runs, num_resamples), missing, records, others)


def missing_reason(state: StudyState, run: PlannedRun) -> str:
    """Return why a run has no score; empty if it has one."""
    record, name = state.record(run.plan), run.plan.name
    if record is not None:
        return "pruned" if record.is_pruned else ""
    if name in state.failed:
        return f"failed: {state.failed[name]}"
    if not state.folder.log(name).exists():
        return "not started"
    log = log_tail(state.folder.log(name))
    return f"not finished; its log ends with: {log}" if log else "not finished"


def _sections(
    state: StudyState,
    runs: Sequence[PlannedRun],
    in_folder: Sequence[Record],
    split: EvaluationSplit,
    num_resamples: int,
) -> list[Section]:
    """Return a section for each config with scores; Holm's correction is over all of them."""
    pending = []
    for config in state.study.configs:
        cells = [cell for cell in state.cells if cell.plan.config == config]
        scores = [
            _scores(state, [run for run in runs if _is_chosen(run, cell)], split) for cell in cells
        ]
        further = _further_scores(state, in_folder, config, cells[0].plan.metric, split)
        if not any((*scores, *further)):
            continue
        uncertainty = Uncertainty(
            [run for group in (*scores, *further) for run in group],
            state.folder,
            num_resamples=num_resamples,
        )
        rows = [
            _row(group, len(cell.seeds), uncertainty)
            for cell, group in zip(cells, scores, strict=True)
            if group
        ]
        rows += [_row(group, 0, uncertainty) for group in further]
        rows.sort(key=lambda row: row.fraction)  # variants stay in the order of the study
        pairs = list(_pairs(state, rows, uncertainty))
        pending.append((config, cells[0].plan.metric, uncertainty, rows, pairs))
    corrected = iter(_holm([each.p for *_, pairs in pending for *_, each in pairs]))
    return [
        Section(
            config,
            split,
            metric,
            uncertainty.obstacle,
            rows,
            [
                VariantComparison(better, worse, difference, next(corrected))
                for better, worse, difference in pairs
            ],
        )
        for config, metric, uncertainty, rows, pairs in pending
    ]


def _is_chosen(run: PlannedRun, cell: Cell) -> bool:
    return run.is_chosen and run.plan.cell == cell.plan.cell


def _scores(
    state: StudyState, runs: Sequence[PlannedRun], split: EvaluationSplit
) -> list[RunScore]:
    """Return the scores of the runs that have one."""
    scores = (_score(state.record(run.plan), run.plan.metric, split) for run in runs)
    return [score for score in scores if score is not None]


def _further_scores(
    state: StudyState, records: Sequence[Record], config: str, metric: str, split: EvaluationSplit
) -> list[list[RunScore]]:
    """Return the scores of records that others have added, such as those of simple baselines.

    Without trials of a search, as of a variant that was renamed: they are no runs of one setting.
    """
    scores: dict[CellKey, list[RunScore]] = {}
    for record in records:
        if record.config == config and _is_further(state, record):
            score = _score(record, metric, split)
            scores.setdefault(record.cell, []).extend([] if score is None else [score])
    return [group for group in scores.values() if group]


def _is_further(state: StudyState, record: Record) -> bool:
    """Return whether others have added a record to a config of the study, as a new variant."""
    study, config = state.study, record.config
    is_known = config not in study.configs or record.variant in study.variants_of(config)
    return record.trial is None and not is_known


def _names_of_others(
    state: StudyState, runs: Sequence[PlannedRun], records: Sequence[Record]
) -> list[str]:
    """Return the names of records that neither a run of the study nor a further row has."""
    names = {run.plan.name for run in runs}
    others = [record for record in records if not _is_further(state, record)]
    return [record.name for record in others if record.name not in names]


def _score(record: Record | None, metric: str, split: EvaluationSplit) -> RunScore | None:
    if record is None or record.is_pruned:
        return None
    by_name = record.validation if split == "validation" else record.test or {}
    if metric[1:] not in by_name:
        return None
    return RunScore(record, split, metric, by_name[metric[1:]])


def _row(runs: Sequence[RunScore], num_planned: int, uncertainty: Uncertainty) -> VariantRow:
    first = runs[0].record
    return VariantRow(
        first.variant,
        first.fraction,
        runs,
        num_planned,
        uncertainty.mean(runs),
        statistics.fmean(run.record.minutes for run in runs),
    )


def _pairs(
    state: StudyState, rows: Sequence[VariantRow], uncertainty: Uncertainty
) -> Iterator[tuple[VariantRow, VariantRow, Estimate]]:
    by_name = {(row.fraction, row.variant): row for row in rows}
    for fraction in dict.fromkeys(row.fraction for row in rows):
        for pair in state.study.comparisons:
            better, worse = (by_name.get((fraction, variant)) for variant in pair)
            if better is not None and worse is not None:
                yield better, worse, uncertainty.difference(better.runs, worse.runs)


def _holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Correct the p-values that exist."""
    corrected = iter(holm([p for p in p_values if p is not None]))
    return [None if p is None else next(corrected) for p in p_values]


def _searches(
    state: StudyState, runs: Sequence[PlannedRun], num_resamples: int
) -> list[SearchResult]:
    if state.study.search is None:
        return []
    results = []
    for cell in state.cells:
        trials: dict[str | None, list[PlannedRun]] = {}
        for run in runs:
            is_tried = run.plan.seed in cell.seeds[: state.study.search.num_seeds]
            if run.plan.cell == cell.plan.cell and is_tried:
                trials.setdefault(run.plan.trial, []).append(run)
        tried = _tried(state, list(trials.values()), num_resamples)
        results.append(SearchResult(cell.plan.cell, cell.plan.metric, sorted(tried, key=_order)))
    return results


def _tried(
    state: StudyState, trials: Sequence[Sequence[PlannedRun]], num_resamples: int
) -> list[TrialResult]:
    scores = [_scores(state, runs, "validation") for runs in trials]
    is_complete = [len(each) == len(runs) for each, runs in zip(scores, trials, strict=True)]
    complete = [each for each, is_whole in zip(scores, is_complete, strict=True) if is_whole]
    uncertainty = Uncertainty(
        [run for each in complete for run in each], state.folder, num_resamples=num_resamples
    )
    probabilities = iter(uncertainty.probabilities_of_best(complete) or repeat(None))
    return [
        TrialResult(
            runs,
            statistics.fmean(run.score for run in each) if is_whole else None,
            next(filter(None, (missing_reason(state, run) for run in runs)), ""),
            next(probabilities) if is_whole else None,
        )
        for runs, each, is_whole in zip(trials, scores, is_complete, strict=True)
    ]


def _order(trial: TrialResult) -> tuple[bool, float]:
    """Sort the best first, and those without a score last."""
    if trial.score is None:
        return True, 0.0
    is_larger_better = trial.runs[0].plan.metric.startswith("+")
    return False, -trial.score if is_larger_better else trial.score
