"""Predictors; outputs were recorded with those of AllenNLP 2.10.1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy

from elmo_framework import DataError, RunError, load
from elmo_framework.models.archival import load_archive
from elmo_framework.predictors.predictor import Predictor
from tests.conftest import ROOT

ARCHIVES = ROOT / "tests/fixtures/allennlp"
RECORDED = json.loads((ARCHIVES / "predictions.json").read_text())
KINDS = sorted(RECORDED.keys() - {"verbs", "decomposable_attention"})  # of the plugin
PREMISE = {"premise": "Two boys kick a ball.", "hypothesis": "A ball."}


def archive(kind: str) -> Path:
    return ARCHIVES / f"{kind}.tar.gz"


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMO_CACHE_ROOT", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(name="language", scope="module")
def _language(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder of the rules that replaced a trained model for the recorded outputs."""
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    rules: Any = pipeline.add_pipe("attribute_ruler")
    rules.add([[{"LOWER": verb}] for verb in RECORDED["verbs"]], {"POS": "VERB"})
    folder = tmp_path_factory.mktemp("model") / "rules"
    pipeline.to_disk(folder)
    return str(folder)


def check(output: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert output.keys() >= expected.keys()
    for key, value in expected.items():
        if key.startswith("span_") and key.endswith("_logits"):
            # AllenNLP adds a bias, which no softmax depends on.
            assert np.ptp(np.subtract(output[key], value)) < 2e-5
        elif key.endswith(("logits", "probs", "probabilities")):
            np.testing.assert_allclose(output[key], value, atol=2e-5)
        else:
            assert output[key] == value, key


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_those_of_allennlp(kind: str, language: str) -> None:
    predictor = Predictor.from_path(archive(kind), language=language)
    rows = RECORDED[kind]
    for row in rows:
        check(predictor.predict(**row["inputs"]), row["output"])
    for output, row in zip(
        predictor.predict_batch_json([row["inputs"] for row in rows]), rows, strict=True
    ):
        check(output, row["output"])
    json.loads(predictor.dump_line(output))


@pytest.mark.parametrize("kind", ["crf_tagger", "bidaf"])
def test_words_are_those_of_allennlp_without_a_model_of_spacy(kind: str) -> None:
    row = RECORDED[kind][0]
    check(Predictor.from_path(archive(kind)).predict(*row["inputs"].values()), row["output"])


def test_tokenized_inputs_are_read(language: str) -> None:
    tagger = Predictor.from_path(archive("crf_tagger"))
    (row, _) = RECORDED["crf_tagger"]
    check(tagger.predict_tokenized(row["output"]["words"]), row["output"])
    coref = Predictor.from_path(archive("coref"))
    (row, _) = RECORDED["coref"]
    check(coref.predict_tokenized(row["output"]["document"]), row["output"])
    verbs = Predictor.from_path(archive("srl"), language=language)
    row = RECORDED["srl"][0]
    check(verbs.predict_tokenized(row["output"]["words"]), row["output"])
    with pytest.raises(RunError, match="the inputs of this model are premise, hypothesis"):
        Predictor.from_path(archive("esim")).predict_tokenized(["A"])


def test_named_predicates_need_no_model_of_spacy() -> None:
    predictor = Predictor.from_path(archive("srl"))
    output = predictor.predict_json({"sentence": "Cats hunt what they like.", "predicates": [1, 4]})
    check(output, RECORDED["srl"][0]["output"])
    with pytest.raises(RunError, match="'en_core_web_sm' of spaCy is not installed"):
        predictor.predict(sentence="Cats hunt.")


def test_errors_of_inputs_have_their_number(language: str) -> None:
    for kind in ("srl", "crf_tagger"):
        predictor = Predictor.from_path(archive(kind), language=language)
        with pytest.raises(DataError, match=r"^input 2: .*sentence"):
            predictor.predict_batch_json([{"sentence": "Cats hunt."}, {"text": "x"}])
        inputs = [{"sentence": "Cats hunt."}, {"sentence": "Dogs bark."}]
        expected = predictor.predict_batch_json(inputs)
        assert predictor.predict_batch_json(iter(inputs)) == expected


def test_examples_of_a_reader_are_predicted() -> None:
    loaded = load_archive(archive("crf_tagger"))
    predictor = Predictor.from_archive(loaded, "sentence_tagger")
    data = ROOT / "tests/fixtures/first_version/data/ner.txt"
    examples = [*loaded.validation_dataset_reader.read(data)][:3]
    outputs = predictor.predict_batch_instance(examples)
    assert outputs == [
        {**each, "logits": pytest.approx(np.array(each["logits"]), abs=1e-6)}
        for each in map(predictor.predict_instance, examples)
    ]
    assert predictor.predict_batch_json([]) == []
    expected = load(archive("crf_tagger")).predict_file(data)
    assert [each["tags"] for each in outputs] == [each["tags"] for each in expected[:3]]


def test_lines_are_json_objects() -> None:
    predictor = Predictor.from_path(archive("bcn"))
    line = predictor.load_line('{"sentence": "Fine .", "id": 7}')
    assert predictor.predict_json(line)["label"] in set("01234")
    for wrong in ("{", "[1]"):
        with pytest.raises(DataError, match="JSON"):
            predictor.load_line(wrong)


def test_pairs_have_to_be_named() -> None:
    predictor = Predictor.from_path(archive("esim"), "textual-entailment")
    assert predictor.predict(**PREMISE)["label"]
    with pytest.raises(TypeError, match="name the texts"):
        predictor.predict(*PREMISE.values())
    with pytest.raises(DataError, match="hypothesis"):
        predictor.predict(premise="A ball.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"predictor_name": "text_classifier"}, "is not for this model; use 'sentence_tagger'"),
        ({"overrides": {"model": {}}}, "overrides: a model is loaded with the config"),
        ({"frozen": False}, "frozen=False: a predictor has no dropout"),
        ({"cuda_device": 2}, "cuda_device is 2; it may be -1"),
        ({"dataset_reader_to_load": "valid"}, "dataset_reader_to_load is 'valid'.* 'validation'"),
    ],
)
def test_arguments_with_another_meaning_are_refused(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(RunError, match=message):
        Predictor.from_path(archive("crf_tagger"), **arguments)


def test_predictors_have_the_names_of_all_versions() -> None:
    for name in ("reading_comprehension", "reading-comprehension", "machine-comprehension"):
        Predictor.from_path(archive("bidaf"), name)


def test_too_many_texts_are_refused() -> None:
    with pytest.raises(TypeError, match="predict takes sentence; found 2 texts"):
        Predictor.from_path(archive("crf_tagger")).predict("A.", "B.")
