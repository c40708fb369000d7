"""Models of ELMoForManyLangs, converted into biLMs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework import load_bilm
from elmo_framework.bilm.files.load import bilm_files, read_bilm
from elmo_framework.bilm.token_encoder import TokenEncoder
from elmo_framework.commands.main import main as main_of_elmo
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.config.resolve import filled
from elmo_framework.errors import BuildError, DataError
from elmo_framework.experiment.experiment import Experiment
from tests.plugin_scope import shipped_plugin
from tests.plugins.legacy_encoders.numpy_many_langs import NumpyManyLangs

ROOT = Path(__file__).parents[3]
SENTENCES = [
    ["the", "dog", "Straße", "日本", "unseen"],
    ["<bos>", "<pad>", "a-word-that-is-cut-off", "日本日本日本日本日本", "\u3000", "é", "<eow>"],
    ["dog"],
]


@pytest.fixture(scope="module", autouse=True)
def _plugin() -> Iterator[None]:
    with shipped_plugin("legacy_encoders"):
        yield


def converted(reference: NumpyManyLangs, folder: Path) -> Path:
    from plugins.legacy_encoders import convert_many_langs

    convert_many_langs(reference.save(folder / "published"), folder / "bilm")
    return folder / "bilm"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"word_dim": 0},
        {"char_dim": 0},
        {"activation": "tanh", "n_highway": 1, "n_layers": 1, "cell_clip": None, "proj_clip": 0},
    ],
)
def test_layers_equal_the_reference(tmp_path: Path, changes: dict[str, Any]) -> None:
    reference = NumpyManyLangs.random(**changes)
    bilm = load_bilm(converted(reference, tmp_path), device="cpu")
    for words, layers in zip(SENTENCES, bilm.embed(SENTENCES), strict=True):
        np.testing.assert_allclose(layers, reference.layers(words), atol=1e-5)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return NumpyManyLangs.random().save(tmp_path_factory.mktemp("many_langs") / "published")


def test_trained_bilm_gives_the_same_layers(tmp_path: Path) -> None:
    """Its token encoder reads ids of a batch, and gradients reach all its weights."""
    from elmo_framework.data.text import collate_text
    from elmo_framework.layers.bilm_source import TrainedBiLm

    reference = NumpyManyLangs.random()
    bilm = read_bilm(bilm_files(converted(reference, tmp_path)), requires_grad=True)
    source = TrainedBiLm(bilm)
    output = source.layers(collate_text(SENTENCES, source.indexers))
    for row, words in enumerate(SENTENCES):
        layers = output.layers[:, row, 1 : len(words) + 1].detach().numpy()
        np.testing.assert_allclose(layers, reference.layers(words), atol=1e-5)
    output.layers.square().sum().backward()
    assert [name for name, each in bilm.named_parameters() if each.grad is None] == []


def _without(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def _with(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def _changed(name: str, old: str, new: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


def _saved(name: str, value: object) -> Callable[[Path], object]:
    return lambda folder: torch.save(value, folder / name)


def _lacking(name: str, tensor: str) -> Callable[[Path], object]:
    def remove(folder: Path) -> None:
        state = torch.load(folder / name, weights_only=True)
        del state[tensor]
        torch.save(state, folder / name)

    return remove


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without("config.json"), "config.json: cannot read this configuration"),
        (_with("config.json", "{}"), "config.json: no path of a configuration"),
        (_without("cnn.json"), "pass --config FILE, such as configs/cnn_50"),
        (_changed("cnn.json", '"cnn"', '"lstm"'), "lstm and elmo are not supported"),
        (_changed("cnn.json", '"dim": 7', '"dim": 5'), "dim of the encoder must be above"),
        (_changed("cnn.json", '"dim": 7', '"dim": 8'), "its weights do not fit cnn.json"),
        (_changed("cnn.json", '"n_highway": 2,', ""), "not a configuration of ELMoForManyLangs"),
        (_changed("word.dic", "dog\t2", "dog 2"), "word.dic:3: expected an item, a tab and its id"),
        (_changed("word.dic", "dog\t2", "dog\t3"), "word.dic: the ids of the 9 items are not"),
        (_changed("char.dic", "<pad>", "<x>"), "char.dic: no item <pad>"),
        (_with("char.dic", "<pad>\t0\n"), "char.dic: no item <bos>"),
        (_changed("word.dic", "日本\t8\n", ""), "weight has 9 rows, and its dictionary 8 items"),
        (_without("encoder.pkl"), "encoder.pkl: cannot read the weights"),
        (_saved("encoder.pkl", Path("x")), "encoder.pkl: cannot read the weights"),
        (_saved("encoder.pkl", {"a": 1}), "encoder.pkl: expected tensors by name"),
        (_lacking("encoder.pkl", "forward_layer_1.state_projection.weight"), "no tensor 'forward"),
    ],
)
def test_damaged_model_is_an_error(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    from plugins.legacy_encoders import convert_many_langs

    folder = NumpyManyLangs.random().save(tmp_path / "published")
    damage(folder)
    with pytest.raises(DataError) as caught:
        convert_many_langs(folder, tmp_path / "bilm")
    assert message in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["published"]


def test_token_encoder_without_dictionaries_is_an_error() -> None:
    raw = {"type": "many_langs", "words_file": None, "characters_file": None, "filters": []}
    with pytest.raises(BuildError, match="words_file and characters_file are null"):
        parse(TokenEncoder, raw, source="test").build()


def test_shipped_config_is_valid() -> None:
    raw = Config.load(ROOT / "plugins/legacy_encoders/many_langs.jsonnet").raw
    embedders = filled(parse(Experiment, raw, source="test"))["model"]["embedder"][
        "token_embedders"
    ]
    assert embedders["elmo"]["bilm"].endswith("models/many-langs-en")


def test_command_converts_and_keeps_an_existing_folder(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from plugins.legacy_encoders import main

    output = tmp_path / "new" / "bilm"
    assert main([str(published), str(output)]) == 0
    names = {path.name for path in output.iterdir()}
    assert names == {"bilm.json", "weights.safetensors", "word.dic", "char.dic"}
    assert main_of_elmo(["check-weights", str(output)]) == 0
    assert main([str(published), str(output)]) == 2
    assert "output already exists; pass --force to overwrite" in capsys.readouterr().err
    assert main([str(published), str(output), "--force"]) == 0
    assert {path.name for path in output.iterdir()} == names
    assert main([str(published), str(published), "--force"]) == 2
    assert "would replace the model that is read" in capsys.readouterr().err
    assert main([str(published), str(output / "bilm.json" / "bilm")]) == 2
    assert "Not a directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["bilm.json", "thesis.tex"], "has other files than a converted biLM: thesis.tex"),
        (["bilm.json", "runs/a"], "has other files than a converted biLM: runs"),
        (["word.dic", "char.dic"], "has no bilm.json, so it is not a converted biLM"),
    ],
)
def test_force_keeps_a_folder_of_other_files(
    published: Path,
    tmp_path: Path,
    names: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from plugins.legacy_encoders import main

    output = tmp_path / "output"
    for name in names:
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_text("mine")
    assert main([str(published), str(output), "--force"]) == 2
    assert f"error: {output}: {message}" in capsys.readouterr().err
    assert [(output / name).read_text() for name in names] == ["mine"] * len(names)


def test_force_replaces_no_file_by_a_folder(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from plugins.legacy_encoders import main

    output = tmp_path / "notes.txt"
    output.write_text("mine")
    assert main([str(published), str(output), "--force"]) == 2
    assert "notes.txt: not a folder; choose another output" in capsys.readouterr().err
    assert output.read_text() == "mine"
