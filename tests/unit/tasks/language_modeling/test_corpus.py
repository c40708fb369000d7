from __future__ import annotations

from elmo_framework.tasks.language_modeling.corpus import Corpus
from elmo_framework.tasks.language_modeling.example import LanguageModelingExample


def corpus_of(*sentences: str) -> Corpus:
    return Corpus.read(LanguageModelingExample(tuple(held.split())) for held in sentences)


def test_sentences_stand_one_after_the_other_between_their_boundaries() -> None:
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
