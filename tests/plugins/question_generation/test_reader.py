"""Answers in passages: read from SQuAD's files, made of JSON, and put into batches."""

from __future__ import annotations

import pytest

from elmo_framework.data.tokenizer import SpacyTokenizer, WhitespaceTokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError
from tests.plugins.question_generation.conftest import QUESTIONS

PASSAGE = "The keeper , Anna Lund , bought a burner ."


def examples(**options):
    from plugins.question_generation.reader import SquadQuestionReader

    return list(SquadQuestionReader(SpacyTokenizer(), **options).read(QUESTIONS))


def task():
    from plugins.question_generation.task import QuestionGenerationTask

    return QuestionGenerationTask()


def made(**inputs):
    return task().example({"passage": PASSAGE, **inputs}, WhitespaceTokenizer())


def test_answer_is_read_with_the_words_around_it():
    keeper = examples(window=3)[1]

    assert keeper.id == "norvik-keeper"
    assert keeper.words == ("the", "keeper", ",", "Anna", "Lund", ",", "bought", "a")
    assert keeper.answer == ("Anna", "Lund")
    assert keeper.question == ("Who", "was", "the", "keeper", "?")


def test_window_ends_with_the_passage():
    built = examples(window=100)[0]

    assert (built.words[0], built.words[-1]) == ("The", ".")
    assert built.answer == ("1871",)


def test_sampling_unit_is_the_passage_for_every_window():
    wide, narrow = examples(window=12), examples(window=3)

    assert task().sampling_unit(narrow[0]) == task().sampling_unit(narrow[1])
    assert narrow[0].words != narrow[1].words
    assert list(map(task().sampling_unit, wide)) == list(map(task().sampling_unit, narrow))
    assert task().sampling_unit(made(answer="Anna Lund")) == PASSAGE


def test_questions_without_an_answer_are_skipped():
    from plugins.question_generation.reader import SquadQuestionReader

    path = QUESTIONS.with_name("no_answer.json")
    found = list(SquadQuestionReader(SpacyTokenizer()).read(path))

    assert [example.id for example in found] == ["norvik-built", "norvik-burned", "ferries-from"]


def test_inputs_carry_their_question():
    from plugins.question_generation.reader import SquadQuestionReader

    first = next(iter(SquadQuestionReader(SpacyTokenizer()).read_inputs(QUESTIONS)))

    assert first.fields == {"question": "When was the lighthouse of Norvik built?"}


def test_example_is_made_of_passage_and_answer():
    example = made(answer="Anna Lund", id="q1")

    assert (example.id, example.first, example.last) == ("q1", 3, 4)
    assert example.question is None


@pytest.mark.parametrize("answer", ["Lund Anna", "", "Bo"])
def test_answer_outside_the_passage_is_refused(answer):
    with pytest.raises(DataError, match=r"the words of the answer .* are not in the passage"):
        made(answer=answer)


def test_words_outside_the_vocabulary_have_ids_of_their_passage():
    from plugins.question_generation.task import question_vocabulary

    question = examples(window=3)[1]
    counts = {"words": {}, "question_words": {"who": 2, "the": 1, "?": 1}}
    vocabularies = Vocabularies(counts)
    vocabulary = question_vocabulary(vocabularies)

    batch = task().collate([question, made(answer="Anna")], vocabularies, ())

    assert batch.source.unknown[0] == ("keeper", ",", "anna", "lund", "bought", "a")
    size = len(vocabulary)
    the = vocabulary.id("the")
    ids = [the, size, size + 1, size + 2, size + 3, size + 1, size + 4, size + 5]
    assert batch.source.ids[0, :8].tolist() == ids
    assert batch.source.tags[0, :8].tolist() == [0, 0, 0, 1, 2, 0, 0, 0]
    assert batch.source.num_unknown == len(batch.source.unknown[1]) == 8
    assert batch.target is None


def test_target_words_are_copied_or_unknown():
    from plugins.question_generation.task import END, question_vocabulary

    question = examples(window=3)[1]
    vocabularies = Vocabularies({"words": {}, "question_words": {"who": 2, "?": 1}})
    vocabulary = question_vocabulary(vocabularies)

    batch = task().collate([question], vocabularies, ())

    who, end = vocabulary.id("who"), vocabulary.id(END)
    assert batch.target.ids[0].tolist() == [
        who,
        vocabulary.unknown_id,  # "was" is neither in the vocabulary nor in the passage
        len(vocabulary),
        len(vocabulary) + 1,
        vocabulary.id("?"),
        end,
    ]
    assert batch.target.mask.all()
