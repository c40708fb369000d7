from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch
from random_bilm import main, write_random_bilm

from elmo_framework.api.pretrained import load_bilm
from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import bilm_files, read_bilm
from elmo_framework.config.parse import parse
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import ElmoFrameworkError
from elmo_framework.model.model import Model
from elmo_framework.training.seeds import seed_everything
from tests.numpy_bilm import NumpyBiLm

TEXT = [["A", "dog", "ran", "."], ["It", "saw", "another", "small", "dog"], ["Ann", "ran"]]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return read_bilm(bilm_files(folder)).state_dict()


def is_equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(first[n].equal(second[n]) for n in first)


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    return NumpyBiLm.random().save(tmp_path / "trained")


def test_random_bilm_has_model_shapes_and_seeded_weights(trained: Path, tmp_path: Path) -> None:
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        write_random_bilm(trained, tmp_path / name, seed=seed)
    first, again, other, model = (
        weights(tmp_path / name) for name in ("first", "again", "other", "trained")
    )
    assert {name: value.shape for name, value in first.items()} == {
        name: value.shape for name, value in model.items()
    }
    assert is_equal(first, again)
    assert not is_equal(first, other)
    assert not is_equal(first, model)


def test_its_weights_are_those_that_pretraining_starts_from(trained: Path, tmp_path: Path) -> None:
    write_random_bilm(trained, tmp_path / "random", seed=5)
    parts = read_bilm(bilm_files(trained)).description
    vocabularies = Vocabularies({"words": Counter({"a": 3, "b": 1})})
    seed_everything(5)
    lazy = parse(Model, {"type": "bilm", "num_samples": None, **parts}, source="test")
    (bilm,) = [
        part for part in lazy.build(vocabularies=vocabularies).modules() if isinstance(part, BiLm)
    ]
    assert is_equal(weights(tmp_path / "random"), bilm.state_dict())


def layers(folder: Path) -> torch.Tensor:
    vectors = load_bilm(folder, device="cpu").embed(TEXT)
    return torch.cat([torch.from_numpy(each) for each in vectors], dim=1)


def test_with_text_its_layers_have_the_scale_of_the_model(trained: Path, tmp_path: Path) -> None:
    write_random_bilm(trained, tmp_path / "scaled", seed=3, text=TEXT)
    write_random_bilm(trained, tmp_path / "plain", seed=3)
    scaled, plain, model = (layers(tmp_path / name) for name in ("scaled", "plain", "trained"))
    scale = model.square().mean(dim=(1, 2))
    assert torch.allclose(scaled.square().mean(dim=(1, 2)), scale, rtol=0.01)
    assert not torch.allclose(plain.square().mean(dim=(1, 2)), scale, rtol=0.5)
    assert torch.allclose(scaled[0].mean(dim=0), torch.zeros(8), atol=1e-5)


def test_with_text_only_projections_are_changed(trained: Path, tmp_path: Path) -> None:
    write_random_bilm(trained, tmp_path / "scaled", seed=3, text=TEXT)
    write_random_bilm(trained, tmp_path / "plain", seed=3)
    scaled, plain = weights(tmp_path / "scaled"), weights(tmp_path / "plain")
    changed = {name for name in plain if not plain[name].equal(scaled[name])}
    assert changed == {name for name in plain if "projection" in name}


def test_a_model_without_projections_has_no_scale_to_match(tmp_path: Path) -> None:
    NumpyBiLm.random(dim=4, projection_dim=4).save(tmp_path / "wide")
    with pytest.raises(ElmoFrameworkError, match="this biLM lacks"):
        write_random_bilm(tmp_path / "wide", tmp_path / "random", text=TEXT)


def test_it_overwrites_nothing(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ElmoFrameworkError, match="already exists"):
        write_random_bilm(trained, trained)
    monkeypatch.setattr("sys.argv", ["", "nowhere", "--output-dir", str(trained / "new")])
    assert main() == 2
    assert "'nowhere' is neither a folder nor the name of a biLM" in capsys.readouterr().err
