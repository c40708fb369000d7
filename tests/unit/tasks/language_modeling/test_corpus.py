from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from elmo_framework.corpus.job import PreparationJob
from elmo_framework.corpus.prepare import prepare
from elmo_framework.data.characters import ElmoCharacterIndexer
from elmo_framework.tasks.language_modeling import corpus as corpora
from elmo_framework.tasks.language_modeling.corpus import LanguageModelingExample, TokenIdCorpus
from elmo_framework.tasks.language_modeling.reader import PreparedCorpusReader
from elmo_framework.tasks.language_modeling.task import LanguageModelingTask


def corpus_of(*sentences: str) -> TokenIdCorpus:
    return TokenIdCorpus.read(LanguageModelingExample(tuple(held.split())) for held in sentences)


def test_sentences_are_stored_between_boundaries() -> None:
    corpus = corpus_of("a b a", "c")
    assert corpus.words == ("<S>", "</S>", "a", "b", "c")
    assert corpus.ids.tolist() == [0, 2, 3, 2, 1, 0, 4, 1]
    assert corpus.offsets.tolist() == [0, 5, 8]


def test_every_word_and_the_far_boundary_are_predicted() -> None:
    corpus = corpus_of("a b a", "c")
    assert (corpus.num_sentences, corpus.num_words, corpus.num_predictions) == (2, 4, 6)


def test_a_word_takes_four_bytes() -> None:
    assert corpus_of("a b a").ids.itemsize == 4


def test_without_sentences_there_is_an_empty_corpus() -> None:
    assert corpus_of().num_sentences == 0


TEXT = ["a b a", "c", "b a d", "a b a", "e f"]


@pytest.fixture(params=["in memory", "prepared"])
def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> TokenIdCorpus:
    if request.param == "in memory":
        return corpus_of(*TEXT)
    (tmp_path / "a.txt").write_text("".join(f"{line}\n" for line in TEXT))
    prepare(PreparationJob([tmp_path / "a.txt"], tmp_path / "prepared", held_out=0.0))
    return PreparedCorpusReader().read(tmp_path / "prepared/training")


def test_a_corpus_gives_its_sentences_back(corpus: TokenIdCorpus) -> None:
    assert [" ".join(example.words) for example in corpus] == TEXT
    assert (corpus.num_sentences, corpus.num_words, corpus.num_predictions) == (5, 12, 17)


def test_a_corpus_is_not_read_again(corpus: TokenIdCorpus) -> None:
    assert TokenIdCorpus.read(corpus) is corpus


def test_a_sample_is_taken_at_even_distances(corpus: TokenIdCorpus) -> None:
    assert [" ".join(example.words) for example in corpus.sample(2)] == [TEXT[0], TEXT[2]]
    assert corpus.sample(5) is corpus


def test_sample_has_the_requested_sentences(
    corpus: TokenIdCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "_SENTENCES_A_BLOCK", 2)
    part = corpus.part(np.array([0, 2, 4]))
    assert [" ".join(example.words) for example in part] == [TEXT[0], TEXT[2], TEXT[4]]
    assert (part.num_sentences, part.num_words, part.num_predictions) == (3, 8, 11)


def test_sample_of_prepared_corpus_counts_the_whole(corpus: TokenIdCorpus) -> None:
    counted = LanguageModelingTask().count(corpus.part(np.array([1])))["words"]
    whole = LanguageModelingTask().count(corpus)["words"]
    assert counted == (Counter("c") if corpus.prepared is None else whole)


def test_corpus_counts_are_read_without_sentences(corpus: TokenIdCorpus) -> None:
    expected = Counter(word for line in TEXT for word in line.split())
    assert LanguageModelingTask().count(corpus) == {"words": expected}


def test_a_text_is_counted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    text = corpus_of(*TEXT)
    expected = text.counts().tolist()
    monkeypatch.setattr(corpora, "_IDS_A_BLOCK", 5)

    assert text.counts().tolist() == expected
    assert sum(expected) == len(text.ids)


@pytest.mark.parametrize("max_characters", [50, 6])
def test_character_rows_equal_those_of_the_indexer(
    corpus: TokenIdCorpus, max_characters: int
) -> None:
    indexer = ElmoCharacterIndexer(max_characters)
    rows = corpus.characters(indexer)
    assert rows.dtype == np.uint16
    assert (rows == indexer.ids(corpus.words)).all()
