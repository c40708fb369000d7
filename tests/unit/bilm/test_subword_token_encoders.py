from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.export import export_files
from elmo_framework.bilm.files.load import bilm_files, read_bilm, reference, save_bilm
from elmo_framework.bilm.files.weights_report import inspect_weights
from elmo_framework.config.parse import parse
from elmo_framework.data.pieces import train_pieces
from elmo_framework.data.text import collate_text
from elmo_framework.errors import BuildError, DataError
from elmo_framework.experiment.references import ExternalModel
from elmo_framework.layers.bilm_source import open_frozen

LSTM = {"type": "elmo_lstm", "cell_size": 6, "projection_dim": 4}
SENTENCES = [["the", "newest", "word"], [], ["Größenwahnsinnigerweise", "<S>"]]


@pytest.fixture(scope="module")
def pieces_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pieces") / "learned.json"
    path.write_text(train_pieces(["the", "newest", "word"], np.array([9, 4, 5]), 264))
    return path


def built(token_encoder: dict[str, Any]) -> BiLm:
    torch.manual_seed(0)
    raw = {"token_encoder": token_encoder, "context_layers": LSTM}
    return parse(BiLm, raw, source="test").build().eval()


def encoders(pieces_file: Path) -> list[dict[str, Any]]:
    pieces = {"type": "pieces", "pieces_file": str(pieces_file), "max_pieces_per_token": 6}
    return [
        {**pieces, "embedding_dim": 4},
        {**pieces, "embedding_dim": 3, "sub_token_mode": "gru", "projection_dim": 4},
        {"type": "bytes", "embedding_dim": 3, "cell_size": 2, "projection_dim": 4},
        {"type": "bytes", "embedding_dim": 4, "sub_token_mode": "max", "projection_dim": None},
    ]


@pytest.mark.parametrize("number", range(4))
def test_frozen_layers_are_those_of_the_trained_model(number, pieces_file, tmp_path) -> None:
    bilm = built(encoders(pieces_file)[number])
    save_bilm(bilm, tmp_path / "first")
    exported = export_files(bilm_files(tmp_path / "first"), tmp_path / "out", source="it")
    files = bilm_files(tmp_path / "out")
    text = collate_text(SENTENCES, [bilm.token_encoder.indexer])
    with torch.no_grad():
        output = bilm(text.ids[bilm.token_encoder.indexer.key])
    frozen = open_frozen(files).layers(text)
    assert torch.equal(frozen.mask, output.mask)
    torch.testing.assert_close(frozen.layers, output.layers, atol=1e-5, rtol=1e-5)
    assert {path.name for path in exported} == {path.name for path in (tmp_path / "out").iterdir()}
    assert len(inspect_weights(files).layers) == 3


def test_bytes_do_not_depend_on_the_padding_of_a_word(pieces_file: Path) -> None:
    encoder = built(encoders(pieces_file)[2]).token_encoder
    ids = torch.from_numpy(encoder.indexer.ids(["a", "word"]))
    torch.testing.assert_close(encoder(ids[:, :8]), encoder(ids))
    assert not torch.allclose(*encoder(ids))


def test_the_pieces_are_a_part_of_the_bilm(pieces_file: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    own.write_bytes(pieces_file.read_bytes())
    folder, other = tmp_path / "bilm", tmp_path / "other"
    save_bilm(built({**encoders(pieces_file)[0], "pieces_file": str(own)}), folder)
    changed = json.loads(own.read_text())
    vocabulary = changed["model"]["vocab"]
    vocabulary["!"], vocabulary['"'] = vocabulary['"'], vocabulary["!"]
    own.write_text(json.dumps(changed))
    save_bilm(built({**encoders(pieces_file)[0], "pieces_file": str(own)}), other)
    # Equal weights and sizes; only the pieces are others.
    assert reference(bilm_files(folder)).digest != reference(bilm_files(other)).digest
    packed = ExternalModel("elmo", {"bilm": folder}).contents()
    assert packed["pieces.json"] == folder / "pieces.json"
    own.unlink()
    assert read_bilm(bilm_files(folder)).token_encoder.indexer.ids(["the"]).any()
    (folder / "pieces.json").write_text(json.dumps(changed))
    with pytest.raises(DataError, match="its content is not that of this biLM any more"):
        read_bilm(bilm_files(folder))
    (folder / "pieces.json").unlink()
    with pytest.raises(DataError, match="is missing; it belongs to the biLM"):
        read_bilm(bilm_files(folder))
    save_bilm(built(encoders(pieces_file)[2]), other)
    assert not (other / "pieces.json").exists()


def test_a_key_without_effect_is_refused(pieces_file: Path) -> None:
    with pytest.raises(BuildError, match="cell_size has no effect with sub_token_mode 'mean'"):
        built({**encoders(pieces_file)[0], "cell_size": 5})
