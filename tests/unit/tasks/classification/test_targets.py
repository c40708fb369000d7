"""Weights of labels, several labels, and numbers: readers and heads."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from elmo_framework.config.parse import parse
from elmo_framework.config.types import collecting_size_problems
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import BuildError, DataError, RunError
from elmo_framework.experiment.model_report import AssumedVocabularies
from elmo_framework.model.ensemble import Ensemble
from elmo_framework.model.model import Model
from elmo_framework.tasks.classification.task import ClassifiedText, MultiLabelText, TextWithValue
from elmo_framework.tasks.entailment.task import PairWithValue
from tests.unit.tasks.classifiers import batch_of
from tests.unit.tasks.learning import fit

NETWORK = {
    "embedder": {
        "token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 8}},
    },
    "pooler": {"type": "bag_of_embeddings", "averaged": True},
}
TEXTS = [ClassifiedText((word,), label) for word, label in ("ax", "bx", "cx", "dy")]
SETS = [
    MultiLabelText(("a",), ("x",)),
    MultiLabelText(("b",), ("y", "x")),
    MultiLabelText(("c",), ()),
]
VALUES = [TextWithValue((word,), value) for word, value in (("a", 100.0), ("b", 300.0))]


def head(kind: str, examples: list[Any], **options: Any) -> tuple[Any, Vocabularies]:
    torch.manual_seed(1)
    lazy: Any = parse(Model, {"type": kind, **NETWORK, **options}, source="a.jsonnet")
    counts = Vocabularies(lazy.factory.task.count(examples))
    return lazy.build(vocabularies=counts).eval(), counts


def read(path: Path, kind: str, text: str, **options: Any) -> list[Any]:
    path.write_text(text)
    options = {"type": kind, "tokenizer": "whitespace", **options}
    return list(parse(DatasetReader, options, source="a.jsonnet").build().read(path))


@pytest.mark.parametrize(
    ("weights", "expected"),
    [("balanced", {"x": 4 / 2 / 3, "y": 4 / 2 / 1}), ({"y": 5.0}, {"x": 1.0, "y": 5.0})],
)
def test_class_weights_and_smoothing_change_the_trained_loss_only(weights, expected):
    model, counts = head("basic_classifier", TEXTS, class_weights=weights, label_smoothing=0.1)
    batch = batch_of(model, counts, TEXTS)
    output = model(batch)

    log_p = output.logits.log_softmax(1)
    weight = torch.tensor([expected[label] for label in model.labels.items])
    target = 0.9 * F.one_hot(batch.labels, 2) + 0.1 / 2

    torch.testing.assert_close(output.loss, -(weight * target * log_p).sum(1).mean())
    torch.testing.assert_close(output.example_losses, -log_p.gather(1, batch.labels[:, None])[:, 0])
    assert not any("weights" in name for name in model.state_dict())


def test_a_weight_of_an_unknown_label_is_refused_with_the_nearest():
    texts = [ClassifiedText(("a",), "cooking"), ClassifiedText(("b",), "sport")]
    with pytest.raises(BuildError, match=r"'cookin'.*Did you mean 'cooking'"):
        head("basic_classifier", texts, class_weights={"cookin": 2.0})

    lazy: Any = parse(
        Model, {"type": "basic_classifier", **NETWORK, "class_weights": {"new": 2.0}}, source="a"
    )
    with collecting_size_problems() as problems:
        lazy.build(vocabularies=AssumedVocabularies())
    assert problems == []  # before the data is read


def test_a_tagger_with_a_crf_has_no_class_weights():
    embedder = NETWORK["embedder"]
    config = {"type": "simple_tagger", "embedder": embedder, "decoder": "crf"}
    lazy: Any = parse(Model, {**config, "class_weights": "balanced"}, source="a.jsonnet")
    with pytest.raises(BuildError, match="class_weights is for `decoder: softmax`"):
        lazy.build(vocabularies=Vocabularies({"labels": {"O": 3, "B-X": 1}}))


def test_several_labels_are_learned():
    model, counts = head("multi_label_classifier", SETS)
    batch = batch_of(model, counts, SETS)
    fit(model.train(), batch, lr=0.05, num_steps=80)
    with torch.no_grad():
        output = model.eval()(batch)

    predictions = model.predict(output, batch)
    assert [set(each.labels) for each in predictions] == [{"x"}, {"x", "y"}, set()]
    assert model.scores(model.sums(output, batch))["exact_match"] == 1.0
    written = model.task.to_json(predictions[0], SETS[0])
    assert written["labels"] == ["x"]
    assert written["probabilities"]["y"] < 0.5 < written["probabilities"]["x"]


def test_a_threshold_selects_the_labels():
    for threshold, number in ((0.01, 2), (0.99, 0)):
        model, counts = head("multi_label_classifier", SETS, threshold=threshold)
        batch = batch_of(model, counts, SETS)
        assert {len(each.labels) for each in model.predict(model(batch), batch)} == {number}


def test_numbers_are_learned_in_units_of_their_deviation():
    model, counts = head("text_regression", VALUES)
    batch = batch_of(model, counts, VALUES)
    initial = model(batch)
    torch.testing.assert_close(initial.example_losses, ((initial.values - batch.labels) / 100) ** 2)
    fit(model.train(), batch, lr=0.1, num_steps=300)
    with torch.no_grad():
        output = model.eval()(batch)

    assert model.predict(output, batch) == pytest.approx([100, 300], abs=30)
    assert model.scores(model.sums(output, batch))["pearson"] == pytest.approx(1)


def test_equal_numbers_have_the_unit_one():
    # The mean of three times 0.1 is rounded to another number.
    model, counts = head("text_regression", [TextWithValue(("a",), 0.1)] * 3)
    batch = batch_of(model, counts, [TextWithValue(("b",), 1.1)])
    output = model(batch)
    score = model.logits(batch).squeeze(1)
    assert torch.allclose(output.loss, (score - 1.0).square().mean())


def test_an_ensemble_of_numbers_is_their_mean_and_never_votes():
    other = [TextWithValue((word,), value) for word, value in (("a", 1.0), ("b", 3.0))]
    heads = [head("text_regression", examples) for examples in (VALUES, other)]
    models, counts = zip(*heads, strict=True)
    model = Ensemble(models, counts)
    batch = model.collator(counts[0])(VALUES)

    alone = [
        own.predict(own(part), part)
        for own, part in zip(models, batch.members.values(), strict=True)
    ]
    assert model.predict(model(batch), batch) == pytest.approx(
        [sum(p) / 2 for p in zip(*alone, strict=True)]
    )
    with pytest.raises(RunError, match="vote"):
        Ensemble(models, counts, combination="vote")


def test_labels_of_tables_and_json_lines(tmp_path: Path):
    table = read(tmp_path / "a.csv", "multi_label_json", 'text,labels\na b,"x, y"\nc,\n')
    lines = read(tmp_path / "a.jsonl", "multi_label_json", '{"text": "a", "labels": ["x, y", 2]}\n')

    assert table == [MultiLabelText(("a", "b"), ("x", "y")), MultiLabelText(("c",), ())]
    assert lines == [MultiLabelText(("a",), ("x, y", "2"))]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "text,labels\na,\nb,x\n"),
        ("a.jsonl", '{"text": "a", "labels": []}\n{"text": "b", "labels": ["x"]}\n'),
    ],
)
def test_no_labels_are_incomplete_in_each_format(tmp_path: Path, name: str, text: str):
    complete = read(tmp_path / name, "multi_label_json", text, skip_incomplete=True)

    assert complete == [MultiLabelText(("b",), ("x",))]


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("multi_label_json", '{"text": "a", "labels": ["x", "x"]}', "more than once"),
        ("multi_label_json", '{"text": "a", "labels": 3}', "expected a list of labels"),
        ("multi_label_json", '{"text": "a", "labels": ["x", ""]}', "is empty"),
        ("text_regression_json", '{"text": "a", "value": "4,5"}', "'4,5'; expected a number"),
        ("text_regression_json", '{"text": "a", "value": true}', "expected a number"),
        ("text_regression_json", '{"text": "a", "value": "nan"}', "expected a number"),
    ],
)
def test_a_wrong_target_is_refused_with_its_line(tmp_path, kind, text, message):
    with pytest.raises(DataError, match=message) as error:
        read(tmp_path / "a.jsonl", kind, f"\n{text}\n")
    assert error.value.line == 2


def test_rows_of_one_table_are_selected_by_a_column(tmp_path: Path):
    rows = "sentence1\tsentence2\tvalue\tpart\na\tb\t4.5\tTRAIN\nc\td\t1\tTEST\n"
    pairs = read(tmp_path / "a.tsv", "pair_regression_json", rows, only={"part": "TEST"})

    assert pairs == [PairWithValue(("c",), ("d",), 1.0)]
    with pytest.raises(DataError, match="no pair has the values of `only`"):
        read(tmp_path / "a.tsv", "pair_regression_json", rows, only={"part": "DEV"})
