"""Archives of AllenNLP; their outputs were recorded with AllenNLP 2.10.1."""

from __future__ import annotations

import io
import json
import os
import pickle
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from torch.nn import functional

from elmo_framework import load
from elmo_framework.commands.main import main
from elmo_framework.compat.allennlp.archive import import_archive
from elmo_framework.data.batch import to_device
from elmo_framework.errors import DataError, RunError
from elmo_framework.training.evaluator import inference
from tests.conftest import ROOT

ARCHIVES = ROOT / "tests/fixtures/allennlp"
DATA = ROOT / "tests/fixtures/first_version/data"
MINI = ROOT / "elmo_framework/bilm/mini"
EXPECTED = json.loads((ARCHIVES / "expected.json").read_text())
FILES = {
    "crf_tagger": "ner.txt",
    "simple_tagger": "ner.txt",
    "characters": "ner.txt",
    "bytes": "ner.txt",
    "stacked": "ner.txt",
    "srl": "srl.gold_conll",
    "esim": "snli.jsonl",
    "bcn": "sst.txt",
    "bidaf": "squad.json",
    "basic_classifier": "sst.txt",
    "coref": "coreference.conll",
}


def outputs(run: Any, file: Path) -> list[tuple[Any, Any, Any]]:
    """Return example, output and prediction, one batch for each example."""
    head, collate, results = run.head(), run.explainer().collate, []
    for example in run.experiment.dataset_reader.read(file):
        batch = to_device(collate([example]), torch.device("cpu"))
        with inference(head):
            output = head(batch)
            (prediction,) = head.predict(output, batch)
        results.append((example, output, prediction))
    return results


def check_label(output: Any, prediction: Any, expected: Mapping[str, Any]) -> None:
    logits = expected["logits" if "logits" in expected else "label_logits"]
    np.testing.assert_allclose(output.logits[0], logits, atol=1e-5)
    assert prediction.label == expected["label"]


def check_tags(output: Any, prediction: Any, expected: Mapping[str, Any]) -> None:
    np.testing.assert_allclose(output.logits[0], expected["logits"], atol=1e-5)
    assert list(prediction) == expected["tags"]


def check_answer(output: Any, prediction: Any, expected: Mapping[str, Any]) -> None:
    for name in ("start", "end"):
        # AllenNLP adds a bias, which no softmax depends on.
        logits = torch.tensor(expected[f"span_{name}_logits"]).log_softmax(0)
        own = getattr(output, f"{name}_logits")[0].log_softmax(0)
        np.testing.assert_allclose(own, logits, atol=2e-5)
    assert prediction.text == expected["best_span_str"]


def check_clusters(output: Any, prediction: Any, expected: Mapping[str, Any]) -> None:
    (ranking,) = output.rankings
    assert ranking.spans.tolist() == expected["top_spans"]
    for row, scores in zip(ranking.choices.tolist(), expected["scores"], strict=True):
        np.testing.assert_allclose(row[: len(scores)], scores, atol=1e-4, rtol=1e-5)
        assert set(row[len(scores) :]) <= {-np.inf}
    clusters = [sorted(map(tuple, cluster)) for cluster in expected["clusters"]]
    assert [*map(list, prediction.clusters)] == sorted(clusters)


CHECKS: dict[str, Callable[[Any, Any, Mapping[str, Any]], None]] = {
    "crf_tagger": check_tags,
    "simple_tagger": check_tags,
    "characters": check_tags,
    "bytes": check_tags,
    "stacked": check_tags,
    "bidaf": check_answer,
    "coref": check_clusters,
}


@pytest.mark.parametrize("kind", sorted(FILES.keys() - {"srl"}))
def test_imported_models_have_the_outputs_of_allennlp(kind: str, tmp_path: Path) -> None:
    import_archive(ARCHIVES / f"{kind}.tar.gz", tmp_path / "run")
    answers = outputs(load(tmp_path / "run"), DATA / FILES[kind])
    assert len(answers) == len(EXPECTED[kind]) > 2
    for (_, output, prediction), expected in zip(answers, EXPECTED[kind], strict=True):
        CHECKS.get(kind, check_label)(output, prediction, expected)


def test_imported_roles_have_the_outputs_of_allennlp(tmp_path: Path) -> None:
    import_archive(ARCHIVES / "srl.tar.gz", tmp_path / "run")
    rows = [
        pair
        for _, output, prediction in outputs(load(tmp_path / "run"), DATA / FILES["srl"])
        for pair in zip(output.logits.softmax(-1), prediction, strict=True)
    ]
    for (row, proposition), expected in zip(rows, EXPECTED["srl"], strict=True):
        np.testing.assert_allclose(row, expected["class_probabilities"], atol=1e-5)
        assert list(proposition.tags) == expected["tags"]


def test_an_imported_run_is_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    assert main(["import", str(ARCHIVES / "crf_tagger.tar.gz"), "-s", str(run)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{run}\n"
    assert "model.calculate_span_f1" in printed.err
    scores = load(run).evaluate(DATA / "ner.txt")
    gold = [example.tags for example, *_ in outputs(load(run), DATA / "ner.txt")]
    predicted = [each["tags"] for each in EXPECTED["crf_tagger"]]
    pairs = [pair for tags in zip(gold, predicted, strict=True) for pair in zip(*tags, strict=True)]
    assert scores["accuracy"] == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
    assert {"translated.jsonnet", "config.jsonnet"} <= {path.name for path in run.iterdir()}


def test_a_run_is_replaced_only_by_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", str(ARCHIVES / "bcn.tar.gz"), "-s", str(tmp_path / "run")]
    assert main(command) == 0
    assert main(command) == 2
    advice = "pass --force to remove it, or choose another --serialization-dir"
    assert capsys.readouterr().err.endswith(f"run: the folder has a run; {advice}\n")
    assert main([*command, "--force"]) == 0


def test_overrides_change_keys_of_the_translated_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    command = ["import", str(ARCHIVES / "bcn.tar.gz"), "-s", str(run)]
    assert main([*command, "-o", "data_loader.batch_size=3", "-o", "{'random_seed': 1 + 1}"]) == 0
    config = json.loads((run / "filled_config.json").read_text())
    assert (config["data_loader"]["batch_size"], config["random_seed"]) == (3, 2)
    capsys.readouterr()
    assert main([*command, "--force", "-o", "model.text_field_embedder.a=1"]) == 2
    assert "model has no key 'text_field_embedder'" in capsys.readouterr().err


def test_a_serialization_directory_is_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, run, same = tmp_path / "training", tmp_path / "run", tmp_path / "same"
    with tarfile.open(ARCHIVES / "crf_tagger.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    (folder / "weights.th").rename(folder / "best.th")
    (folder / "model_state_e1_b0.th").write_bytes(b"of another epoch")
    assert main(["import", str(folder), "-s", str(run)]) == 0
    assert capsys.readouterr().err.startswith(f"{folder}: written for AllenNLP; translated")
    import_archive(ARCHIVES / "crf_tagger.tar.gz", same)
    expected = load(same).evaluate(DATA / "ner.txt")
    assert load(run).evaluate(DATA / "ner.txt") == expected
    assert load(folder).evaluate(DATA / "ner.txt") == expected
    (folder / "best.th").write_bytes(weights({"crf.transitions": torch.zeros(2, 2)}))
    with pytest.raises(DataError, match=r"do not fit crf\.transitions"):
        load(folder)  # is not taken from the cache
    (folder / "best.th").unlink()
    with pytest.raises(RunError, match="not a run directory"):
        load(folder)


def repacked(
    tmp_path: Path,
    kind: str = "crf_tagger",
    *,
    change: Callable[[dict[str, Any]], None] | None = None,
    files: Mapping[str, bytes | None] | None = None,
) -> Path:
    """Return an archive of a tagger with another config or with other members."""
    members: dict[str, bytes] = {}
    with tarfile.open(ARCHIVES / f"{kind}.tar.gz") as tar:
        for member in tar:
            if (source := tar.extractfile(member)) is not None:
                members[member.name] = source.read()
    if change is not None:
        config = json.loads(members["config.json"])
        change(config)
        members["config.json"] = json.dumps(config).encode()
    path = tmp_path / "changed.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, content in {**members, **(files or {})}.items():
            if content is not None:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


def weights(changes: Mapping[str, torch.Tensor | None], kind: str = "crf_tagger") -> bytes:
    with tarfile.open(ARCHIVES / f"{kind}.tar.gz") as tar:
        source = tar.extractfile("weights.th")
        assert source is not None
        tensors = {**torch.load(io.BytesIO(source.read()), weights_only=True), **changes}
    return pickled({name: each for name, each in tensors.items() if each is not None})


def pickled(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


with tarfile.open(ARCHIVES / "crf_tagger.tar.gz") as _tar:
    VOCABULARY = [name for name in _tar.getnames() if name.startswith("vocabulary/")]


class Code:
    def __reduce__(self) -> Any:
        return os.mkdir, ("executed",)


def test_file_named_as_an_archive_is_no_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.tar.gz"
    path.write_bytes(b"not packed")
    assert main(["import", str(path), "-s", str(tmp_path / "run")]) == 2
    assert "checkpoint" not in (said := capsys.readouterr().err)
    assert said.startswith(f"error: {path}: ")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"weights.th": None}, "not an archive of AllenNLP: it has no weights.th"),
        ({"weights.th": b"x"}, "weights.th is damaged, or has other objects than plain tensors"),
        # PyTorch raises KeyError for the first, and advises to load the second without the check.
        ({"weights.th": b"hello"}, "weights.th is damaged"),
        ({"weights.th": pickled({"a": Code()})}, "plain tensors; these are never loaded$"),
        ({"weights.th": pickle.dumps({"a": Code()})}, "plain tensors; these are never loaded$"),
        ({"weights.th": pickled([1])}, "weights.th: expected tensors by name"),
        ({"config.json": b"{"}, "config.json is not JSON"),
        ({"config.json": b"[]"}, "config.json: expected an object"),
        ({"config.json": b"{}"}, "config.json is not of AllenNLP"),
        ({"../out": b""}, "the member '../out' would be outside the folder"),
        (dict.fromkeys(VOCABULARY), "it has no folder vocabulary"),
        ({"vocabulary/labels.txt": b"\xff"}, "vocabulary/labels.txt is not UTF-8"),
        ({"vocabulary/non_padded_namespaces.txt": b"*tags"}, "its labels have a padding item"),
        (
            {"weights.th": weights({"more": torch.zeros(1)})},
            "its weights more have no counterpart here",
        ),
        ({"weights.th": weights({"crf.transitions": None})}, "no weights for crf.transitions"),
        (
            {"weights.th": weights({"crf.transitions": torch.zeros(2, 2)})},
            r"its weights crf.transitions of shape \[2, 2\] do not fit crf.transitions",
        ),
    ],
)
def test_damaged_archives_are_refused(
    files: dict[str, bytes | None], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        import_archive(repacked(tmp_path, files=files), tmp_path / "run")
    assert [*tmp_path.iterdir()] == [tmp_path / "changed.tar.gz"]


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        link = tarfile.TarInfo("config.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(DataError, match=r"the member 'config.json' is a link"):
        import_archive(path, tmp_path / "run")


_TABLE = "text_field_embedder.token_embedder_token_characters._embedding._module.weight"


def test_rows_behind_those_of_the_characters_are_left_out(tmp_path: Path) -> None:
    # AllenNLP's table is as long as the vocabulary of words, if the config names no other.
    files = {"weights.th": weights({_TABLE: torch.randn(90, 6)}, "characters")}
    import_archive(repacked(tmp_path, "characters", files=files), tmp_path / "run")
    embedder = load(tmp_path / "run").head().get_submodule("embedder.token_embedders")
    lines = (tmp_path / "run/vocabulary/characters.jsonl").read_text().splitlines()
    assert embedder.get_parameter("token_characters.embedding.weight").shape == (2 + len(lines), 6)
    assert 2 + len(lines) < 90


def test_a_table_with_too_few_characters_is_refused(tmp_path: Path) -> None:
    files = {"weights.th": weights({_TABLE: torch.randn(9, 6)}, "characters")}
    with pytest.raises(DataError, match=r"_module\.weight has 9 rows; it needs"):
        import_archive(repacked(tmp_path, "characters", files=files), tmp_path / "run")


def test_bytes_without_marks_are_not_imported(tmp_path: Path) -> None:
    def change(config: dict[str, Any]) -> None:
        indexers = config["dataset_reader"]["token_indexers"]
        del indexers["token_characters"]["character_tokenizer"]["end_tokens"]

    with pytest.raises(DataError, match="only bytes with one mark at each end of a word"):
        import_archive(repacked(tmp_path, "bytes", change=change), tmp_path / "run")


def with_elmo(config: dict[str, Any]) -> None:
    config["dataset_reader"]["token_indexers"]["elmo"] = {"type": "elmo_characters"}
    config["model"]["encoder"]["input_size"] += 256
    config["model"]["text_field_embedder"]["token_embedders"]["elmo"] = {
        "type": "elmo_token_embedder",
        "options_file": "/old/options.json",
        "weight_file": "/old/weights.hdf5",
    }


def test_a_bilm_that_is_not_there_is_asked_for(tmp_path: Path) -> None:
    path = repacked(tmp_path, change=with_elmo)
    with pytest.raises(DataError, match=r"not at /old/options.json; name its folder with --bilm"):
        import_archive(path, tmp_path / "run")


def test_a_bilm_at_an_address_is_asked_for(tmp_path: Path) -> None:
    def change(config: dict[str, Any]) -> None:
        with_elmo(config)
        elmo = config["model"]["text_field_embedder"]["token_embedders"]["elmo"]
        elmo["options_file"] = "https://example.org/options.json"
        elmo["weight_file"] = "https://example.org/weights.hdf5"

    path = repacked(tmp_path, change=change)
    with pytest.raises(DataError, match=r"at https://example.org/options.json; download .* --bilm"):
        import_archive(path, tmp_path / "run")
    # With a name it is not read from there.
    with pytest.raises(DataError, match="has no weights for"):
        import_archive(path, tmp_path / "run", bilm="mini")


def test_another_bilm_than_that_of_the_training_is_refused(tmp_path: Path) -> None:
    name = "text_field_embedder.token_embedder_elmo._elmo._elmo_lstm._token_embedder"
    for difference, message in [(0, "has no weights for"), (1, "another biLM")]:
        with h5py.File(MINI / "weights.hdf5") as file:
            characters = torch.tensor(file["char_embed"][...] + difference)
        tensors = {f"{name}._char_embedding_weights": functional.pad(characters, (0, 0, 1, 0))}
        path = repacked(tmp_path, change=with_elmo, files={"weights.th": weights(tensors)})
        with pytest.raises(DataError, match=message):
            import_archive(path, tmp_path / "run", bilm="mini")


def test_a_bilm_for_a_model_without_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="its model reads no biLM; remove --bilm"):
        import_archive(ARCHIVES / "bcn.tar.gz", tmp_path / "run", bilm="mini")


def test_files_of_vectors_and_vocabulary_are_not_needed(tmp_path: Path) -> None:
    def change(config: dict[str, Any]) -> None:
        words = config["model"]["text_field_embedder"]["token_embedders"]["tokens"]
        words["pretrained_file"] = "/old/glove.txt"
        config["vocabulary"] = {"type": "from_files", "directory": "/old/vocabulary"}

    import_archive(repacked(tmp_path, change=change), tmp_path / "run")
    answers = outputs(load(tmp_path / "run"), DATA / "ner.txt")
    check_tags(*answers[0][1:], EXPECTED["crf_tagger"][0])
    assert "/old/" not in (tmp_path / "run/filled_config.json").read_text()
