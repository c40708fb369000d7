"""The page about a run."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from elmo_framework.commands.main import main

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
    assert "Nearest neighbours" not in text


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
    assert capsys.readouterr().err == "error: neighbours need --corpus, --word too\n"
    assert report(run, "--before", "mini") == 2
    assert capsys.readouterr().err == "error: neighbours need --corpus, --query, --word too\n"
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
