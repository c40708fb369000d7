import pytest
import torch

from elmo_framework.data.labels import (
    Classification,
    classifications,
    label_ids,
    label_in_color,
    label_lines,
    required_target,
)
from elmo_framework.data.vocabulary import Vocabulary
from elmo_framework.errors import DataError

LABELS = Vocabulary(["no", "yes"], name="labels")


def test_most_probable_label_is_predicted():
    first, second = classifications(torch.tensor([[0.0, 1.0], [2.0, 2.0]]), LABELS)

    assert first.label == "yes"
    assert first.probabilities == pytest.approx({"no": 0.26894142, "yes": 0.73105858})
    assert second == Classification("no", {"no": 0.5, "yes": 0.5})


def test_labels_become_ids_if_none_is_missing():
    known = label_ids([("yes", ["a"]), ("no", ["b"])], LABELS)

    assert known is not None
    assert known.tolist() == [1, 0]
    assert label_ids([("yes", ["a"]), (None, ["b"])], LABELS) is None


def test_label_unseen_in_training_is_refused_with_its_text():
    with pytest.raises(DataError) as raised:
        label_ids([("yess", ["Of", "course"])], LABELS)

    assert str(raised.value) == (
        "'yess' is not among the labels of the training data; choose from no, yes. "
        "Did you mean 'yes'? It occurs in: 'Of course'. "
        "Labels are counted before training, in the data of datasets_for_vocab_creation."
    )


def test_a_label_is_needed_for_a_score():
    assert required_target("yes", ["a"]) == "yes"
    with pytest.raises(DataError, match="an example without a label cannot be scored: 'a b'"):
        required_target(None, ["a", "b"])


def test_labels_are_written_as_a_table_with_numbers():
    predictions = [(Classification(label, {}), None) for label in ("yes", "no")]

    assert "".join(label_lines(predictions)) == "index\tprediction\n0\tyes\n1\tno\n"


def test_a_label_is_shown_with_its_probability():
    shown = label_in_color(Classification("yes", {"no": 0.251, "yes": 0.749}))

    assert shown.plain == "yes 75%"
