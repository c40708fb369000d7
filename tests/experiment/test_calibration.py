"""`elmo evaluate --calibrate` and `elmo explain` on a run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_framework.commands.main import main
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import RunError
from elmo_framework.experiment.calibration import LabelScores, calibrate
from elmo_framework.experiment.load_run import load
from elmo_framework.model.weights import load_tensors, save_tensors
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask
from tests.experiment.jobs import ROOT
from tests.unit.experiment.test_explain import CRF, head

TEXTS = ["a fine film", "no fine plot", "a dull film", "a dull dull plot"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts whose last label is not the one of its words."""
    path = tmp_path_factory.mktemp("data") / "texts.csv"
    labels = ["good", "good", "bad", "bad"] * 2 + ["good", "bad", "bad", "good"]
    rows = zip(TEXTS * 3, labels, strict=True)
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    folder = tmp_path_factory.mktemp("run") / "run"
    return train(folder, data, "text_classification_json", "basic_classifier")


def train(folder: Path, data: Path, reader: str, head: str, **options: Any) -> Path:
    config = {
        "dataset_reader": {"type": reader, "tokenizer": "whitespace"},
        "train_data_path": str(data),
        "validation_data_path": str(data),
        "model": {
            "type": head,
            **options,
            "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 4}}},
            "pooler": {"type": "bag_of_embeddings"},
        },
        "data_loader": {"batch_size": 4},
        "trainer": {"num_epochs": 3, "optimizer": {"type": "adam", "lr": 0.5}, "callbacks": []},
    }
    path = folder.with_name("config.json")
    path.write_text(json.dumps(config))
    assert main(["train", str(path), "-s", str(folder)]) == 0
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def probabilities(run: Path, text: str = TEXTS[0]) -> Mapping[str, float]:
    (prediction,) = load(run).predict([text])
    return dict(prediction["probabilities"], calibrated=prediction.get("calibrated", False))


def test_predictions_have_the_calibrated_probabilities(run: Path, data: Path, capsys) -> None:
    before = probabilities(run)
    assert main(["evaluate", str(run), str(data), "--calibrate", str(data)]) == 0
    printed = capsys.readouterr().out
    content = json.loads((run / "calibration.json").read_text())
    after = probabilities(run)

    assert not before["calibrated"]
    assert after["calibrated"]
    powers = {name: before[name] ** (1 / content["temperature"]) for name in ("good", "bad")}
    assert after["good"] == pytest.approx(powers["good"] / sum(powers.values()), rel=1e-5)
    assert content["num_items"] == 12
    loss = "negative_log_likelihood"
    assert content["after"][loss] < content["before"][loss]
    assert f"{content['temperature']:.4g}, fitted on texts.csv (12 examples)" in printed
    assert f"{content['after']['expected_calibration_error']:.6g}" in printed
    assert main(["report", str(run), "--output-file", str(run.with_name("page.html"))]) == 0
    assert 'aria-label="Reliability after"' in run.with_name("page.html").read_text()
    card = (run / "README.md").read_text()
    assert card.count("## Calibration") == 1
    assert f"| temperature | {content['temperature']:.4g} |" in card


def test_calibration_on_training_data_is_a_warning(run: Path, data: Path, caplog) -> None:
    other = run.with_name("other.csv")
    other.write_text(data.read_text() + f"{TEXTS[0]},bad\n")
    assert main(["evaluate", str(run), "--calibrate", str(other)]) == 0
    assert "was trained on this data" not in caplog.text
    copy = shutil.copy(data, run.with_name("copy.csv"))
    assert main(["evaluate", str(run), "--calibrate", str(copy), "--force"]) == 0
    assert f"{copy}: the run was trained on this data" in caplog.text


def test_an_earlier_calibration_needs_force(run: Path, data: Path, capsys) -> None:
    command = ["evaluate", str(run), "--calibrate", str(data)]
    assert main(command) == 0
    assert main(command) == 2
    assert "already exists; pass --force" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    assert (run / "README.md").read_text().count("## Calibration") == 1


def test_a_refused_format_calibrates_nothing(run: Path, data: Path, tmp_path: Path) -> None:
    file, output = str(data), str(tmp_path / "out")
    options = ["--predictions-file", output, "--predictions-format", "conll"]
    assert main(["evaluate", str(run), file, "--calibrate", file, *options]) == 2
    assert not (run / "calibration.json").exists()


def test_an_archive_predicts_the_same_and_is_not_calibrated(
    run: Path, data: Path, tmp_path: Path, capsys
) -> None:
    archive = tmp_path / "run.tar.gz"
    calibrate(load(run), data)
    assert main(["archive", str(run), str(archive)]) == 0
    assert probabilities(archive) == probabilities(run)
    assert main(["evaluate", str(archive), "--calibrate", str(data), "--force"]) == 2
    assert "an archive is read-only" in capsys.readouterr().err


def test_a_file_of_weights_is_not_calibrated(run: Path, data: Path) -> None:
    calibrate(load(run), data)
    assert load(run).head().temperature is not None
    assert load(run, weights_file=run / "weights.safetensors").head().temperature is None


def test_other_weights_are_not_calibrated(run: Path, data: Path, caplog) -> None:
    calibrate(load(run), data)
    weights = run / "weights.safetensors"
    save_tensors({name: 2 * value for name, value in load_tensors(weights).items()}, weights)
    assert not probabilities(run)["calibrated"]
    assert "fitted to other weights" in caplog.text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"format": 2}, "of format 2"),
        ({"format": 1, "temperature": 0.0}, "found 0.0"),
        ({"format": 1, "temperature": 1.0, "threshold": 2.0}, "from 0 to 1, found 2.0"),
    ],
)
def test_a_wrong_calibration_is_refused(run: Path, content: dict[str, Any], message: str) -> None:
    (run / "calibration.json").write_text(json.dumps(content))
    with pytest.raises(RunError, match=message):
        load(run)


def test_a_temperature_needs_errors(run: Path, tmp_path: Path, capsys) -> None:
    right = tmp_path / "right.csv"
    right.write_text("text,label\na fine film,good\n")
    assert main(["evaluate", str(run), "--calibrate", str(right)]) == 2
    assert "1 example, and none predicted wrongly" in capsys.readouterr().err
    assert not (run / "calibration.json").exists()


def test_an_ensemble_is_not_calibrated(run: Path, trained: Path, data: Path) -> None:
    calibrate(load(run), data)
    ensemble = load([run, trained])
    (together,), (alone,) = (each.predict(TEXTS[:1]) for each in (ensemble, load(trained)))
    assert "calibrated" not in together
    assert together["probabilities"] == pytest.approx(alone["probabilities"])
    with pytest.raises(RunError, match="calibrate one run"):
        calibrate(ensemble, data)


def test_the_threshold_of_several_labels_is_fitted(tmp_path: Path, capsys) -> None:
    data, run = tmp_path / "aspects.csv", tmp_path / "run"
    rows = ['soup,"food,price"', "soup,food", "waiter,service", "waiter,", "sun,"] * 4
    data.write_text("text,labels\n" + "".join(f"{row}\n" for row in rows))
    train(run, data, "multi_label_json", "multi_label_classifier", threshold=0.95)

    def f1_and_labels() -> tuple[float, list[dict[str, Any]]]:
        capsys.readouterr()
        assert main(["evaluate", str(run), str(data), "--format", "json"]) == 0
        scores = json.loads(capsys.readouterr().out)[str(data)]
        return scores["f1-measure-micro"], load(run).predict(["soup", "waiter", "sun"])

    before, predicted = f1_and_labels()
    assert main(["evaluate", str(run), "--calibrate", str(data)]) == 0
    assert "fitted on aspects.csv (60 decisions)" in capsys.readouterr().out
    after, tuned = f1_and_labels()

    content = json.loads((run / "calibration.json").read_text())
    assert after > before
    assert "calibrated" not in predicted[0]
    for each in tuned:
        above = {k for k, p in each["probabilities"].items() if p > content["threshold"]}
        assert (set(each["labels"]), each["calibrated"]) == (above, True)
    assert f"| threshold | {content['threshold']:.4g} |" in (run / "README.md").read_text()
    together = load([run, run]).predict(["soup"])[0]
    assert together["labels"] == predicted[0]["labels"]


def test_a_threshold_needs_labels(tmp_path: Path, capsys) -> None:
    data, run = tmp_path / "aspects.csv", tmp_path / "run"
    data.write_text("text,labels\n" + "soup,food\nsun,\n" * 4)
    train(run, data, "multi_label_json", "multi_label_classifier")
    without = tmp_path / "without.csv"
    without.write_text("text,labels\nsoup,\n")
    assert main(["evaluate", str(run), "--calibrate", str(without)]) == 2
    assert "no example has a label" in capsys.readouterr().err


def test_the_words_of_a_tagger_are_calibrated() -> None:
    counts = {"words": {"a": 1}, "labels": {"B-X": 2, "O": 3, "I-X": 1}, "beginnings": {"B-X": 1}}
    tagger, scores = head(CRF, Vocabularies(counts)), LabelScores(head(CRF, Vocabularies(counts)))
    tags = [("B-X", "I-X", "O"), ("O",)]
    examples = [TaggedSentence(tuple("a" * len(each)), each) for each in tags]
    batch = TaggingTask().collator(Vocabularies(counts), tagger.indexers)(examples)
    with torch.no_grad():
        output = tagger(batch)
        scores(batch, output)
        marginals = tagger.probabilities(output, batch)[batch.text.mask].max(dim=1).values
    assert (len(scores), scores.item) == (4, "word")
    bins = scores.reliability().bins
    mean = sum(each.count * each.confidence for each in bins) / 4
    assert mean == pytest.approx(float(marginals.mean()))


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tagger")
    data = str(ROOT / "tests/fixtures/ner/train.txt")
    config = {
        "dataset_reader": {"type": "conll2003"},
        "train_data_path": data,
        "validation_data_path": data,
        "model": {
            "type": "crf_tagger",
            "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 8}}},
            "encoder": {"type": "lstm", "hidden_size": 8, "bidirectional": True},
        },
        "data_loader": {"batch_size": 8},
        "trainer": {"num_epochs": 3, "optimizer": {"type": "adam", "lr": 0.05}, "callbacks": []},
    }
    (folder / "config.json").write_text(json.dumps(config))
    assert main(["train", str(folder / "config.json"), "-s", str(folder / "run")]) == 0
    return folder / "run"


def test_spans_of_a_calibrated_tagger_say_so(tagger: Path, tmp_path: Path) -> None:
    sentence = ["Maria Lund left Oslo on Monday ."]
    (before,) = load(tagger).predict(sentence)
    assert "calibrated" not in before
    content = calibrate(load(tagger), ROOT / "tests/fixtures/ner/train.txt")
    (after,) = load(tagger).predict(sentence)

    assert content["item"] == "word"
    assert after["tags"] == before["tags"]
    assert after["calibrated"]
    probabilities = [[each["probability"] for each in found["spans"]] for found in (before, after)]
    assert probabilities[0]
    assert probabilities[0] != probabilities[1]

    lines, output = tmp_path / "in.txt", tmp_path / "out.csv"
    lines.write_text(sentence[0] + "\n")
    assert main(["predict", str(tagger), str(lines), "--output-file", str(output)]) == 0
    header, row, *_ = output.read_text().splitlines()
    assert header.endswith(",probability,calibrated")
    assert row.endswith(",true")


def test_explain_writes_lines_and_a_page(run: Path, tmp_path: Path, capsys) -> None:
    command = ["explain", str(run), "--sentence", "a fine <film>"]
    assert main(command) == 0
    line = json.loads(capsys.readouterr().out)
    (sentence,) = line["sentences"]
    assert sentence["words"] == ["a", "fine", "<film>"]
    change = line["probability"] - line["baseline"]
    assert sum(sentence["scores"]) == pytest.approx(change, abs=1e-4)
    assert max(zip(sentence["scores"], sentence["words"], strict=True))[1] == "fine"

    page = tmp_path / "page.html"
    assert main([*command, "--output-file", str(page)]) == 0
    assert ">&lt;film&gt;</span>" in page.read_text()
    assert main([*command, "--pretty", "--label", "bad"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("bad ")
    assert "not the predicted label" in printed
    assert "fine -" in printed


def test_explain_keeps_the_fields_of_inputs(run: Path, data: Path, capsys) -> None:
    assert main(["explain", str(run), str(data), "--method", "occlusion"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["input_label"] for line in lines[:4]] == ["good", "good", "bad", "bad"]


def test_explain_names_the_input_of_an_error(run: Path, data: Path, capsys) -> None:
    assert main(["explain", str(run), str(data), "--word", "0"]) == 2
    assert f"error: {data}: input 1: this run labels whole texts" in capsys.readouterr().err


def test_explain_refuses_two_kinds_of_input(run: Path, data: Path, capsys) -> None:
    assert main(["explain", str(run), str(data), "--sentence", "a"]) == 2
    assert "both FILE and --sentence" in capsys.readouterr().err
