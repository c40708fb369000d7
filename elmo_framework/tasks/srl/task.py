"""The task of semantic role labeling: predict the arguments of the predicates of a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, final

from rich.text import Text

from elmo_framework.data.annotation import Annotation
from elmo_framework.data.highlighting import bracketed, color_of
from elmo_framework.data.inputs import input_words, only_key
from elmo_framework.data.tagging import all_tags, span_objects, spans
from elmo_framework.data.text import Indexer
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Counts, Vocabularies
from elmo_framework.errors import DataError
from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.srl import Proposition, SrlEval
from elmo_framework.model.mistakes import Mistake, span_pieces
from elmo_framework.model.task import HeadTask, PredictionFormat
from elmo_framework.tasks.srl.columns import (
    gold_props,
    known_propositions,
    predicted_props,
    words_and_props,
)
from elmo_framework.tasks.srl.example import SrlBatch, SrlExample, example_predicates, srl_batch

_SENTENCES, _PREDICATES = ("sentence", "tokens", "words"), "predicates"


@final
class SrlTask(HeadTask[SrlExample, SrlBatch]):
    """Predicts the arguments of the predicates of a sentence; evaluated like `srl-eval.pl`.

    A prediction is one proposition for each predicate.
    """

    example_type = SrlExample
    metrics: ClassVar[Mapping[str, Metric]] = {"srl": SrlEval()}
    formats: ClassVar[Mapping[str, PredictionFormat]] = {
        "conll": words_and_props,
        "srl": predicted_props,
        "srl_gold": gold_props,
    }
    input_keys = (*_SENTENCES, _PREDICATES)
    agreement_scores = ("f1-measure-overall",)

    def count(self, examples: Iterable[SrlExample]) -> Counts:
        """Count `words`, `labels`, `forms` and `predicates`.

        The words of a sentence count once for all its examples. The other tags of each observed
        label are added with count 0, as other data may have longer arguments. `forms` are the
        lowercased words, and `predicates` those of them that are predicates.
        """
        words, labels, forms, predicates = (Counter[str]() for _ in range(4))
        predicates_of: dict[tuple[str, ...], set[int]] = {}
        for example in examples:
            places = predicates_of.setdefault(example.words, set())
            for predicate, tags in example.propositions or ():
                labels.update(tags)
                places.update(() if predicate is None else (predicate,))
        for sentence, places in predicates_of.items():
            words.update(sentence)
            forms.update(map(str.lower, sentence))
            predicates.update(sentence[place].lower() for place in places)
        for tag in all_tags(labels, "BIO") if labels else ():
            labels.setdefault(tag, 0)
        return {"words": words, "labels": labels, "forms": forms, "predicates": predicates}

    def group(self, example: SrlExample) -> object:
        return example.words

    def collate(
        self,
        examples: Sequence[SrlExample],
        vocabularies: Vocabularies,
        indexers: Sequence[Indexer],
    ) -> SrlBatch:
        return srl_batch(
            examples,
            [example_predicates(example, vocabularies) for example in examples],
            vocabularies.labels(),
            indexers,
        )

    def num_tokens(self, example: SrlExample) -> int:
        return len(example.words) * max(1, len(example.propositions or ()))

    def sentences(self, example: SrlExample) -> Iterable[Sequence[str]]:
        return (example.words,)

    def gold(self, example: SrlExample) -> tuple[Proposition, ...]:
        return known_propositions(example)

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> SrlExample:
        """Make an example from `{"sentence": "..."}` or `{"tokens": [...]}` (or `words`).

        With `predicates`, the positions of words from 0, arguments are predicted for these; by
        default for the words that were predicates in at least half of their occurrences.
        """
        words = input_words(inputs, only_key(inputs, _SENTENCES), tokenizer)
        if _PREDICATES not in inputs:
            return SrlExample(words, None)
        value = inputs[_PREDICATES]
        if not isinstance(value, list) or not all(_is_place(each, words) for each in value):
            expected = f"expected a list of positions of words, from 0 to {len(words) - 1}"
            raise DataError(f"{_PREDICATES!r} is {value!r}; {expected}")
        return SrlExample(words, None, tuple(value))

    def to_json(self, prediction: Sequence[Proposition], example: SrlExample) -> dict[str, Any]:
        """Return the words and for each predicate its tags and arguments: `start` to before `end`.

        The names are AllenNLP's: `verbs` also includes predicates that are not verbs.
        """
        return {
            "words": list(example.words),
            "verbs": [
                {
                    "verb": example.words[predicate],
                    "predicate": predicate,
                    "description": _described(example.words, tags).plain,
                    "tags": list(tags),
                    "arguments": span_objects(tags, example.words),
                }
                for predicate, tags in prediction
                if predicate is not None
            ],
        }

    def annotations(
        self, prediction: Sequence[Proposition], example: SrlExample
    ) -> Sequence[Annotation]:
        """Return the predicates, labeled `V`, and their arguments; a group for each predicate."""
        return [
            Annotation(*span, group=predicate, is_head=span.start <= predicate < span.end)
            for predicate, tags in prediction
            if predicate is not None
            for span in spans(tags)
        ]

    def annotated_objects(self, output: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
        return [argument for verb in output["verbs"] for argument in verb["arguments"]]

    def mistake(self, prediction: Sequence[Proposition], example: SrlExample) -> Mistake | None:
        """Return the proposition with the most wrong, missed and additional arguments."""
        pairs = zip(self.gold(example), prediction, strict=True)
        mistakes = (_mistake(example.words, *pair) for pair in pairs)
        return max(filter(None, mistakes), key=lambda each: each.weight, default=None)

    def pretty(self, prediction: Sequence[Proposition], example: SrlExample) -> Text:
        lines = [_described(example.words, tags) for place, tags in prediction if place is not None]
        return Text("\n").join(lines or [Text(" ".join(example.words))])


def _mistake(words: Sequence[str], gold: Proposition, predicted: Proposition) -> Mistake | None:
    right, found = ({Annotation(*span) for span in spans(each.tags)} for each in (gold, predicted))
    if right == found:
        return None
    predicate = "" if gold.predicate is None else words[gold.predicate]
    return Mistake(len(right ^ found), predicate, span_pieces(words, right, found))


def _described(words: Sequence[str], tags: Sequence[str]) -> Text:
    return bracketed(words, spans(tags), _piece)


def _piece(inside: str, label: str) -> Text:
    style = "bold green" if label == "V" else color_of(label)
    return Text(f"[{label}: {inside}]", style=style)


def _is_place(value: object, words: Sequence[str]) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(words)
