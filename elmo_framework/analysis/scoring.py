"""The jobs behind `elmo score`: surprisals of text, of minimal pairs and of regions, as rows."""

from __future__ import annotations

import csv
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from itertools import chain, groupby, islice, pairwise
from math import isnan, nan
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO, TypeAlias

from elmo_framework.api.encoder import PretrainedEncoder
from elmo_framework.console import ProgressBar, plural
from elmo_framework.data.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_framework.data.formats.records import Record, read_records
from elmo_framework.data.formats.text_files import error_context
from elmo_framework.data.sentences import chunks
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.embedding.corpus import SentenceFiles
from elmo_framework.errors import DataError, shown
from elmo_framework.layers.surprisal import Bits, SentenceScore
from elmo_framework.metrics.ratios import ratio

_log = logging.getLogger(__name__)

Row: TypeAlias = dict[str, Any]
"""The values of a row by the names of the columns; None for a missing one."""

Sums: TypeAlias = MutableMapping[str, float]
"""Sums by name, 0 by default, as of a `defaultdict`."""

GOOD, BAD, SENTENCE = "sentence_good", "sentence_bad", "sentence"
"""Columns of the input: of minimal pairs, as in BLiMP, and of sentences with regions."""

TIE = 1e-4
"""Sums of bits that differ by no more are equal; they are not more accurate than this."""

_DIRECTIONS = ("forward", "backward", "both")
_CHUNK_WORDS = 1 << 16
_PLACES = 6
_SPAN = re.compile(r"(?:([^\s=]+)=)?(\d+)(?:-(\d+))?")


class Item(NamedTuple):
    """Sentences that are scored for the same rows: a sentence, a document or a pair.

    Attributes:
        sentences: the words of each.
        rows: makes rows of their scores.
    """

    sentences: Sequence[Sequence[str]]
    rows: Callable[[Sequence[SentenceScore]], Iterable[Row]]


def score_items(
    encoder: PretrainedEncoder,
    items: Iterable[Item],
    *,
    state: Literal["reset", "document"] = "reset",
) -> Iterator[Row]:
    """Yield the rows of items in their order; few items are in memory at a time.

    Args:
        encoder: scores the sentences.
        items: what is scored.
        state: whether each sentence starts from zeros, or continues the one before in its item.
    """
    for chunk in chunks(items, _num_words, max_size=_CHUNK_WORDS):
        if state == "document":
            scored = encoder.score_documents([item.sentences for item in chunk])
        else:
            scores = iter(encoder.score([words for item in chunk for words in item.sentences]))
            scored = [list(islice(scores, len(item.sentences))) for item in chunk]
        for item, of_item in zip(chunk, scored, strict=True):
            yield from item.rows(of_item)


def write_rows(
    rows: Iterable[Row], file: TextIO, file_format: Literal["tsv", "jsonl"], progress: ProgressBar
) -> None:
    """Write a table with tabs, quoted as in CSV, or JSON lines.

    The columns of a table are those of the first row; a warning names those that this leaves out.

    Raises:
        DataError: there are no rows.
    """
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        raise DataError("nothing to score: the input has no words, or no regions")
    table = csv.DictWriter(
        file, list(first), delimiter="\t", lineterminator="\n", extrasaction="ignore"
    )
    if file_format == "tsv":
        table.writeheader()
    previous: object = None
    left_out = set[str]()
    for row in chain([first], rows):
        if file_format == "tsv":
            table.writerow({name: _cell(value) for name, value in row.items()})
            left_out |= row.keys() - first.keys()
        else:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        place = row["file"], row["line"]
        progress.advance(place != previous)
        previous = place
    if left_out:
        names = ", ".join(map(repr, sorted(left_out)))
        _log.warning("left out, as the first row lacks them: %s; --format jsonl keeps them", names)


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


class _Sentence(NamedTuple):
    """A sentence of text, with the number of its document from 1."""

    file: str
    line: int
    document: int
    words: list[str]


def text_items(
    corpus: SentenceFiles,
    *,
    state: Literal["reset", "document"],
    by: Literal["word", "sentence"],
    totals: Sums,
) -> Iterator[Item]:
    """Yield the sentences or the documents of text.

    Args:
        corpus: one sentence per line; a blank line, or the end of a file, ends a document.
        state: whether a sentence is an item, or a document.
        by: the rows: one for each word and boundary, or one for each sentence.
        totals: receives the sums over everything that is scored; see `show_totals`.
    """
    make = partial(_text_rows, by=by, totals=totals)
    if state == "reset":
        for sentence in _sentences(corpus):
            yield Item([sentence.words], partial(make, [sentence]))
        return
    for _, group in groupby(_sentences(corpus), attrgetter("document")):
        document = list(group)
        yield Item([sentence.words for sentence in document], partial(make, document))


def show_totals(totals: Mapping[str, float]) -> str:
    """Format the sums of `text_items`: bits per prediction, and perplexities."""
    ends = "included" if totals["ends"] else "not predicted"
    numbers = {name: totals[f"{name}_predictions"] for name in Bits._fields}
    means = Bits(
        **{name: totals[name] / number if number else nan for name, number in numbers.items()}
    )
    return (
        f"{plural(int(totals['words']), 'word')} in "
        f"{plural(int(totals['sentences']), 'sentence')}, "
        f"{ratio(totals['unknown'], totals['words']):.1%} unknown\n"
        f"bits per prediction, sentence ends {ends}: "
        + ", ".join(
            f"{direction} {bits:.3f} (perplexity {2**bits:.2f})"
            for direction, bits in _by_direction(means).items()
            if not isnan(bits)
        )
    )


def pair_items(paths: Sequence[Path], tokenizer: Tokenizer, *, correct: Sums) -> Iterator[Item]:
    """Yield minimal pairs; a row has the bits of both sentences, and which are in order.

    Args:
        paths: tables or JSON lines with `sentence_good` and `sentence_bad`.
        tokenizer: of the sentences.
        correct: receives the number of pairs, and of those in order; see `show_pairs`.

    Raises:
        DataError: a file cannot be read.
    """
    for record in chain.from_iterable(map(read_records, paths)):
        sentences = [record.words(name, tokenizer) for name in (GOOD, BAD)]
        yield Item(sentences, partial(_pair_rows, record, correct))


def show_pairs(correct: Mapping[str, float]) -> str:
    """Format the rates of pairs whose good sentence has fewer bits."""
    pairs = correct["pairs"]
    names = [name for name in _DIRECTIONS if name in correct]
    rates = (f"{name} {ratio(correct[name], pairs):.2%}" for name in names)
    return f"the good sentence of {plural(int(pairs), 'pair')} is more probable: {', '.join(rates)}"


def is_less(bits: float, others: float) -> bool:
    """Return whether a sum of bits is clearly smaller than another."""
    return others - bits > TIE


def region_items(paths: Sequence[Path], tokenizer: Tokenizer, *, column: str) -> Iterator[Item]:
    """Yield sentences with regions; a row has the bits of the words of a region.

    Args:
        paths: tables or JSON lines.
        tokenizer: of the sentences; where the regions are texts, of each region.
        column: spans of words (`1-3 critical=4 5-6`) where the records have a `sentence`;
            otherwise the texts of the regions, as a list or with `|` between them.

    Raises:
        DataError: a file cannot be read, or a span is not in its sentence.
    """
    for record in chain.from_iterable(map(read_records, paths)):
        with record.located():
            words, regions = _regions(record, column, tokenizer)
        yield Item([words], partial(_region_rows, record, column, words, regions))


class _Region(NamedTuple):
    """Words of a sentence, from `start` up to `end`, exclusive."""

    name: str
    start: int
    end: int


def _num_words(item: Item) -> int:
    return sum(map(len, item.sentences))


def _sentences(corpus: SentenceFiles) -> Iterator[_Sentence]:
    document, is_open = 0, False
    for line in corpus.lines():
        with error_context(line.path, line.number):
            words = corpus.words(line)
        is_open = is_open and bool(words) and line.number > 1
        if not words:
            continue
        document += not is_open
        is_open = True
        yield _Sentence(str(line.path), line.number, document, words)


def _text_rows(
    sentences: Sequence[_Sentence],
    scores: Sequence[SentenceScore],
    *,
    by: Literal["word", "sentence"],
    totals: Sums,
) -> Iterator[Row]:
    for (path, line, document, words), score in zip(sentences, scores, strict=True):
        place = {"file": path, "line": line, "document": document}
        bits, num_unknown = score.total, int(score.is_unknown.sum())
        counts = {"words": len(words), "unknown": num_unknown}
        for name, value in {**counts, "sentences": 1, "ends": not isnan(score.end)}.items():
            totals[name] += value
        for name, of_direction, number in zip(
            Bits._fields, bits, score.num_predictions, strict=True
        ):
            totals[f"{name}_predictions"] += number
            totals[name] += of_direction if number else 0
        if by == "sentence":
            yield place | counts | _rounded(_by_direction(bits))
            continue
        first = int(isnan(score.begin))  # <S> has position 0, the first word 1
        for position, (word, kind, values) in enumerate(_predictions(words, score), start=first):
            yield place | {"position": position, "word": word, "kind": kind} | _rounded(values)


def _predictions(
    words: Sequence[str], score: SentenceScore
) -> Iterator[tuple[str, str, dict[str, float | None]]]:
    """Yield each word and predicted boundary, its kind, and its bits."""
    missing = dict.fromkeys(_DIRECTIONS)
    if not isnan(score.begin):
        yield BEGIN_SENTENCE, "boundary", {**missing, "backward": score.begin}
    for index, word in enumerate(words):
        kind = "unknown" if score.is_unknown[index] else "known"
        yield word, kind, {**_by_direction(score.words(index, index + 1))}
    if not isnan(score.end):
        yield END_SENTENCE, "boundary", {**missing, "forward": score.end}


def _pair_rows(record: Record, correct: Sums, scores: Sequence[SentenceScore]) -> Iterator[Row]:
    good, bad = scores
    row: Row = {
        "unknown_good": int(good.is_unknown.sum()),
        "unknown_bad": int(bad.is_unknown.sum()),
    }
    bits = _by_direction(good.total), _by_direction(bad.total)
    correct["pairs"] += 1
    for direction in _DIRECTIONS:
        of_good, of_bad = (each[direction] for each in bits)
        values = _rounded({f"{direction}_good": of_good, f"{direction}_bad": of_bad})
        row |= {**values, f"{direction}_correct": None}
        if not isnan(of_good):
            is_correct = is_less(of_good, of_bad)
            row[f"{direction}_correct"] = int(is_correct)
            correct[direction] += is_correct
    yield _with_columns(record, (GOOD, BAD), row)


def _region_rows(
    record: Record,
    column: str,
    words: Sequence[str],
    regions: Sequence[_Region],
    scores: Sequence[SentenceScore],
) -> Iterator[Row]:
    (score,) = scores
    missing = dict.fromkeys(_DIRECTIONS)
    for name, start, end in regions:
        has_words = start < end
        row = {
            "region": name,
            "text": " ".join(words[start:end]),
            "words": end - start,
            "unknown": int(score.is_unknown[start:end].sum()),
            **_rounded(_by_direction(score.words(start, end)) if has_words else missing),
        }
        yield _with_columns(record, (SENTENCE, column), row)


def _regions(
    record: Record, column: str, tokenizer: Tokenizer
) -> tuple[Sequence[str], list[_Region]]:
    """Return the words of a sentence and its regions."""
    if SENTENCE in record.values and column != SENTENCE:
        words = record.words(SENTENCE, tokenizer)
        return words, [_span(text, len(words)) for text in record.text(column).split()]
    texts = record.value(column)
    texts = texts.split("|") if isinstance(texts, str) else texts
    if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        raise DataError(f"{column!r} is {shown(texts)}; expected texts of regions")
    parts = [tokenizer.words(text) for text in texts]
    words = tuple(chain.from_iterable(parts))
    if not words:
        raise DataError(f"{column!r} has no words")
    ends = [sum(map(len, parts[:number])) for number in range(len(parts) + 1)]
    bounds = enumerate(pairwise(ends), start=1)
    return words, [_Region(str(number), *region) for number, region in bounds]


def _span(text: str, num_words: int) -> _Region:
    """Read `4`, `1-3` or `critical=4`: words from 1, both ends included."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise DataError(f"{text!r} is not a region; write words from 1, as in 4, 1-3 or name=1-3")
    first = int(match[2])
    last = int(match[3] or first)
    if not 1 <= first <= last <= num_words:
        raise DataError(f"region {text!r} is not in the sentence of {plural(num_words, 'word')}")
    return _Region(match[1] or text, first - 1, last)


def _with_columns(record: Record, own: Iterable[str], row: Row) -> Row:
    """Return a row after the place and the other columns of its record.

    Raises:
        DataError: a column has the name of one of the row.
    """
    place = {"file": str(record.path), "line": record.line}
    others = {name: value for name, value in record.values.items() if name not in own}
    if taken := sorted(others.keys() & (place | row).keys()):
        raise record.error(f"rename the column {taken[0]!r}, which is a column of the output")
    return place | others | row


def _by_direction(bits: Bits) -> dict[str, float]:
    return {"forward": bits.forward, "backward": bits.backward, "both": bits.both}


def _rounded(values: Mapping[str, float | None]) -> Row:
    return {
        name: None if bits is None or isnan(bits) else round(bits, _PLACES)
        for name, bits in values.items()
    }
