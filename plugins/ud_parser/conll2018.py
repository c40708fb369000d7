"""The scores of the CoNLL 2018 shared task for parsing from gold words (Zeman et al. 2018)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import final

from elmo_framework.metrics import Metric, ratio

from .lemma_rules import UNKNOWN_LEMMA
from .sentence import Parse


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


CONTENT_RELATIONS = _names(
    "nsubj obj iobj csubj ccomp xcomp obl vocative expl dislocated advcl advmod discourse nmod "
    "appos nummod acl amod conj fixed flat compound list parataxis orphan goeswith reparandum root "
    "dep"
)
"""Relations whose dependents are content words."""

FUNCTIONAL_RELATIONS = _names("aux cop mark det clf case cc")
"""Relations whose dependents are function words."""

UNIVERSAL_FEATURES = _names(
    "PronType NumType Poss Reflex Foreign Abbr Gender Animacy Number Case Definite Degree VerbForm "
    "Mood Tense Aspect Voice Evident Polarity Person Polite"
)
"""Features that are compared; others are specific to a treebank."""

_OF_WORDS = ("UPOS", "UFeats", "Lemmas", "UAS", "LAS")
_OF_CONTENT_WORDS = ("CLAS", "MLAS", "BLEX")


@final
@Metric.register("conll2018")
class Conll2018Scores(Metric):
    """The scores of the CoNLL 2018 shared task with gold sentences and words, from 0 to 1.

    `UPOS`, `UFeats` and `Lemmas` are the fractions of words with the right part of speech,
    universal features and lemma; a word whose gold lemma is `_` counts as right. `UAS` is the
    fraction with the right head, `LAS` with the right head and relation; subtypes of relations
    (after `:`) do not count.

    The others are F1 over content words, which are those with a relation in `CONTENT_RELATIONS`: in
    `CLAS` a word is right if its head and relation are; in `MLAS` also its part of speech, its
    features, and the relations, parts of speech and features of all its function words; in `BLEX`
    also its lemma.
    """

    def count(self, prediction: Parse, gold: Parse) -> Mapping[str, float]:
        predicted_words, gold_words = _words(prediction), _words(gold)
        pairs = list(zip(predicted_words, gold_words, strict=True))
        correct: dict[str, float] = dict.fromkeys((*_OF_WORDS, *_OF_CONTENT_WORDS), 0.0)
        for predicted, word in pairs:
            for name, is_correct in _compared(predicted, word).items():
                if word.is_content or name in _OF_WORDS:
                    correct[name] += is_correct
        return {
            **correct,
            "words": len(pairs),
            "content_gold": sum(word.is_content for word in gold_words),
            "content_predicted": sum(word.is_content for word in predicted_words),
        }

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        words = sums.get("words", 0.0)
        scores = {name: ratio(sums.get(name, 0.0), words) for name in _OF_WORDS}
        both = sums.get("content_gold", 0.0) + sums.get("content_predicted", 0.0)
        return scores | {name: ratio(2 * sums.get(name, 0.0), both) for name in _OF_CONTENT_WORDS}


class _Word:
    """One word, as scores compare it.

    Attributes:
        functions: the function words that depend on it.
    """

    def __init__(self, parse: Parse, index: int) -> None:
        self.head, self.relation = parse.heads[index], parse.deprels[index].partition(":")[0]
        self.upos, self.lemma = parse.upos[index], parse.lemmas[index]
        self.feats = sorted(
            feature
            for feature in parse.feats[index].split("|")
            if feature.partition("=")[0] in UNIVERSAL_FEATURES
        )
        self.is_content = self.relation in CONTENT_RELATIONS
        self.functions: list[tuple[int, str, str, list[str]]] = []


def _words(parse: Parse) -> list[_Word]:
    words = [_Word(parse, index) for index in range(len(parse.heads))]
    functions = defaultdict(list)
    for number, word in enumerate(words, start=1):
        if word.relation in FUNCTIONAL_RELATIONS:
            functions[word.head].append((number, word.relation, word.upos, word.feats))
    for number, word in enumerate(words, start=1):
        word.functions = functions[number]
    return words


def _compared(predicted: _Word, gold: _Word) -> dict[str, bool]:
    has_head = predicted.head == gold.head
    has_relation = has_head and predicted.relation == gold.relation
    has_upos, has_feats = predicted.upos == gold.upos, predicted.feats == gold.feats
    has_lemma = gold.lemma in (UNKNOWN_LEMMA, predicted.lemma)
    return {
        "UPOS": has_upos,
        "UFeats": has_feats,
        "Lemmas": has_lemma,
        "UAS": has_head,
        "LAS": has_relation,
        "CLAS": has_relation,
        "MLAS": has_relation and has_upos and has_feats and predicted.functions == gold.functions,
        "BLEX": has_relation and has_lemma,
    }
