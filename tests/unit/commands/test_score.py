"""`elmo score` writes what `load_bilm(...).score` returns, as tables and JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_framework import load_bilm
from elmo_framework.analysis.scoring import is_less, show_totals, text_items
from elmo_framework.commands.main import main
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.embedding.corpus import SentenceFiles
from elmo_framework.layers.surprisal import SentenceScore
from tests.numpy_bilm import NumpyBiLm, NumpySoftmax

TEXT = 'the bank of the river\n\na "bank" lends\nthe river\n'
WORDS = ["the", "bank", "of", "river", "a"]


@pytest.fixture(scope="module")
def bilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    numpy_bilm = NumpyBiLm.random()
    folder = numpy_bilm.save(tmp_path_factory.mktemp("scored") / "bilm")
    return NumpySoftmax.random(numpy_bilm, WORDS).save(folder)


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    # On a busy machine a line of progress would come before an error.
    monkeypatch.setattr("elmo_framework.commands.score._SECONDS_WITHOUT_PROGRESS", inf)
    Path("text.txt").write_text(TEXT)
    return "text.txt"


def rows(output: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(output), delimiter="\t"))


def printed(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert main(["score", *map(str, words)]) == 0
    return capsys.readouterr().out


def error(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert main(["score", *map(str, words)]) == 2
    return capsys.readouterr().err.removeprefix("error: ").strip()


def numbers(row: dict[str, str]) -> tuple[float, float, float]:
    return tuple(float(row[name]) for name in ("forward", "backward", "both"))


def test_each_word_and_boundary_has_a_row(bilm: Path, text: str, capsys) -> None:
    found = rows(printed(capsys, bilm, text))
    assert list(found[0]) == [
        *("file", "line", "document", "position", "word", "kind", "forward", "backward", "both")
    ]
    scores = load_bilm(bilm).score([line.split() for line in TEXT.splitlines()])
    (first, second, *words, last) = [row for row in found if row["line"] == "3"]
    assert {row["document"] for row in found} == {"1", "2"}
    assert (first["kind"], first["position"], first["word"]) == ("boundary", "0", "<S>")
    assert (first["forward"], first["both"]) == ("", "")
    assert float(first["backward"]) == pytest.approx(scores[2].begin, abs=1e-6)
    assert [row["kind"] for row in (second, *words)] == ["known", "unknown", "unknown"]
    assert [row["word"] for row in (second, *words)] == ["a", '"bank"', "lends"]
    for index, row in enumerate((second, *words)):
        expected = [values[index] for values in (scores[2].forward, scores[2].backward)]
        assert numbers(row) == pytest.approx([*expected, sum(expected) / 2], abs=1e-6)
        assert row["position"] == str(index + 1)
    assert (last["kind"], last["position"], last["word"]) == ("boundary", "4", "</S>")
    assert (last["backward"], last["both"]) == ("", "")
    assert float(last["forward"]) == pytest.approx(scores[2].end, abs=1e-6)


def test_sentences_have_sums_with_their_boundaries(bilm: Path, text: str, capsys) -> None:
    by_word, by_sentence = (
        rows(printed(capsys, bilm, text, "--by", each)) for each in ("word", "sentence")
    )
    assert [(row["line"], row["words"], row["unknown"]) for row in by_sentence] == [
        *(("1", "5", "0"), ("3", "3", "2"), ("4", "2", "0"))
    ]
    for row in by_sentence:
        parts = [each for each in by_word if each["line"] == row["line"]]
        for direction in ("forward", "backward"):
            total = sum(float(each[direction] or 0) for each in parts)
            assert float(row[direction]) == pytest.approx(total, abs=1e-4)


def test_totals_are_perplexities_with_sentence_ends(bilm: Path, text: str, capsys) -> None:
    assert main(["score", str(bilm), text, "--by", "sentence"]) == 0
    captured = capsys.readouterr()
    bits = sum(float(row["forward"]) for row in rows(captured.out)) / (10 + 3)
    assert "10 words in 3 sentences, 20.0% unknown" in captured.err
    assert f"forward {bits:.3f} (perplexity {2**bits:.2f})" in captured.err


def test_totals_leave_out_what_is_not_predicted(tmp_path: Path) -> None:
    """As of a causal transformer: nothing backward, no end, and a word without pieces."""
    (tmp_path / "a.txt").write_text("a b c\nb\n")
    corpus = SentenceFiles([tmp_path / "a.txt"], tokenizer=WhitespaceTokenizer())
    totals: defaultdict[str, float] = defaultdict(float)
    bits = iter([[2.0, nan, 4.0], [nan]])
    sentences = list[dict[str, Any]]()
    for item in text_items(corpus, state="reset", by="sentence", totals=totals):
        scores = [
            SentenceScore(
                np.array(next(bits)),
                np.full(len(words), nan),
                np.zeros(len(words), dtype=bool),
                end=nan,
                begin=nan,
            )
            for words in item.sentences
        ]
        sentences += item.rows(scores)
    assert [row["forward"] for row in sentences] == [6.0, None]
    shown = show_totals(totals)
    assert "4 words in 2 sentences" in shown
    assert shown.endswith("sentence ends not predicted: forward 3.000 (perplexity 8.00)")


def test_documents_end_at_blank_lines_and_files(bilm: Path, text: str, capsys) -> None:
    Path("more.txt").write_text("a river\n")
    files = (text, "more.txt", "more.txt")
    found = rows(printed(capsys, bilm, *files, "--state", "document", "--by", "sentence"))
    assert [row["document"] for row in found] == ["1", "2", "2", "3", "4"]
    documents = [[TEXT.splitlines()[0]], TEXT.splitlines()[2:], ["a river"], ["a river"]]
    scored = load_bilm(bilm).score_documents([[line.split() for line in d] for d in documents])
    expected = [score.total for document in scored for score in document]
    assert [float(row["forward"]) for row in found] == pytest.approx(
        [bits.forward for bits in expected], abs=1e-5
    )
    reset = rows(printed(capsys, bilm, *files, "--by", "sentence"))
    is_equal = [numbers(one) == numbers(other) for one, other in zip(found, reset, strict=True)]
    assert is_equal == [True, True, False, True, True]


def test_json_lines_have_the_rows_of_the_table(bilm: Path, text: str, capsys) -> None:
    table = rows(printed(capsys, bilm, text))
    printed(capsys, bilm, text, "--output-file", "scores.jsonl")
    found = [json.loads(line) for line in Path("scores.jsonl").read_text().splitlines()]
    as_text = [{k: "" if v is None else str(v) for k, v in row.items()} for row in found]
    assert as_text == table


def test_an_output_is_replaced_only_with_force(bilm: Path, text: str, capsys) -> None:
    output = Path("scores.tsv")
    printed(capsys, bilm, text, "--output-file", output)
    before = output.read_text()
    assert "pass --force" in error(capsys, bilm, text, "--output-file", output)
    Path("bad.txt").write_bytes(b"a river\n\xff\n")
    assert "bad.txt:2" in error(capsys, bilm, "bad.txt", "--output-file", output, "--force")
    Path("items.tsv").write_text("sentence\tspans\na river\t3\n")  # wrong, but counted
    wrong = error(capsys, bilm, "items.tsv", "--regions", "spans", "-f", "--output-file", output)
    assert wrong.endswith("is not in the sentence of 2 words")
    assert output.read_text() == before
    printed(capsys, bilm, text, "--output-file", output, "--force", "--by", "sentence")
    assert output.read_text() != before


def test_standard_input_is_read(bilm: Path, text: str, capsys, monkeypatch) -> None:
    expected = printed(capsys, bilm, text).replace("text.txt", "-")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert printed(capsys, bilm, "-") == expected


PAIRS = (
    ("the bank of the river", "river the of bank the", "x"),
    ("a bank", "a bank", "y"),  # a tie
    ("the river", "river a", "y"),
)


def test_pairs_count_ties_as_errors(bilm: Path, text: str, capsys) -> None:
    lines = ["sentence_good\tsentence_bad\tUID", *map("\t".join, PAIRS)]
    Path("pairs.tsv").write_text("\n".join(lines))
    assert main(["score", str(bilm), "pairs.tsv", "--pairs"]) == 0
    captured = capsys.readouterr()
    found = rows(captured.out)
    assert [row["UID"] for row in found] == ["x", "y", "y"]
    scorer, correct = load_bilm(bilm), []
    for row, pair in zip(found, PAIRS, strict=True):
        good, bad = (score.total for score in scorer.score([each.split() for each in pair[:2]]))
        for name in ("forward", "backward", "both"):
            bits = getattr(good, name), getattr(bad, name)
            assert float(row[f"{name}_good"]) == pytest.approx(bits[0], abs=1e-5)
            assert float(row[f"{name}_bad"]) == pytest.approx(bits[1], abs=1e-5)
            assert row[f"{name}_correct"] == str(int(bits[0] < bits[1]))
        correct.append(good.forward < bad.forward)
    assert found[1]["forward_correct"] == found[1]["both_correct"] == "0"
    assert sorted(correct) == [False, False, True]
    assert "of 3 pairs is more probable: forward 33.33%" in captured.err


def test_a_model_without_preferences_is_always_wrong(tmp_path: Path, text: str, capsys) -> None:
    numpy_bilm = NumpyBiLm.random()
    uniform = NumpySoftmax(WORDS, np.zeros((8, 4), np.float32), np.zeros(8, np.float32))
    folder = uniform.save(numpy_bilm.save(tmp_path / "uniform"))
    Path("pairs.tsv").write_text("sentence_good\tsentence_bad\nthe bank\tbank river\na\tof\n")
    assert main(["score", str(folder), "pairs.tsv", "--pairs"]) == 0
    assert "forward 0.00%, backward 0.00%, both 0.00%" in capsys.readouterr().err


def test_differences_below_the_accuracy_are_ties() -> None:
    assert is_less(10.0, 10.001)
    assert not is_less(10.0, 10.00001)
    assert not is_less(10.001, 10.0)


def test_pairs_in_blimps_format_are_tokenized(bilm: Path, text: str, capsys) -> None:
    pair = {"sentence_good": "The river.", "sentence_bad": "River, the.", "UID": "z"}
    Path("pairs.jsonl").write_text(json.dumps(pair) + "\n")
    (found,) = rows(printed(capsys, bilm, "pairs.jsonl", "--pairs", "--tokenizer", "spacy"))
    good, bad = load_bilm(bilm).score([["The", "river", "."], ["River", ",", "the", "."]])
    assert float(found["forward_good"]) == pytest.approx(good.total.forward, abs=1e-5)
    assert float(found["forward_bad"]) == pytest.approx(bad.total.forward, abs=1e-5)
    assert (found["unknown_good"], found["unknown_bad"]) == ("2", "3")


def test_regions_are_sums_over_spans_of_words(bilm: Path, text: str, capsys) -> None:
    Path("items.tsv").write_text(
        "item\tsentence\tspans\n1\tthe bank of the river\t1-2 critical=5\n2\ta bank\t2\n"
    )
    found = rows(printed(capsys, bilm, "items.tsv", "--regions", "spans"))
    assert [(row["item"], row["region"], row["text"]) for row in found] == [
        *(("1", "1-2", "the bank"), ("1", "critical", "river"), ("2", "2", "bank"))
    ]
    first, second = load_bilm(bilm).score([TEXT.splitlines()[0].split(), ["a", "bank"]])
    for row, bits in zip(
        found, (first.words(0, 2), first.words(4, 5), second.words(1, 2)), strict=True
    ):
        assert numbers(row) == pytest.approx([*bits, bits.both], abs=1e-5)


def test_unknown_words_are_counted_in_their_region(bilm: Path, text: str, capsys) -> None:
    Path("items.tsv").write_text("sentence\tspans\nthe bank lends\t1-2 3 1-3\n")
    found = rows(printed(capsys, bilm, "items.tsv", "--regions", "spans"))
    assert [row["unknown"] for row in found] == ["0", "1", "1"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("items.jsonl", '{"parts": ["the bank", "", "of the", "river"]}\n'),
        ("items.tsv", "parts\nthe bank||of the|river\n"),
    ],
)
def test_regions_may_be_texts(bilm: Path, text: str, capsys, name: str, content: str) -> None:
    Path(name).write_text(content)
    found = rows(printed(capsys, bilm, name, "--regions", "parts"))
    assert [(row["region"], row["text"], row["words"]) for row in found] == [
        *(("1", "the bank", "2"), ("2", "", "0"), ("3", "of the", "2"), ("4", "river", "1"))
    ]
    (score,) = load_bilm(bilm).score([TEXT.splitlines()[0].split()])
    empty = found.pop(1)
    assert (empty["forward"], empty["backward"], empty["both"]) == ("", "", "")
    for row, bounds in zip(found, ((0, 2), (2, 4), (4, 5)), strict=True):
        assert numbers(row)[:2] == pytest.approx(score.words(*bounds), abs=1e-5)


def test_columns_that_a_table_lacks_are_named(bilm: Path, text: str, capsys, caplog) -> None:
    records = [{"sentence": "a bank", "spans": "1"}, {"sentence": "a bank", "spans": "2", "x": 1}]
    Path("items.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))
    found = rows(printed(capsys, bilm, "items.jsonl", "--regions", "spans"))
    assert ["x" in row for row in found] == [False, False]
    assert "left out, as the first row lacks them: 'x'; --format jsonl keeps them" in caplog.text
    caplog.clear()
    printed(capsys, bilm, "items.jsonl", "--regions", "spans", "--format", "jsonl")
    assert not caplog.text


def test_lists_of_a_record_are_kept(bilm: Path, text: str, capsys) -> None:
    Path("items.jsonl").write_text(
        '{"sentence": "a bank", "spans": "1", "tags": ["x", {"y": 1}]}\n'
    )
    (row,) = rows(printed(capsys, bilm, "items.jsonl", "--regions", "spans"))
    assert row["tags"] == '["x", {"y": 1}]'
    line = printed(capsys, bilm, "items.jsonl", "--regions", "spans", "--format", "jsonl")
    assert json.loads(line)["tags"] == ["x", {"y": 1}]


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ("6", "items.tsv:2: region '6' is not in the sentence of 5 words"),
        ("0", "items.tsv:2: region '0' is not in the sentence of 5 words"),
        ("3-2", "items.tsv:2: region '3-2' is not in the sentence of 5 words"),
        ("a-b", "items.tsv:2: 'a-b' is not a region; write words from 1, as in 4, 1-3 or name=1-3"),
    ],
)
def test_a_wrong_span_is_reported(bilm: Path, text: str, capsys, span, message) -> None:
    Path("items.tsv").write_text(f"sentence\tspans\nthe bank of the river\t{span}\n")
    assert error(capsys, bilm, "items.tsv", "--regions", "spans") == message


def test_a_missing_column_names_its_line_once(bilm: Path, text: str, capsys) -> None:
    Path("items.tsv").write_text("sentence\tspans\nthe bank\t1\n")
    message = error(capsys, bilm, "items.tsv", "--regions", "span")
    assert message.startswith("items.tsv:2: missing key 'span'")


def test_a_column_that_the_output_has_is_refused(bilm: Path, text: str, capsys) -> None:
    Path("pairs.tsv").write_text("sentence_good\tsentence_bad\tline\na\tthe\t1\n")
    message = "pairs.tsv:2: rename the column 'line', which is a column of the output"
    assert error(capsys, bilm, "pairs.tsv", "--pairs") == message


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--pairs", "--by", "sentence"], "--by is for text, not for --pairs or --regions"),
        (["--regions", "r", "--state", "document"], "--state is for text, not for --pairs or"),
    ],
)
def test_flags_of_text_are_refused_elsewhere(
    bilm: Path, text: str, capsys, flags: list[str], message: str
) -> None:
    assert error(capsys, bilm, text, *flags).startswith(message)


def test_standard_input_is_text_only(bilm: Path, text: str, capsys) -> None:
    message = "--pairs and --regions read files, not standard input; name a file"
    assert error(capsys, bilm, "-", "--pairs") == message


def test_text_without_words_is_refused(bilm: Path, text: str, capsys) -> None:
    Path("blank.txt").write_text("\n \n")
    assert error(capsys, bilm, "blank.txt") == (
        "nothing to score: the input has no words, or no regions"
    )


def test_a_bilm_without_a_softmax_is_refused_in_one_line(tmp_path: Path, text: str, capsys) -> None:
    folder = NumpyBiLm.random().save(tmp_path / "alone")
    message = error(capsys, folder, text)
    assert message.startswith(f"{folder}: this biLM has no softmax.safetensors and no vocabulary")
    assert "\n" not in message
    published = "the softmax of 'original' was not published, and probabilities need it"
    assert error(capsys, "original", text) == published


def test_records_are_no_sentences(bilm: Path, text: str, capsys) -> None:
    Path("pairs.jsonl").write_text('{"sentence_good": "a", "sentence_bad": "the"}\n')
    message = "pairs.jsonl has records, not sentences; pass --pairs or --regions COLUMN"
    assert error(capsys, bilm, "pairs.jsonl") == message
