"""Report the statistics of a prepared corpus, with warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elmo_framework import console
from elmo_framework.console import plural
from elmo_framework.corpus.manifest import Manifest
from elmo_framework.corpus.parts import PARTS
from elmo_framework.corpus.tables import LONGEST_WORD

_FEW_WORDS = 1_000_000
_MANY_UNKNOWN = 0.1


def report(output: Path, manifest: Manifest) -> None:
    """Show the counts of a corpus, and warnings, on standard error."""
    counts = manifest.counts
    console.info(f"written: {output}")
    for part in PARTS:
        number = counts["parts"][part]
        sentences, words = plural(number["sentences"], "sentence"), plural(number["words"], "word")
        ratio = _unknown_ratio(number)
        console.info(f"  {part}: {sentences}, {words}, {ratio:.2%} of them not in the vocabulary")
    console.info(
        f"  {counts['distinct_words']:,} distinct words, {counts['vocabulary']:,} in the vocabulary"
    )
    for warning in _warnings(manifest):
        console.info(f"warning: {warning}")


def _warnings(manifest: Manifest) -> Iterator[str]:
    counts = manifest.counts
    training, held_out = (counts["parts"][part] for part in PARTS)
    if training["words"] < _FEW_WORDS:
        yield (
            f"{plural(training['words'], 'word')}: enough to try the commands, too few for a "
            "useful biLM: small ones need about 10 million, the published ones had 800 million"
        )
    if not held_out["sentences"]:
        yield (
            "no held-out sentences: train without early stopping by perplexity, with "
            "`-o validation_data_path=null`, or pass a number of sentences to --held-out"
        )
    if _unknown_ratio(training) > _MANY_UNKNOWN:
        yield (
            f"{_unknown_ratio(training):.0%} of the words are not in the vocabulary, and will be "
            "learned as <UNK>: does it have the same language, case and tokenization?"
        )
    yield from _strange_words(counts)


def _strange_words(counts: Mapping[str, Any]) -> Iterator[str]:
    if (cut := counts["cut_words"])["distinct"]:
        words, times = plural(cut["distinct"], "word"), plural(cut["all"], "time")
        yield (
            f"longer than {LONGEST_WORD} bytes: {words} ({times} "
            "in the training part): a biLM sees only their beginning"
        )
    if number := counts["boundary_words"]:
        yield (
            f"the text contains <S> or </S> {plural(number, 'time')}: training adds these sentence "
            "boundaries itself; remove them"
        )


def _unknown_ratio(part: Mapping[str, int]) -> float:
    return part["unknown_words"] / max(1, part["words"])
