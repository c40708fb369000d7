"""Write docs/evidence.md and figure1.svg from the records in experiments/results/.

Every number is the mean over the seeds of one cell of a study, and links to its records. Cells
without records are listed as not run, with an estimate of their hours.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean, median, stdev
from textwrap import fill
from typing import NamedTuple

from figure1 import draw, layer_weights
from sections import SECTIONS, Section

from elmo_framework.config import Config
from elmo_framework.study import Record, read_records

ROOT = Path(__file__).parents[2]
RESULTS, STUDIES = ROOT / "experiments" / "results", ROOT / "experiments" / "paper"
PAGE, FIGURE = ROOT / "docs" / "evidence.md", RESULTS / "figure1.svg"
_FOLDER = "../experiments/results"
"""Of the studies, as seen from the page."""
_WIDTH = 100
_TASKS = {
    "squad": "SQuAD, F1",
    "snli": "SNLI, accuracy",
    "srl": "SRL, F1",
    "coreference": "coreference, average F1",
    "ner": "NER, F1",
    "sst": "SST-5, accuracy",
    "neighbors": "same sense, purity at 10",
    "wsd": "word senses, F1",
    "pos": "parts of speech, accuracy",
    "chunks": "chunks, F1",
    "constituents": "grandparent constituents, accuracy",
}

# Minutes of a run of the biLMs of the appendix, and of the search for settings of baselines.
_FURTHER = {"bilms": 18, "baselines": 58}


class Cell(NamedTuple):
    """What the runs of several seeds have in common."""

    config: str
    variant: str
    fraction: float


class Missing(NamedTuple):
    """The runs of a study that have no record, and their hours on one core."""

    number: int
    hours: float


@dataclass(frozen=True)
class State:
    """A section with the runs that its study plans and the records that exist.

    Attributes:
        section: the section.
        planned: the cell and the seed of each run.
        records: in no particular order.
    """

    section: Section
    planned: Sequence[tuple[Cell, int]]
    records: Sequence[Record]

    def of(self, cell: Cell) -> list[Record]:
        """Return the records of a cell, one for each seed."""
        return [record for record in self.records if Cell(*record.cell) == cell]

    @property
    def missing(self) -> Missing:
        """Estimated by the records of the same config, or else by earlier measurements."""
        done = {(Cell(*record.cell), record.seed) for record in self.records}
        missing = [run for run in self.planned if run not in done]
        return Missing(len(missing), sum(self._minutes(cell) for cell, _ in missing) / 60)

    def _minutes(self, cell: Cell) -> float:
        trained = [record for record in self.records if record.training]
        measured = [record.minutes for record in trained if record.config == cell.config]
        minutes = median(measured or [self.section.minutes[cell.config]])
        return minutes * self.section.factors.get(cell.variant, 1.0)


def states(results: Path = RESULTS, studies: Path = STUDIES) -> list[State]:
    """Return the state of each section.

    Args:
        results: the folder with the folder of each study, by its name.
        studies: the folder of the study files.
    """
    return [
        State(
            section,
            planned=planned_runs(studies / f"{section.study}.jsonnet"),
            records=read_records(results / section.study / "results"),
        )
        for section in SECTIONS
    ]


@cache
def planned_runs(study: Path) -> Sequence[tuple[Cell, int]]:
    """Return the cell and the seed of each run of a study."""
    raw = Config.load(study).raw
    return [
        (Cell(name, variant, fraction), seed)
        for name, entry in raw["configs"].items()
        for variant in raw.get("variants", {}) | entry.get("variants", {}) or ["default"]
        for fraction in raw.get("fractions") or [entry["config"].get("train_fraction", 1.0)]
        for seed in raw["seeds"]
    ]


def page(of_sections: Sequence[State], further: Sequence[State] = ()) -> str:
    """Return the page in Markdown.

    Args:
        of_sections: see `states`.
        further: see `further_states`.
    """
    table1 = next(state for state in of_sections if state.section.study == "table1")
    return "\n".join(
        [
            _INTRODUCTION,
            _not_run(further),
            *map(_shown_section, of_sections),
            *_layer_weights(table1.records),
        ]
    )


def _not_run(further: Sequence[State]) -> str:
    lacking = [
        f"{_missing_runs(state)} (about {missing.hours:.1f} hours)"
        for state in further
        if (missing := state.missing).number
    ]
    text = _NOT_RUN
    if lacking:
        text += f" Of the further studies, {' and '.join(lacking)} were not run."
    return fill(text, _WIDTH, subsequent_indent="  ") + "\n"


def further_states(results: Path = RESULTS, studies: Path = STUDIES) -> list[State]:
    """Return the state of the studies without a table of their own; see `states`."""
    found = []
    for name, minutes in _FURTHER.items():
        planned = planned_runs(studies / f"{name}.jsonnet")
        by_config = {cell.config: minutes for cell, _ in planned}
        section = Section(name, name, "", {}, (), {}, by_config)
        found.append(State(section, planned, read_records(results / name / "results")))
    return found


def overview(of_sections: Sequence[State]) -> str:
    """Return a table of the runs that are missing."""
    lines = [f"{'study':12}{'runs':>6}{'missing':>9}{'hours on one core':>19}"]
    for state in of_sections:
        number, hours = state.missing
        lines.append(f"{state.section.study:12}{len(state.planned):6}{number:9}{hours:19.1f}")
    return "\n".join(lines)


_INTRODUCTION = """# The tables of the paper

`experiments/paper/evidence.py` writes this page. Its tables come from the records in
`experiments/results/`, to which each score of ours links. `make paper` trains the runs that are
missing, and `make paper-check` lists them.

* **Data.** The data and the sizes are those of [experiments/README.md](../experiments/README.md):
  smaller than the paper's. Compare the differences with the paper's, not the values.
* **Scores.** In Tables 1 to 3 and 6, development data select the best epoch, and scores are those
  of a tenth of the training data, which no training reads. Scores on development data are marked
  with *. Tables 4 and 5 select nothing; their text names the data.
* **±** is the standard deviation over the seeds."""

_NOT_RUN = (
    "* **Not run.** All of this was to take 40 hours of one core: first Table 1, then Tables 4 to "
    "6, 2 and 3, the learning curves and the rest. What did not fit in is marked, with an estimate "
    "of its hours."
)


def _missing_runs(state: State) -> str:
    study = f"`{state.section.study}.jsonnet`"
    return f"{state.missing.number} of {len(state.planned)} runs of {study}"


def _shown_section(state: State) -> str:
    section, missing = state.section, state.missing
    lines = [f"## {section.title}", "", *_paragraphs(section.text), *_table(state), ""]
    if state.records:
        table = f"{_FOLDER}/{section.study}/table.md"
        lines += [f"Intervals, differences and their p-values: [{section.study}]({table}).", ""]
    if missing.number:
        lines += [
            f"Not run: {_missing_runs(state)}, about {missing.hours:.0f} hours on one core.",
            "",
        ]
    return "\n".join([*lines, *_paragraphs(section.notes)])


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs of short lines, and tables as they are, each with a blank line after it."""
    for each in filter(None, text.split("\n\n")):
        yield from (each if each.startswith("|") else fill(each, _WIDTH), "")


def _layer_weights(records: Sequence[Record]) -> Iterator[str]:
    text = (
        "Figure 2 of the published paper: the softmax-normalized weights of the layers, averaged "
        "over the runs of Table 1 with `mini`. In the paper, the first LSTM layer has the largest "
        "weight at the input, most of all for coreference and SQuAD. At the output the weights are "
        "nearly equal, with a slight preference for the lower layers. Here, with five seeds "
        "(coreference: three), layer 1 has the largest weight at the input of four of the six "
        "tasks; in SRL it is equal to layer 2, and in SNLI the token layer is ahead. At the "
        "output, SNLI and SQuAD prefer the token layer. Where layers "
        "are not normalized (all but SNLI), a weight depends on the scale of its layer, too."
    )
    yield from ("## Layer weights", "", fill(text, _WIDTH), "")
    if not (rows := list(layer_weights(records))):
        yield "Not run: this needs the records of Table 1.\n"
        return
    yield from (f"![Layer weights]({_FOLDER}/{FIGURE.name})", "")
    yield _row(["task", "place", "token layer", "layer 1", "layer 2", "runs"])
    yield _row(["---"] * 6)
    for row in rows:
        yield _row([row.task, row.place, *(f"{w:.2f}" for w in row.weights), str(row.num_runs)])
    yield ""


def _table(state: State) -> Iterator[str]:
    section, cells = state.section, {cell for cell, _ in state.planned}
    headings = ["task", *section.paper_columns, *section.columns.values()]
    if section.simple:
        headings.append("best without a network")
    if section.gain:
        headings.append("error reduction")
    yield _row(headings)
    yield _row(["---"] * len(headings))
    for config, paper in section.paper.items():
        for fraction in sorted({cell.fraction for cell in cells if cell.config == config}):
            name = _TASKS[config]
            if fraction < 1 or section.study == "figure2":
                name += f", {100 * fraction:g} % of the data"
            row = {variant: Cell(config, variant, fraction) for variant in section.columns}
            values = [_value(state, cell) if cell in cells else "" for cell in row.values()]
            if section.simple:
                values.append(_best_simple(state, config, fraction))
            gain = [_gain(*(state.of(row[name]) for name in section.gain))] if section.gain else []
            yield _row([name, *paper, *values, *gain])


def _row(values: Sequence[str]) -> str:
    return f"| {' | '.join(values)} |"


def _value(state: State, cell: Cell) -> str:
    records = state.of(cell)
    if not records:
        return "not run"
    scores = _scores(records)
    # Baselines that are not trained have the same score for all seeds.
    shown = f"{mean(scores):.1f}" + (f" ± {stdev(scores):.1f}" if len({*scores}) > 1 else "")
    mark = "" if _is_final(records) else " *"
    folder = f"{_FOLDER}/{state.section.study}/results/{cell.config}/{cell.variant}"
    return f"[{shown}{mark}]({folder})"


def _best_simple(state: State, config: str, fraction: float) -> str:
    """Return the value and the name of the best baseline without a network."""
    cells = [Cell(config, variant, fraction) for variant in state.section.simple]
    if not (cells := [cell for cell in cells if state.of(cell)]):
        return "not run"
    best = max(cells, key=lambda cell: mean(_scores(state.of(cell))))
    return f"{_value(state, best)}, {best.variant.replace('_', ' ')}"


def _is_final(records: Sequence[Record]) -> bool:
    return all(record.test is not None for record in records)


def _scores(records: Sequence[Record]) -> list[float]:
    """Return the scores in per cent: those of the test data if all runs have them."""
    name = records[0].metric[1:]
    if _is_final(records):
        return [100 * (record.test or {})[name] for record in records]
    return [100 * record.validation[name] for record in records]


def _gain(better: Sequence[Record], worse: Sequence[Record]) -> str:
    """Return the relative reduction of the error; empty if the scores are not comparable."""
    if not (better and worse) or _is_final(better) != _is_final(worse):
        return ""
    after, before = mean(_scores(better)), mean(_scores(worse))
    return f"{100 * (after - before) / (100 - before):.1f} %".replace("-", "\N{MINUS SIGN}")


def main() -> None:
    """Write the page, or list the missing runs."""
    parser = ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--missing", action="store_true", help="only list the missing runs")
    if parser.parse_args().missing:
        print(overview([*states(), *further_states()]))  # noqa: T201
    else:
        of_sections = states()
        PAGE.write_text(page(of_sections, further_states()), encoding="utf-8")
        if rows := list(layer_weights(of_sections[0].records)):
            draw(rows, FIGURE)


if __name__ == "__main__":
    main()
