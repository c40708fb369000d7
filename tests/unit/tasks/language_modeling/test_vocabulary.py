from __future__ import annotations

from collections import Counter

from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.tasks.language_modeling.vocabulary import TargetIndexer, target_vocabulary


def vocabularies(**counts: int) -> Vocabularies:
    return Vocabularies({"words": Counter(counts)})


def test_the_special_words_come_first_and_then_the_most_frequent() -> None:
    found = target_vocabulary(vocabularies(rare=1, often=9, b=3, a=3), min_count=1, max_size=None)
    assert found.items == ("<S>", "</S>", "<UNK>", "often", "a", "b", "rare")


def test_special_words_of_the_text_are_not_there_twice() -> None:
    counted = vocabularies(**{"<UNK>": 7, "<S>": 5, "</S>": 5, "a": 6})
    found = target_vocabulary(counted, min_count=1, max_size=None)
    assert found.items == ("<S>", "</S>", "<UNK>", "a")


def test_rare_words_and_words_beyond_the_size_are_unknown() -> None:
    counted = vocabularies(a=5, b=4, c=3, d=1)
    assert target_vocabulary(counted, min_count=3, max_size=None).items[3:] == ("a", "b", "c")
    vocabulary = target_vocabulary(counted, min_count=2, max_size=2)
    assert vocabulary.items[3:] == ("a", "b")
    assert TargetIndexer(vocabulary).ids(["b", "c", "</S>"]).tolist() == [4, 2, 1]
