"""The page about a run."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest

from elmo_framework import load
from elmo_framework.analysis.neighbors import Occurrence
from elmo_framework.analysis.report import write_report
from elmo_framework.analysis.reported_run import ErrorSearch
from elmo_framework.commands.main import main
from elmo_framework.model.task import HeadTask
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask

FIRST_VERSION = Path(__file__).parents[2] / "fixtures/first_version"
VOID = {"meta", "br"}


class Checker(HTMLParser):
    """Finds out whether every element is closed, and keeps text and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.addresses: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def checked(path: Path) -> str:
    """Return the text of a page that is well-formed and asks for nothing."""
    checker = Checker()
    checker.feed(path.read_text())
    checker.close()
    assert checker.open == []
    assert checker.addresses == []
    assert "url(" not in path.read_text()
    assert "@import" not in path.read_text()
    return "\n".join(checker.text)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """What training leaves behind of a run that is not finished."""
    folder = tmp_path / "runs" / "a<b"
    folder.mkdir(parents=True)
    config = {"model": {"type": "crf_tagger"}, "train_data_path": "/data/<train>.txt"}
    (folder / "filled_config.json").write_text(json.dumps(config))
    (folder / "metadata.json").write_text(json.dumps({"device": "cpu", "command": ["elmo", "x"]}))
    (folder / "metrics.jsonl").write_text(
        '{"step": 5, "seconds": 1, "accuracy": 0.5, "embedder.elmo.mix.s_0": 0.25}\n'
        '{"step": 9, "seconds": 2, "accuracy": 0.75, "embedder.elmo.mix.s_0": 0.375}\n'
    )
    (folder / "steps.jsonl").write_text('{"step": 20, "seconds": 1, "loss": 2.5}\n')
    return folder


def report(run: Path, *flags: str) -> int:
    return main(["report", str(run), "--output-file", str(run.parent / "page.html"), *flags])


def test_a_run_that_is_not_finished_has_a_page(run: Path, capsys) -> None:
    assert report(run) == 0
    page = run.parent / "page.html"
    assert capsys.readouterr().out == f"{page}\n"
    text = checked(page)
    for shown in ("a<b", "crf_tagger", "/data/<train>.txt", "elmo x", "Validation scores"):
        assert shown in text
    for shown in ("accuracy 0.75", "embedder.elmo.mix", "s_0 0.375", "Training loss", "loss 2.5"):
        assert shown in text
    assert "Nearest neighbors" not in text


def test_the_page_of_a_finished_run_shows_its_figures(run: Path) -> None:
    figures = {
        "training_duration": 3725.2,
        "num_parameters": 1234567,
        "best_validation_f1": 0.90125,
        "validation_f1": 0.80125,
    }
    (run / "metrics.json").write_text(json.dumps(figures))
    assert report(run) == 0
    text = checked(run.parent / "page.html")
    for shown in ("1:02:05", "1,234,567", "0.9012", '"validation_f1": 0.80125'):
        assert shown in text
    assert "0.8013" not in text


def test_report_of_a_new_run_shows_nothing_logged(run: Path) -> None:
    for name in ("metrics.jsonl", "steps.jsonl", "metadata.json"):
        (run / name).unlink()
    assert report(run) == 0
    assert "Nothing has been logged yet." in checked(run.parent / "page.html")


def test_report_shows_neighbors_of_both_bilms(run: Path, bilm: Path, corpus: Path) -> None:
    (run / "bilm").symlink_to(bilm)
    flags = ["--corpus", str(corpus), "--query", "he sat on the <bank>", "--word", "<bank>"]
    corpus.write_text("the <bank> & the river\n")
    assert report(run, *flags, "--before", str(bilm), "--device", "cpu") == 0
    text = checked(run.parent / "page.html")
    for layer in (1, 2):
        assert f"Layer {layer}, before: {bilm}" in text
        assert f"Layer {layer}, after: {run}" in text
    assert text.count(" & the river") == 4


def test_half_a_search_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(run, "--query", "he sat") == 2
    assert capsys.readouterr().err == "error: neighbors need --corpus, --word too\n"
    for flags in (
        ["--before", "mini"],
        ["-k", "5"],
        ["--layer", "0"],
        ["--any-word"],
        ["--tokenizer", "character"],
    ):
        assert report(run, *flags) == 2
        assert capsys.readouterr().err == "error: neighbors need --corpus, --query, --word too\n"
    assert not (run.parent / "page.html").exists()


def test_a_folder_without_a_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(tmp_path) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}: not a run directory: ")


def test_unwritable_page_is_refused_before_neighbor_search(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("elmo_framework.analysis.report.find_neighbors", None)
    (tmp_path / "corpus.txt").write_text("a word\n")
    search = ["--corpus", str(tmp_path / "corpus.txt"), "--query", "a word", "--word", "word"]
    absent = tmp_path / "absent"
    assert main(["report", str(run), "--output-file", str(absent / "page.html"), *search]) == 2
    assert capsys.readouterr().err == f"error: {absent}: No such file or directory\n"


HOSTILE = "<script>alert(1)</script><img src=x onerror='alert(1)'>\"><b>"


def test_run_contents_are_escaped_in_the_report(
    tmp_path: Path, run: Path, bilm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = tmp_path / HOSTILE.replace("/", "|")
    run.rename(hostile)
    (hostile / "metadata.json").write_text(json.dumps({"command": [HOSTILE], HOSTILE: HOSTILE}))
    (hostile / "metrics.json").write_text(json.dumps({HOSTILE: HOSTILE, f"f1-{HOSTILE}": 1.0}))
    scores = {"step": 5, f"f1-{HOSTILE}": 0.5, f"{HOSTILE}.s_0": 0.5}
    (hostile / "metrics.jsonl").write_text(json.dumps(scores) + "\n")
    shutil.copytree(bilm, hostile / "bilm")
    corpus = hostile.with_name(f"{hostile.name}.txt")
    word = HOSTILE.replace(" ", "_")
    corpus.write_text(f"the {word} of {word}\n")
    search = ["--corpus", str(corpus), "--query", f"a {word} .", "--word", word]
    assert report(hostile, *search, "--before", str(bilm)) == 0, capsys.readouterr().err
    text = checked(tmp_path / "page.html")
    for shown in (HOSTILE.replace("/", "|"), f"f1-{HOSTILE} 0.5", word):
        assert shown in text
    tags = re.findall(r"<(\w+)", (tmp_path / "page.html").read_text())
    assert not {"script", "img", "b"} & set(tags)


def second_run(run: Path, name: str = "other") -> Path:
    """A copy of a run with another seed, and scores by class."""
    other = shutil.copytree(run, run.parent / name)
    config = json.loads((run / "filled_config.json").read_text())
    config["trainer"] = {"optimizer": {"lr": 0.25}}
    (other / "filled_config.json").write_text(json.dumps(config))
    kinds = {"precision": 0.125, "recall": 0.375, "f1-measure": 0.1875}
    scores = {f"best_validation_{kind}-{HOSTILE}": value for kind, value in kinds.items()}
    (other / "metrics.json").write_text(json.dumps({"best_validation_accuracy": 0.75, **scores}))
    return other


def test_several_runs_share_charts_and_show_what_differs(run: Path) -> None:
    other = second_run(run)
    page = run.parent / "page.html"
    assert main(["report", str(run), str(other), "--output-file", str(page)]) == 0
    text = checked(page)
    for shown in ("a<b, other", "trainer.optimizer.lr", "0.25", "a<b 0.75", "other 0.75"):
        assert shown in text
    differing = text[text.index("Settings that differ") : text.index("Curves")]
    assert "train_data_path" not in differing
    assert "crf_tagger" not in differing
    assert text.index("Scores by class") < text.index(HOSTILE) < text.index("0.1875")
    assert page.read_text().count('<polyline class="curve curve-1') == 2  # accuracy and loss
    assert "<script" not in page.read_text()


def test_runs_of_one_name_are_shown_with_their_folders(run: Path) -> None:
    others = [second_run(run, name) for name in ("x/seed-1", "y/seed-1")]
    page = run.parent / "page.html"
    assert main(["report", *map(str, others), "--output-file", str(page)]) == 0
    assert "x/seed-1, y/seed-1" in checked(page)


def test_a_run_that_is_listed_twice_is_refused(run: Path, capsys) -> None:
    page = run.parent / "page.html"
    assert main(["report", str(run), str(run), "--output-file", str(page)]) == 2
    assert "is listed twice; name each run once" in capsys.readouterr().err


class Scored:
    """A loaded run whose predictions are known."""

    def __init__(self, task: object, predictions: list) -> None:
        self._scored = SimpleNamespace(predictions=predictions, sums={})
        self._head = SimpleNamespace(task=task, tables=lambda sums: {"confusion": {"A": {"B": 2}}})

    def head(self) -> object:
        return self._head

    def score(self, file: Path | None, *, split: str) -> object:
        assert (file, split) == (None, "validation")
        return self._scored


WORDS = tuple(f"w{number}" for number in range(40))
TAGS = ("O",) * 40 + ("B-PER", "O") + ("O",) * 40
SENTENCE = TaggedSentence((*WORDS, HOSTILE, "in", *WORDS), TAGS)


def test_worst_errors_are_shown_in_context(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ("O",) * 40 + ("B-ORG", "O") + ("O",) * 39 + ("B-LOC",)
    missed = ("O",) * 82
    scored = Scored(TaggingTask(), [(TAGS, SENTENCE), (missed, SENTENCE), (wrong, SENTENCE)])
    monkeypatch.setattr("elmo_framework.analysis.reported_run.load", lambda *_, **__: scored)
    assert report(run, "--errors", "1") == 0
    text, page = checked(run.parent / "page.html"), (run.parent / "page.html").read_text()
    assert "The worst 1 of 2 wrong predictions." in text
    assert "PER \N{RIGHTWARDS ARROW} ORG" in text
    summary = page[page.index("<ol") : page.index("</summary>", page.index("<ol"))]
    assert "w29 " in summary
    assert "w27 " not in summary[: summary.index("mark")]
    assert 'class="mark extra"' in summary
    assert "<script" not in page
    assert "confusion" in text


def test_wrong_labels_are_explained_by_their_words(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    data = FIRST_VERSION / "data/snli.jsonl"
    write_report(FIRST_VERSION / "runs/snli", page, errors=ErrorSearch(1, data))
    checked(page)
    (mistake,) = page.read_text().split('<ol class="errors">')[1].split("<li>")[1:]
    pair = {
        "premise": "A woman in a red coat waits for the bus.",
        "hypothesis": "She is late for work.",
    }
    (explanation,) = load(FIRST_VERSION / "runs/snli").explain([pair])
    assert all(" ".join(words) in mistake for words in explanation.sentences)
    assert f"why {explanation.label}: is +" in mistake
    shown = re.findall(r'<span title="([-+][0-9.]+)"', mistake)
    assert shown == [f"{score:+.4f}" for row in explanation.scores for score in row]


def test_errors_of_other_tasks_are_absent(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = type("Task", (), {"mistake": HeadTask.mistake})
    scored = Scored(task(), [("x", "y")])
    monkeypatch.setattr("elmo_framework.analysis.reported_run.load", lambda *_, **__: scored)
    assert report(run, "--errors", "5") == 0
    assert "Worst errors" not in checked(run.parent / "page.html")


def test_a_file_without_errors_is_refused(run: Path, capsys) -> None:
    assert report(run, "--file", "x") == 2
    assert capsys.readouterr().err == "error: --file is for the search for errors; add --errors N\n"


def test_neighbors_show_a_window_of_a_dozen_words() -> None:
    words = tuple(map(str, range(30)))
    window = Occurrence(words, 10).window
    assert window == (
        "\N{HORIZONTAL ELLIPSIS} 4 5 6 7 8 9",
        "10",
        "11 12 13 14 15 16 \N{HORIZONTAL ELLIPSIS}",
    )
    assert Occurrence(words[:7], 0).window == Occurrence(words[:7], 0).parts


def test_a_damaged_log_is_named_with_its_line(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = run / "steps.jsonl"
    log.write_bytes(b'{"step": 1, "loss": 2.0}\n\xff\xfe\n{"step": 2, "loss": 1.0}\n')
    assert report(run) == 2
    assert capsys.readouterr().err == f"error: {log}:2: this line is damaged; remove it\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("metadata.json", '{"command": 3, "device": ["x"]}'),
        ("filled_config.json", '{"model": 3}'),
        ("metrics.json", '{"training_duration": "x", "f1": {"a": [1]}}'),
        ("metrics.jsonl", '{"step": 1, "f1": "x", "loss": null, "mix.s_0": [1]}\n'),
        ("steps.jsonl", '{"step": 1, "loss": "x"}\n'),
    ],
)
def test_values_of_another_kind_are_shown_or_left_out(run: Path, name: str, content: str) -> None:
    (run / name).write_text(content)
    assert report(run) == 0
    checked(run.parent / "page.html")
