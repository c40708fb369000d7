"""Parsing of Universal Dependencies as a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, final

import torch
from jaxtyping import Int
from torch import Tensor

from elmo_framework import DataError
from elmo_framework.data import (
    Counts,
    Indexer,
    Tokenizer,
    Vocabularies,
    Vocabulary,
    collate_text,
    input_words,
    only_key,
)
from elmo_framework.metrics import Metric
from elmo_framework.model import HeadTask, PredictionFormat

from .conll2018 import Conll2018Scores
from .conllu import conllu_lines
from .lemma_rules import count_rules, known_rules
from .sentence import IGNORED, Parse, Targets, UdBatch, UdSentence


@final
class UdTask(HeadTask[UdSentence, UdBatch]):
    """Predicts parts of speech, features, lemmas and the dependency tree of a sentence."""

    example_type = UdSentence
    metrics: ClassVar[Mapping[str, Metric]] = {"conll2018": Conll2018Scores()}
    formats: ClassVar[Mapping[str, PredictionFormat]] = {"conllu": conllu_lines}
    input_keys = ("sentence", "tokens", "words")
    agreement_scores = ("LAS",)

    def count(self, examples: Iterable[UdSentence]) -> Counts:
        """Count `words`, `upos`, `feats`, `deprels` and `lemma_rules`."""
        words, upos, feats, deprels = (Counter[str]() for _ in range(4))
        pairs: Counter[tuple[str, str]] = Counter()
        for example in examples:
            words.update(example.words)
            if example.parse is not None:
                upos.update(example.parse.upos)
                feats.update(example.parse.feats)
                deprels.update(example.parse.deprels)
                pairs.update(zip(example.words, example.parse.lemmas, strict=True))
        return {
            "words": words,
            "upos": upos,
            "feats": feats,
            "deprels": deprels,
            "lemma_rules": count_rules(pairs),
        }

    def collate(
        self,
        examples: Sequence[UdSentence],
        vocabularies: Vocabularies,
        indexers: Sequence[Indexer],
    ) -> UdBatch:
        """Make a batch; labels that do not occur in the training data are ignored by the loss."""
        text = collate_text([example.words for example in examples], indexers)
        parses = [example.parse for example in examples if example.parse is not None]
        are_known = len(parses) == len(examples)
        targets = _targets(examples, parses, vocabularies) if are_known else None
        return UdBatch(text, targets, tuple(examples))

    def sentences(self, example: UdSentence) -> Iterable[Sequence[str]]:
        """Return the sentence, as a tuple of one."""
        return (example.words,)

    def gold(self, example: UdSentence) -> Parse:
        """Return the right analysis."""
        if example.parse is None:
            raise DataError(f"a sentence without a parse cannot be scored: {example.words!r}")
        return example.parse

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> UdSentence:
        """Make an example of `{"sentence": "..."}` or of `{"tokens": [...]}` (or `words`)."""
        return UdSentence(input_words(inputs, only_key(inputs, self.input_keys), tokenizer), None)

    def to_json(self, prediction: Parse, example: UdSentence) -> dict[str, Any]:
        """Return the words and their analysis, under the names of the columns of CoNLL-U."""
        return {
            "words": list(example.words),
            "lemma": list(prediction.lemmas),
            "upos": list(prediction.upos),
            "feats": list(prediction.feats),
            "head": list(prediction.heads),
            "deprel": list(prediction.deprels),
        }


def _targets(
    examples: Sequence[UdSentence], parses: Sequence[Parse], vocabularies: Vocabularies
) -> Targets:
    rules = {rule: index for index, rule in enumerate(vocabularies.labels("lemma_rules").items)}
    lemma_ids = [
        [IGNORED if index is None else index for index in known_rules(words, lemmas, rules)]
        for words, lemmas in zip(
            (example.words for example in examples), (parse.lemmas for parse in parses), strict=True
        )
    ]
    upos, feats, deprels = map(vocabularies.labels, ("upos", "feats", "deprels"))
    return Targets(
        upos=_padded([_known_ids(parse.upos, upos) for parse in parses]),
        feats=_padded([_known_ids(parse.feats, feats) for parse in parses]),
        lemmas=_padded(lemma_ids),
        heads=_padded([parse.heads for parse in parses]),
        deprels=_padded([_known_ids(parse.deprels, deprels) for parse in parses]),
    )


def _known_ids(items: Iterable[str], labels: Vocabulary) -> list[int]:
    return [labels.id(item) if item in labels else IGNORED for item in items]


def _padded(rows: Sequence[Sequence[int]]) -> Int[Tensor, "batch tokens"]:
    padded = torch.full((len(rows), max(1, *map(len, rows))), IGNORED)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = torch.tensor(ids, dtype=torch.long)
    return padded
