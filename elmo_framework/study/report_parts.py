"""Parts of the report of a study: headings, tables and pictures."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from elmo_framework.analysis.chart import line_chart
from elmo_framework.analysis.curves import Curve, Panel
from elmo_framework.analysis.page import render
from elmo_framework.console import plural
from elmo_framework.study.content import differing_content
from elmo_framework.study.record import SEED_MARK
from elmo_framework.study.results import (
    Results,
    SearchResult,
    Section,
    TrialResult,
    VariantComparison,
    VariantRow,
)
from elmo_framework.study.tables import (
    MINUS,
    NONE,
    Link,
    Scale,
    Table,
    TableCell,
    percent,
    show_p,
    show_reduction,
)

_DATA = {"validation": "development data", "test": "held-out test data"}
_FURTHER = " * is not a variant of the study: its records were added, as those of simple baselines."
_SHOWN_OTHERS = 3
_STRIP_WIDTH = 120


@dataclass(frozen=True)
class ReportPart:
    """A heading and what is below it.

    Attributes:
        heading: of the part; empty at the top.
        paragraphs: of text.
        tables: one after the other.
        title: of the picture.
        picture: SVG.
        name: of the file of the picture.
    """

    heading: str = ""
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    title: str = ""
    picture: str = ""
    name: str = ""


def report_parts(results: Results) -> Iterator[ReportPart]:
    """Yield the parts of the report of a study."""
    yield ReportPart(paragraphs=[_summary(results), *differing_content(results.records)])
    if results.missing:
        rows = [
            [TableCell(names, is_text=True), TableCell(reason, is_text=True)]
            for names, reason in _joined(results.missing)
        ]
        yield ReportPart("Runs without a score", tables=[Table(("run", "reason"), rows)])
    for section in results.sections:
        yield _section_part(section)
    for search in results.searches:
        yield _search_part(search)
    yield from _layer_part(results.sections)
    yield ReportPart("How to read this", _notes())


def _joined(missing: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield names and their reason; runs that differ in the seed only, and have one, together."""
    seeds = dict[tuple[str, str], list[str]]()
    for name, reason in missing.items():
        cell, mark, seed = name.rpartition(SEED_MARK)
        seeds.setdefault((cell + mark, reason), []).append(seed)
    for (start, reason), of_reason in seeds.items():
        yield start + ", ".join(of_reason), reason


def _summary(results: Results) -> str:
    counts = f"{plural(len(results.records), 'record')}"
    if results.missing:
        counts += f"; {plural(len(results.missing), 'run')} without a score"
    if num_copied := sum(record.origin is not None for record in results.records):
        counts += f"; {num_copied} copied from other studies, which they name as `origin`"
    if others := results.others:
        listed = ", ".join(others[:_SHOWN_OTHERS]) + ", ..." * (len(others) > _SHOWN_OTHERS)
        found = f"{plural(len(others), 'record')} of runs that this study does not have"
        counts += f". The folder has {found}: {listed}"
    if any(section.split == "test" for section in results.sections):
        return f"{counts}. Development data chose the weights; test data, scored once, judge."
    return f"{counts}. Development data only: no run is scored on test data yet (--final)."


def _notes() -> list[str]:
    return [
        "The seeds link to the records that a number comes from. sd is the standard deviation "
        "over seeds; the picture has a dot for each seed, the mean and its interval.",
        "The 95 % intervals are over seeds and examples, unless the heading says otherwise: a "
        "bootstrap draws runs and examples again, the examples in units (sentences, passages, "
        "documents) and the same for all runs. Of a single run they are over examples only. "
        "The p of a difference is two-sided, from the same "
        "draws; runs of one seed are pairs. Intervals and p over seeds only are Student's.",
        "p (Holm) is corrected for all differences of the study on the same data. Error reduction "
        "is the part of the error of the second variant that the first avoids: the error is the "
        "distance to 1, or the score itself where smaller is better.",
    ]


def _section_part(section: Section) -> ReportPart:
    tables = [_score_table(section), *([_comparison_table(section)] if section.comparisons else [])]
    if {row.fraction for row in section.rows} == {1.0}:
        tables = [table.without("data") for table in tables]
    panel = _panel(section)
    over = ", intervals over seeds only" if section.obstacle else ""
    obstacle = f" Intervals are over seeds only: {section.obstacle}." if section.obstacle else ""
    better = "larger" if section.metric.startswith("+") else "smaller"
    further = "" if all(row.num_planned for row in section.rows) else _FURTHER
    return ReportPart(
        f"{section.config}: {_DATA[section.split]}{over}",
        [f"{section.metric[1:]}{_scale(section).unit}; {better} is better.{obstacle}{further}"],
        tables,
        "" if panel is None else panel.title,
        "" if panel is None else line_chart(panel),
        f"{section.config}-{section.split}",
    )


def _score_table(section: Section) -> Table:
    scale = _scale(section)
    headers = ["variant", "data", "mean", "sd", "95 % interval", "", "minutes", "seeds"]
    rows = [
        [
            TableCell(row.variant + ("" if row.num_planned else " *"), is_text=True),
            TableCell(percent(row.fraction)),
            TableCell(scale.show(row.mean.value), f"mean of {_names(row)}"),
            TableCell(scale.show(row.deviation)),
            TableCell(scale.show_interval(row.mean), f"of the mean of {_names(row)}"),
            TableCell(picture=_strip(section, row)),
            TableCell(f"{row.minutes:.1f}"),
            _runs_cell(section, row),
        ]
        for row in section.rows
    ]
    return Table(headers, rows)


def _runs_cell(section: Section, row: VariantRow) -> TableCell:
    links = [
        Link(
            str(run.record.seed),
            f"results/{run.record.name}.json",
            f"{run.record.name}: {section.metric[1:]} {run.score:.6g}",
        )
        for run in row.runs
    ]
    missing = row.num_planned - len(row.runs)
    return TableCell(f" ({missing} missing)" if missing > 0 else "", links=links, is_text=True)


def _comparison_table(section: Section) -> Table:
    headers = ["difference", "data", "value", "95 % interval", "error reduction", "p", "p (Holm)"]
    scale = _scale(section)
    return Table(headers, [_comparison_row(each, scale) for each in section.comparisons])


def _comparison_row(each: VariantComparison, scale: Scale) -> list[TableCell]:
    source = f"{_names(each.better)} minus {_names(each.worse)}"
    reduction = each.error_reduction
    return [
        TableCell(f"{each.better.variant} {MINUS} {each.worse.variant}", is_text=True),
        TableCell(percent(each.better.fraction)),
        TableCell(scale.show(each.difference.value, sign="+"), source),
        TableCell(scale.show_interval(each.difference, sign="+"), source),
        TableCell(show_reduction(reduction), source),
        TableCell(show_p(each.difference.p), source),
        TableCell(show_p(each.p_holm), source),
    ]


def _search_part(search: SearchResult) -> ReportPart:
    config, variant, fraction = search.cell
    scores = [trial.score for trial in search.trials if trial.score is not None]
    scale = Scale.of(search.metric, scores)
    rows = [_trial_row(trial, scale) for trial in search.trials]
    part = "" if fraction == 1 else f", {percent(fraction)} of the data"
    return ReportPart(
        f"Search: {config}, {variant}{part}: development data",
        [_verdict(search)],
        [
            Table(
                ("trial", f"{search.metric[1:]}{scale.unit}", "best in", "settings", "seeds"), rows
            )
        ],
    )


def _trial_row(trial: TrialResult, scale: Scale) -> list[TableCell]:
    plan, probability = trial.runs[0].plan, trial.probability
    settings = [f"{key}={json.dumps(value)}" for key, value in plan.overrides.items()]
    names = [run.plan.name for run in trial.runs]
    links = [Link(str(run.plan.seed), f"results/{run.plan.name}.json", "") for run in trial.runs]
    return [
        TableCell(str(plan.trial), f"{', '.join(names)}", is_text=True),
        TableCell(trial.state if trial.score is None else scale.show(trial.score)),
        TableCell(NONE if probability is None else f"{100 * probability:.0f} %"),
        TableCell(", ".join(settings), is_text=True),
        TableCell(links=[] if trial.score is None else links, is_text=True),
    ]


def _verdict(search: SearchResult) -> str:
    """Say which trial is the best, and how sure that is."""
    scored = [trial for trial in search.trials if trial.score is not None]
    if not scored:
        return "No trial has a score yet."
    best = scored[0]
    ended = f"Best of {plural(len(scored), 'trial')} with a score: {best.runs[0].plan.trial}."
    if best.probability is None or len(scored) < 2:
        return ended
    return (
        f"{ended} It is the best in {100 * best.probability:.0f} % of the resamples of the "
        "development examples (of the same seeds: what other seeds would change is not in it)."
    )


def _panel(section: Section) -> Panel | None:
    """Return curves over the fractions of the training data, if there are several."""
    fractions = sorted({row.fraction for row in section.rows})
    if len(fractions) < 2:
        return None
    factor = _scale(section).factor
    curves = []
    for variant in dict.fromkeys(row.variant for row in section.rows):
        rows = [row for row in section.rows if row.variant == variant]
        rows.sort(key=lambda row: row.fraction)
        intervals = [row.mean.interval or (row.mean.value, row.mean.value) for row in rows]
        curves.append(
            Curve(
                variant,
                tuple((row.fraction, factor * row.mean.value) for row in rows),
                tuple((factor * low, factor * high) for low, high in intervals),
            )
        )
    ticks = {fraction: percent(fraction) for fraction in fractions}
    title = f"{section.metric[1:]} of {section.config} by part of the training data"
    return Panel(title, tuple(curves), ticks=ticks, axis="amount of training data")


def _strip(section: Section, row: VariantRow) -> str:
    """Draw the scores, the mean and the interval of a row, on an axis of the section."""
    values = [value for each in section.rows for value in _extent(each)]
    low, high = min(values), max(values)
    width = (high - low) or 1.0

    def place(value: float) -> float:
        return 4 + (value - low) / width * (_STRIP_WIDTH - 8)

    return render(
        "interval.svg",
        width=_STRIP_WIDTH,
        label=f"{row.variant}: {_scale(section).show_interval(row.mean)}",
        interval=row.mean.interval,
        scores=[run.score for run in row.runs],
        mean=row.mean.value,
        place=place,
    )


def _extent(row: VariantRow) -> list[float]:
    return [*(run.score for run in row.runs), *(row.mean.interval or ())]


@dataclass(frozen=True)
class LayerWeights:
    """Learned weights of a layer mix, means over the runs of a row.

    Attributes:
        name: of the config, the variant and the mix.
        weights: s_j, by layer.
        gamma: the scale.
        runs: the names of the runs.
    """

    name: str
    weights: Sequence[float]
    gamma: float
    runs: str


def layer_weights(section: Section) -> Iterator[LayerWeights]:
    """Yield the layer weights of the rows of a section, for each mix of the model."""
    for row in section.rows:
        monitored = [run.record.monitored for run in row.runs]
        mixes = [key.removesuffix(".s_0") for key in monitored[0] if key.endswith(".s_0")]
        for mix in mixes:
            keys = [key for key in monitored[0] if key.startswith(f"{mix}.s_")]
            *weights, gamma = (
                statistics.fmean(values.get(key, math.nan) for values in monitored)
                for key in (*keys, f"{mix}.gamma")
            )
            part = "" if row.fraction == 1 else f" {percent(row.fraction)}"
            place = f" {mix}" if len(mixes) > 1 else ""
            name = f"{section.config} {row.variant}{part}{place}"
            yield LayerWeights(name, weights, gamma, _names(row))


def _layer_part(sections: Sequence[Section]) -> Iterator[ReportPart]:
    of_records = [section for section in sections if section.split == "validation"]
    mixes = [weights for section in of_records for weights in layer_weights(section)]
    if mixes:
        num_layers = max(len(each.weights) for each in mixes)
        rows = [_layer_row(each, num_layers) for each in mixes]
        headers = ["mix", *(f"s_{layer}" for layer in range(num_layers)), "gamma"]
        yield ReportPart(
            "Layer weights",
            ["Softmax weights of the layers and the scale gamma, at the best step of each run."],
            [Table(headers, rows)],
            "",
            render("layers.svg", mixes=mixes, num_layers=num_layers),
            "layer_weights",
        )


def _layer_row(each: LayerWeights, num_layers: int) -> list[TableCell]:
    weights = [*each.weights, *[None] * (num_layers - len(each.weights)), each.gamma]
    numbers = [
        TableCell(NONE if value is None else f"{value:.3f}", f"mean of {each.runs}")
        for value in weights
    ]
    return [TableCell(each.name, is_text=True), *numbers]


def _names(row: VariantRow) -> str:
    return ", ".join(run.record.name for run in row.runs)


def _scale(section: Section) -> Scale:
    return Scale.of(section.metric, [run.score for row in section.rows for run in row.runs])
