from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from elmo_framework.corpus.job import PreparationJob
from elmo_framework.corpus.prepare import prepare
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError
from elmo_framework.tasks.language_modeling.corpus import TokenIdCorpus
from elmo_framework.tasks.language_modeling.reader import PreparedCorpusReader
from elmo_framework.tasks.language_modeling.vocabulary import (
    TargetIndexer,
    require_fit,
    target_vocabulary,
)
from tests.unit.tasks.language_modeling.toy import examples


def vocabularies(**counts: int) -> Vocabularies:
    return Vocabularies({"words": Counter(counts)})


def test_special_words_precede_the_most_frequent() -> None:
    found = target_vocabulary(vocabularies(rare=1, often=9, b=3, a=3), min_count=1, max_size=None)
    assert found.items == ("<S>", "</S>", "<UNK>", "often", "a", "b", "rare")


def test_special_words_of_the_text_are_not_repeated() -> None:
    counted = vocabularies(**{"<UNK>": 7, "<S>": 5, "</S>": 5, "a": 6})
    found = target_vocabulary(counted, min_count=1, max_size=None)
    assert found.items == ("<S>", "</S>", "<UNK>", "a")


def test_rare_words_and_words_beyond_the_size_are_unknown() -> None:
    counted = vocabularies(a=5, b=4, c=3, d=1)
    assert target_vocabulary(counted, min_count=3, max_size=None).items[3:] == ("a", "b", "c")
    vocabulary = target_vocabulary(counted, min_count=2, max_size=2)
    assert vocabulary.items[3:] == ("a", "b")
    assert TargetIndexer(vocabulary).ids(["b", "c", "</S>"]).tolist() == [4, 2, 1]


TEXT = ["the cat sat .", "the dog sat .", "cats"]


@pytest.fixture(params=["in memory", "prepared"])
def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> TokenIdCorpus:
    if request.param == "in memory":
        return TokenIdCorpus.read(examples(TEXT))
    (tmp_path / "a.txt").write_text("".join(f"{line}\n" for line in TEXT))
    prepare(PreparationJob([tmp_path / "a.txt"], tmp_path / "prepared", held_out=0.0))
    return PreparedCorpusReader().read(tmp_path / "prepared/training")


def look(corpus: TokenIdCorpus, unknown: set[str], *, is_logged: bool = True) -> None:
    require_fit(corpus, np.array([word in unknown for word in corpus.words]), is_logged=is_logged)


def test_warning_lists_most_frequent_unknown_words(
    corpus: TokenIdCorpus, caplog: pytest.LogCaptureFixture
) -> None:
    look(corpus, {"cat", "dog", "sat"})

    assert caplog.messages == [
        "44 % of the words of the training text are not in the vocabulary, and are learned as "
        "<UNK>, most of all 'sat', 'cat', 'dog'; is it large enough, and of this language, with "
        "the same capitals and tokens?"
    ]


@pytest.mark.parametrize(
    ("unknown", "is_logged"), [(set(), True), ({"dog"}, True), ({"cat", "dog", "sat"}, False)]
)
def test_only_first_process_warns_of_unknown_words(
    corpus: TokenIdCorpus, caplog: pytest.LogCaptureFixture, unknown: set[str], is_logged: bool
) -> None:
    look(corpus, unknown, is_logged=is_logged)

    assert caplog.messages == []


@pytest.mark.parametrize("is_logged", [True, False])
def test_text_of_unknown_words_only_is_refused(corpus: TokenIdCorpus, is_logged: bool) -> None:
    with pytest.raises(DataError) as raised:
        look(corpus, set(corpus.words) - {"<S>", "</S>"}, is_logged=is_logged)

    assert str(raised.value).startswith("the vocabulary holds none of the words of the training te")
    assert "and of this language, with the same capitals and tokens?" in str(raised.value)
