"""The table, the page and the pictures of a study."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import final
from xml.etree import ElementTree

import pytest

from elmo_framework.analysis.statistics import Estimate
from elmo_framework.study import report
from elmo_framework.study.report import InterimResults, write_results
from elmo_framework.study.state import StudyState
from elmo_framework.study.tables import MINUS, NONE, Scale, show_reduction
from tests.unit.study.studies import CONFIG, add_record, add_run, add_trials, study_state

MIXED = {f"mix.s_{layer}": weight for layer, weight in enumerate((0.2, 0.5, 0.3))} | {
    "mix.gamma": 1.5
}
OTHER = {f"mix.s_{layer}": weight for layer, weight in enumerate((0.4, 0.3, 0.3))} | {
    "mix.gamma": 0.5
}


@final
class Cells(HTMLParser):
    """Collects the rows of the tables of a page: text, titles and links of each cell."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.titles: list[str] = []
        self._is_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._is_cell = tag in ("td", "span", "a") or (tag == "th")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self.links += [values["href"] or ""] if "href" in values else []
        self.titles += [values["title"] or ""] if "title" in values else []

    def handle_data(self, data: str) -> None:
        if self._is_cell and self.rows:
            self.rows[-1][-1] += data.strip()

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._is_cell = False


def finished(folder: Path) -> StudyState:
    """Return a study with four runs, one of which is missing."""
    add_record(folder, "mini", 1, 0.80, test=0.70)
    add_record(folder, "mini", 2, 0.90, test=0.72)
    add_record(folder, "none", 1, 0.60, test=0.65)
    return study_state(folder)


def table_rows(folder: Path, heading: str) -> list[list[str]]:
    """Return the cells of the tables below a heading of `table.md`."""
    text = (folder / "table.md").read_text()
    part = text.partition(f"## {heading}")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_table_has_the_hand_worked_values(tmp_path: Path) -> None:
    write_results(finished(tmp_path))
    header, _, mini, none, *_ = table_rows(tmp_path, "ner: development data")
    assert header == ["variant", "mean", "sd", "95 % interval", "minutes", "seeds"]
    assert mini[:3] == ["mini", "85.00", "7.07"]
    assert none[:3] == ["none", "60.00", NONE]
    assert none[-1] == "[1](<results/ner/none/seed-1.json>) (1 missing)"
    *_, difference = table_rows(tmp_path, "ner: development data")
    assert difference[:2] == [f"mini {MINUS} none", "+25.00"]
    assert difference[3] == "62.5 %"  # of an error of 40
    *_, difference = table_rows(tmp_path, "ner: held-out test data")
    assert difference[:2] == [f"mini {MINUS} none", "+6.00"]
    assert difference[3] == "17.1 %"  # of an error of 35


def test_headings_say_which_data_they_are_about(tmp_path: Path) -> None:
    write_results(finished(tmp_path))
    for name in ("table.md", "report.html"):
        headings = re.findall(r"(?:## |<h2>)(ner.*)", (tmp_path / name).read_text())
        assert ["development data" in each for each in headings] == [True, False]
        assert ["held-out test data" in each for each in headings] == [False, True]
        assert all("intervals over seeds only" in each for each in headings)


def test_without_final_the_page_says_so(tmp_path: Path) -> None:
    add_record(tmp_path, "mini", 1, 0.8)
    write_results(study_state(tmp_path))
    assert "no run is scored on test data yet" in (tmp_path / "report.html").read_text()


def test_runs_without_a_score_are_listed(tmp_path: Path) -> None:
    state = finished(tmp_path)
    state.failed["ner/none/seed-2"] = "error: a | b < c"
    write_results(state)
    text = (tmp_path / "table.md").read_text()
    assert "| ner/none/seed-2 | failed: error: a \\| b < c |" in text
    rows = Cells((tmp_path / "report.html").read_text()).rows
    assert ["ner/none/seed-2", "failed: error: a | b < c"] in rows


def test_missing_seeds_of_one_cell_share_a_row(tmp_path: Path) -> None:
    state = study_state(tmp_path)
    state.failed["ner/none/seed-2"] = "error: no space left"
    write_results(state)
    rows = Cells((tmp_path / "report.html").read_text()).rows
    missing = [row for row in rows if row and row[0].startswith("ner/")]
    assert missing == [
        ["ner/mini/seed-1, 2", "not started"],
        ["ner/none/seed-1", "not started"],
        ["ner/none/seed-2", "failed: error: no space left"],
    ]


def test_every_link_leads_to_a_record(tmp_path: Path) -> None:
    write_results(finished(tmp_path))
    in_page = Cells((tmp_path / "report.html").read_text()).links
    in_table = re.findall(r"\]\(<(.*?)>\)", (tmp_path / "table.md").read_text())
    assert len(in_page) == len(in_table) == 6
    assert all((tmp_path / link).is_file() for link in [*in_page, *in_table])


def test_numbers_of_the_page_name_their_runs(tmp_path: Path) -> None:
    write_results(finished(tmp_path))
    titles = Cells((tmp_path / "report.html").read_text()).titles
    assert "mean of ner/mini/seed-1, ner/mini/seed-2" in titles
    assert "ner/mini/seed-1, ner/mini/seed-2 minus ner/none/seed-1" in titles
    assert "ner/mini/seed-2: f1-measure-overall 0.9" in titles


def test_the_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    write_results(finished(tmp_path))
    page = (tmp_path / "report.html").read_text()
    without_names = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|<script|<link|<img|url\(|@import", without_names)
    assert 'name="viewport"' in page


def test_scores_that_are_no_ratios_are_shown_as_they_are(tmp_path: Path) -> None:
    metric = "-perplexity"
    config = {**CONFIG, "trainer": {"validation_metric": metric}}
    for variant, score in (("mini", 40.125), ("none", 50.0)):
        add_record(tmp_path, variant, 1, score, metric=metric)
    write_results(study_state(tmp_path, configs={"ner": {"config": config}}))
    _, _, mini, _, *_, difference = table_rows(tmp_path, "ner: development data")
    assert mini[1] == "40.12"
    assert difference[1:4] == [f"{MINUS}9.875", NONE, "19.8 %"]


def test_several_fractions_have_curves(tmp_path: Path) -> None:
    for fraction, score in ((0.1, 0.5), (1.0, 0.75)):
        for variant in ("mini", "none"):
            add_record(tmp_path, variant, 1, score, fraction=fraction)
    write_results(study_state(tmp_path, fractions=[0.1, 1.0]))
    picture = ElementTree.fromstring((tmp_path / "pictures/ner-validation.svg").read_text())
    texts = ["".join(each.itertext()) for each in picture.iter() if each.tag.endswith("text")]
    assert {"10 %", "100 %", "mini", "none"} <= {*texts}
    titles = [each.text for each in picture.iter() if each.tag.endswith("title")]
    assert "mini: 75 at 100 %" in titles
    assert table_rows(tmp_path, "ner: development data")[2][1] == "10 %"


def test_layer_weights_are_means_over_the_seeds(tmp_path: Path) -> None:
    for seed, monitored in ((1, MIXED), (2, OTHER)):
        add_record(tmp_path, "mini", seed, 0.8, monitored=monitored)
    add_record(tmp_path, "none", 1, 0.6)
    write_results(study_state(tmp_path))
    rows = table_rows(tmp_path, "Layer weights")
    assert rows[2:] == [["ner mini", "0.300", "0.400", "0.300", "1.000"]]
    ElementTree.fromstring((tmp_path / "pictures/layer_weights.svg").read_text())


def test_a_search_shows_settings_and_how_sure_the_best_is(tmp_path: Path) -> None:
    add_trials(tmp_path, {"000": [0] * 6, "001": [1] * 6})
    space = {"type": "grid", "space": {"trainer.optimizer.lr": [0.1, 0.2]}}
    state = study_state(tmp_path, search=space, variants={"mini": {}}, comparisons=[])
    write_results(state, num_resamples=100)
    rows = table_rows(tmp_path, "Search: ner, mini: development data")
    assert rows[2] == [
        "001",
        "100.00",
        "100 %",
        "trainer.optimizer.lr=0.2",
        "[1](<results/ner/mini/trial-001-seed-1.json>)",
    ]
    assert "It is the best in 100 % of the resamples" in (tmp_path / "table.md").read_text()


def test_old_pictures_are_removed(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures/gone-validation.svg").touch()
    write_results(finished(tmp_path))
    assert not (tmp_path / "pictures/gone-validation.svg").exists()


def test_equal_records_give_equal_pages(tmp_path: Path) -> None:
    for variant, is_correct in (("mini", [1, 1, 0, 1]), ("none", [1, 0, 0, 1])):
        add_run(tmp_path, variant, 1, is_correct)
    pages = []
    for _ in range(2):
        write_results(study_state(tmp_path), num_resamples=50)
        pages.append((tmp_path / "report.html").read_text())
    assert pages[0] == pages[1]


def test_interim_results_take_little_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 2.0, 199.0, 200.0, 200.0])
    monkeypatch.setattr(report.time, "monotonic", lambda: next(clock))
    calls: list[int] = []
    monkeypatch.setattr(
        report, "write_results", lambda state, num_resamples: calls.append(num_resamples)
    )
    interim, state = InterimResults(), study_state(tmp_path)
    interim.update(state)  # takes 2 seconds, so the next is due at 200
    interim.update(state)
    assert len(calls) == 1
    interim.update(state)
    assert len(calls) == 2


def test_damaged_terms_do_not_stop_the_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = finished(tmp_path)
    for variant, seed in (("mini", 1), ("mini", 2), ("none", 1)):
        name = f"ner/{variant}/seed-{seed}"
        state.folder.terms(name, "validation").write_bytes(b"PK damaged")
    InterimResults().update(state)
    message = capsys.readouterr().err
    assert message.startswith("no interim results: ")
    assert "seed-1.validation.npz" in message


def test_a_metric_that_fails_does_not_stop_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(state: StudyState, num_resamples: int) -> None:
        raise ZeroDivisionError("of a plugin")

    monkeypatch.setattr(report, "write_results", failing)
    InterimResults().update(study_state(tmp_path))
    assert capsys.readouterr().err == "no interim results: of a plugin\n"


@pytest.mark.parametrize(
    ("metric", "interval", "sign", "text"),
    [
        ("+accuracy", (-0.87, 1.37), "", "0.00 to 100.00"),
        ("+accuracy", (-1.5, 0.25), "+", f"{MINUS}100.00 to +25.00"),
        ("-loss", (-1.5, 0.25), "", f"{MINUS}1.5 to 0.25"),
    ],
)
def test_intervals_end_where_scores_do(
    metric: str, interval: tuple[float, float], sign: str, text: str
) -> None:
    scale = Scale.of(metric, [0.25])
    assert scale.show_interval(Estimate(0.25, interval, None), sign=sign) == text


@pytest.mark.parametrize(
    ("reduction", "text"), [(None, NONE), (0.0249, "2.5 %"), (-0.1568, f"{MINUS}15.7 %")]
)
def test_error_reductions_have_a_minus_sign(reduction: float | None, text: str) -> None:
    assert show_reduction(reduction) == text
