"""Exams on files of a few lines, with values that are worked out by hand."""

from __future__ import annotations

import csv
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from exams import (
    Result,
    best_threshold,
    card_table,
    main,
    minimal_pairs,
    number_agreement,
    read_words,
    sentence_numbers,
    suite_items,
    syntax_suites,
    take,
    words_in_context,
)
from reading_times import ReadWords, reading_time_gain
from syntax_formulas import parse_formula

from elmo_framework.data.tokenizer import SpacyTokenizer, Tokenizer, WhitespaceTokenizer
from elmo_framework.errors import DataError
from elmo_framework.layers import SentenceScore
from tests.numpy_bilm import NumpyBiLm, NumpySoftmax


class FakeBiLm:
    """Each word has its bits, wherever it is; its layers are numbers of the word before."""

    def __init__(
        self,
        bits: Mapping[str, float] | None = None,
        vectors: Mapping[str, Sequence[Sequence[float]]] | None = None,
        unknown: str = "",
    ) -> None:
        self.bits, self.vectors, self.unknown = bits or {}, vectors or {}, unknown.split()

    def score(self, sentences: Sequence[Sequence[str]]) -> list[SentenceScore]:
        return [
            SentenceScore(
                forward=np.array([self.bits.get(word, 1.0) for word in words]),
                backward=np.array([2 * self.bits.get(word, 1.0) for word in reversed(words)]),
                is_unknown=np.array([word in self.unknown for word in words], dtype=bool),
                end=0.5,
            )
            for words in sentences
        ]

    def embed_iter(self, sentences) -> Iterator[np.ndarray]:
        for words in sentences:
            rows = [self.vectors[word] for word in ("", *words[:-1])]
            yield np.array(rows, np.float32).transpose(1, 0, 2)


WORDS = WhitespaceTokenizer()


def write_lines(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def by_part(results: Sequence[Result]) -> dict[tuple[str, str], float]:
    return {(result.part, result.measure): pytest.approx(result.value) for result in results}


# Minimal pairs


def pair(good: str, bad: str, term: str) -> str:
    return json.dumps({"sentence_good": good, "sentence_bad": bad, "linguistics_term": term})


def test_minimal_pairs_are_averaged_over_paradigms(tmp_path: Path) -> None:
    bits = {"is": 1.0, "are": 3.0, "was": 3.0}
    first = [pair("it is", "it are", "agreement"), pair("is it", "was it", "agreement")]
    second = [
        pair("it are", "it is", "binding"),
        pair("it are", "it was", "binding"),  # a tie
        pair("is", "are", "agreement"),
        pair("is", "was", "binding"),
    ]
    write_lines(tmp_path / "one.jsonl", *first)
    write_lines(tmp_path / "two.jsonl", *second)
    results = minimal_pairs(FakeBiLm(bits), tmp_path, WORDS)
    assert by_part(results) == {
        ("", "pairs, mean over paradigms, forward"): 75.0,  # of 100 and 50
        ("", "pairs, mean over paradigms, both"): 75.0,
        ("agreement", "pairs, forward"): 100.0,
        ("binding", "pairs, forward"): 100 / 3,
    }
    assert [result.count for result in results] == [6, 6, 3, 3]


def test_published_means_are_over_the_same_paradigms(tmp_path: Path) -> None:
    write_lines(tmp_path / "one.jsonl", pair("is", "are", "agreement"))
    lines = ("paradigm\tphenomenon\tlstm", "one\tagreement\t0.6", "other\tbinding\t0.2")
    write_lines(tmp_path / "published.tsv", *lines)
    note = minimal_pairs(FakeBiLm(), tmp_path, WORDS)[0].note
    assert note == "published: lstm 60.0"


# Syntax suites

BITS = {("a", 1): 1.0, ("a", 2): 4.0, ("b", 1): 2.0, ("b", 2): 2.0}


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("(1;%a%) < (1;%b%)", True),
        ("(1;%b%)<(1;%a%)", False),
        ("(2;%a%) > (2;%b%) & (1;%a%) > (1;%b%)", False),
        ("[(2;%a%) > (2;%b%)] | [(1;%a%) > (1;%b%)]", True),
        ("(1;%a%) > 3 | (1;%a%) < 3 & (1;%b%) > 3", False),
        ("[(2;%a%) - (1;%a%)] > [(2;%b%) - (1;%b%)]", True),
        ("(2;%a%) - (1;%a%) - (1;%b%) > 0.9", True),  # 4 - 1 - 2, from the left
        ("(2;%a%) - (1;%a%) - (1;%b%) > 1.1", False),
        ("(2;%a%) - (1;%a%) + (1;%b%) = 5", True),
        ("( (1;%a%) + (2;%a%) ) = (*;%a%)", True),
        ("(*;%b%) = 4.0005", True),
        ("(*;%b%) = 4.01", False),
        ("[[(2;%b%) = (1;%b%)]]", True),
    ],
)
def test_a_formula_is_evaluated(formula: str, expected: bool) -> None:
    assert parse_formula(formula)(BITS) is expected


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("(1;%a%) <", "unexpected 'the end'"),
        ("[(1;%a%) < 2", "unexpected 'the end'"),
        ("(1;%a%) < 2 ]", "unexpected ' ]'"),
        ("(1;%a%) ~ 2", "unexpected ' ~ 2'"),
        ("(1;%a%) < 2 < 3", "unexpected ' < 3'"),
        ("(1;%a%)", "compares nothing"),
        ("(1;%a%) & (1;%b%) < 3", "a comparison is missing"),
        ("[(1;%a%) < 3] + 1 > 2", "a number is missing"),
        ("(3;%a%) < 3", "no region 3 in a condition 'a'"),
        ("(1;%c%) < 3", "no region 1 in a condition 'c'"),
    ],
)
def test_an_invalid_formula_is_refused(formula: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_formula(formula)(BITS)


def suite(*formulas: str, metric: str = "sum") -> str:
    """Two items: "the cat" against "a cat runs", and "cat" against "cat"."""

    def condition(name: str, *contents: str) -> dict:
        regions = [
            {"region_number": number, "content": content}
            for number, content in enumerate(contents, start=1)
        ]
        return {"condition_name": name, "regions": regions}

    items = [
        {"conditions": [condition("x", "the", "cat", ""), condition("y", "a", "cat runs", ".")]},
        {"conditions": [condition("x", "", "cat", "."), condition("y", "", "cat", ".")]},
    ]
    predictions = [{"type": "formula", "formula": formula} for formula in formulas]
    return json.dumps({"meta": {"metric": metric}, "items": items, "predictions": predictions})


@pytest.mark.parametrize(
    ("formulas", "expected"),
    [
        (["(2;%x%) < (2;%y%)"], [True, False]),
        (["(2;%x%) < (2;%y%)", "(1;%x%) > 9"], [False, False]),  # all must hold
        (["(2;%x%) = (2;%y%)"], [False, True]),
        (["(2;%x%) < (2;%y%)", "(2;%x%) = (2;%y%)"], [False, False]),  # as in fgd_hierarchy
        (["(2;%x%) = 3"], [True, True]),
        (["(2;%y%) = 8"], [True, False]),  # 3 of "cat" and 5 of "runs"
        (["(3;%x%) = 0"], [True, False]),  # an empty region
        (["(*;%x%) = 4"], [True, True]),  # without the bits of </S>
    ],
)
def test_items_of_a_suite_hold(tmp_path: Path, formulas: list[str], expected: list[bool]) -> None:
    path = write_lines(tmp_path / "cats.json", suite(*formulas))
    bilm = FakeBiLm({"cat": 3.0, "runs": 5.0})
    assert suite_items(bilm, path, WORDS) == expected


def test_suites_are_averaged(tmp_path: Path) -> None:
    write_lines(tmp_path / "cats.json", suite("(2;%x%) < (2;%y%)"))
    write_lines(tmp_path / "dogs.json", suite("(1;%x%) < 9"))
    results = syntax_suites(FakeBiLm(), tmp_path, WORDS)
    assert [(result.part, result.value, result.count) for result in results] == [
        *(("", 75.0, 4), ("cats", 50.0, 2), ("dogs", 100.0, 2))
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "cats.json: not a suite of SyntaxGym: KeyError"),
        ("{", "cats.json: Expecting property name"),
        (suite("(1;%x%)"), r"cats.json: '\(1;%x%\)' compares nothing"),
        (suite("(1;%x%) < 2", metric="mean"), "cats.json: metric 'mean'; only sum is known"),
    ],
)
def test_a_damaged_suite_is_reported(tmp_path: Path, content: str, message: str) -> None:
    path = write_lines(tmp_path / "cats.json", content)
    with pytest.raises(DataError, match=message):
        suite_items(FakeBiLm(), path, WORDS)


# Number agreement


def agreement_file(path: Path, *items: tuple[str, str, str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        table = csv.writer(file, delimiter="\t")
        table.writerow(["prefix", "form", "class", "type"])
        for prefix, right, wrong, kind in items:
            table.writerow([prefix, right, "correct", kind])
            table.writerow([prefix, wrong, "wrong", kind])
    return path


def test_agreement_compares_forms_after_their_prefix(tmp_path: Path) -> None:
    agreement_file(
        tmp_path / "english.tab",
        ('a "thing" to keep', "is", "are", "original"),
        ("things", "are", "is", "original"),
        ("it", "are", "were", "generated"),  # a tie
        ("it", "is", "bes", "generated"),
    )
    bilm = FakeBiLm({"is": 1.0, "are": 2.0, "were": 2.0, "bes": 9.0}, unknown="bes")
    results = number_agreement(bilm, tmp_path, WORDS)
    assert [(result.part, result.value, result.count) for result in results] == [
        *(("", 50.0, 4), ("generated", 50.0, 2), ("original", 50.0, 2))
    ]
    assert results[0].note == "both forms are known words in 3 items"


def test_rows_of_agreement_must_be_pairs(tmp_path: Path) -> None:
    path = agreement_file(tmp_path / "english.tab", ("it", "is", "are", "original"))
    path.write_text(path.read_text().replace("wrong", "correct"))
    with pytest.raises(DataError, match=r"english\.tab: rows are not pairs of a correct"):
        number_agreement(FakeBiLm(), tmp_path, WORDS)


# Words in context


@pytest.mark.parametrize(
    ("similarities", "is_same", "expected"),
    [
        ([0.1, 0.4, 0.6, 0.9], [0, 0, 1, 1], (1.0, 0.5)),
        ([0.9, 0.1, 0.4, 0.6], [1, 1, 0, 1], (0.75, -0.9)),  # all the same, before 0.75 at 0.5
        ([0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0], (0.75, 1.4)),
        ([0.5, 0.5, 0.7], [1, 0, 1], (2 / 3, -0.5)),  # equal values are on one side
    ],
)
def test_the_threshold_is_the_best_of_all(similarities, is_same, expected) -> None:
    found = best_threshold(np.array(similarities), np.array(is_same, dtype=bool))
    assert found == pytest.approx(expected)
    for threshold in np.linspace(-1, 2, 301):
        right = (np.array(similarities) >= threshold) == np.array(is_same, dtype=bool)
        assert right.mean() <= found[0] + 1e-12


VECTORS = {
    # Two layers; only the second tells one sense of "bank" from the other.
    "river": [(1.0, 0.0), (1.0, 0.0)],
    "stream": [(0.0, 1.0), (1.0, 0.1)],
    "money": [(1.0, 0.1), (0.0, 1.0)],
    "the": [(0.0, 1.0), (0.1, 1.0)],
    "bank": [(1.0, 1.0), (1.0, 1.0)],
    "": [(1.0, 1.0), (1.0, 1.0)],
}


def wic_part(folder: Path, part: str, *pairs: tuple[str, str, str]) -> None:
    """Write pairs of the words before "bank", with their gold labels."""
    lines = [f"bank\tN\t1-2\t{one} bank\tthe {other} bank" for one, other, _ in pairs]
    write_lines(folder / f"{part}.data.txt", *lines)
    write_lines(folder / f"{part}.gold.txt", *(gold for *_, gold in pairs))


def test_layer_and_threshold_are_those_of_the_training_pairs(tmp_path: Path) -> None:
    training = [("river", "stream", "T"), ("money", "the", "T"), ("river", "money", "F")]
    wic_part(tmp_path, "train", *training)
    # With a threshold of its own, or the first layer, all development pairs would be right.
    wic_part(tmp_path, "dev", ("river", "stream", "T"), ("river", "money", "T"))
    (result,) = words_in_context(FakeBiLm(vectors=VECTORS), tmp_path, WORDS)
    assert (result.value, result.count) == (50.0, 2)
    cosine = 1.01 / 1.01  # of (1, 0.1) and (0.1, 1) with themselves and the axes
    assert cosine == 1
    lowest = 1 / math.sqrt(1.01)
    assert f"layer 1, threshold {lowest / 2:.3f} (100.0 on training pairs)" in result.note
    assert result.note.endswith("majority 100.0")


# Reading times


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve linear equations by elimination."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(size):
            if row != column:
                factor = rows[row][column] / rows[column][column]
                rows[row] = [
                    one - factor * other for one, other in zip(rows[row], rows[column], strict=True)
                ]
    return [rows[place][size] / rows[place][place] for place in range(size)]


def brute_force_gain(words: ReadWords) -> tuple[float, int]:
    """Return the gain with normal equations, one word at a time."""
    places = [
        place
        for place in range(1, len(words.time) - 1)
        if words.sentence[place - 1] == words.sentence[place] == words.sentence[place + 1]
        and words.is_usable[place]
        and words.is_usable[place - 1]
    ]

    def inputs(place: int, has_surprisal: bool) -> list[float]:
        row = [1.0]
        for at in (place, place - 1):
            length, frequency = words.length[at], words.log_frequency[at]
            row += [length, frequency, length * frequency]
            row += [words.surprisal[at]] if has_surprisal else []
        return row

    gains = []
    for story in sorted(set(words.story)):
        likelihoods = []
        for has_surprisal in (True, False):
            fitted = [place for place in places if words.story[place] != story]
            rows = [inputs(place, has_surprisal) for place in fitted]
            size = len(rows[0])
            squares = [[sum(r[i] * r[j] for r in rows) for j in range(size)] for i in range(size)]
            products = [
                sum(r[i] * words.time[place] for r, place in zip(rows, fitted, strict=True))
                for i in range(size)
            ]
            weights = solved(squares, products)

            def residual(place: int, has_surprisal=has_surprisal, weights=weights) -> float:
                row = inputs(place, has_surprisal)
                return words.time[place] - sum(map(float.__mul__, row, weights))

            variance = sum(residual(place) ** 2 for place in fitted) / len(fitted)
            likelihoods.append(
                [
                    -math.log(2 * math.pi * variance) / 2 - residual(place) ** 2 / (2 * variance)
                    for place in places
                    if words.story[place] == story
                ]
            )
        gains += [one - other for one, other in zip(*likelihoods, strict=True)]
    return sum(gains) / len(gains), len(gains)


def stories(effect: float) -> ReadWords:
    """Three stories of sentences of eight words; surprisal adds `effect` ms per bit, late."""
    generator = random.Random(7)
    size = 3 * 5 * 8
    draw = [[generator.random() for _ in range(size)] for _ in range(4)]
    length, log_frequency = (np.array(draw[0]) * 9).round() + 1, 20 * np.array(draw[1])
    surprisal = 15 * np.array(draw[2])
    before = np.append(0, surprisal[:-1])
    return ReadWords(
        story=np.repeat(np.arange(3), size // 3),
        sentence=np.repeat(np.arange(15), 8),
        length=length,
        log_frequency=log_frequency,
        surprisal=surprisal,
        time=300 + 5 * length - log_frequency + effect * before + 9 * np.array(draw[3]),
        is_usable=np.arange(size) % 17 != 0,
    )


@pytest.mark.parametrize("effect", [2.0, 0.0])
def test_the_gain_equals_brute_force(effect: float) -> None:
    words = stories(effect)
    gain = reading_time_gain(words)
    expected, num_words = brute_force_gain(words)
    assert gain.per_word == pytest.approx(expected, abs=1e-9)
    assert gain.num_words == num_words < 15 * 6
    assert gain.low < gain.per_word < gain.high
    assert (gain.low > 0) == (effect > 0)


def test_the_interval_resamples_sentences() -> None:
    gains = np.repeat([1.0, 3.0], 50)
    from reading_times import _interval

    assert _interval(gains, np.repeat([0, 1], 50)) == (1.0, 3.0)  # two sentences, drawn twice
    low, high = _interval(gains, np.arange(100))
    assert 1.7 < low < 2 < high < 2.3


def test_one_story_is_too_few() -> None:
    words = stories(1.0)
    with pytest.raises(ValueError, match="at least two stories"):
        reading_time_gain(words._replace(story=np.zeros_like(words.story)))


def test_sentences_of_stories_end_at_punctuation() -> None:
    words = [("1", word) for word in ["Mr.", "Fox", '"slept."', "He", "woke", ".5", "U"]]
    assert sentence_numbers([*words, ("2", "The")]) == [0, 0, 0, 1, 1, 1, 1, 2]


STORY = ("1\tOne\t400", "2\tfox,\t410", "3\tred\t420", "4\tslept.\t430", "5\tIt\t440")
FREQUENCIES = ("1.1.word\t1\tOne\t100\tNA", "1.2.word\t1\tfox\t20\tNA", "1.4.word\t1\tslept\t9\tNA")


def story_files(folder: Path) -> tuple[Path, Path]:
    rows = [
        f"{word}\t{zone}\t1\t{time}" for zone, word, time in (line.split("\t") for line in STORY)
    ]
    return (
        write_lines(folder / "reading_times.tsv", "word\tzone\titem\tmeanItemRT", *rows),
        write_lines(folder / "freqs-1.tsv", *FREQUENCIES),
    )


def test_the_surprisal_of_a_word_is_the_sum_over_its_tokens(tmp_path: Path) -> None:
    bilm = FakeBiLm({"fox": 7.0, ",": 0.5, "slept": 4.0, ".": 2.0}, unknown="fox")
    words = read_words(bilm, *story_files(tmp_path), SpacyTokenizer())
    assert words.surprisal.tolist() == [1.0, 7.5, 1.0, 6.0, 1.0]
    assert words.length.tolist() == [3, 3, 3, 5, 2]  # letters
    assert words.sentence.tolist() == [0, 0, 0, 0, 1]
    assert words.log_frequency[[0, 1, 3]] == pytest.approx(np.log([100, 20, 9]))
    assert words.is_usable.tolist() == [True, False, False, True, False]  # or no frequency
    assert words.time.tolist() == [400, 410, 420, 430, 440]


def test_a_word_without_tokens_is_left_out(tmp_path: Path) -> None:
    class WithoutCommas(Tokenizer):
        def words(self, sentence: str) -> list[str]:
            return [] if "," in sentence else sentence.split()

    words = read_words(FakeBiLm(), *story_files(tmp_path), WithoutCommas())
    assert words.surprisal.tolist() == [1.0, 0.0, 1.0, 1.0, 1.0]
    assert words.is_usable.tolist() == [True, False, False, True, False]


# All together


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    write_lines(folder / "blimp/one.jsonl", pair("it is", "it are", "agreement"))
    write_lines(folder / "syntaxgym/cats.json", suite("(2;%x%) < (2;%y%)"))
    agreement_file(folder / "agreement/english.tab", ("it", "is", "are", "original"))
    return folder


def test_missing_exams_are_skipped_with_a_line(data: Path, capsys) -> None:
    results = take(FakeBiLm({"is": 0.5}), data, WORDS)
    assert {result.exam for result in results} == {"BLiMP", "SyntaxGym", "agreement"}
    assert capsys.readouterr().err.splitlines() == [
        f"skipped: no {data / 'wic/train.data.txt'}",
        f"skipped: no {data / 'naturalstories/reading_times.tsv'}",
    ]


def test_a_folder_without_exams_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no files of exams"):
        take(FakeBiLm(), tmp_path, WORDS)


def test_the_table_has_whole_exams_and_their_parts() -> None:
    results = [
        Result("BLiMP", "", "pairs", 70.74, 6700, None, "a note"),
        Result("BLiMP", "binding", "pairs", 60, 700),
        Result("Natural Stories", "", "gain", 0.01234, 99, (0.01, 0.02)),
    ]
    assert card_table(results).splitlines() == [
        "| exam | measure | items | score | note |",
        "|---|---|---|---|---|",
        "| BLiMP | pairs | 6,700 | 70.7 | a note |",
        "| Natural Stories | gain | 99 | 0.0123 (0.0100 to 0.0200) |  |",
        "",
        "| exam | part | items | score |",
        "|---|---|---|---|",
        "| BLiMP | binding | 700 | 60.0 |",
    ]


def test_a_bilm_takes_the_exams(data: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    numpy_bilm = NumpyBiLm.random()
    folder = numpy_bilm.save(tmp_path / "bilm")
    arguments = ["exams.py", str(folder), "--data", str(data), "--tokenizer", "whitespace"]
    monkeypatch.setattr("sys.argv", [*arguments, "--table", "json", "--threads", "1"])
    assert main() == 2
    assert "error: " in capsys.readouterr().err
    NumpySoftmax.random(numpy_bilm, ["it", "is", "are", "cat"]).save(folder)
    assert main() == 0
    results = json.loads(capsys.readouterr().out)
    assert [(each["exam"], each["part"], each["count"]) for each in results] == [
        *(("BLiMP", "", 1), ("BLiMP", "", 1), ("BLiMP", "agreement", 1)),
        *(("SyntaxGym", "", 2), ("SyntaxGym", "cats", 2)),
        *(("agreement", "", 1), ("agreement", "original", 1)),
    ]
