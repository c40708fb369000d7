"""What is said of a corpus when it is there."""

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
    """Say what a corpus holds, what it cannot do, and how it is trained on."""
    counts = manifest.counts
    console.info(f"written: {output}")
    for part in PARTS:
        held = counts["parts"][part]
        console.info(
            f"  {part}: {plural(held['sentences'], 'sentence')}, {plural(held['words'], 'word')}, "
            f"{_share(held):.2%} of them not in the vocabulary"
        )
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
            f"{plural(training['words'], 'word')}: enough to try the commands, and too few for a "
            "biLM that helps: small ones read some ten million, the published ones 800 million"
        )
    if not held_out["sentences"]:
        yield (
            "no sentence is held out: train without a perplexity to stop by, with "
            "`-o validation_data_path=null`, or give --held-out a number of sentences"
        )
    if _share(training) > _MANY_UNKNOWN:
        yield (
            f"{_share(training):.0%} of the words are not in the vocabulary, and will be learned "
            "as <UNK>: is it one of this language, with the same capitals and tokens?"
        )
    yield from _strange_words(counts)


def _strange_words(counts: Mapping[str, Any]) -> Iterator[str]:
    if (cut := counts["cut_words"])["distinct"]:
        words, times = plural(cut["distinct"], "word"), plural(cut["all"], "time")
        yield (
            f"longer than {LONGEST_WORD} bytes: {words} ({times} "
            "in the training part): a biLM sees their beginning"
        )
    if number := counts["boundary_words"]:
        yield (
            f"the text holds <S> or </S> {plural(number, 'time')}: training adds these boundaries "
            "of sentences by itself, so take them out"
        )


def _share(part: Mapping[str, int]) -> float:
    return part["unknown_words"] / max(1, part["words"])
