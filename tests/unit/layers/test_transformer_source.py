import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file

from elmo_framework.data.text import collate_text
from elmo_framework.errors import DataError
from elmo_framework.layers import shared_source
from elmo_framework.layers.cache.cached_layers import CachedLayers
from elmo_framework.layers.encoder_files import open_encoder
from elmo_framework.layers.transformer_files import read_encoder, read_tokenizer
from elmo_framework.layers.transformer_source import (
    FrozenTransformer,
    Transformer,
    TransformerOptions,
    open_transformer,
)
from tests.tiny_transformers import DIM, KINDS, MAX_PIECES, NUM_LAYERS, save_transformer

SENTENCES = [["the", "dogs", "öl", "a"], [], ["dog"], ["the", "dogs", "öl", "a"], ["!", "", "dog"]]
SPECIAL = {"bert": ([2], [3]), "roberta": ([0], [2]), "t5": ([], [1]), "llama": ([3], [])}
CPU = torch.device("cpu")


def layers_of_model(folder: Path, words, mode="mean") -> np.ndarray:
    """Run the model itself on one sentence, each word tokenized alone; boundaries included."""
    tokenizer, encoder = read_tokenizer(folder).backend_tokenizer, read_encoder(folder)
    prefix, suffix = SPECIAL.get(folder.name, ([], []))
    space = " " if folder.name in ("roberta", "gpt2") else ""
    words_ids = [
        tokenizer.encode(space + word, add_special_tokens=False).ids if word else []
        for word in words
    ]
    ids = [*prefix, *(id for each in words_ids for id in each), *suffix]
    with torch.no_grad():
        output = encoder(input_ids=torch.tensor([ids]), output_hidden_states=True)
    hidden = torch.stack(output.hidden_states)[:, 0].numpy()
    parts, start = [hidden[:, :1] if prefix else np.zeros((NUM_LAYERS, 1, DIM))], len(prefix)
    for each in words_ids:
        own = hidden[:, start : start + len(each)]
        start += len(each)
        kept = {"first": own[:, :1], "last": own[:, -1:]}.get(mode, own)
        parts.append(kept.mean(axis=1, keepdims=True) if each else np.zeros((NUM_LAYERS, 1, DIM)))
    parts.append(hidden[:, -1:] if suffix else np.zeros((NUM_LAYERS, 1, DIM)))
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_layers_equal_hidden_states_of_model(kind: str, transformer_folder) -> None:
    folder = transformer_folder(kind)
    source = open_transformer(folder)
    output = source.layers(collate_text(SENTENCES))
    assert (source.num_layers, source.dim) == (NUM_LAYERS, DIM)
    for row, words in enumerate(SENTENCES):
        if words:
            expected = layers_of_model(folder, words)
            steps = len(words) + 2
            np.testing.assert_allclose(output.layers[:, row, :steps], expected, atol=1e-5)
            assert output.mask[row].tolist() == [True] * steps + [False] * (6 - steps)
        assert (output.layers[:, row, len(words) + 2 if words else 0 :] == 0).all()


@pytest.mark.parametrize("mode", ["first", "last", "mean"])
def test_words_take_pieces_as_the_mode_says(mode, transformer_folder) -> None:
    folder = transformer_folder("bert")
    source = open_transformer(folder, TransformerOptions(sub_token_mode=mode))
    found = source.layers(collate_text([["the", "dogs", "abc"]])).layers[:, 0]
    expected = layers_of_model(folder, ["the", "dogs", "abc"], mode)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_word_without_pieces_has_zeros(transformer_folder) -> None:
    source = open_transformer(transformer_folder("bert"))
    layers = source.layers(collate_text([["dog", "\u200b", "a"], ["\u200b"]])).layers
    assert (layers[:, 0, 2] == 0).all()
    assert (layers[:, 1, 1] == 0).all()
    assert not (layers[:, 1, [0, 2]] == 0).all()
    bare = open_transformer(transformer_folder("gpt2")).layers(collate_text([[""]])).layers
    assert (bare == 0).all()


def test_selected_layers_in_their_order(transformer_folder) -> None:
    folder = transformer_folder("bert")
    text = collate_text(SENTENCES)
    everything = open_transformer(folder).layers(text).layers
    source = open_transformer(folder, TransformerOptions(layers=(-1, 0)))
    assert source.num_layers == 2
    torch.testing.assert_close(source.layers(text).layers, everything[[2, 0]])


def test_long_sentence_is_read_in_windows(transformer_folder) -> None:
    folder = transformer_folder("bert")
    words = ["dog", "the", "a", "b", "c", "d", "e", "f"] * 9
    found = open_transformer(folder).layers(collate_text([words, ["dog"]])).layers[:, 0]
    size = MAX_PIECES - 2
    starts = [0, 11, 22, 33, 44, 50]
    bounds = [0, 16, 27, 38, 49, 58, 72]
    for start, first, last in zip(starts, bounds[:-1], bounds[1:], strict=True):
        window = layers_of_model(folder, words[start : start + size])
        expected = window[:, 1 + first - start : 1 + last - start]
        np.testing.assert_allclose(found[:, 1 + first : 1 + last], expected, atol=1e-5)
        if start == 0:
            np.testing.assert_allclose(found[:, 0], window[:, 0], atol=1e-5)
    np.testing.assert_allclose(found[:, -1], window[:, -1], atol=1e-5)


def test_roberta_takes_as_many_pieces_as_it_has_positions(transformer_folder) -> None:
    folder = transformer_folder("roberta")
    words = ["a"] * (MAX_PIECES // 2 - 1)  # a space and a letter each
    found = open_transformer(folder).layers(collate_text([words])).layers[:, 0]
    np.testing.assert_allclose(found, layers_of_model(folder, words), atol=1e-5)
    assert open_transformer(folder).layers(collate_text([["a"] * 50])).layers.isfinite().all()


def test_each_distinct_sentence_is_computed_once(transformer_folder, monkeypatch) -> None:
    rows = []
    hidden = Transformer._hidden
    monkeypatch.setattr(Transformer, "_hidden", lambda *args: rows.extend(args[1]) or hidden(*args))
    open_transformer(transformer_folder("bert")).layers(collate_text(SENTENCES))
    assert len(rows) == 3


def test_words_mean_the_same_in_any_batch(transformer_folder) -> None:
    source = open_transformer(transformer_folder("gpt2"))
    together = source.layers(collate_text(SENTENCES)).layers
    alone = source.layers(collate_text([["dog"]])).layers
    torch.testing.assert_close(together[:, 2, :3], alone[:, 0], atol=1e-5, rtol=0)


def test_lone_surrogates_and_special_words_are_read(transformer_folder) -> None:
    source = open_transformer(transformer_folder("roberta"))
    assert source.layers(collate_text([["\ud800", "</s>", " "]])).layers.isfinite().all()


def test_equal_options_share_one_source(transformer_folder, tmp_path: Path) -> None:
    folder = transformer_folder("bert")
    source = open_transformer(folder)
    assert open_transformer(folder) is source
    assert open_transformer(folder, TransformerOptions(sub_token_mode="avg")) is source
    assert open_transformer(folder, TransformerOptions(sub_token_mode="last")) is not source
    other = save_transformer(tmp_path / "bert", "bert", seed=1)
    assert open_transformer(other).fingerprint.digest != source.fingerprint.digest
    assert copy.deepcopy(source) is source
    text = collate_text(SENTENCES)
    again = pickle.loads(pickle.dumps(source))
    assert torch.equal(again.layers(text).layers, source.layers(text).layers)


def test_fingerprint_covers_config_tokenizer_and_weights(tmp_path: Path) -> None:
    folder = save_transformer(tmp_path / "bert", "bert")
    digests = [open_transformer(folder).fingerprint.digest]
    for name in ("config.json", "tokenizer.json"):
        path = folder / name
        path.write_text(path.read_text() + "\n")
        digests.append(open_transformer(folder).fingerprint.digest)
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "extra": torch.zeros(1)}, folder / "model.safetensors", {"format": "pt"})
    digests.append(open_transformer(folder).fingerprint.digest)
    assert len(set(digests)) == 4


@pytest.mark.parametrize("cache", ["disk", "memory"])
def test_cached_layers_equal_computed_ones(cache, transformer_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path))
    folder, text = transformer_folder("t5"), collate_text(SENTENCES)
    expected = open_transformer(folder).layers(text).layers
    options = {"cache": cache, "cache_dtype": "float32"}
    cached = open_transformer(folder, **options)
    cached.precompute(lambda: SENTENCES, CPU)
    monkeypatch.setattr(FrozenTransformer, "compute", None)
    shared_source._shared.clear()
    again = open_transformer(folder, **options) if cache == "disk" else cached
    assert isinstance(again, CachedLayers)
    torch.testing.assert_close(again.layers(text).layers, expected, atol=1e-5, rtol=0)


def test_options_have_caches_of_their_own(transformer_folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path))
    for mode in ("first", "mean", "avg"):
        options = TransformerOptions(sub_token_mode=mode)
        source = open_transformer(transformer_folder("bert"), options, cache="disk")
        source.precompute(lambda: SENTENCES, CPU)
    assert len(list((tmp_path / "layers").glob("[!.]*"))) == 2


def test_bfloat16_is_near_float32(transformer_folder) -> None:
    text = collate_text(SENTENCES)
    exact = open_transformer(transformer_folder("bert")).layers(text).layers
    narrow = open_transformer(transformer_folder("bert"), precision="bfloat16").layers(text).layers
    assert narrow.dtype == torch.float32
    assert 0 < (narrow - exact).abs().max() < 0.2


def test_trained_transformer_has_gradients(transformer_folder) -> None:
    source = open_transformer(transformer_folder("t5"), requires_grad=True)
    source.layers(collate_text(SENTENCES)).layers[-1].sum().backward()
    assert all(each.grad is not None for each in source.module.parameters())
    assert source.fingerprint is None


def test_shape_is_known_without_weights(transformer_folder) -> None:
    with torch.device("meta"):
        source = open_transformer(transformer_folder("t5"))
    assert (source.num_layers, source.dim) == (NUM_LAYERS, DIM)
    frozen = open_transformer(transformer_folder("t5"))
    assert source.num_frozen_parameters == frozen.num_frozen_parameters


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_length": 25}, "max_length is 25, and the transformer takes 24 pieces"),
        ({"max_length": 3}, "max_length is 3; with 2 special tokens it must be 4 or more"),
        ({"max_length": 0}, "max_length is 0; with 2 special tokens it must be 4 or more"),
        ({"layers": (3,)}, "layers has 3, and the transformer has 3 layers; allowed: -3 to 2"),
        ({"layers": ()}, "layers is empty"),
    ],
)
def test_options_must_fit_the_model(options, reason, transformer_folder) -> None:
    with pytest.raises(ValueError, match=reason):
        open_transformer(transformer_folder("bert"), TransformerOptions(**options))


def test_int8_is_refused(transformer_folder) -> None:
    with pytest.raises(ValueError, match="precision is 'int8', which is for biLMs"):
        open_transformer(transformer_folder("bert"), precision="int8")


def damaged(folder: Path, name: str) -> str:
    with pytest.raises(DataError) as caught:
        open_transformer(folder)
    assert caught.value.path is not None
    assert str(folder) in str(caught.value)
    return str(caught.value)


def test_missing_files_are_named(tmp_path: Path) -> None:
    folder = save_transformer(tmp_path / "bert", "bert")
    (folder / "tokenizer.json").rename(tmp_path / "tokenizer.json")
    assert "no tokenizer" in damaged(folder, "tokenizer.json")
    (tmp_path / "tokenizer.json").rename(folder / "tokenizer.json")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    message = damaged(folder, "model.safetensors")
    assert "no model.safetensors but pytorch_model.bin" in message
    (folder / "config.json").write_text("{}")
    assert "not the configuration of a transformer" in damaged(folder, "config.json")
    (folder / "config.json").unlink()
    assert "no config.json" in damaged(folder, "config.json")


def test_damaged_configuration_is_reported(tmp_path: Path) -> None:
    folder = save_transformer(tmp_path / "bert", "bert")
    (folder / "config.json").write_text("{")
    for open_folder in (open_transformer, open_encoder):
        with pytest.raises(DataError, match=r"config\.json: cannot read it as JSON"):
            open_folder(folder)


@pytest.mark.parametrize("piece", [-1, None])
def test_padding_may_have_no_piece(piece: int | None, tmp_path: Path) -> None:
    folder = save_transformer(tmp_path / "bert", "bert")
    sentences = [["a", "b", "c"], ["a"]]
    expected = open_transformer(folder).layers(collate_text(sentences)).layers
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "pad_token_id": piece}))
    layers = open_transformer(folder).layers(collate_text(sentences)).layers
    torch.testing.assert_close(layers, expected)


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors", "config.json"])
def test_damaged_file_is_one_line(name: str, tmp_path: Path) -> None:
    folder = save_transformer(tmp_path / "bert", "bert")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    assert "\n" not in damaged(folder, name)


def test_missing_weights_are_no_random_ones(tmp_path: Path) -> None:
    folder = save_transformer(tmp_path / "bert", "bert")
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if "layer.1.output" in name)
    del weights[name]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert f"no weights for {name.removeprefix('bert.')}" in damaged(folder, name)


def test_code_in_a_folder_is_not_run(tmp_path: Path) -> None:
    folder = save_transformer(tmp_path / "bert", "bert")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.M"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    damaged(folder, "own.py")
    assert not (tmp_path / "ran").exists()
