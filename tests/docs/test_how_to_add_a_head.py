"""The how-to page does what it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import save_bilm
from elmo_framework.commands.main import main
from elmo_framework.config.parse import parse
from elmo_framework.experiment.load_run import load
from tests.docs.page import run_page
from tests.plugin_scope import without_plugins

PAGE = Path(__file__).parents[2] / "docs/how_to_add_a_head.md"
TINY_BILM = {
    "token_encoder": {"type": "char_cnn", "filters": [[1, 8]], "projection_dim": 8},
    "context_layers": {"type": "elmo_lstm", "cell_size": 16, "projection_dim": 8},
}


@pytest.fixture(scope="module", autouse=True)
def _in_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The folder after the page was worked through."""
    with without_plugins("sentence_length"), pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        assert run_page(PAGE) == 8
        yield


def test_the_run_of_the_page_predicts_from_python_as_well() -> None:
    (prediction,) = load("runs/sentence_length").predict(["The lights went out ."])
    assert prediction == {"words": ["The", "lights", "went", "out", "."], "label": "short"}


def test_the_head_of_the_page_takes_elmo_without_a_change() -> None:
    save_bilm(parse(BiLm, TINY_BILM, source="test").build(), Path("runs/bilm"))
    assert main(["train", "sentence_length_elmo.jsonnet", "-s", "runs/elmo"]) == 0
    assert load("runs/elmo").model.pooler.output_dim == 4 + 16
