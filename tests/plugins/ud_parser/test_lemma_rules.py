"""Edit scripts between words and lemmas."""

from __future__ import annotations

from collections import Counter

import pytest

WORDS = [
    ("dogs", "dog"),
    ("Dogs", "dog"),
    ("London", "London"),
    ("NATO", "NATO"),
    ("LONDON", "London"),
    ("nato", "NATO"),
    ("is", "be"),
    ("running", "run"),
    ("gegangen", "gehen"),
    ("ungern", "gern"),
    ("İ", "i̇"),
    ("straße", "STRASSE"),
    ("_", "_"),
    ("a b", "c d"),
    ("x", "xx"),
]


@pytest.mark.parametrize(("word", "lemma"), WORDS)
def test_each_candidate_turns_the_word_into_its_lemma(word: str, lemma: str) -> None:
    from plugins.ud_parser.lemma_rules import LemmaRule, candidates

    rules = candidates(word, lemma)
    assert rules
    for rule in rules:
        assert rule.apply(word) == lemma
        assert LemmaRule.parse(str(rule)) == rule


def test_unknown_lemma_has_no_rule() -> None:
    from plugins.ud_parser.lemma_rules import candidates

    assert candidates("dogs", "_") == ()


def chosen(pairs: dict[tuple[str, str], int]) -> dict[tuple[str, ...], int]:
    from plugins.ud_parser.lemma_rules import count_rules

    counted = count_rules(Counter(pairs))
    return {tuple(rule.split("\t")): count for rule, count in counted.items() if count}


def test_words_of_one_pattern_share_the_most_frequent_rule() -> None:
    assert chosen({("dogs", "dog"): 5, ("Cats", "cat"): 1, ("Houses", "house"): 2}) == {
        ("lower", "0", "", "1", ""): 8
    }


def test_irregular_forms_share_the_rule_that_replaces_them() -> None:
    pairs = {("is", "be"): 2, ("was", "be"): 2, ("are", "be"): 1, ("Am", "be"): 1}
    assert chosen(pairs) == {("replace", "0", "be", "0", ""): 6}


def test_name_at_the_beginning_keeps_its_capital() -> None:
    pairs = {("Ann", "Ann"): 3, ("The", "the"): 3, ("the", "the"): 9}
    assert sum(chosen(pairs).values()) == 15
    assert ("lower", "0", "", "0", "") in chosen(pairs)
    assert len(chosen(pairs)) == 2


def test_rule_that_does_not_change_the_word_is_always_counted() -> None:
    from plugins.ud_parser.lemma_rules import NO_CHANGE, count_rules

    assert count_rules(Counter()) == {str(NO_CHANGE): 0}


def test_target_is_the_most_frequent_rule_of_training() -> None:
    from plugins.ud_parser.lemma_rules import candidates, known_rules

    keep, lower = (f"{case}\t0\t\t1\t" for case in ("keep", "lower"))
    assert {keep, lower} <= set(map(str, candidates("dogs", "dog")))
    words, lemmas = ["dogs", "Dogs", "went"], ["dog", "dog", "go"]
    assert list(known_rules(words, lemmas, {lower: 0, keep: 1})) == [0, 0, None]
    assert list(known_rules(words, lemmas, {keep: 0, lower: 1})) == [0, 1, None]


def test_rules_that_do_not_apply_are_skipped() -> None:
    from plugins.ud_parser.lemma_rules import LemmaRule, best_lemma

    too_long, emptying = LemmaRule("keep", 3, "", 2, ""), LemmaRule("keep", 0, "", 2, "")
    works = LemmaRule("title", 0, "", 1, "es")
    assert [rule.apply("ab") for rule in (too_long, emptying, works)] == [None, None, "Aes"]
    assert best_lemma("ab", map(str, (too_long, emptying, works))) == "Aes"
    assert best_lemma("ab", [str(too_long)]) == "ab"
