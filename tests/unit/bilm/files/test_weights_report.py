from pathlib import Path

import numpy as np
import pytest

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import bilm_files, reference, save_bilm
from elmo_framework.bilm.files.weights_report import (
    SENTENCE,
    Clip,
    StoredTensor,
    WeightsReport,
    inspect_weights,
)
from elmo_framework.config.parse import parse
from elmo_framework.config.plugins import load_plugins
from elmo_framework.errors import DataError
from tests.numpy_bilm import NumpyBiLm
from tests.plugin_scope import without_plugins

PLUGINS = Path(__file__).parents[3] / "fixtures/plugins"


def inspect(numpy_bilm: NumpyBiLm, folder: Path) -> WeightsReport:
    return inspect_weights(bilm_files(numpy_bilm.save(folder)))


def states(numpy_bilm: NumpyBiLm) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The memories and the outputs after each word, of all layers and directions."""
    memories, outputs, step = [], [], numpy_bilm.step

    def noting(*arguments):
        memory, output = step(*arguments)
        memories.append(memory)
        outputs.append(output)
        return memory, output

    numpy_bilm.step = noting
    numpy_bilm.layers(list(SENTENCE))
    return memories, outputs


def test_the_figures_of_the_layers_are_those_of_the_reference(
    numpy_bilm: NumpyBiLm, tmp_path: Path
) -> None:
    layers = numpy_bilm.layers(list(SENTENCE))[:, 1:-1]
    for found, expected in zip(inspect(numpy_bilm, tmp_path).layers, layers, strict=True):
        assert found["mean"] == pytest.approx(expected.mean(), abs=1e-5)
        assert found["standard_deviation"] == pytest.approx(expected.std(ddof=1), rel=1e-5)
        assert found["largest"] == pytest.approx(np.abs(expected).max(), rel=1e-5)


def test_the_share_of_clipped_numbers_is_that_of_the_reference(tmp_path: Path) -> None:
    numpy_bilm = NumpyBiLm.random(cell_clip=0.5, proj_clip=0.3)
    clips = inspect(numpy_bilm, tmp_path).clips
    memories, outputs = (np.concatenate(held) for held in states(numpy_bilm))
    assert 0 < clips["cell_clip"].share < 1
    assert clips["cell_clip"].share == pytest.approx((np.abs(memories) >= 0.5).mean())
    assert clips["projection_clip"].share == pytest.approx((np.abs(outputs) >= 0.3).mean())


def test_without_a_limit_nothing_is_clipped(tmp_path: Path) -> None:
    clips = inspect(NumpyBiLm.random(cell_clip=None), tmp_path).clips
    assert clips["cell_clip"].limit is None
    assert clips["cell_clip"].share == 0
    assert clips["projection_clip"].limit == 3


def test_without_a_projection_nothing_of_it_is_clipped(tmp_path: Path) -> None:
    layers = {"type": "elmo_lstm", "cell_size": 4, "projection_dim": None, "cell_clip": 0.01}
    words = {"embedding_dim": 3, "filters": [[1, 4]], "num_highway": 1, "projection_dim": 4}
    raw = {"token_encoder": {"type": "char_cnn", **words}, "context_layers": layers}
    save_bilm(parse(BiLm, raw, source="test").build(), tmp_path)
    clips = inspect_weights(bilm_files(tmp_path)).clips
    assert clips["projection_clip"] == Clip(None, 0.0)
    assert clips["cell_clip"].limit == 0.01
    assert clips["cell_clip"].share > 0


def test_report_lists_read_and_ignored_tensors(numpy_bilm: NumpyBiLm, tmp_path: Path) -> None:
    numpy_bilm.weights["softmax/W"] = np.zeros((2, 5), np.float32)
    report = inspect(numpy_bilm, tmp_path)
    assert {held.name for held in report.tensors} == numpy_bilm.weights.keys()
    assert [held for held in report.tensors if not held.is_read] == [
        StoredTensor("softmax/W", (2, 5), is_read=False)
    ]
    num_read = sum(np.prod(held.shape) for held in report.tensors if held.is_read)
    assert report.num_parameters == num_read
    assert report.output_dim == 8
    assert report.use_skip_connections is True


def test_the_digest_is_that_of_the_reference(numpy_bilm: NumpyBiLm, tmp_path: Path) -> None:
    report = inspect(numpy_bilm, tmp_path)
    assert report.digest == reference(bilm_files(tmp_path)).digest


def test_layers_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    numpy_bilm = NumpyBiLm.random()
    numpy_bilm.weights["CNN_proj/b_proj"][:] = 3e38
    numpy_bilm.weights["CNN_proj/W_proj"][:] = 3e38
    with pytest.raises(DataError, match=r"weights.hdf5: layer 0 of .The dog .*not finite"):
        inspect(numpy_bilm, tmp_path)


def test_a_bilm_of_other_parts_has_no_clips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = {
        "token_encoder": {"type": "average_character", "embedding_dim": 4},
        "context_layers": "gru_cells",
    }
    with without_plugins("replacement_parts"):
        monkeypatch.syspath_prepend(PLUGINS)
        load_plugins(["replacement_parts"], asked_by="test")
        bilm = parse(BiLm, raw, source="test").build()
        save_bilm(bilm, tmp_path)
        report = inspect_weights(bilm_files(tmp_path))
    assert report.clips == {}
    assert report.use_skip_connections is None
    assert {held.name for held in report.tensors} == bilm.state_dict().keys()
