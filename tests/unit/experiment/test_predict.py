"""What an interrupted `elmo predict` keeps."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter

from elmo_framework.data.inputs import Predicted, PredictionInput
from elmo_framework.data.labels import Classification
from elmo_framework.errors import RunError
from elmo_framework.experiment.predict import (
    digest_of_files,
    digest_of_stream,
    dump_predictions,
    fingerprint,
    load_predictions,
    prediction_adapter,
)
from elmo_framework.experiment.prediction_formats import PredictionWriter
from elmo_framework.metrics.coreference import Resolution
from elmo_framework.metrics.squad import Answer
from elmo_framework.metrics.srl import Proposition
from elmo_framework.model.task import HeadTask
from elmo_framework.tasks.classification.task import TextClassificationTask
from elmo_framework.tasks.coreference.task import CoreferenceTask
from elmo_framework.tasks.entailment.task import EntailmentTask
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask
from elmo_framework.tasks.srl.task import SrlTask
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask

LABEL = Classification("b\u2028\n", {"a": 0.1 + 0.2, "b\u2028\n": 1 / 3})


def dumped(adapter: TypeAdapter[list[Any]], pairs: Sequence[Any]) -> str:
    return dump_predictions(adapter, [Predicted(each, None, more) for each, more in pairs])


@pytest.mark.parametrize(
    ("task", "prediction"),
    [
        (TextClassificationTask, LABEL),
        (EntailmentTask, LABEL),
        (TaggingTask, ["O", "B-PER"]),
        (SrlTask, [Proposition(None, ("O",)), Proposition(1, ("B-A0", "B-V"))]),
        (QuestionAnsweringTask, Answer("in 1842", 3, 10)),
        (CoreferenceTask, Resolution((((0, 1), (3, 4)),), ((0, 1), (2, 2), (3, 4)))),
    ],
)
def test_predictions_are_restored_as_they_were(task: type[Any], prediction: object) -> None:
    adapter = prediction_adapter(task.__new__(task))
    pairs = [(prediction, [{"A": 0.1}]), (prediction, [])]
    line = dumped(adapter, pairs)
    assert "\n" not in line
    assert load_predictions(adapter, line) == pairs


def test_numbers_that_are_not_finite_are_restored() -> None:
    adapter = prediction_adapter(TextClassificationTask())
    prediction = Classification("a", {"a": math.nan, "b": math.inf})
    ((restored, _),) = load_predictions(adapter, dumped(adapter, [(prediction, [])]))
    assert math.isnan(restored.probabilities["a"])
    assert restored.probabilities["b"] == math.inf


def test_a_task_without_annotations_keeps_plain_predictions() -> None:
    class Plain:
        prediction_type = HeadTask.prediction_type

        def to_json(self, prediction, example):  # type: ignore[no-untyped-def]
            return prediction

    adapter = prediction_adapter(Plain())  # type: ignore[arg-type]
    pairs = [({"a": [1, None]}, [])]
    assert load_predictions(adapter, dumped(adapter, pairs)) == pairs


@pytest.mark.parametrize("line", ["3", "{}", '{"predictions": [["O"]], "probabilities": []}'])
def test_damaged_predictions_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"no predictions|zip"):
        load_predictions(prediction_adapter(TaggingTask()), line)


def test_a_fingerprint_is_of_all_weights_and_types() -> None:
    class Weighted(torch.nn.Module):
        def __init__(self, *values: float, dtype: torch.dtype = torch.float32) -> None:
            super().__init__()
            self.register_buffer("a", torch.tensor(values, dtype=dtype))
            self.register_buffer("scalar", torch.tensor(3))

        def references(self) -> dict[str, Any]:
            return {}

    found = {
        fingerprint(model)  # type: ignore[arg-type]
        for model in (Weighted(1, 2), Weighted(1, 3), Weighted(1, 2, dtype=torch.bfloat16))
    }
    assert len(found) == 3
    assert fingerprint(Weighted(1, 2)) in found  # type: ignore[arg-type]


def test_the_content_of_all_files_counts(tmp_path: Path) -> None:
    for name, content in {"a.txt": "1", "inner/b.txt": "2"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    whole = digest_of_files(tmp_path)
    assert digest_of_files(tmp_path / "**/*.txt") == whole
    assert digest_of_files(tmp_path / "a.txt") != whole
    with (tmp_path / "a.txt").open("rb") as stream:
        stream.read()
        assert digest_of_stream(stream) == digest_of_files(tmp_path / "a.txt")
    (tmp_path / "inner/b.txt").write_text("3")
    assert digest_of_files(tmp_path) != whole


PREDICTIONS = [
    Predicted(("B-LOC",), PredictionInput(TaggedSentence(("Tromsø",), ("O",)), {})),
    Predicted(("O",), PredictionInput(TaggedSentence(("a",), None), {})),
]


def test_every_task_has_json_lines():
    lines = list(PredictionWriter(TaggingTask(), "jsonl").pieces(PREDICTIONS))

    assert [json.loads(line)["tags"] for line in lines] == [["B-LOC"], ["O"]]
    assert "Tromsø" in lines[0]
    assert all(line.endswith("}\n") for line in lines)


def test_a_task_can_define_prediction_formats():
    pieces = PredictionWriter(TaggingTask(), "conll").pieces(PREDICTIONS[:1])

    assert "".join(pieces) == "Tromsø O B-LOC\n\n"


def test_predictions_are_written_as_they_come():
    def endless() -> Iterator[tuple[Any, Any]]:
        while True:
            yield PREDICTIONS[0]

    assert next(PredictionWriter(TaggingTask(), "jsonl").pieces(endless()))


def test_another_name_is_refused_with_those_that_the_task_has():
    with pytest.raises(RunError) as raised:
        PredictionWriter(TaggingTask(), "conl")

    assert str(raised.value) == (
        "unknown format 'conl' for predictions of this run; "
        "choose from brat, conll, conllu, csv, jsonl, tsv. Did you mean 'conll'?"
    )


def test_pretty_output_is_json_by_default():
    def nothing(*_: object) -> Iterable[Any]:
        return ()

    class Plain(HeadTask[Any, Any]):
        count = collate = num_tokens = sentences = gold = example = nothing  # type: ignore[assignment]

        def to_json(self, prediction: Any, example: Any) -> dict[str, Any]:
            return {"label": prediction}

    assert Plain().pretty("é", None).plain == '{\n  "label": "é"\n}'
    assert Plain.formats == {}
