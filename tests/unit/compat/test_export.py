"""Runs written as archives of AllenNLP, and read again.

`benchmarks/allennlp_agreement.py` lets AllenNLP evaluate such archives.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from elmo_framework import components, load
from elmo_framework.commands.main import main
from elmo_framework.compat.allennlp.archive import AllenNlpArchive, import_archive
from elmo_framework.compat.allennlp.export import export_allennlp
from elmo_framework.compat.allennlp.exported_models import EXPORTED_MODELS
from elmo_framework.compat.allennlp.rules import Context, Place
from elmo_framework.config.parse import parse
from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.errors import ConfigError, RunError
from tests.conftest import ROOT
from tests.numpy_bilm import NumpyBiLm
from tests.unit.compat.test_archive import ARCHIVES, DATA, FILES, outputs

MINI = ROOT / "elmo_framework/bilm/mini"
_UNREAD = ("_matrix_attention._bias", "_predictor._module.bias", "_projection.bias")
"""Biases that no softmax depends on: zero in our archives."""


def trained(tmp_path: Path, model: Mapping[str, Any], **config: Any) -> Path:
    """Return a run of a tagger."""
    embedder = {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 4}}}
    whole = {
        "dataset_reader": {"type": "conll2003"},
        "train_data_path": str(DATA / "ner.txt"),
        "validation_data_path": str(DATA / "ner.txt"),
        "model": {"type": "crf_tagger", "embedder": embedder, **model},
        "data_loader": {"batch_size": 4},
        "trainer": {"optimizer": "adam", "num_epochs": 1, "device": "cpu"},
        **config,
    }
    (tmp_path / "config.json").write_text(json.dumps(whole))
    run = tmp_path / "trained"
    assert main(["train", str(tmp_path / "config.json"), "-s", str(run)]) == 0
    return run


LSTM = {"type": "lstm", "hidden_size": 5, "bidirectional": True}


def tensors_of(run: Path, file: Path) -> list[Any]:
    """Return all tensors of the outputs of a run."""
    results = []
    for _, output, prediction in outputs(load(run), file):
        rankings = getattr(output, "rankings", ())
        fields = (getattr(output, name, None) for name in ("logits", "start_logits", "end_logits"))
        tensors = [*fields, *(each.choices for each in rankings)]
        results.append(([each for each in tensors if each is not None], prediction))
    return results


def check_equal(first: Path, second: Path, file: Path) -> None:
    pairs = zip(tensors_of(first, file), tensors_of(second, file), strict=True)
    for (tensors, prediction), (others, other) in pairs:
        assert tensors
        assert all(torch.equal(*pair) for pair in zip(tensors, others, strict=True))
        assert prediction == other


@pytest.mark.parametrize("kind", sorted(FILES))
def test_an_exported_model_is_imported_bit_for_bit(kind: str, tmp_path: Path) -> None:
    first, second, archive = tmp_path / "a", tmp_path / "b", tmp_path / "model.tar.gz"
    import_archive(ARCHIVES / f"{kind}.tar.gz", first)
    export_allennlp(first, archive)
    import_archive(archive, second)
    check_equal(first, second, DATA / FILES[kind])


@pytest.mark.parametrize("kind", sorted(FILES))
def test_exported_weights_are_those_of_allennlp(kind: str, tmp_path: Path) -> None:
    import_archive(ARCHIVES / f"{kind}.tar.gz", tmp_path / "run")
    export_allennlp(tmp_path / "run", tmp_path / "model.tar.gz")
    theirs = AllenNlpArchive.read(ARCHIVES / f"{kind}.tar.gz")
    ours = AllenNlpArchive.read(tmp_path / "model.tar.gz")
    assert ours.vocabulary == theirs.vocabulary
    assert {name: each.shape for name, each in ours.weights.items()} == {
        name: each.shape for name, each in theirs.weights.items()
    }
    for name, tensor in theirs.weights.items():
        if name.endswith(_UNREAD) and ours.weights[name].numel() == 1:
            continue
        if "_linearity.bias" in name and kind == "srl":  # the sum of both biases is what counts
            continue
        if name.endswith("_embedding._module.weight") and kind == "bytes":  # three are never read
            assert (ours.weights[name] == tensor).all(dim=1).sum() == 259
            continue
        assert torch.equal(ours.weights[name], tensor), name


def members(archive: Path) -> dict[str, bytes]:
    contents = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            source = tar.extractfile(member)
            assert source is not None
            contents[member.name] = source.read()
    return contents


def test_words_of_a_file_become_rows_of_the_table(tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("oslo 1 2 3 4\nzebra 5 6 7 8\n")
    words = {
        "type": "embedding",
        "embedding_dim": 4,
        "pretrained_file": str(vectors),
        "lowercase": True,
    }
    others = {"type": "embedding", "embedding_dim": 2, "min_count": 2}
    embedder = {"token_embedders": {"words": words, "zeros": others}}
    run = trained(tmp_path, {"embedder": embedder, "encoder": LSTM})
    archive = export_allennlp(run, tmp_path / "model.tar.gz")
    config = json.loads(members(archive)["config.json"])
    indexers = config["dataset_reader"]["token_indexers"]
    assert indexers["words"]["lowercase_tokens"]
    vocabulary = members(archive)["vocabulary/tokens.txt"].decode().splitlines()
    assert (vocabulary[0], vocabulary[-1]) == ("@@UNKNOWN@@", "zebra")
    namespace = indexers["zeros"]["namespace"]
    assert len(members(archive)[f"vocabulary/{namespace}.txt"].splitlines()) < len(vocabulary)
    weights = torch.load(io.BytesIO(members(archive)["weights.th"]), weights_only=True)
    table = weights["text_field_embedder.token_embedder_words.weight"]
    assert len(table) == 1 + len(vocabulary)
    assert table[-1].tolist() == [5, 6, 7, 8]


def test_an_archive_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    import_archive(ARCHIVES / "bcn.tar.gz", tmp_path / "run")
    archives = [export_allennlp(tmp_path / "run", tmp_path / name) for name in ("a.gz", "b.gz")]
    first, second = (archive.read_bytes() for archive in archives)
    assert first == second


def test_a_carried_elmo_is_exported_with_its_weights(tmp_path: Path) -> None:
    elmo = {
        "type": "elmo_token_embedder",
        "options_file": str(MINI / "options.json"),
        "weight_file": str(MINI / "weights.hdf5"),
        "state": "carry",
        "mix": {"type": "scalar_mix", "layer_norm": True},
    }
    run = trained(tmp_path, {"embedder": {"token_embedders": {"elmo": elmo}}, "encoder": LSTM})
    archive = export_allennlp(run, tmp_path / "model.tar.gz")
    block = json.loads(members(archive)["config.json"])["model"]["text_field_embedder"]
    assert block["token_embedders"]["elmo"]["do_layer_norm"]
    # The files are found again, and the biLM is that of the archive.
    import_archive(archive, tmp_path / "again")
    first, second = (
        load(each).model.get_parameter("embedder.token_embedders.elmo.mix.gamma")
        for each in (run, tmp_path / "again")
    )
    assert torch.equal(first, second)


REASONS: list[tuple[dict[str, Any], list[str]]] = [
    (
        {
            "embedder": {
                "token_embedders": {
                    "tokens": {"type": "embedding", "embedding_dim": 4, "case_fallback": True},
                    "elmo": {"type": "elmo_token_embedder", "bilm": "mini"},
                }
            },
            "encoder": LSTM,
            "output_encoder": LSTM,
        },
        [
            "model.embedder.token_embedders.tokens.case_fallback: true has no counterpart in",
            'model.embedder.token_embedders.elmo.state: "reset" has no counterpart in AllenNLP',
            "model.output_encoder: ",
        ],
    ),
]


@pytest.mark.parametrize(("model", "reasons"), REASONS)
def test_all_reasons_are_listed_at_once(
    model: dict[str, Any], reasons: list[str], tmp_path: Path
) -> None:
    run = trained(tmp_path, model, dataset_reader={"type": "conll2003", "coding_scheme": "BIOES"})
    with pytest.raises(ConfigError) as caught:
        export_allennlp(run, tmp_path / "model.tar.gz")
    message = str(caught.value)
    assert message.startswith(f"{run}, to be written for AllenNLP: ")
    for reason in [*reasons, 'dataset_reader.coding_scheme: "BIOES"', "label_encoding: tags in"]:
        assert reason in message
    assert not (tmp_path / "model.tar.gz").exists()


def _changed(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = run / "filled_config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("coref", "attention_reads", "encoder"),
        ("coref", "crossing_spans", False),
        ("coref", "encoder_reads", "sentence"),
        ("srl", "decoding", "log_probabilities"),
        ("srl", "predicate_words", "first"),
        ("bidaf", "max_span_length", 17),
        ("simple_tagger", "decoder", "crf"),
    ],
)
def test_what_allennlp_cannot_do_is_refused(
    kind: str, key: str, value: Any, tmp_path: Path
) -> None:
    import_archive(ARCHIVES / f"{kind}.tar.gz", tmp_path / "run")
    changes = {"embedder_reads": "sentence", key: value} if kind == "coref" else {key: value}
    _changed(tmp_path / "run", lambda config: config["model"].update(changes))
    with pytest.raises((ConfigError, RunError), match=f"model.{key}|weights|transitions"):
        export_allennlp(tmp_path / "run", tmp_path / "model.tar.gz")


def test_elmo_of_coreference_must_read_documents(tmp_path: Path) -> None:
    components.load()
    elmo = {"type": "elmo_token_embedder", "bilm": str(NumpyBiLm.random().save(tmp_path / "bilm"))}
    embedder = parse(TokenEmbedder, elmo, source="a.jsonnet").build()
    for parts, number in (([embedder], 1), ([], 0)):
        context = Context({})
        rules = EXPORTED_MODELS["coref"](nn.ModuleList(parts))
        rules["embedder_reads"](Place(context), "sentence")
        assert len(context.problems) == number


def test_the_command_writes_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_archive(ARCHIVES / "crf_tagger.tar.gz", tmp_path / "run")
    target = tmp_path / "model.tar.gz"
    command = ["export", str(tmp_path / "run"), "--format", "allennlp"]
    assert main([*command, "--output-file", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    assert main([*command, "--output-file", str(target)]) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*command, "--output-dir", str(tmp_path / "out")]) == 2
    assert "--format allennlp: pass --output-file FILE" in capsys.readouterr().err
    scores = load(target).evaluate(DATA / "ner.txt")
    assert scores == load(tmp_path / "run").evaluate(DATA / "ner.txt")
