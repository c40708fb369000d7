import copy
import io
import pickle
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.optim.swa_utils import AveragedModel

from elmo_framework import Elmo, batch_to_ids, load_bilm, load_encoder

SENTENCES = [["Wörter", "are", "words"], ["a"]]


def saved_and_loaded(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "torch.save": saved_and_loaded,
    "spawn": lambda model: pickle.loads(ForkingPickler.dumps(model)),
}
each_copy = pytest.mark.parametrize("name", COPIES)


def make(folder: Path, **keys) -> Elmo:
    return Elmo(folder / "options.json", folder / "weights.hdf5", 1, **keys).eval()


def vectors(elmo: torch.nn.Module) -> torch.Tensor:
    return elmo(batch_to_ids(SENTENCES))["elmo_representations"][0]


@pytest.mark.parametrize(
    "keys",
    [{}, {"requires_grad": True}, {"state": "carry"}, {"vocab_to_cache": ["", "a"]}],
    ids=str,
)
@each_copy
def test_copy_of_elmo_computes_the_same_bits(folder: Path, name: str, keys) -> None:
    elmo = make(folder, **keys)
    vectors(elmo)
    copied = COPIES[name](elmo)
    assert torch.equal(vectors(copied), vectors(elmo))


def test_deepcopy_shares_the_frozen_bilm_alone(folder: Path) -> None:
    elmo = make(folder)
    copied = copy.deepcopy(elmo)
    assert copied._frozen is elmo._frozen
    copied.scalar_mix_0.gamma.data.fill_(2)
    assert torch.equal(vectors(copied), 2 * vectors(elmo))


@each_copy
def test_copy_of_elmo_loads_weights_of_allennlp(folder: Path, name: str) -> None:
    elmo = make(folder)
    vectors(elmo)
    weights = {**elmo.state_dict(), "_elmo_lstm._token_embedder._char_embedding": torch.ones(1)}
    COPIES[name](elmo).load_state_dict(weights)


def test_elmo_can_be_averaged(folder: Path) -> None:
    elmo = make(folder)
    vectors(elmo)
    averaged = AveragedModel(elmo)
    averaged.update_parameters(elmo)
    assert torch.equal(vectors(averaged), vectors(elmo))


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
@each_copy
def test_copy_of_a_loaded_bilm_computes_the_same_bits(folder, name: str, precision: str) -> None:
    bilm = load_bilm(folder, precision=precision, device="cpu")
    bilm.embed([["a"]])
    copied = COPIES[name](bilm)
    # In int8 the vector of a word depends on the words that it was first read with.
    for one, other in zip(copied.embed(SENTENCES), bilm.embed(SENTENCES), strict=True):
        np.testing.assert_array_equal(one, other)


def test_pickle_holds_the_words_in_use_alone(folder: Path) -> None:
    bilm = load_bilm(folder)
    bilm.embed(SENTENCES)
    assert len(pickle.dumps(bilm)) < 100_000


def test_deepcopy_shares_what_predicts_words(scorer: Path, transformer_folder) -> None:
    bilm, causal = load_bilm(scorer), load_encoder(transformer_folder("gpt2"), device="cpu")
    bilm.load_softmax()
    causal.load_softmax()
    assert copy.deepcopy(bilm)._softmax is bilm._softmax
    assert copy.deepcopy(causal)._language_model is causal._language_model
