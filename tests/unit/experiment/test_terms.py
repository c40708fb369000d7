from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.terms import ExampleTerms, score_function
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.classification.task import ClassifiedText, TextClassificationTask
from elmo_framework.tasks.coreference.example import Document
from elmo_framework.tasks.coreference.task import CoreferenceTask
from elmo_framework.tasks.entailment.task import EntailmentTask, SentencePair
from elmo_framework.tasks.question_answering.example import PassageQuestion, TokenizedText
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask
from elmo_framework.tasks.srl.example import SrlExample
from elmo_framework.tasks.srl.task import SrlTask
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask


def tagged(*sentences: str, tags: str = "") -> list[TaggedSentence]:
    split = [tuple(words.split()) for words in sentences]
    return [TaggedSentence(w, tuple(tags.split()) or ("O",) * len(w)) for w in split]


def terms_of(*counts: Mapping[str, float]) -> ExampleTerms:
    examples = tagged(*("w" * (number + 1) for number in range(len(counts))))
    return ExampleTerms.of(counts, examples, TaggingTask())


def test_terms_missing_in_an_example_are_zero():
    terms = terms_of({"b": 2.0}, {"a": 1.0, "b": 3.0})

    assert terms.names == ("a", "b")
    assert terms.values.tolist() == [[0.0, 2.0], [1.0, 3.0]]
    assert terms.sums() == {"a": 1.0, "b": 5.0}


def test_equal_sentences_are_one_group():
    terms = ExampleTerms.of([{"n": 1.0}] * 3, tagged("a b", "c", "a b"), TaggingTask())

    assert terms.groups.tolist() == [0, 1, 0]
    assert terms.lengths.tolist() == [2, 1, 2]
    assert terms.by_group().tolist() == [[2.0], [1.0]]


def test_each_task_groups_examples_of_one_text():
    proposition = Proposition(0, ("B-V", "O"))
    other_proposition = Proposition(1, ("O", "B-V"))
    roles = [SrlExample(("a", "b"), (each,)) for each in (proposition, other_proposition)]
    pair, other = (SentencePair(("a",), (word,), "x") for word in "bc")
    passage, question = (TokenizedText("a", ("a",), ((0, 1),)) for _ in range(2))
    asked = [PassageQuestion(id_, passage, question, ("a",), None) for id_ in "12"]
    parts = [Document(((word,),), (), key="k", part=word) for word in "bc"]
    phrases = [ClassifiedText((word,), "x", whole=("b", "c")) for word in "bc"]
    grouped: list[tuple[Any, Any]] = [
        (SrlTask(), roles),
        (EntailmentTask(), [pair, other]),
        (QuestionAnsweringTask(), asked),
        (CoreferenceTask(), parts),
        (TextClassificationTask(), phrases),
    ]
    for task, examples in grouped:
        assert ExampleTerms.of([{}, {}], examples, task).groups.tolist() == [0, 0], task
    documents = [Document(((word,),), ()) for word in "bc"]
    of_documents = ExampleTerms.of([{}, {}], documents, CoreferenceTask())
    assert of_documents.groups.tolist() == [0, 1]


def digest(examples: list[TaggedSentence]) -> str:
    return ExampleTerms.of([{}] * len(examples), examples, TaggingTask()).digest


def test_digest_is_of_text_and_labels_in_any_scheme():
    same = digest(tagged("a b c", tags="B-X I-X O"))

    assert digest(tagged("a b c", tags="B-X L-X O")) == same
    assert digest(tagged("a b c", tags="B-X B-X O")) != same
    assert digest(tagged("a b d", tags="B-X I-X O")) != same
    assert digest(tagged("a b", "c")) != digest(tagged("c", "a b"))
    assert digest(tagged("a b", tags="NN VB")) != digest(tagged("a b", tags="NN NN"))


def test_saved_terms_are_equal_and_small(tmp_path: Path):
    terms = terms_of(*({"a": float(number % 3), "b/ü": 1 / 3} for number in range(500)))
    terms.save(tmp_path / "first.npz")
    terms.save(tmp_path / "second.npz")
    loaded = ExampleTerms.load(tmp_path / "first.npz")

    assert (tmp_path / "first.npz").read_bytes() == (tmp_path / "second.npz").read_bytes()
    assert (tmp_path / "first.npz").stat().st_size < 4_000
    assert (loaded.names, loaded.digest) == (terms.names, terms.digest)
    for one, other in zip(
        (loaded.values, loaded.groups, loaded.lengths),
        (terms.values, terms.groups, terms.lengths),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("content", [b"", b"no archive", None])
def test_damaged_terms_are_an_error_with_their_file(tmp_path: Path, content: bytes | None):
    path = tmp_path / "terms.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=r"terms\.npz: cannot read terms of examples"):
        ExampleTerms.load(path)


def test_metrics_of_the_config_are_scored_without_a_model():
    config = {"model": {"type": "bcn", "metrics": ["mcc", {"type": "top_accuracy", "top_k": 2}]}}
    score = score_function(config, source="test")

    scores = score({"num_examples": 2.0, "top_accuracy/correct": 1.0, "top_accuracy/total": 2.0})
    assert scores["accuracy2"] == 0.5
    assert {"mcc", "accuracy", "accuracy3"} <= scores.keys()


@pytest.mark.parametrize("name", ["bilm", "bnc"])
def test_a_model_without_scores_of_examples_is_an_error(name: str):
    with pytest.raises(RunError, match=f"run.json: model.type: unknown Head '{name}'; choose"):
        score_function({"model": {"type": name}}, source="run.json")
