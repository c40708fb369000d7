import json
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.data.tokenizer import SpacyTokenizer, WhitespaceTokenizer
from elmo_framework.errors import DataError
from elmo_framework.metrics.coreference import Resolution
from elmo_framework.tasks.coreference.example import Document
from elmo_framework.tasks.coreference.reader import ConllCoreferenceReader
from elmo_framework.tasks.coreference.task import CoreferenceTask

FIXTURES = Path(__file__).parents[3] / "fixtures/coreference"
TASK = CoreferenceTask()


@pytest.mark.parametrize("key", ["document", "sentence"])
def test_raw_text_becomes_sentences_and_words(key: str):
    document = TASK.example({key: "Ann left. She didn't wait."}, SpacyTokenizer())

    assert document.sentences == (("Ann", "left", "."), ("She", "did", "n't", "wait", "."))
    assert document.clusters is None


def test_input_may_be_words_with_speakers_and_genre():
    given = {"sentences": [["I", "go"], ["You"]], "speakers": [["A", "A"], ["B"]], "genre": "tc"}

    assert TASK.example(given, WhitespaceTokenizer()) == Document(
        (("I", "go"), ("You",)), None, speakers=(("A", "A"), ("B",)), genre="tc"
    )


def test_labeled_json_lines_can_be_predicted():
    for line in (FIXTURES / "train.jsonlines").read_text().splitlines():
        given = json.loads(line)

        document = TASK.example(given, WhitespaceTokenizer())

        assert (document.key, document.clusters) == (given["doc_key"], None)


@pytest.mark.parametrize(
    "given", [{"document": " "}, {"sentences": []}, {"sentences": [], "speakers": []}]
)
def test_empty_document_has_one_empty_sentence(given: dict[str, Any]):
    assert TASK.example(given, WhitespaceTokenizer()).sentences == ((),)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"documents": "a"},
            "expected one key with a text, found 'documents'; "
            "choose from document, sentence, sentences. Did you mean 'document'?",
        ),
        ({"document": ["a"]}, "'document' is ['a']; expected a string"),
        ({"sentences": "a"}, "'sentences' is 'a'; expected a list of lists of strings"),
        ({"document": "a", "genre": 3}, "'genre' is 3; expected a string"),
        ({"document": "a", "doc_key": 3}, "'doc_key' is 3; expected a string"),
        (
            {"sentences": [["a"]], "speakers": [[]]},
            "the number of speakers differs from the number of words of a sentence",
        ),
    ],
)
def test_malformed_json_input_is_refused(given: dict[str, Any], message: str):
    with pytest.raises(DataError) as raised:
        TASK.example(given, WhitespaceTokenizer())

    assert str(raised.value) == message


def test_words_and_genres_are_counted():
    counts = TASK.count(ConllCoreferenceReader().read(FIXTURES / "train.conll"))

    assert counts["genres"] == {"bc": 2, "nw": 1}
    assert counts["words"]["snores"] == 2


def test_length_and_sentences_of_a_document():
    document = Document((("a", "b"), (), ("c",)), None)

    assert TASK.num_tokens(document) == 3
    assert TASK.sentences(document) == (("a", "b"), (), ("c",))


def test_a_document_without_clusters_cannot_be_scored():
    with pytest.raises(DataError, match="a document without clusters cannot be scored: 'a b'"):
        TASK.gold(Document((("a", "b"),), None))


def test_json_output_has_words_clusters_and_spans():
    document = Document((("Ann", "fed"), ("her", "cat")), None)
    resolution = Resolution((((0, 0), (2, 2)),), ((0, 0), (2, 2), (2, 3)))

    assert TASK.to_json(resolution, document) == {
        "document": ["Ann", "fed", "her", "cat"],
        "clusters": [[[0, 0], [2, 2]]],
        "texts": [["Ann", "her"]],
        "top_spans": [[0, 0], [2, 2], [2, 3]],
    }
    assert TASK.pretty(resolution, document).plain == "[Ann]0 fed\n[her]0 cat\n"
