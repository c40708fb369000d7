import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from elmo_framework.errors import RunError
from elmo_framework.experiment.prediction_formats import prediction_format
from elmo_framework.model.task import HeadTask
from elmo_framework.tasks.tagging.example import TaggedSentence
from elmo_framework.tasks.tagging.task import TaggingTask

PREDICTIONS = [
    (("B-LOC",), TaggedSentence(("Tromsø",), ("O",))),
    (("O",), TaggedSentence(("a",), None)),
]


def test_every_task_has_json_lines():
    lines = list(prediction_format(TaggingTask(), "jsonl")(PREDICTIONS))

    assert [json.loads(line)["tags"] for line in lines] == [["B-LOC"], ["O"]]
    assert "Tromsø" in lines[0]
    assert all(line.endswith("}\n") for line in lines)


def test_a_task_has_formats_of_its_own():
    pieces = prediction_format(TaggingTask(), "conll")(PREDICTIONS[:1])

    assert "".join(pieces) == "Tromsø O B-LOC\n\n"


def test_predictions_are_written_as_they_come():
    def endless() -> Iterator[tuple[Any, Any]]:
        while True:
            yield PREDICTIONS[0]

    assert next(prediction_format(TaggingTask(), "jsonl")(endless()))


def test_another_name_is_refused_with_those_that_the_task_has():
    with pytest.raises(RunError) as raised:
        prediction_format(TaggingTask(), "conl")

    assert str(raised.value) == (
        "'conl' is no format for predictions of this run; "
        "allowed: conll, jsonl. Did you mean 'conll'?"
    )


def test_a_task_without_a_way_to_show_predictions_shows_them_as_json():
    def nothing(*_: object) -> Iterable[Any]:
        return ()

    class Plain(HeadTask[Any, Any]):
        count = collator = num_tokens = sentences = gold = example = nothing  # type: ignore[assignment]

        def to_json(self, prediction: Any, example: Any) -> dict[str, Any]:
            return {"label": prediction}

    assert Plain().pretty("é", None).plain == '{\n  "label": "é"\n}'
    assert Plain.formats == {}
