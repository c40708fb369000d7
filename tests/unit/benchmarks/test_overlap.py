from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import overlap
import pytest
from overlap import Search, TextFile, distinct_sentences, normalized

from elmo_framework.commands.main import main as elmo

Run = Callable[..., list[str]]

SENTENCE = "The old man did n't see , at first , the 2 boats ."
WORDS = SENTENCE.split()
TEXT = """It was late .
"The old man didn't see (at first) the 2 boats. He slept .
The old man
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str | Path) -> list[str]:
        monkeypatch.setattr("sys.argv", ["overlap.py", *map(str, arguments)])
        assert overlap.main() == 0
        return capsys.readouterr().out.splitlines()

    return run


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def written(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def searched(sentences: list[str], lines: list[str], min_length: int = 2) -> set[str]:
    wanted = distinct_sentences((sentence.split() for sentence in sentences), min_length)
    found = set(Search(wanted, min_length).found_in(line.split() for line in lines))
    return {sentence for text, sentence in wanted.items() if text in found}


@pytest.mark.parametrize(
    ("word", "expected"),
    [("N't", "nt"), ("``", ""), ("-LRB-", ""), ("U.S.", "us"), ("É2", "é2"), ("LRB", "lrb")],
)
def test_a_word_is_its_letters_and_digits_in_lower_case(word: str, expected: str) -> None:
    assert normalized(word) == expected


def test_short_and_duplicate_sentences_are_left_out() -> None:
    sentences = ["a b . !", "a b c", "A b -- c !", "d e f"]
    distinct = distinct_sentences((sentence.split() for sentence in sentences), 3)
    assert distinct == {"abc": "a b c", "def": "d e f"}


def test_sentences_match_across_lines_and_tokenizations() -> None:
    lines = ["one cannot say", "two three", "four five six ."]
    sentences = ["One can not say !", "say two-three four", "five six"]
    assert searched(sentences, lines) == set(sentences)


def test_sentences_match_only_whole_consecutive_words() -> None:
    lines = ["the cat sat here", "no he cat"]
    assert searched(["he cat sat", "cat sat he", "the cat here", "the sat"], lines) == set()


def test_sentences_with_a_common_prefix_are_distinguished() -> None:
    sentences = ["in the house", "in the house he", "in the houses"]
    assert searched(sentences, ["in the house she"]) == {"in the house"}


def test_a_sentence_is_found_wherever_blocks_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "_BLOCK_WORDS", 3)
    words = [f"w{number}" for number in range(100)]
    sentences = [" ".join(words[at : at + 8]) for at in range(93)]
    lines = [" ".join(words[at : at + 5]) for at in range(0, 100, 5)]
    assert searched(sentences, lines) == set(sentences)


COLUMNS = "-DOCSTART- -X- O\n\n" + "".join(f"{word} X O\n" for word in WORDS)
CONLL_2012 = (
    "#begin document (novel); part 000\n"
    + "".join(f"novel 0 {place} {word}{' -' * 8}\n" for place, word in enumerate(WORDS))
    + "\n#end document\n"
)
CONLLU = "# text = other\n" + "".join(
    "\t".join([str(number), word, *"_" * 8]) + "\n" for number, word in enumerate(WORDS, 1)
)
SQUAD = {"data": [{"paragraphs": [{"context": f"Is it? {SENTENCE} No one knows. ", "qas": []}]}]}
PAIRS = [{"sentence1": SENTENCE, "sentence2": "No one knows"}, {"text": SENTENCE}]
TREE = f"(ROOT (S {' '.join(f'(X (Y {word}))' for word in WORDS)} (-NONE- *T*-1)))"


@pytest.mark.parametrize(
    ("name", "content", "file_format"),
    [
        ("eval.txt", f"{SENTENCE}\nIt was\n", None),
        ("eval.conll", COLUMNS, None),
        ("valid.txt", COLUMNS, "columns"),
        ("eval.gold_conll", CONLL_2012, None),
        ("eval.conllu", CONLLU, None),
        ("eval.jsonl", "".join(f"{json.dumps(pair)}\n" for pair in PAIRS), None),
        ("sick.txt", f"id\tsentence_A\tsentence_B\n1\t{SENTENCE}\tno one\n", "records"),
        ("eval.json", json.dumps(SQUAD), None),
        ("eval.mrg", TREE, None),
    ],
)
def test_each_format_gives_the_words_of_its_sentences(
    tmp_path: Path, text: Path, run: Run, name: str, content: str, file_format: str | None
) -> None:
    path = written(tmp_path / name, content)
    told = path if file_format is None else f"{file_format}:{path}"
    count, *shown = run(text, "--evaluation", told)
    assert count == f"{path}: 1 sentences, 1 found, 100.00%"
    assert [line.split() for line in shown] == [WORDS]


def test_a_line_a_file_and_the_first_that_were_found(tmp_path: Path, text: Path, run: Run) -> None:
    some = written(tmp_path / "some.txt", f"{SENTENCE}\nIt was very late\nIt was late\n")
    none = written(tmp_path / "none.txt", "He never slept at all\n")
    packed = tmp_path / "text.txt.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    arguments = ["--evaluation", some, none, "--min-length", "3", "--show", "1"]
    expected = [
        f"{some}: 3 sentences, 2 found, 66.67%",
        f"    {SENTENCE}",
        f"{none}: 1 sentences, 0 found, 0.00%",
    ]
    assert run(text, *arguments) == expected
    assert run(packed, *arguments) == expected


def test_the_parts_of_a_prepared_corpus_are_compared(tmp_path: Path, run: Run) -> None:
    lines = [f"sentence number {number} of all" for number in range(50)]
    source = written(tmp_path / "source.txt", "\n".join([*lines, *map(str.upper, lines)]))
    corpus = tmp_path / "corpus"
    assert elmo(["prepare", str(source), "--output-dir", str(corpus), "--held-out", "5"]) == 0
    held_out = (corpus / "held_out" / "offsets.bin").stat().st_size // 8 - 1
    count, *_ = run(corpus / "training", "--evaluation", corpus / "held_out", "--min-length", "5")
    assert count.startswith(f"{corpus / 'held_out'}: {held_out} sentences")
    assert not count.endswith(" 0.00%")


def test_a_name_is_a_path_or_a_format_and_a_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Run
) -> None:
    odd = written(tmp_path / "a:b.txt", SENTENCE)
    assert TextFile.named(str(odd)) == (odd, "lines")
    assert TextFile.named(f"trees:{odd}") == (odd, "trees")
    with pytest.raises(SystemExit):
        run(odd, "--evaluation", tmp_path / "absent.txt")
    message = capsys.readouterr().err
    assert "absent.txt" in message
    assert "records" in message
