"""Character offsets of predictions, and the tables that are made of them."""

import sys
from types import SimpleNamespace

import pytest

from elmo_framework.data.inputs import Predicted, PredictionInput
from elmo_framework.data.tokenizer import CharacterTokenizer, SpacyTokenizer, WhitespaceTokenizer
from elmo_framework.errors import RunError
from elmo_framework.experiment.prediction_record import Predictions, json_of
from elmo_framework.metrics.coreference import Resolution
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.coreference.example import Document, Mention
from elmo_framework.tasks.coreference.task import CoreferenceTask
from elmo_framework.tasks.srl.example import SrlExample
from elmo_framework.tasks.srl.task import SrlTask
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask

TEXT = "  Anna  Kov\u00e1cs\u2019s \U0001f600 (in\u00a0Oslo)   can't  stop.\t"


@pytest.mark.parametrize(
    "tokenizer", [SpacyTokenizer(), WhitespaceTokenizer(), CharacterTokenizer()]
)
def test_offsets_count_in_the_original_text(tokenizer):
    words = tuple(tokenizer.words(TEXT.strip()))
    source = PredictionInput(TaggedSentence(words, None), {}, {"sentence": TEXT})

    output = json_of(TaggingTask(), Predicted(("B-PER", *["O"] * (len(words) - 1)), source))

    assert tuple(TEXT[start:end] for start, end in output["offsets"]) == words
    (span,) = output["spans"]
    assert TEXT[span["start_char"] : span["end_char"]] == words[0]


def test_words_without_a_text_are_joined_by_spaces():
    source = PredictionInput(TaggedSentence(("in", "New", "York"), None), {"id": "7"})

    output = json_of(TaggingTask(), Predicted(("O", "B-LOC", "I-LOC"), source))

    assert output["offsets"] == [[0, 2], [3, 6], [7, 11]]
    assert (output["spans"][0]["start_char"], output["spans"][0]["end_char"]) == (3, 11)
    assert output["id"] == "7"


def test_text_of_a_comment_is_the_original_if_it_has_the_words():
    def offsets(text: str) -> list[list[int]]:
        source = PredictionInput(TaggedSentence(("no", "."), None), {"text": text})
        return json_of(TaggingTask(), Predicted(("X", "Y"), source))["offsets"]

    assert offsets("no.") == [[0, 2], [2, 3]]
    assert offsets("not these") == [[0, 2], [3, 4]]


def test_words_have_probabilities_if_not_all_tags_mark_spans():
    source = PredictionInput(TaggedSentence(("New", "York", "!"), None), {})
    ranked = [{"B-LOC": 0.5}, {"I-LOC": 0.6}, {"X": 0.7}]

    output = json_of(TaggingTask(), Predicted(("B-LOC", "I-LOC", "X"), source, ranked))

    assert output["probabilities"] == [0.5, 0.6, 0.7]
    assert "probability" not in output["spans"][0]


def test_roles_have_characters():
    source = PredictionInput(SrlExample(("She", "left"), None), {}, {"sentence": "She left"})
    prediction = (Proposition(1, ("B-ARG0", "B-V")),)

    (verb,) = json_of(SrlTask(), Predicted(prediction, source))["verbs"]

    places = [(each["start_char"], each["end_char"]) for each in verb["arguments"]]
    assert places == [(0, 3), (4, 8)]


def test_offsets_of_a_document_count_through_its_sentences():
    document = Document((("Eva", "slept", "."), ("She", "woke", ".")), None)
    source = PredictionInput(document, {}, {"document": "Eva slept.\n\nShe woke."})
    clusters = ((Mention(0, 0), Mention(3, 3)),)

    output = json_of(CoreferenceTask(), Predicted(Resolution(clusters, ()), source))

    assert output["offsets"][3] == [12, 15]


def test_rows_are_those_of_a_data_frame(monkeypatch):
    source = PredictionInput(TaggedSentence(("in", "Rome"), None), {"id": "7"})
    predicted = Predicted(("O", "B-LOC"), source, [{"LOC": 0.5}])
    predictions = Predictions.of(TaggingTask(), [predicted], top_k=1)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    (row,) = predictions.to_pandas()

    place = {"text": "Rome", "label": "LOC", "start": 3, "end": 7, "probability": 0.5}
    assert row == {"id": "7", "input": 1, **place}
    nothing = Predictions.of(TaggingTask(), [], top_k=1)
    assert nothing.to_pandas() == ["input", "text", "label", "start", "end"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RunError, match=r"pip install 'elmo-framework\[pandas\]'"):
        predictions.to_pandas()
