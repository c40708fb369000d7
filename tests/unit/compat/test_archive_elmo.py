"""Archives of AllenNLP with ELMo: those of the tests, extended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from elmo_framework import load
from elmo_framework.compat.allennlp.archive import AllenNlpArchive, import_archive
from elmo_framework.compat.allennlp.export import export_allennlp
from tests.unit.compat.test_archive import (
    ARCHIVES,
    DATA,
    EXPECTED,
    MINI,
    check_label,
    outputs,
    repacked,
    weights,
)

DIM = 256
FILES = {
    "options_file": str(MINI / "options.json"),
    "weight_file": str(MINI / "weights.hdf5"),
}
INPUT = "_pre_encode_feedforward._linear_layers.0.weight"
TAGGER_ELMO = "text_field_embedder.token_embedder_elmo"


def mix(place: str) -> dict[str, torch.Tensor | None]:
    layers = {f"{place}.scalar_mix_0.scalar_parameters.{layer}": torch.ones(1) for layer in (0, 1)}
    last = {f"{place}.scalar_mix_0.scalar_parameters.2": torch.zeros(1)}
    return {f"{place}.scalar_mix_0.gamma": torch.ones(1), **layers, **last}


def bcn(tmp_path: Path, columns: torch.Tensor) -> Path:
    """Return an archive of a BCN with ELMo at its input, which these columns of a weight read."""

    def change(config: dict[str, Any]) -> None:
        config["dataset_reader"]["token_indexers"]["elmo"] = {"type": "elmo_characters"}
        config["model"]["elmo"] = {**FILES, "num_output_representations": 1}
        config["model"]["use_input_elmo"] = True
        config["model"]["pre_encode_feedforward"]["input_dim"] += DIM

    words = AllenNlpArchive.read(ARCHIVES / "bcn.tar.gz").weights[INPUT]
    changed = {INPUT: torch.cat([words, columns], dim=1), **mix("_elmo")}
    files = {"weights.th": weights(changed, "bcn")}
    return repacked(tmp_path, "bcn", change=change, files=files)


def test_elmo_of_a_bcn_is_read_after_the_words(tmp_path: Path) -> None:
    # Without weights for ELMo the model is the one that AllenNLP ran.
    import_archive(bcn(tmp_path, torch.zeros(10, DIM)), tmp_path / "run")
    rows = zip(outputs(load(tmp_path / "run"), DATA / "sst.txt"), EXPECTED["bcn"], strict=True)
    for (_, output, prediction), expected in rows:
        check_label(output, prediction, expected)


def test_elmo_of_a_bcn_is_exported_after_the_words(tmp_path: Path) -> None:
    archive = bcn(tmp_path, torch.randn(10, DIM))
    import_archive(archive, tmp_path / "run")
    path = tmp_path / "run/filled_config.json"
    path.write_text(path.read_text().replace('"state": "reset"', '"state": "carry"'))
    exported = AllenNlpArchive.read(export_allennlp(tmp_path / "run", tmp_path / "model.tar.gz"))
    assert torch.equal(exported.weights[INPUT], AllenNlpArchive.read(archive).weights[INPUT])


def test_projection_of_elmo_is_imported_without_rounding_layers(tmp_path: Path) -> None:
    def change(config: dict[str, Any]) -> None:
        config["dataset_reader"]["token_indexers"]["elmo"] = {"type": "elmo_characters"}
        config["model"]["encoder"]["input_size"] += 5
        config["model"]["text_field_embedder"]["token_embedders"]["elmo"] = {
            "type": "elmo_token_embedder",
            "projection_dim": 5,
            **FILES,
        }

    projection, bias = torch.randn(5, DIM), torch.randn(5)
    read = AllenNlpArchive.read(ARCHIVES / "crf_tagger.tar.gz").weights
    wider = {
        name: torch.cat([torch.randn(len(each), 5), each], dim=1)
        for name, each in read.items()
        if "encoder" in name and "weight_ih" in name
    }
    changed = {
        **wider,
        **mix(f"{TAGGER_ELMO}._elmo"),
        f"{TAGGER_ELMO}._projection.weight": projection,
        f"{TAGGER_ELMO}._projection.bias": bias,
    }
    path = repacked(tmp_path, change=change, files={"weights.th": weights(changed)})
    translation = import_archive(path, tmp_path / "run")
    embedder = load(tmp_path / "run").head().get_submodule("embedder.token_embedders.elmo")
    assert torch.equal(embedder.get_parameter("projection.weight"), projection)
    assert torch.equal(embedder.get_parameter("projection.bias"), bias)
    # AllenNLP has float32 vectors; our cache rounds them by default.
    elmo = translation.raw["model"]["embedder"]["token_embedders"]["elmo"]
    assert elmo["cache_dtype"] == "float32"
