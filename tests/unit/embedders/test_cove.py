from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework.config.parse import parse
from elmo_framework.data.text import collate_text
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.cove import CoveTokenEmbedder
from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.errors import DataError
from tests.unit.embedders.published_files import write_cove

DIM, HIDDEN = 4, 3
WORDS = Vocabularies({"words": Counter({"The": 3, "dog": 2, "ran": 1})})
SENTENCES = ["The dog ran", "dog", "The cat"]  # the file has no "ran", nobody knows "cat"
VECTORS = {"The": [0.5, -1.0, 2.0, 0.1], "dog": [1.5, 0.3, -0.2, 0.9]}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """GloVe's text and the state of an LSTM as CoVe is published."""
    write_cove(tmp_path / "wmtlstm.pth", embedding_dim=DIM, hidden_size=HIDDEN)
    lines = (f"{word} {' '.join(map(str, values))}\n" for word, values in VECTORS.items())
    (tmp_path / "glove.txt").write_text("".join(lines))
    return {
        "model_file": str(tmp_path / "wmtlstm.pth"),
        "pretrained_file": str(tmp_path / "glove.txt"),
    }


def embedder(files: dict[str, str], *, weights_follow: bool = False, **keys: Any) -> Any:
    config = {"type": "cove", "embedding_dim": DIM, "hidden_size": HIDDEN, **files, **keys}
    lazy = parse(TokenEmbedder, config, source="a.jsonnet")
    return lazy.build(vocabularies=WORDS, weights_follow=weights_follow)


def embed(built: CoveTokenEmbedder, sentences: Sequence[str] = SENTENCES) -> np.ndarray:
    return built(collate_text([each.split() for each in sentences], built.indexers)).numpy()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def direction(rows: np.ndarray, state: dict[str, np.ndarray], ending: str) -> np.ndarray:
    """One direction of a layer over the vectors of one sentence."""
    hidden, memory, outputs = np.zeros(HIDDEN), np.zeros(HIDDEN), []
    for row in rows:
        gates = state[f"weight_ih_{ending}"] @ row + state[f"bias_ih_{ending}"]
        gates = gates + state[f"weight_hh_{ending}"] @ hidden + state[f"bias_hh_{ending}"]
        i, f, g, o = np.split(gates, 4)
        memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(memory)
        outputs.append(hidden)
    return np.array(outputs)


def reference(files: dict[str, str], sentence: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The word vectors of a sentence and both layers."""
    loaded = torch.load(files["model_file"], weights_only=True)
    state = {name: value.double().numpy() for name, value in loaded.items()}
    layers = [np.array([VECTORS.get(word, [0.0] * DIM) for word in sentence.split()])]
    for layer in ("l0", "l1"):
        forward = direction(layers[-1], state, layer)
        backward = direction(layers[-1][::-1], state, f"{layer}_reverse")[::-1]
        layers.append(np.concatenate([forward, backward], axis=1))
    words, lower, upper = layers
    return words, lower, upper


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        ({}, [2]),
        ({"layers": "layer0"}, [1]),
        ({"layers": "both"}, [1, 2]),
        ({"residual_embeddings": True}, [0, 2]),
        ({"residual_embeddings": True, "layers": "both"}, [0, 1, 2]),
    ],
)
def test_the_layers_are_those_of_an_lstm_over_the_word_vectors(files, keys, chosen):
    built = embedder(files, **keys)

    found = embed(built)

    assert found.shape == (3, 3, built.output_dim)
    for row, sentence in zip(found, SENTENCES, strict=True):
        layers = reference(files, sentence)
        expected = np.concatenate([layers[number] for number in chosen], axis=1)
        np.testing.assert_allclose(row[: len(expected)], expected, atol=1e-6)
        assert not row[len(expected) :].any()


def test_a_batch_equals_its_sentences_one_by_one(files):
    built = embedder(files, layers="both")
    together = embed(built)

    for row, sentence in zip(together, SENTENCES, strict=True):
        (alone,) = embed(built, [sentence])
        np.testing.assert_allclose(row[: len(alone)], alone, atol=1e-6)


@pytest.mark.parametrize(("max_unseen_words", "num_known"), [(0, 0), (1, 1), (None, 2)])
def test_other_words_have_the_vectors_of_the_file(files, max_unseen_words, num_known):
    with Path(files["pretrained_file"]).open("a") as file:
        file.write("cat 1 2 3 4\nowl 5 6 7 8\n")

    built = embedder(files, residual_embeddings=True, max_unseen_words=max_unseen_words)

    found = embed(built, ["cat owl mouse"])[0, :, :DIM].tolist()
    others = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]
    assert found == others[:num_known] + [[0.0] * DIM] * (3 - num_known)


def test_nothing_of_it_is_trained(files):
    built = embedder(files)

    assert not any(parameter.requires_grad for parameter in built.parameters())
    assert not built(collate_text([["dog"]], built.indexers)).requires_grad


def test_it_is_loaded_from_a_run_without_its_files(files):
    absent = {name: f"{path}.gone" for name, path in files.items()}
    built, again = embedder(files), embedder(absent, weights_follow=True)

    again.load_state_dict(built.state_dict())

    np.testing.assert_array_equal(embed(again), embed(built))


@pytest.mark.parametrize("name", ["weight_hh_l1_reverse", "bias_ih_l0"])
def test_a_file_that_lacks_weights_is_refused(files, name):
    state = torch.load(files["model_file"], weights_only=True)
    del state[name]
    torch.save(state, files["model_file"])

    with pytest.raises(DataError) as raised:
        embedder(files)

    expected = f"{files['model_file']}: {name!r} is missing; expected a two-layer LSTM"
    assert str(raised.value) == expected


def test_a_file_of_another_size_is_refused(files):
    with pytest.raises(DataError, match="does not fit embedding_dim and hidden_size: "):
        embedder(files, hidden_size=HIDDEN + 1)


def test_file_without_a_state_dict_is_refused(files):
    Path(files["model_file"]).write_bytes(b"no state")

    with pytest.raises(DataError, match=r"wmtlstm\.pth: not a PyTorch state_dict: "):
        embedder(files)

    torch.save([1, 2], files["model_file"])
    with pytest.raises(DataError, match="expected a state by name, found list"):
        embedder(files)
