"""Exams for a biLM of English, from files that you have: what it knows of syntax and meaning.

    python benchmarks/exams.py mini --data exams

An exam whose files are missing is skipped. Each is in a folder of its own:

    blimp           PARADIGM.jsonl: minimal pairs of BLiMP (Warstadt et al. 2020)
    syntaxgym       SUITE.json: suites of SyntaxGym (Hu et al. 2020)
    agreement       english.tab: number agreement (Gulordava et al. 2018)
    wic             {train,dev}.{data,gold}.txt: the same sense of a word or not (Pilehvar and
                    Camacho-Collados 2019)
    naturalstories  reading_times.tsv, freqs-1.tsv: the first is `processed_wordinfo` by word
                    (Futrell et al. 2018)

Sentences are scored from zeros. A tie is an error. Words that the softmax does not know have the
surprisal of the class <UNK>.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Protocol, final

import numpy as np
from measuring import add_threads_argument, say
from numpy.typing import NDArray
from reading_times import ReadWords, reading_time_gain
from syntax_formulas import parse_formula

from elmo_framework import components, console, load_bilm
from elmo_framework.analysis.scoring import BAD, GOOD, is_less
from elmo_framework.data.formats.records import read_records
from elmo_framework.data.formats.text_files import error_context
from elmo_framework.data.tokenizer import Tokenizer, build_tokenizer
from elmo_framework.errors import DataError, ElmoFrameworkError
from elmo_framework.layers import SentenceScore

_SENTENCE_END = re.compile(r"[.!?][\"')\]]*$")
_TITLES = ("Mr.", "Mrs.", "Ms.", "Dr.", "St.")
_PUBLISHED = ("ngram5", "ngram5_bllip_lg", "lstm", "lstm_bllip_lg", "gpt2")
"""The columns of `published.tsv`, if it is next to the files, that a table shows."""


class BiLm(Protocol):
    """What an exam needs of `load_bilm(...)`."""

    def score(self, sentences: Sequence[Sequence[str]]) -> Sequence[SentenceScore]: ...

    def embed_iter(self, sentences: Iterable[Sequence[str]]) -> Iterator[NDArray[np.float32]]: ...


@final
@dataclass(frozen=True)
class Result:
    """The result of an exam, or of a part of it.

    Attributes:
        exam: its name.
        part: a phenomenon, a suite or a kind of item; empty for the whole.
        measure: what is counted.
        value: a percentage; of reading times, nats per word.
        count: the number of items.
        interval: of the value, if there is one.
        note: what a reader must know.
    """

    exam: str
    part: str
    measure: str
    value: float
    count: int
    interval: tuple[float, float] | None = None
    note: str = ""


def main() -> int:
    """Take the exams and print a table."""
    arguments = _arguments()
    components.load()
    try:
        import torch

        torch.set_num_threads(arguments.threads)
        bilm = load_bilm(arguments.bilm, device="cpu")
        bilm.load_softmax()
        results = take(bilm, arguments.data, build_tokenizer(arguments.tokenizer))
    except ElmoFrameworkError as error:
        console.info(f"error: {error}")
        return 2
    as_json = [asdict(result) for result in results]
    is_json = arguments.table == "json"
    say(json.dumps(as_json, indent=2) if is_json else card_table(results))
    return 0


def take(bilm: BiLm, data: Path, tokenizer: Tokenizer) -> list[Result]:
    """Take all exams whose files are in a folder; report those that are skipped.

    Raises:
        DataError: a file is damaged, or there are none.
    """
    results = list[Result]()
    for folder, exam in _EXAMS.items():
        try:
            results += exam(bilm, data / folder, tokenizer)
        except (IndexError, KeyError, ValueError) as error:  # of statistics too
            raise DataError(
                f"a file of this exam is damaged: {error}", path=data / folder
            ) from error
        except _MissingFilesError as missing:
            console.info(f"skipped: {missing}")
    if not results:
        raise DataError("no files of exams", path=data)
    return results


def card_table(results: Sequence[Result]) -> str:
    """Return two tables of Markdown for a model card: whole exams, and their parts."""
    whole = [
        _row(each.exam, each.measure, f"{each.count:,}", _shown(each), each.note)
        for each in results
        if not each.part
    ]
    parts = [
        _row(each.exam, each.part, f"{each.count:,}", _shown(each)) for each in results if each.part
    ]
    lines = ["| exam | measure | items | score | note |", "|---|---|---|---|---|", *whole]
    if parts:
        lines += ["", "| exam | part | items | score |", "|---|---|---|---|", *parts]
    return "\n".join(lines)


def minimal_pairs(bilm: BiLm, folder: Path, tokenizer: Tokenizer) -> list[Result]:
    """BLiMP: the rate of pairs whose good sentence is more probable, by phenomenon."""
    rates, rates_both = dict[str, float](), dict[str, float]()
    by_term, num_pairs = defaultdict[str, list[bool]](list), 0
    for path in _files(folder, "*.jsonl"):
        records = list(read_records(path))
        sentences = [record.words(name, tokenizer) for record in records for name in (GOOD, BAD)]
        totals = [score.total for score in bilm.score(sentences)]
        pairs = list(zip(totals[::2], totals[1::2], strict=True))
        is_right = [is_less(good.forward, bad.forward) for good, bad in pairs]
        rates[path.stem] = mean(is_right)
        rates_both[path.stem] = mean(is_less(good.both, bad.both) for good, bad in pairs)
        num_pairs += len(pairs)
        for record, right in zip(records, is_right, strict=True):
            by_term[record.text("linguistics_term")].append(right)
    note = _published(folder, rates)
    measure = "pairs, mean over paradigms"
    return [
        Result(
            "BLiMP", "", f"{measure}, forward", 100 * mean(rates.values()), num_pairs, None, note
        ),
        Result("BLiMP", "", f"{measure}, both", 100 * mean(rates_both.values()), num_pairs),
        *(
            Result("BLiMP", term, "pairs, forward", 100 * mean(rights), len(rights))
            for term, rights in sorted(by_term.items())
        ),
    ]


def syntax_suites(bilm: BiLm, folder: Path, tokenizer: Tokenizer) -> list[Result]:
    """SyntaxGym: the rate of items of which all predictions hold, by suite.

    It is 0 for every model in `fgd_hierarchy`: in its region 6, one prediction wants less surprisal
    and the other equal surprisal. Its published rates, up to 0.71, cannot be of both.
    """
    rates, counts = dict[str, float](), dict[str, int]()
    for path in _files(folder, "*.json"):
        is_right = suite_items(bilm, path, tokenizer)
        rates[path.stem], counts[path.stem] = mean(is_right), len(is_right)
    measure = "items, mean over suites, forward"
    total, note = sum(counts.values()), _published(folder, rates)
    return [
        Result("SyntaxGym", "", measure, 100 * mean(rates.values()), total, None, note),
        *(
            Result("SyntaxGym", name, "items, forward", 100 * rate, counts[name])
            for name, rate in rates.items()
        ),
    ]


def suite_items(bilm: BiLm, path: Path, tokenizer: Tokenizer) -> list[bool]:
    """Return for each item of a suite whether all of its predictions hold.

    Raises:
        DataError: the file is not a suite.
    """
    with error_context(path, None):
        try:
            suite = json.loads(path.read_text(encoding="utf-8"))
            if suite["meta"]["metric"] != "sum":
                raise ValueError(f"metric {suite['meta']['metric']!r}; only sum is known")
            formulas = [parse_formula(each["formula"]) for each in suite["predictions"]]
            conditions = [
                (
                    number,
                    condition["condition_name"],
                    {
                        region["region_number"]: tokenizer.words(region["content"])
                        for region in condition["regions"]
                    },
                )
                for number, item in enumerate(suite["items"])
                for condition in item["conditions"]
            ]
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a suite of SyntaxGym: {error!r}") from error
        scores = bilm.score(
            [[word for words in regions.values() for word in words] for *_, regions in conditions]
        )
        bits = defaultdict[int, dict[tuple[str, int], float]](dict)
        for (item, name, regions), score in zip(conditions, scores, strict=True):
            start = 0
            for number, words in regions.items():
                bits[item][name, number] = score.words(start, start + len(words)).forward
                start += len(words)
        return [all(holds(of_item) for holds in formulas) for of_item in bits.values()]


def number_agreement(bilm: BiLm, folder: Path, tokenizer: Tokenizer) -> list[Result]:
    """Return the rates of items whose right form is more probable after the prefix."""
    (path,) = _files(folder, "english.tab")
    rows = _table(path, quoting=csv.QUOTE_MINIMAL)
    if not rows or len(rows) % 2:
        raise DataError(f"{len(rows)} rows are not pairs", path=path)
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    for right, wrong in pairs:
        if (right["class"], wrong["class"], right["prefix"]) != (
            "correct",
            "wrong",
            wrong["prefix"],
        ):
            raise DataError("rows are not pairs of a correct and a wrong form", path=path)
    scores = bilm.score([[*row["prefix"].split(), row["form"]] for pair in pairs for row in pair])
    is_right, is_known = defaultdict[str, list[bool]](list), 0
    for (row, _), good, bad in zip(pairs, scores[::2], scores[1::2], strict=True):
        right = is_less(float(good.forward[-1]), float(bad.forward[-1]))
        is_known += not bool(good.is_unknown[-1] or bad.is_unknown[-1])
        for kind in ("", row["type"]):
            is_right[kind].append(right)
    note = f"both forms are known words in {is_known} items"
    if "lstm" in rows[0]:
        published = mean(float(one["lstm"]) > float(other["lstm"]) for one, other in pairs)
        note += f"; published LSTM {100 * published:.1f}"
    return [
        Result(
            *("agreement", kind, "items, forward", 100 * mean(rights), len(rights)),
            note="" if kind else note,
        )
        for kind, rights in sorted(is_right.items())
    ]


def words_in_context(bilm: BiLm, folder: Path, tokenizer: Tokenizer) -> list[Result]:
    """WiC: whether the cosine of a word in two sentences is above a threshold.

    The layer and the threshold are those with the highest accuracy on the training pairs.
    """
    similarities, golds = {}, {}
    for part in ("train", "dev"):
        data, gold = (_files(folder, f"{part}.{name}.txt")[0] for name in ("data", "gold"))
        golds[part] = np.array([line == "T" for line in gold.read_text("utf-8").split()])
        similarities[part] = _cosines(bilm, data)
        if similarities[part].shape[1] != len(golds[part]):
            raise DataError(f"not as many lines as {data.name}", path=gold)
    fits = [best_threshold(layer, golds["train"]) for layer in similarities["train"]]
    layer = int(np.argmax([accuracy for accuracy, _ in fits]))
    accuracy, threshold = fits[layer]
    is_right = (similarities["dev"][layer] >= threshold) == golds["dev"]
    majority = golds["dev"].mean() if golds["train"].mean() >= 0.5 else 1 - golds["dev"].mean()
    note = (
        f"layer {layer}, threshold {threshold:.3f} ({100 * accuracy:.1f} on training pairs); "
        f"majority {100 * majority:.1f}"
    )
    measure = "pairs, cosine of the word"
    return [Result("WiC", "", measure, 100 * float(is_right.mean()), len(is_right), None, note)]


def best_threshold(
    similarities: NDArray[np.float64], is_same: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return the highest accuracy of `similarity >= threshold`, and the lowest such threshold.

    A threshold is midway between two neighboring similarities.
    """
    values, places = np.unique(similarities, return_inverse=True)
    same = np.bincount(places, weights=is_same, minlength=len(values))
    other = np.bincount(places, weights=~is_same, minlength=len(values))
    # Of threshold k, the values below k are called different, and the others the same.
    right = np.append(0, np.cumsum(other)) + np.append(np.cumsum(same[::-1])[::-1], 0)
    best = int(np.argmax(right))
    between = np.concatenate([[values[0] - 1], (values[1:] + values[:-1]) / 2, [values[-1] + 1]])
    return float(right[best] / len(is_same)), float(between[best])


def reading_times(bilm: BiLm, folder: Path, tokenizer: Tokenizer) -> list[Result]:
    """Natural Stories: the gain in held-out log-likelihood by surprisal; see `reading_times`."""
    (times,), (frequencies,) = (
        _files(folder, name) for name in ("reading_times.tsv", "freqs-1.tsv")
    )
    gain = reading_time_gain(read_words(bilm, times, frequencies, tokenizer))
    return [
        Result(
            *("Natural Stories", "", "gain in nats per word, forward", gain.per_word),
            gain.num_words,
            (gain.low, gain.high),
            "on held-out stories, over length, frequency and their product; 95 % interval",
        )
    ]


def read_words(bilm: BiLm, times: Path, frequencies: Path, tokenizer: Tokenizer) -> ReadWords:
    """Read stories, and add the surprisal of each word: the sum over its tokens."""
    rows = _table(times)
    lines = (line.split("\t") for line in frequencies.read_text("utf-8").splitlines())
    counts = {place: float(count) for place, _, _, count, *_ in lines if count != "NA"}
    sentence = sentence_numbers([(row["item"], row["word"]) for row in rows])
    tokens = [tokenizer.words(row["word"]) for row in rows]
    sentences: list[list[str]] = [[] for _ in range(sentence[-1] + 1)]
    spans = list[tuple[int, int]]()
    for number, words in zip(sentence, tokens, strict=True):
        start = len(sentences[number])
        sentences[number] += words
        spans.append((start, start + len(words)))
    scores = bilm.score(sentences)
    count = np.array([counts.get(f"{row['item']}.{row['zone']}.word", 0.0) for row in rows])
    is_known = [
        end > start and not scores[number].is_unknown[start:end].any()
        for number, (start, end) in zip(sentence, spans, strict=True)
    ]
    return ReadWords(
        story=np.array([int(row["item"]) for row in rows]),
        sentence=np.array(sentence),
        length=np.array([float(sum(map(str.isalnum, row["word"]))) for row in rows]),
        log_frequency=np.log(np.maximum(count, 1)),
        surprisal=np.array(
            [
                scores[number].words(*span).forward
                for number, span in zip(sentence, spans, strict=True)
            ]
        ),
        time=np.array([float(row["meanItemRT"]) for row in rows]),
        is_usable=np.array(is_known) & (count > 0),
    )


def sentence_numbers(words: Sequence[tuple[str, str]]) -> list[int]:
    """Number the sentences of running text, words with their story.

    A story ends a sentence, and so does `.`, `!` or `?`, also before closing quotation marks,
    except after a title.
    """
    numbers, number = list[int](), 0
    for place, (story, word) in enumerate(words):
        numbers.append(number)
        is_last = place + 1 < len(words) and words[place + 1][0] != story
        number += is_last or (word not in _TITLES and bool(_SENTENCE_END.search(word)))
    return numbers


class _MissingFilesError(Exception):
    """The files of an exam are not there."""


_EXAMS: Mapping[str, Callable[[BiLm, Path, Tokenizer], list[Result]]] = {
    "blimp": minimal_pairs,
    "syntaxgym": syntax_suites,
    "agreement": number_agreement,
    "wic": words_in_context,
    "naturalstories": reading_times,
}


def _files(folder: Path, pattern: str) -> list[Path]:
    files = sorted(folder.glob(pattern))
    if not files:
        raise _MissingFilesError(f"no {folder / pattern}")
    return files


def _table(path: Path, *, quoting: Any = csv.QUOTE_NONE) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=quoting))


def _published(folder: Path, rates: Mapping[str, float]) -> str:
    """Return the means of `published.tsv` over the paradigms or suites that were measured."""
    path = folder / "published.tsv"
    if not path.is_file():
        return ""
    rows = [row for row in _table(path) if next(iter(row.values())) in rates]
    means = (
        f"{name} {100 * mean(float(row[name]) for row in rows):.1f}"
        for name in _PUBLISHED
        if rows and name in rows[0]
    )
    return f"published: {', '.join(means)}"


def _cosines(bilm: BiLm, path: Path) -> NDArray[np.float64]:
    """Return the cosine of a word in two sentences: "layers pairs"."""
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    places = [int(place) for row in rows for place in row[2].split("-")]
    sentences = (text.split() for row in rows for text in row[3:5])
    layers = bilm.embed_iter(sentences)
    vectors = np.stack([each[:, at] for each, at in zip(layers, places, strict=True)], axis=1)
    vectors = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    return (vectors[:, ::2] * vectors[:, 1::2]).sum(axis=2)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(result: Result) -> str:
    digits = 1 if result.interval is None else 4
    shown = f"{result.value:.{digits}f}"
    if result.interval is not None:
        shown += f" ({result.interval[0]:.{digits}f} to {result.interval[1]:.{digits}f})"
    return shown


def _arguments() -> Namespace:
    parser = ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("bilm", metavar="BILM", help="the folder or the name of a biLM")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the exams")
    parser.add_argument("--table", choices=["card", "json"], default="card")
    parser.add_argument(
        "--tokenizer", default="spacy", help="of raw sentences, as those of the biLM (spacy)"
    )
    add_threads_argument(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
