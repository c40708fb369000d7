"""ELMo modules give the outputs that were recorded with those of AllenNLP 2.10.1."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework import load_bilm, modules
from elmo_framework.commands.elmo import ElmoEmbedder
from elmo_framework.modules.elmo import Elmo, batch_to_ids
from elmo_framework.modules.scalar_mix import ScalarMix
from tests.conftest import ROOT

RECORDED: dict[str, Any] = json.loads((ROOT / "tests/fixtures/allennlp/modules.json").read_text())
BILM = ROOT / "tests/fixtures/first_version/runs/bilm/bilm"
FILES = BILM / "options.json", BILM / "weights.hdf5"
BATCHES, WEIGHTS = RECORDED["batches"], RECORDED["weights"]


def check(vectors: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(vectors), np.asarray(expected), atol=5e-6)


def test_import_paths_are_those_of_allennlp() -> None:
    assert (modules.Elmo, modules.ScalarMix, modules.ElmoEmbedder) == (
        Elmo,
        ScalarMix,
        ElmoEmbedder,
    )


def test_ids_are_those_of_allennlp() -> None:
    assert [batch_to_ids(batch).tolist() for batch in BATCHES] == RECORDED["ids"]


@pytest.mark.parametrize(("name", "norm"), [("elmo", False), ("normalized", True)])
def test_elmo_continues_as_that_of_allennlp(name: str, norm: bool) -> None:
    keys = {"do_layer_norm": norm, "dropout": 0.0, "scalar_mix_parameters": WEIGHTS}
    elmo = Elmo(*FILES, 1, **keys, state="carry").eval()
    for batch, expected, mask in zip(BATCHES, RECORDED[name], RECORDED["mask"], strict=True):
        output = elmo(batch_to_ids(batch))
        check(output["elmo_representations"][0].detach(), expected)
        assert output["mask"].tolist() == mask
    # By default the second batch does not depend on the first.
    elmo = Elmo(*FILES, 1, **keys).eval()
    outputs = [elmo(batch_to_ids(batch))["elmo_representations"][0].detach() for batch in BATCHES]
    check(outputs[0], RECORDED[name][0])
    assert np.abs(outputs[1].numpy() - np.asarray(RECORDED[name][1])).max() > 1e-3


def test_embedder_has_the_layers_of_allennlp() -> None:
    embedder = ElmoEmbedder(*FILES, state="carry")
    for batch, expected, mask in zip(BATCHES, RECORDED["layers"], RECORDED["mask"], strict=True):
        layers, words = embedder.batch_to_embeddings(batch)
        check(layers, expected)
        assert words.tolist() == mask
    first, lengths = BATCHES[0], [len(words) for words in BATCHES[0]]
    expected = [
        np.asarray(each)[:, :length]
        for each, length in zip(RECORDED["layers"][0], lengths, strict=True)
    ]
    one_by_one = [ElmoEmbedder(*FILES).embed_sentence(words) for words in first]
    for read in (
        one_by_one,
        ElmoEmbedder(*FILES).embed_batch(first),
        [*ElmoEmbedder(*FILES).embed_sentences(first)],
    ):
        for own, layers in zip(read, expected, strict=True):
            check(own, layers)


@pytest.mark.parametrize("norm", [False, True])
def test_scalar_mix_is_that_of_allennlp(norm: bool) -> None:
    mix = ScalarMix(3, do_layer_norm=norm, initial_scalar_parameters=WEIGHTS)
    mix.gamma.data.fill_(RECORDED["gamma"])
    layers = [*torch.tensor(RECORDED["layers"][0]).unbind(1)]
    mask = torch.tensor(RECORDED["mask"][0])
    mixed = mix(layers, mask) if norm else mix(layers)
    check(mixed.detach(), RECORDED["mixed"][str(norm).lower()])


def test_hub_has_the_mean_of_the_layers_of_allennlp() -> None:
    outputs = load_bilm(BILM).hub(
        {"tokens": [[*words, *[""] * (3 - len(words))] for words in BATCHES[0]],
         "sequence_len": [len(words) for words in BATCHES[0]]},
        signature="tokens",
        as_dict=True,
    )  # fmt: skip
    layers = np.asarray(RECORDED["layers"][0])
    check(outputs["elmo"], layers.mean(axis=1))
    for number in (1, 2):
        check(outputs[f"lstm_outputs{number}"], layers[:, number])
