"""Flair's character language models as an encoder."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmo_framework import load_encoder
from elmo_framework.commands.main import main
from elmo_framework.config.parse import parse
from elmo_framework.data.text import collate_text
from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.errors import DataError
from elmo_framework.experiment.load_run import load
from tests.experiment.jobs import train
from tests.plugin_scope import shipped_plugin
from tests.plugins.legacy_encoders.numpy_flair import NumpyFlair

SENTENCES = [["The", "dogs", "ate", "äöü", "."], ["ß"], [], ["Uh", "", "The", "İ"], ["ß"]]
TEXT = collate_text(SENTENCES)


@pytest.fixture(scope="module", autouse=True)
def _plugin() -> Iterator[None]:
    with shipped_plugin("legacy_encoders"):
        yield


@pytest.fixture(scope="module")
def reference() -> NumpyFlair:
    return NumpyFlair.random(num_layers=2)


@pytest.fixture(scope="module")
def folder(reference: NumpyFlair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reference.save(tmp_path_factory.mktemp("flair") / "flair")


@pytest.mark.parametrize(
    ("reference", "options"),
    [
        (NumpyFlair.random(), {}),
        (NumpyFlair.random("forward", num_layers=2), {"with_whitespace": False}),
        (NumpyFlair.random("backward", projection_dim=4, num_layers=2), {"is_lower": True}),
        (NumpyFlair.random(start="<\n", projection_dim=4), {"with_whitespace": False}),
    ],
)
def test_layers_equal_the_reference(
    tmp_path: Path, reference: NumpyFlair, options: dict[str, bool]
) -> None:
    reference = reference.with_options(**options)
    encoder = load_encoder(reference.save(tmp_path / "flair"), device="cpu")
    for words, layers in zip(SENTENCES, encoder.embed(SENTENCES), strict=True):
        assert layers.shape == (encoder.num_layers, len(words), encoder.dim)
        if words:
            np.testing.assert_allclose(layers, reference.layers(words), atol=1e-5)


def test_layers_do_not_depend_on_other_sentences(
    folder: Path, reference: NumpyFlair, monkeypatch: pytest.MonkeyPatch
) -> None:
    import plugins.legacy_encoders.flair_source as module

    monkeypatch.setattr(module, "_CHARACTERS_AT_ONCE", 12)
    layers = module.FlairFormat().open(folder).layers(TEXT).layers
    for row, words in enumerate(SENTENCES):
        assert not layers[:, row, len(words) + 2 if words else 0 :].any()
        if words:
            expected = reference.layers(words)
            np.testing.assert_allclose(layers[:, row, 1 : len(words) + 1], expected, atol=1e-5)
    # Before the first character the forward model has read the start, the backward one all.
    forward, backward = reference.models["forward"], reference.models["backward"]
    begin = [forward.states("ß")[:, 0], backward.states("ß")[:, -1]]
    end = [forward.states("ß")[:, -1], backward.states("ß")[:, 0]]
    for place, states in ((0, begin), (2, end)):
        expected = np.concatenate(states, axis=1)
        np.testing.assert_allclose(layers[:, 1, place], expected, atol=1e-5)


def embedder(folder: Path, **keys: Any) -> Any:
    return parse(
        TokenEmbedder, {"type": "flair", "folder": str(folder), **keys}, source="t"
    ).build()


def test_embedder_gives_the_top_layer_or_a_mix(folder: Path, reference: NumpyFlair) -> None:
    top = embedder(folder, cache="none")
    mixed = embedder(folder, cache="none", mix="scalar_mix", projection_dim=3)
    assert (top.output_dim, mixed.output_dim) == (10, 3)
    assert top.source is mixed.source is copy.deepcopy(top).source
    assert list(top.state_dict()) == []
    layers = reference.layers(SENTENCES[0])
    vectors = top(TEXT)[0, : len(SENTENCES[0])]
    np.testing.assert_allclose(vectors, layers[-1], atol=1e-5)
    mean = torch.from_numpy(layers.mean(axis=0)).float()
    expected = mixed.projection(mean).detach()
    np.testing.assert_allclose(mixed(TEXT)[0, : len(mean)].detach(), expected, atol=1e-5)


def test_cached_layers_are_those_computed(folder: Path) -> None:
    cached = embedder(folder, cache="memory", cache_dtype="float32")
    state = torch.get_rng_state()
    cached.precompute(lambda: SENTENCES, torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), state)
    computed = embedder(folder, cache="none")
    np.testing.assert_allclose(cached(TEXT), computed(TEXT), atol=1e-6)
    again = pickle.loads(pickle.dumps(computed.source)).layers(TEXT).layers
    assert torch.equal(again, computed.source.layers(TEXT).layers)


def test_commands_read_the_folder(
    folder: Path, reference: NumpyFlair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, output = tmp_path / "text.txt", tmp_path / "vectors.npy"
    text.write_text("The dogs ate .\nUh The\n")
    flags = ["--include-package", "plugins.legacy_encoders", "--device", "cpu"]
    write = ["embed", str(folder), str(text), "--layers", "top", *flags]
    assert main([*write, "--output-file", str(output)]) == 0
    expected = [reference.layers(line.split())[-1] for line in text.read_text().splitlines()]
    np.testing.assert_allclose(np.load(output), np.concatenate(expected), atol=1e-5)
    search = ["neighbors", str(folder), "--corpus", str(text), "--query", "Uh The dogs"]
    assert main([*search, "--word", "The", *flags]) == 0
    assert "text.txt:2  Uh [The]" in capsys.readouterr().out
    assert main(["score", str(folder), str(text), *flags]) == 2
    assert "this encoder predicts no words" in capsys.readouterr().err


def test_options_of_transformers_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="layers are for transformers"):
        load_encoder(folder, layers=[0])


def _changed(old: str, new: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        text = (folder / "flair.json").read_text()
        assert old in text
        (folder / "flair.json").write_text(text.replace(old, new))

    return change


def _without_tensor(folder: Path) -> None:
    tensors = load_file(folder / "flair.safetensors")
    del tensors["backward.rnn.bias_hh_l0"]
    save_file(tensors, folder / "flair.safetensors")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_changed("{", "["), "flair.json: not the options of Flair's models"),
        (_changed('"is_lower": false,', ""), "not the options of Flair's models: KeyError('is_low"),
        (_changed('"forward"', '"ahead"'), "unknown key 'ahead'"),
        (_changed('"hidden_size": 5', '"hidden_size": 6'), "flair.safetensors: not the weights"),
        (_changed('"num_layers": 1', '"num_layers": 0'), "they must be positive numbers"),
        (_changed('"num_characters": 17', '"num_characters": 9'), "of a character has no vector"),
        (_changed('"start": "\\n"', '"start": 1'), "start is 1; expected a string"),
        (_changed('"start"', '"begin"'), "unexpected keyword argument 'begin'"),
        (lambda folder: (folder / "flair.safetensors").unlink(), "cannot read the encoder"),
        (_without_tensor, "not the weights of these models: 'rnn.bias_hh_l0'"),
    ],
)
def test_damaged_folder_is_an_error(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    folder = NumpyFlair.random().save(tmp_path / "flair")
    damage(folder)
    with pytest.raises(DataError) as caught:
        load_encoder(folder, device="cpu")
    assert message in str(caught.value)


def test_shipped_config_trains_and_loads(folder: Path, tmp_path: Path) -> None:
    data, embedders = "tests/fixtures/ner/train.txt", "model.embedder.token_embedders"
    changes = {
        "train_data_path": data,
        "validation_data_path": data,
        f"{embedders}.flair.folder": str(folder),
        f"{embedders}.tokens.pretrained_file": None,
        "model.encoder.hidden_size": 8,
        "trainer.num_epochs": 1,
        "trainer.device": "cpu",
    }
    directory = tmp_path / "run"
    assert train("plugins/legacy_encoders/flair.jsonnet", directory, changes) == 0
    recorded = json.loads((directory / "metadata.json").read_text())["references"]
    digest = load_encoder(folder).source.fingerprint.digest
    assert recorded[f"{embedders}.flair"]["sha256"] == digest
    (predicted,) = load(directory, device="cpu").predict(["The dogs ate ."])
    assert len(predicted["tags"]) == 4
    archive = tmp_path / "run.tar.gz"
    assert main(["archive", str(directory), str(archive)]) == 0
    moved = folder.rename(folder.with_name("moved"))
    try:
        for run in (load(directory, device="cpu", bilm=moved), load(archive, device="cpu")):
            assert run.predict(["The dogs ate ."]) == [predicted]
    finally:
        moved.rename(folder)
