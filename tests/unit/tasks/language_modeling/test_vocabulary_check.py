from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from elmo_framework.corpus.prepare import PreparationJob, prepare
from elmo_framework.errors import DataError
from elmo_framework.tasks.language_modeling.corpus import TokenIdCorpus
from elmo_framework.tasks.language_modeling.reader import PreparedCorpusReader
from elmo_framework.tasks.language_modeling.vocabulary_check import require_fit
from tests.unit.tasks.language_modeling.toy import examples

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


def test_many_unknown_words_are_told_with_the_most_frequent(
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
def test_a_few_unknown_words_are_usual_and_one_process_tells_of_many(
    corpus: TokenIdCorpus, caplog: pytest.LogCaptureFixture, unknown: set[str], is_logged: bool
) -> None:
    look(corpus, unknown, is_logged=is_logged)

    assert caplog.messages == []


@pytest.mark.parametrize("is_logged", [True, False])
def test_a_text_of_unknown_words_alone_is_refused(corpus: TokenIdCorpus, is_logged: bool) -> None:
    with pytest.raises(DataError) as raised:
        look(corpus, set(corpus.words) - {"<S>", "</S>"}, is_logged=is_logged)

    assert str(raised.value).startswith("the vocabulary holds none of the words of the training te")
    assert "and of this language, with the same capitals and tokens?" in str(raised.value)
