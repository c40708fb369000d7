"""The scores, against a second implementation of their definition by sets of tuples."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from tests.plugins.ud_parser.conftest import SENTENCES

CONTENT = {
    *("nsubj", "obj", "iobj", "csubj", "ccomp", "xcomp", "obl", "vocative", "expl", "dislocated"),
    *("advcl", "advmod", "discourse", "nmod", "appos", "nummod", "acl", "amod", "conj", "fixed"),
    *("flat", "compound", "list", "parataxis", "orphan", "goeswith", "reparandum", "root", "dep"),
}
FUNCTION = {"aux", "cop", "mark", "det", "clf", "case", "cc"}
FEATURES = {
    *("PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr", "Gender", "Animacy", "Number"),
    *("Case", "Definite", "Degree", "VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident"),
    *("Polarity", "Person", "Polite"),
}
NAMES = ["UPOS", "UFeats", "Lemmas", "UAS", "LAS", "CLAS", "MLAS", "BLEX"]
CHOICES: dict[str, list[Any]] = {
    "upos": ["NOUN", "VERB", "DET", "_"],
    "feats": ["_", "Number=Sing", "Case=Nom|Number=Sing", "Number=Sing|Case=Nom", "Typo=Yes"],
    "lemmas": ["a", "b", "_"],
    "deprels": [
        "nsubj",
        "nsubj:pass",
        "det",
        "aux",
        "aux:pass",
        "punct",
        "root",
        "case",
        "made-up",
    ],
}


def rows_of(parses: Iterable[Any]) -> list[list[list[str]]]:
    """The cells of the sentences, from what the plugin writes as CoNLL-U."""
    from plugins.ud_parser.conllu import conllu_lines
    from plugins.ud_parser.sentence import UdSentence

    pairs = [(parse, UdSentence(("w",) * len(parse.heads), None)) for parse in parses]
    return [[line.split("\t") for line in text.strip().split("\n")] for text in conllu_lines(pairs)]


def items_of(
    sentences: list[list[list[str]]], gold: list[list[list[str]]]
) -> dict[str, set[tuple[Any, ...]]]:
    """The set of items that each score compares: of words, then of content words."""
    items: dict[str, set[tuple[Any, ...]]] = {name: set() for name in NAMES}
    for number, rows in enumerate(sentences):
        for row in rows:
            word = int(row[0])
            place, head, relation = (number, word), row[6], row[7].split(":")[0]
            lemma = "_" if gold[number][word - 1][2] == "_" else row[2]
            feats = universal(row[5])
            items["UPOS"].add((place, row[3]))
            items["UFeats"].add((place, feats))
            items["Lemmas"].add((place, lemma))
            items["UAS"].add((place, head))
            items["LAS"].add((place, head, relation))
            if relation not in CONTENT:
                continue
            functions = frozenset(
                (other[0], other[7].split(":")[0], other[3], universal(other[5]))
                for other in rows
                if other[6] == row[0] and other[7].split(":")[0] in FUNCTION
            )
            items["CLAS"].add((place, head, relation))
            items["MLAS"].add((place, head, relation, row[3], feats, functions))
            items["BLEX"].add((place, head, relation, lemma))
    return items


def universal(feats: str) -> frozenset[str]:
    return frozenset(each for each in feats.split("|") if each.split("=")[0] in FEATURES)


def brute_force(predicted: list[Any], gold: list[Any]) -> dict[str, float]:
    gold_rows = rows_of(gold)
    gold_items = items_of(gold_rows, gold_rows)
    predicted_items = items_of(rows_of(predicted), gold_rows)
    scores = {}
    for name in NAMES:
        both = len(gold_items[name]) + len(predicted_items[name])
        scores[name] = 2 * len(gold_items[name] & predicted_items[name]) / both if both else 0.0
    return scores


def scores_of(predicted: list[Any], gold: list[Any]) -> dict[str, float]:
    from plugins.ud_parser.conll2018 import Conll2018Scores

    metric, sums = Conll2018Scores(), Counter[str]()
    for pair in zip(predicted, gold, strict=True):
        sums.update(metric.count(*pair))
    return metric.score(sums)


def random_parse(generator: random.Random, num_words: int) -> Any:
    from plugins.ud_parser.sentence import Parse

    labels = {
        name: tuple(generator.choices(choices, k=num_words)) for name, choices in CHOICES.items()
    }
    return Parse(heads=tuple(generator.choices(range(num_words + 1), k=num_words)), **labels)


def changed(parse: Any, generator: random.Random) -> Any:
    """The parse with some cells of another one."""
    other = random_parse(generator, len(parse.heads))
    columns = {
        name: tuple(
            generator.choices([mine, its], [4, 1])[0]
            for mine, its in zip(getattr(parse, name), getattr(other, name), strict=True)
        )
        for name in ("upos", "feats", "lemmas", "heads", "deprels")
    }
    return replace(parse, **columns)


@pytest.mark.parametrize("seed", range(20))
def test_scores_equal_those_of_the_second_implementation(seed: int) -> None:
    generator = random.Random(seed)
    gold = [random_parse(generator, generator.randint(1, 9)) for _ in range(12)]
    predicted = [changed(parse, generator) for parse in gold]
    expected = brute_force(predicted, gold)
    assert scores_of(predicted, gold) == pytest.approx(expected, abs=1e-12)
    assert any(0 < score < 1 for score in expected.values())


def read() -> list[Any]:
    from plugins.ud_parser.conllu import UniversalDependenciesReader

    return [sentence.parse for sentence in UniversalDependenciesReader().read(SENTENCES)]


def test_right_parses_have_the_score_one() -> None:
    assert scores_of(read(), read()) == dict.fromkeys(NAMES, 1.0)


def test_nothing_counted_has_the_score_zero() -> None:
    assert scores_of([], []) == dict.fromkeys(NAMES, 0.0)


def test_wrong_function_word_costs_its_head_in_mlas_only() -> None:
    gold = read()[:1]  # The dogs barked loudly .
    wrong = [replace(gold[0], upos=("PRON", *gold[0].upos[1:]))]
    expected = {**dict.fromkeys(NAMES, 1.0), "UPOS": 4 / 5, "MLAS": 2 / 3}
    assert scores_of(wrong, gold) == pytest.approx(expected)


def test_language_specific_labels_do_not_count() -> None:
    gold = read()[5:6]  # acl:relcl
    assert "acl:relcl" in gold[0].deprels
    relations = tuple(each.replace(":relcl", ":other") for each in gold[0].deprels)
    feats = tuple("Typo=Yes" if each == "_" else f"{each}|Typo=Yes" for each in gold[0].feats)
    same = replace(gold[0], deprels=relations, feats=feats)
    assert scores_of([same], gold) == dict.fromkeys(NAMES, 1.0)
