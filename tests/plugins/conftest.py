"""What the tests of several plugins share."""

from __future__ import annotations

from pathlib import Path

import pytest

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import save_bilm
from elmo_framework.config.parse import parse

TINY_BILM = {
    "token_encoder": {"type": "char_cnn", "filters": [[1, 8], [2, 8]], "projection_dim": 8},
    "context_layers": {"type": "elmo_lstm", "cell_size": 16, "projection_dim": 8},
}


@pytest.fixture(scope="module")
def bilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("bilm")
    save_bilm(parse(BiLm, TINY_BILM, source="test").build(), directory)
    return directory
