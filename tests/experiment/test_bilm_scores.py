"""`elmo evaluate` on a biLM that has its softmax, by its folder or its name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from elmo_framework.bilm.files.published import PACKAGED
from elmo_framework.commands.main import main
from tests.experiment.jobs import DATA

TEXT = DATA / "lm_valid.txt"


@pytest.fixture
def folder(bilm: Path, tmp_path: Path) -> Path:
    """The biLM of a run, without the run."""
    return Path(shutil.copytree(bilm / "bilm", tmp_path / "alone"))


def scores(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, float]:
    assert main(["evaluate", *words, "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out).values()
    return dict(found)


def error(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["evaluate", *words]) == 2
    return capsys.readouterr().err.removeprefix("error: ").strip()


def test_a_bilm_has_the_scores_of_its_run(
    bilm: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = folder / "text.txt"  # of no more sentences than the run's reader takes
    text.write_text("\n".join(TEXT.read_text().splitlines()[:40]))
    expected = scores(capsys, str(bilm), str(text))
    assert scores(capsys, str(folder), str(text)) == expected
    monkeypatch.setitem(PACKAGED, "mini", folder)
    assert scores(capsys, "mini", str(text)) == expected
    words = text.read_text().split()
    known = set((folder / "vocabulary.txt").read_text().split())
    rate = sum(word not in known for word in words) / len(words)
    assert 0 < rate < 1
    assert expected["unknown_word_rate"] == pytest.approx(rate)
    assert expected["perplexity"] ** 2 == pytest.approx(
        expected["forward_perplexity"] * expected["backward_perplexity"]
    )


def test_rows_are_chosen_by_the_batch_size(folder: Path, capsys) -> None:
    text = folder / "text.txt"
    text.write_text("\n".join(TEXT.read_text().splitlines()[:40]))
    found = {
        size: scores(capsys, str(folder), str(text), "--batch-size", size)["perplexity"]
        for size in ("2", "16", "30")
    }
    assert len(set(found.values())) == 3
    assert found["16"] == scores(capsys, str(folder), str(text))["perplexity"]


def test_a_prepared_corpus_and_raw_text_are_read(folder: Path, tmp_path: Path, capsys) -> None:
    corpus = tmp_path / "corpus"
    assert main(["prepare", str(TEXT), "--output-dir", str(corpus), "--held-out", "20"]) == 0
    capsys.readouterr()
    assert scores(capsys, str(folder), str(corpus / "held_out"))["num_predictions"] > 0
    raw = tmp_path / "raw.txt"
    raw.write_text("The dog barked. It didn't stop.\n")
    plain = scores(capsys, str(folder), str(raw))
    split = scores(capsys, str(folder), str(raw), "--tokenizer", "spacy")
    assert plain["num_predictions"] == 7
    assert split["num_predictions"] > plain["num_predictions"]


def test_scores_are_printed_as_a_table(folder: Path, capsys) -> None:
    assert main(["evaluate", str(folder), str(TEXT)]) == 0
    printed = capsys.readouterr().out
    for name in ("forward_perplexity", "backward_perplexity", "unknown_word_rate"):
        assert name in printed


@pytest.mark.parametrize("name", ["softmax.safetensors", "vocabulary.txt"])
def test_a_bilm_without_softmax_or_words_is_refused(folder: Path, name: str, capsys) -> None:
    (folder / name).unlink()
    assert error(capsys, str(folder), str(TEXT)) == (
        f"{folder}: this biLM has no {name}, and probabilities need its softmax and the words of "
        "it; pretraining writes both next to the biLM, and `elmo export` copies them"
    )


def test_flags_of_the_other_kind_are_refused(bilm: Path, folder: Path, tmp_path, capsys) -> None:
    out = str(tmp_path / "out")
    expected = f"--predictions-file is for a run, and {folder} is a biLM"
    assert error(capsys, str(folder), str(TEXT), "--predictions-file", out) == expected
    expected = f"--tokenizer is for a biLM, and {bilm} is a run"
    assert error(capsys, str(bilm), str(TEXT), "--tokenizer", "spacy") == expected
    expected = "its data loader makes no batches of examples; leave out the batch size"
    assert error(capsys, str(bilm), str(TEXT), "--batch-size", "2") == expected


def test_a_misspelt_name_is_answered_with_the_nearest(capsys) -> None:
    assert error(capsys, "minni", str(TEXT)) == (
        "'minni' is neither the folder of a run or a biLM nor the name of a biLM; choose from "
        "medium, mini, original, original-5.5b, small. Did you mean 'mini'?"
    )


def test_text_in_another_script_is_reported(folder: Path, tmp_path: Path, caplog) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Она увидела собаку и пошла домой .\n" * 2)
    assert main(["evaluate", str(folder), str(TEXT), str(text)]) == 0
    assert "100 % of the letters are not Latin" in caplog.text


def test_whole_corpus_is_refused_with_its_parts(folder: Path, tmp_path: Path, capsys) -> None:
    corpus = tmp_path / "corpus"
    assert main(["prepare", str(TEXT), "--output-dir", str(corpus), "--held-out", "20"]) == 0
    capsys.readouterr()
    assert f"evaluate {corpus / 'training'} or {corpus / 'held_out'}" in error(
        capsys, str(folder), str(corpus)
    )


def test_published_bilm_is_refused_before_its_download(capsys, monkeypatch) -> None:
    monkeypatch.setenv("ELMO_MIRROR", "http://127.0.0.1:9")  # nothing listens there
    assert error(capsys, "original", str(TEXT)) == (
        "the softmax of 'original' was not published, and probabilities need it"
    )


def test_missing_file_is_found_before_others_are_scored(folder: Path, capsys) -> None:
    message = error(capsys, str(folder), str(TEXT), "none.txt")
    assert message == "none.txt: not found, as a file, folder or pattern"
