"""Write docs/evidence.md and figure1.svg from the records in experiments/results/.

Every number is the mean over the seeds of one cell of a study, and links to its records. Cells
without records are listed as not run, with an estimate of their hours.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean, median, stdev
from textwrap import fill
from typing import NamedTuple

from figure1 import draw, layer_weights

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


class Cell(NamedTuple):
    """What the runs of several seeds have in common."""

    config: str
    variant: str
    fraction: float


@dataclass(frozen=True)
class Section:
    """A table of the page.

    Attributes:
        study: the name of its study.
        title: its heading.
        text: what it shows, and what differs from the paper; paragraphs have a blank line between.
        paper: the values of the paper by config, one for each of `paper_columns`.
        paper_columns: their headings.
        columns: the heading of each variant of the study that is shown.
        simple: variants of baselines without a network, of which the best is shown.
        gain: two variants; the relative error reduction of the first over the second is added.
        minutes: of a run of each config, on one core, for the estimates of what is not run.
    """

    study: str
    title: str
    text: str
    paper: Mapping[str, Sequence[str]]
    paper_columns: Sequence[str]
    columns: Mapping[str, str]
    minutes: Mapping[str, float]
    gain: tuple[str, str] | None = None
    simple: Sequence[str] = ()


# Minutes of a run, from the tables of experiments/README.md; those of NER and SRL with part of the
# data, as in the studies.
_MINUTES = {"squad": 15, "snli": 8, "srl": 3, "coreference": 20, "ner": 7, "sst": 11}

# Minutes of a run of the biLMs of the appendix, and of the search for settings of baselines.
_FURTHER = {"bilms": 18, "baselines": 58}

_LAYERS = {"glove": "GloVe", "layer0": "layer 0", "layer1": "layer 1", "layer2": "layer 2"}
_VECTORS = {**_LAYERS, "average": "average"}

SECTIONS = [
    Section(
        study="table1",
        title="Table 1: six tasks",
        text=(
            "The [control](decisions/random_control.md) is a biLM with the sizes and the scale of "
            "`mini` and with random weights. It is one biLM, so its ± does not contain how such "
            "weights differ. Its file was written several times, with differences of rounding. "
            "`error reduction` compares `mini` with the model without ELMo. "
            "On SQuAD, the control has 60 % of the gain of `mini`, which is 3.4 points above it "
            "(1.1 to 5.7). These runs end after eight epochs, while the scores still rise: with "
            "seed 1, in the last one from 55.0 to 56.8 without ELMo, and from 66.1 to 66.5 with "
            "`mini`. "
            "On SST-5, the gain of 1.8 points may "
            "be chance: the interval is \u22120.03 to 3.7, and p is 0.056 (0.17 after Holm's "
            "correction). A tagger and a classifier that see characters only, without GloVe, are "
            "below the best baseline without a network; no settings were searched for them."
            "\n\n"
            "**NER: a gain on rare names only.** Where a word of a name in a sentence is not among "
            "the 100,000 most frequent ones of GloVe, `mini` adds 2.3 points (1.7 to 3.0) to the "
            "names of the sentence. In the other sentences, which have 73 % of the names, there is "
            "no clear difference (\u22120.3, from \u22120.6 to 0.1). The control loses points in "
            "both: 1.5 and 2.0. These are five seeds on development and test data, with 95 % "
            "intervals over sentences only (`benchmarks/name_frequency.py`). We chose this split "
            "after looking at seeds 1 and 2."
            "\n\n"
            "**Longer runs** may take three times the epochs (`longer` in [the "
            "search](../experiments/results/baselines/table.md): without ELMo, seed 1, development "
            "data). Early stopping ends them after 64 epochs in NER, 5 in SST-5 and 16 in SNLI, "
            "in place of 60, 4 and 15, and the best epoch is the same."
            "\n\n"
            "**Next to AllenNLP's heads.** AllenNLP's were trained once (SRL twice) on the "
            "same sentences, with the same vectors, sizes and optimizer "
            "(`benchmarks/head_scores.py`). On "
            "development data, ours and AllenNLP 2.10.1's have: NER 87.7 and 87.6; SNLI, with a "
            "constant rate, 75.1 and 75.4; SST-5 46.3 and 46.3; SRL 36.0 and 31.4. NER and SNLI "
            "are those of seed 1, SST-5 and SRL of seed 4; those of SRL, here and below, have the "
            "100,000 most frequent words of GloVe. BiDAF, with `squad/bidaf.jsonnet` at the sizes "
            "of `small`, Adam with a constant rate of 0.002 and 10 epochs, has a best F1 of 40.5 "
            "and 39.7 on 800 questions (seed 1). Coreference, as AllenNLP's head can do it (the "
            "encoder reads the document; no speakers and genres), with a quarter of the documents, "
            "a constant rate of 0.001 and 30 epochs, has an average F1 of at most 42.5 and 41.0 on "
            "15 documents (seed 1), and of 42.0 and 41.0 at the end. AllenNLP's still rises: three "
            "epochs before, it has 37.7."
            "\n\n"
            "In SRL, AllenNLP's head has other settings, which ours can have too. With seeds 3 and "
            "4, ours has 36.0 and 36.0; with `decoding: 'probabilities'` 35.1 and 35.0; with "
            "`loss_reduction: 'mean'` and AllenNLP's initial weights of predicates and of the "
            "projection as well, 32.9 and 33.2; and with `recurrent_dropout_place: 'recurrence'` "
            "as well, 30.2 and 29.7. AllenNLP's has 30.8 and 31.4. With that loss alone, or with "
            "those weights of predicates alone, seed 4 loses about half a point; with both, 2.6."
        ),
        paper={
            "squad": ("81.1", "85.8", "24.9 %"),
            "snli": ("88.0", "88.7", "5.8 %"),
            "srl": ("81.4", "84.6", "17.2 %"),
            "coreference": ("67.2", "70.4", "9.8 %"),
            "ner": ("90.15", "92.22", "21 %"),
            "sst": ("51.4", "54.7", "6.8 %"),
        },
        paper_columns=("paper: baseline", "paper: ELMo", "paper: error reduction"),
        columns={
            "none": "without ELMo",
            "control": "control",
            "mini": "`mini`",
            "characters": "characters, no GloVe",
        },
        gain=("mini", "none"),
        simple=(
            *("known_names", "word_classifier", "majority", "bag_of_words"),
            *("equal_mentions", "nearest_phrase"),
        ),
        minutes=_MINUTES,
    ),
    Section(
        study="table2",
        title="Table 2: which layers",
        text=(
            "λ is the penalty of the layer weights. A large one keeps them nearly equal. The top "
            "layer has no layer normalization; in SNLI, the mix of all layers has it. Runs that "
            "Table 1 has too were not trained again. The paper's scores are those of development "
            "data. "
            "In SRL, the last layer and the two mixes differ by less than their seeds do."
        ),
        paper={
            "squad": ("80.8", "84.7", "85.0", "85.2"),
            "snli": ("88.1", "89.1", "89.3", "89.5"),
            "srl": ("81.6", "84.1", "84.6", "84.8"),
        },
        paper_columns=(
            "paper: baseline",
            "paper: last layer",
            "paper: all, λ = 1",
            "paper: all, λ = 0.001",
        ),
        columns={
            "baseline": "without ELMo",
            "top": "last layer",
            "all_1": "all, λ = 1",
            "all_0_001": "all, λ = 0.001",
        },
        minutes=_MINUTES,
    ),
    Section(
        study="table3",
        title="Table 3: where",
        text=(
            "ELMo at the input of the first encoder, at its output, or at both. The paper's scores "
            "are those of development data. In SRL, ELMo at "
            "the output only has little more than the model without ELMo (35.0 with these seeds). "
            "In the paper too, it is the worst place for SRL, below its baseline."
        ),
        paper={
            "squad": ("85.1", "85.6", "84.8"),
            "snli": ("88.9", "89.5", "88.7"),
            "srl": ("84.7", "84.3", "80.9"),
        },
        paper_columns=("paper: input", "paper: both", "paper: output"),
        columns={"input": "input", "both": "both", "output": "output"},
        minutes=_MINUTES,
    ),
    Section(
        study="table4",
        title="Table 4: nearest neighbors by sense",
        text=(
            "The paper shows neighbors of one word. Here it is a measure: over 50 frequent "
            "polysemous lemmas of SemCor, the ratio of the ten nearest occurrences of the lemma "
            "that have the same sense. Random neighbors have 51.3 (`prior` in the records). The "
            "layers of both LSTMs are above that, above GloVe and above layer 0. GloVe and layer "
            "0 give all occurrences of a word form one vector, so they tell senses apart by the "
            "forms of the lemma only."
        ),
        paper={"neighbors": ()},
        paper_columns=(),
        columns=_VECTORS,
        minutes={"neighbors": 1},
    ),
    Section(
        study="table5",
        title="Table 5: word senses by the nearest vector",
        text=(
            "The senses are from SemCor. The paper's test data are four sets together, of which "
            "senseval2 is here; semeval2007 is the development data. `first sense` is that of "
            "WordNet, and `most frequent` that of SemCor. Lemmas that SemCor lacks get the first "
            "sense. Each LSTM adds to layer 0, but `mini` is not "
            "above the first sense (layer 2: \u22121.1, from \u22123.1 to 0.9), which the paper's "
            "biLM is. That one has read 20 times as much text, and its layers are four times as "
            "large."
        ),
        paper={"wsd": ("65.9", "67.4", "69.0")},
        paper_columns=("paper: first sense", "paper: layer 1", "paper: layer 2"),
        columns={
            "first_sense": "first sense",
            "most_frequent": "most frequent",
            **_VECTORS,
        },
        minutes={"wsd": 5},
    ),
    Section(
        study="table6",
        title="Table 6: linear probes",
        text=(
            "A linear classifier on one frozen layer. The paper's parts of speech are those of the "
            "Penn Treebank; here they are those of EWT. The paper has no probe of chunks "
            "(CoNLL-2000) or of grandparent constituents (the sample of the Penn Treebank). Both "
            "LSTM layers are far above layer 0. The paper's first layer is better than its second; "
            "those of `mini` are equal within their intervals."
        ),
        paper={"pos": ("97.3", "96.8"), "chunks": ("", ""), "constituents": ("", "")},
        paper_columns=("paper: layer 1", "paper: layer 2"),
        columns=_LAYERS,
        minutes={"pos": 10, "chunks": 10, "constituents": 5},
    ),
    Section(
        study="figure2",
        title="Learning curves",
        text=(
            "Figure 1 of the published paper, which prints no numbers. Its text says that SRL with "
            "ELMo and 1 % of the data is as good as the baseline with 10 %."
        ),
        paper={"snli": (), "srl": ()},
        paper_columns=(),
        columns={"none": "without ELMo", "mini": "`mini`"},
        gain=("mini", "none"),
        minutes={"snli": 5, "srl": 6},
    ),
    Section(
        study="appendix",
        title="Depth, tuning, text of the task",
        text=(
            "BiLMs of one, two and four layers have the same number of parameters and read four "
            "million words. `tuned` trains `mini` with the task; `task text` is `mini` after one "
            "pass over the text of the task, without labels. The paper prints no such table. The "
            "runs that Table 1 has too are its seeds 1 to 3. `bilms.jsonnet` trains the other "
            "biLMs, in about 1.5 hours more. In NER, an ensemble of five seeds with `mini` (the "
            "mean of their scores) has 89.1 on the held-out data, and 90.1 on the development "
            "data; alone, the five have 85.6 ± 0.6 and 87.9 ± 0.6. They were trained "
            "again for it; `appendix.jsonnet` has the command."
        ),
        paper={"snli": (), "ner": ()},
        paper_columns=(),
        columns={
            "none": "without ELMo",
            "depth_1": "1 layer",
            "depth_2": "2 layers",
            "depth_4": "4 layers",
            "frozen": "`mini`",
            "tuned": "tuned",
            "fine_tuned": "task text",
        },
        minutes={"snli": 10, "ner": 9},
    ),
]


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
        return Missing(len(missing), sum(self._minutes(cell.config) for cell, _ in missing) / 60)

    def _minutes(self, config: str) -> float:
        trained = [record for record in self.records if record.training]
        measured = [record.minutes for record in trained if record.config == config]
        return median(measured or [self.section.minutes[config]])


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


def page(of_sections: Sequence[State]) -> str:
    """Return the page in Markdown."""
    table1 = next(state for state in of_sections if state.section.study == "table1")
    return "\n".join(
        [_INTRODUCTION, *map(_shown_section, of_sections), *_layer_weights(table1.records)]
    )


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

`experiments/paper/evidence.py` makes this page from the records in `experiments/results/`. Each
number links to its records. `make paper` trains the runs that are missing, and `make paper-check`
lists them.

* **Data.** The data and the sizes are those of [experiments/README.md](../experiments/README.md):
  smaller than the paper's. Compare the differences with the paper's, not the values.
* **Scores.** In Tables 1 to 3 and 6, development data select the best epoch, and scores are those
  of a tenth of the training data, which no training reads. Scores on development data are marked
  with *. Tables 4 and 5 select nothing; their text names the data.
* **±** is the standard deviation over the seeds.
"""


def _shown_section(state: State) -> str:
    section, missing = state.section, state.missing
    text = "\n\n".join(fill(each, _WIDTH) for each in section.text.split("\n\n"))
    lines = [f"## {section.title}", "", text, "", *_table(state), ""]
    if state.records:
        table = f"{_FOLDER}/{section.study}/table.md"
        lines += [f"Intervals, differences and their p-values: [{section.study}]({table}).", ""]
    if missing.number:
        lines += [
            f"Not run: {missing.number} of {len(state.planned)} runs of `{section.study}.jsonnet`, "
            f"about {missing.hours:.0f} hours on one core.",
            "",
        ]
    return "\n".join(lines)


def _layer_weights(records: Sequence[Record]) -> Iterator[str]:
    text = (
        "Figure 2 of the published paper: the softmax-normalized weights of the layers, averaged "
        "over the runs of Table 1 with `mini`. In the paper, the first LSTM layer has the largest "
        "weight at the input, most of all for coreference and SQuAD. At the output the weights are "
        "nearly equal, with a slight preference for the lower layers. Here, with five seeds "
        "(coreference: one), layer 1 has the largest weight at the input of five of the six tasks, "
        "in SRL by a hundredth; at the output, SNLI and SQuAD prefer the token layer. Where layers "
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
        PAGE.write_text(page(of_sections), encoding="utf-8")
        if rows := list(layer_weights(of_sections[0].records)):
            draw(rows, FIGURE)


if __name__ == "__main__":
    main()
