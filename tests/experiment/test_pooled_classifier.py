"""The complete plugin `pooled_classifier`, from its shipped configs to predictions."""

from __future__ import annotations

import ast
import json
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import save_bilm
from elmo_framework.commands.main import main
from elmo_framework.config.introspect import schema
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.data.reader import DatasetReader
from elmo_framework.errors import DataError
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.load_run import load
from tests.plugin_scope import shipped_plugin, without_plugins

DATA = Path("tests/fixtures/pooled_classifier")
WITH_HEADER = DATA / "with_header.tsv"
CONFIGS = Path("plugins/pooled_classifier")
JSON, TSV = "labelled_text_json", "labelled_text_tsv"
TINY_BILM = {
    "token_encoder": {"type": "char_cnn", "filters": [[1, 8], [2, 8]], "projection_dim": 8},
    "context_layers": {"type": "elmo_lstm", "cell_size": 16, "projection_dim": 8},
}


@pytest.fixture(scope="module", autouse=True)
def _in_root() -> Iterator[None]:
    with shipped_plugin("pooled_classifier"):
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the shipped config."""
    directory = tmp_path_factory.mktemp("topics") / "run"
    assert _train("baseline.jsonnet", directory, "trainer.num_epochs=12") == 0
    return directory


@pytest.fixture(scope="module")
def loaded(run: Path) -> Assembly:
    return load(run)


def _train(config: str, directory: Path, *overrides: str) -> int:
    changed = [part for held in ("trainer.callbacks=[]", *overrides) for part in ("-o", held)]
    return main(["train", str(CONFIGS / config), "-s", str(directory), *changed])


def _read(name: str, path: Path, **keys: Any) -> list[Any]:
    raw = {"type": name, "tokenizer": "whitespace", **keys}
    return list(parse(DatasetReader, raw, source="test").build().read(path))


def _written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("name", ["baseline.jsonnet", "elmo.jsonnet"])
def test_its_configs_fit_the_schema_that_plugins_are_part_of(name: str) -> None:
    validator = jsonschema.Draft202012Validator(schema(Experiment))
    raw = Config.load(CONFIGS / name).raw
    assert [error.message for error in validator.iter_errors(raw)] == []


def test_it_fits_its_training_data_and_reports_the_accuracy(loaded: Assembly) -> None:
    scores = loaded.evaluate(DATA / "train.jsonl")
    assert scores["accuracy"] == 1
    assert {"accuracy", "f1-measure-macro", "loss"} <= set(scores)


def test_a_loaded_run_scores_as_the_run_did_when_it_was_trained(
    run: Path, loaded: Assembly
) -> None:
    metrics = json.loads((run / "metrics.json").read_text())
    scores = loaded.evaluate(DATA / "valid.jsonl")
    assert scores["accuracy"] == metrics["best_validation_accuracy"]
    assert scores["loss"] == pytest.approx(metrics["best_validation_loss"])


def test_every_input_form_gives_the_same_prediction(
    loaded: Assembly,
) -> None:
    text, words = "Stir the soup.", ["Stir", "the", "soup", "."]
    given = [text, {"sentence": text}, {"text": text}, {"text": words}]
    first, *others = loaded.predict(given)
    assert others == [first] * 3
    assert first["words"] == words
    assert first["label"] == "cooking"
    assert first["probabilities"]["cooking"] == max(first["probabilities"].values())
    assert sum(first["probabilities"].values()) == pytest.approx(1)


def test_an_empty_text_has_the_same_prediction_in_any_batch(loaded: Assembly) -> None:
    (alone,) = loaded.predict([{"text": ""}])
    _, together = loaded.predict(["Stir the soup slowly.", {"text": " "}])
    assert alone["words"] == together["words"] == []
    assert alone["label"] == together["label"]
    assert alone["probabilities"] == pytest.approx(together["probabilities"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"words": ["a"]},
            "expected one key with a text, found 'words'; choose from sentence, text.",
        ),
        (
            {"text": ["a"], "sentence": "a"},
            "expected one key with a text, found 'sentence', 'text'; choose from",
        ),
        ({"text": 3}, "'text' is 3; expected a string or a list of strings"),
    ],
)
def test_an_object_without_a_text_is_refused(
    run: Path,
    given: dict[str, Any],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = _written(tmp_path / "input.jsonl", json.dumps(given))
    assert main(["predict", str(run), str(lines)]) == 2
    assert message in capsys.readouterr().err


def test_a_label_that_was_not_seen_in_training_is_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = _written(tmp_path / "new.jsonl", '{"text": "The band played on.", "label": "musik"}')
    assert main(["evaluate", str(run), str(data)]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"error: {data}: 'musik' is not among the labels of the training data; "
        "choose from cooking, sport, weather. It occurs in: 'The band played on .'. "
        "Labels are counted before training, in the data of datasets_for_vocab_creation."
    )


def test_elmo_is_concatenated_with_word_vectors(run: Path, tmp_path: Path) -> None:
    save_bilm(parse(BiLm, TINY_BILM, source="test").build(), tmp_path / "bilm")
    place = f"model.embedder.token_embedders.elmo.bilm={tmp_path / 'bilm'}"
    directory = tmp_path / "run"
    assert _train("elmo.jsonnet", directory, place, "trainer.num_epochs=1") == 0
    assert load(directory).model.pooler.output_dim == load(run).model.pooler.output_dim + 16
    assert load(directory).predict(["Snow fell."])[0]["words"] == ["Snow", "fell", "."]


def test_a_table_is_read_after_its_header() -> None:
    texts = _read(TSV, WITH_HEADER, has_header=True)
    assert [(text.words[0], text.label) for text in texts] == [
        ("Stir", "cooking"),
        ("Snow", "weather"),
        ("The", "sport"),
    ]


def test_a_table_is_read_by_the_names_of_its_columns() -> None:
    by_name = _read(JSON, WITH_HEADER, text_key="sentence", label_key="topic")
    assert by_name == _read(TSV, WITH_HEADER, has_header=True)


def test_other_keys_numbers_as_labels_and_a_limit_are_read(tmp_path: Path) -> None:
    lines = ['{"review": "Good .", "stars": 5}', "", '{"review": "Bad .", "stars": 1}', "no JSON"]
    data = _written(tmp_path / "reviews.jsonl", *lines)
    texts = _read(JSON, data, text_key="review", label_key="stars", max_instances=2)
    assert [(text.words, text.label) for text in texts] == [
        (("Good", "."), "5"),
        (("Bad", "."), "1"),
    ]


@pytest.mark.parametrize(
    ("reader", "line", "message"),
    [
        (JSON, "{text: 1}", "not a JSON object: Expecting property name enclosed in double quotes"),
        (JSON, '"text"', "expected a JSON object, not 'text'"),
        (
            JSON,
            '{"txt": "a", "label": "b"}',
            "missing key 'text'; found: label, txt. Did you mean 'txt'?",
        ),
        (JSON, '{"text": ["a"], "label": "b"}', "'text' is ['a']; expected a string"),
        (
            JSON,
            '{"text": "a", "label": null}',
            "'label' is None; expected a string or a whole number",
        ),
        (JSON, '{"text": "", "label": "b"}', "'text' has no words; remove the line"),
        (JSON, '{"text": "a", "label": ""}', "'label' is empty"),
        (TSV, "a", "found 1 columns; expected a text, a tab and a label"),
        (TSV, "a\tb\tc", "found 3 columns; expected a text, a tab and a label"),
        (TSV, " \tb", "the text ' ' has no words; remove the line"),
        (TSV, "a\t", "the label is empty"),
    ],
)
def test_a_bad_line_is_named_with_its_file(
    reader: str, line: str, message: str, tmp_path: Path
) -> None:
    good = '{"text": "a", "label": "b"}' if reader == JSON else "a\tb"
    data = _written(tmp_path / "data", good, "", line)
    with pytest.raises(DataError) as caught:
        _read(reader, data)
    assert str(caught.value).startswith(f"{data}:3: {message}")


@pytest.mark.parametrize(
    ("reader", "lines", "keys", "message"),
    [
        (TSV, ["text\tlabel", ""], {"has_header": True}, "there is no text below the header"),
        (TSV, ["", " "], {"has_header": True}, "this file has no examples"),
        (TSV, [""], {}, "this file has no examples"),
        (JSON, [""], {}, "this file has no examples"),
    ],
)
def test_a_file_without_texts_is_refused(
    reader: str, lines: list[str], keys: dict[str, Any], message: str, tmp_path: Path
) -> None:
    data = _written(tmp_path / "data", *lines)
    with pytest.raises(DataError, match=f"{data}: {message}"):
        _read(reader, data, **keys)


def test_it_imports_public_names_only() -> None:
    modules = [ast.parse(path.read_text()) for path in CONFIGS.glob("*.py")]
    imports = [node for module in modules for node in ast.walk(module)]
    names = [
        f"{node.module}.{alias.name}"
        for node in imports
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert "elmo_framework.model.Head" in names
    assert not [name for name in names if name.startswith("elmo_framework") and "._" in name]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that holds the plugin as pip would install it, by its project file."""
    project = tomllib.loads((CONFIGS / "pyproject.toml").read_text())
    for package in project["tool"]["setuptools"]["packages"]:
        source = CONFIGS / project["tool"]["setuptools"]["package-dir"][package]
        shutil.copytree(
            source, tmp_path / package, ignore=shutil.ignore_patterns("build", "*.egg*")
        )
    name, version = project["project"]["name"], project["project"]["version"]
    about = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = project["project"]["entry-points"]
    lines = [
        f"[{group}]\n{key} = {groups[group][key]}\n" for group in groups for key in groups[group]
    ]
    (about / "entry_points.txt").write_text("".join(lines))
    with without_plugins("plugins", "pooled_classifier"):
        monkeypatch.syspath_prepend(tmp_path)
        yield tmp_path


def test_installed_it_needs_no_key_and_is_named_when_it_is_gone(
    installed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert _train("baseline.jsonnet", run, "plugins=[]", "trainer.num_epochs=1") == 0
    packages = json.loads((run / "metadata.json").read_text())["plugins"]
    assert packages["elmo-pooled-classifier"]["modules"] == ["pooled_classifier"]
    assert main(["evaluate", str(run), str(DATA / "valid.jsonl")]) == 0
    for path in (installed / "pooled_classifier", *installed.glob("*.dist-info")):
        shutil.rmtree(path)
    with without_plugins("pooled_classifier"):
        assert main(["evaluate", str(run), str(DATA / "valid.jsonl")]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"the run {run} was made with plugins of packages that are not installed here: "
        "elmo-pooled-classifier==0.1.0 (modules: pooled_classifier); install them: "
        "pip install elmo-pooled-classifier==0.1.0"
    )


def test_pyproject_lists_the_imported_packages() -> None:
    project = tomllib.loads((CONFIGS / "pyproject.toml").read_text())["project"]
    modules = [ast.parse(path.read_text()) for path in CONFIGS.glob("*.py")]
    nodes = [node for module in modules for node in ast.walk(module)]
    imported = {
        str(node.module).partition(".")[0]
        for node in nodes
        if isinstance(node, ast.ImportFrom) and not node.level
    }
    assert not [node for node in nodes if isinstance(node, ast.Import)]
    needed = {name.replace("-", "_") for name in project["dependencies"]}
    assert imported - {"__future__", "collections", "dataclasses", "pathlib", "typing"} == needed
