import pickle
from collections.abc import Iterator
from contextlib import nullcontext
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import Tensor

from elmo_framework.kernels import character_maxima
from elmo_framework.kernels import window_maxima as window_maxima_module
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.nn.char_cnn import CharCnn
from tests.numpy_bilm import NumpyBiLm

FILTERS = [(1, 2), (2, 3), (3, 4)]


@pytest.fixture(params=[nullcontext, accelerator_code], ids=["cpu", "accelerator"])
def each_code(request: pytest.FixtureRequest) -> Iterator[None]:
    with request.param():
        yield


def network(activation="relu", seed: int = 0) -> CharCnn:
    torch.manual_seed(seed)
    module = CharCnn(262, 3, FILTERS, activation).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


def rows(*words: str, length: int = 12) -> torch.Tensor:
    marked = [[259, *(byte + 1 for byte in word.encode()), 260] for word in words]
    return torch.tensor([row + [261] * (length - len(row)) for row in marked])


def reference(module: CharCnn, activation: str) -> NumpyBiLm:
    weights = {"char_embed": module.table.detach().numpy()}
    for k, convolution in enumerate(module.convolutions):
        kernel = convolution.weight.detach().numpy().transpose(2, 1, 0)
        bias = convolution.bias.detach().numpy()
        weights |= {f"CNN/W_cnn_{k}": kernel[None], f"CNN/b_cnn_{k}": bias}
    cnn = {"embedding": {"dim": 3}, "filters": FILTERS, "n_highway": 0, "activation": activation}
    return NumpyBiLm({"char_cnn": {**cnn, "max_characters_per_token": 12}}, weights)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("word", ["", "a", "word", "0123456789"])
def test_a_word_equals_the_numpy_reference(activation, word: str) -> None:
    module = network(activation)
    numpy_bilm = reference(module, activation)
    expected = numpy_bilm.word(numpy_bilm.symbols(word))
    np.testing.assert_allclose(module(rows(word))[0].detach(), expected, atol=1e-12)


@pytest.mark.usefixtures("each_code")
def test_a_batch_equals_its_words_one_by_one() -> None:
    module, words = network(), rows(*(str(7**k)[:10] for k in range(150)))
    alone = torch.cat([module(word[None]) for word in words])
    torch.testing.assert_close(module(words), alone)


def test_longer_padding_has_no_effect() -> None:
    module = network()
    torch.testing.assert_close(module(rows("ab", length=12)), module(rows("ab", length=50)))


def test_other_devices_than_the_cpu_are_not_synchronized() -> None:
    """What a tensor on `meta` holds cannot be looked at."""
    assert network().to("meta")(rows("ab", "abcd").to("meta")).shape == (2, 9)


def test_id_0_is_a_vector_of_zeros() -> None:
    module = network()
    biases = torch.cat([convolution.bias for convolution in module.convolutions])
    empty = module(torch.zeros(1, 12, dtype=torch.long))
    torch.testing.assert_close(empty[0], biases.relu())


def test_gradients_reach_every_parameter() -> None:
    module = network("tanh")
    module(rows("gradient", "descent")).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in module.parameters())
    assert (module.table.grad[260] != 0).all(), "the padding inside a word is learned"


@pytest.mark.parametrize(("activation", "deviation"), [("relu", 0.05 / 3**0.5), ("tanh", 0.125)])
def test_parameters_start_as_in_bilm_tf(activation, deviation: float) -> None:
    torch.manual_seed(0)
    module = CharCnn(262, 16, [(4, 512)], activation)
    assert module.table.abs().max() <= 1
    assert module.table.std().item() == pytest.approx(1 / 3**0.5, rel=0.05)
    assert module.convolutions[0].weight.std().item() == pytest.approx(deviation, rel=0.05)
    assert (module.convolutions[0].bias == 0).all()


@pytest.mark.usefixtures("each_code")
def test_words_of_all_lengths_equal_plain_convolutions() -> None:
    module = network()
    words = rows(*("x" * (number * 7 % 11) for number in range(200)))
    table = torch.cat([torch.zeros(1, 3, dtype=torch.double), module.table])
    characters = table[words].transpose(1, 2)
    expected = torch.cat([layer(characters).amax(dim=2) for layer in module.convolutions], dim=1)
    torch.testing.assert_close(module(words), expected.relu())


def test_no_words_have_no_vectors() -> None:
    assert network()(torch.zeros(0, 12, dtype=torch.long)).shape == (0, 9)


def test_convolutions_of_few_words_have_few_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: set[int] = set()
    multiply = window_maxima_module.product

    def product(rows: Tensor, weight: Tensor) -> Tensor:
        numbers.add(len(rows))
        return multiply(rows, weight)

    monkeypatch.setattr(window_maxima_module, "product", product)
    with torch.no_grad():
        for num_words in range(1, 20):
            window_maxima_module.window_maxima(torch.ones(num_words, 12, 3), torch.ones(5, 3, 2))
    assert numbers == {128, 256}


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_frozen_equals_trained(activation, monkeypatch: pytest.MonkeyPatch) -> None:
    module, words = network(activation).float(), rows("", "a", "word", "0123456789")
    expected = module(words).detach()
    module.freeze("float32")
    with torch.no_grad():
        torch.testing.assert_close(module(words), expected, atol=1e-6, rtol=1e-5)
        monkeypatch.setattr(character_maxima, "_library", lambda *_: None)
        module.freeze("float32")
        torch.testing.assert_close(module(words), expected, atol=1e-6, rtol=1e-5)
    monkeypatch.undo()
    module.freeze("float32")
    module(words).sum().backward()
    assert module.table.grad is not None


def test_copies_of_a_frozen_network_are_not_frozen() -> None:
    module, words = network().float(), rows("a", "word")
    module.freeze("float32")
    with torch.no_grad():
        expected = module(words)
        for copy in (deepcopy(module), pickle.loads(pickle.dumps(module))):
            torch.testing.assert_close(copy(words), expected)
            copy.table.zero_()
            assert not torch.equal(copy(words), expected)
