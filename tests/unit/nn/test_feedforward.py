import numpy as np
import torch

from elmo_framework.nn.feedforward import FeedForward, Layer

LAYERS = [Layer(4, "tanh", 0.0), Layer(2, "relu", 0.0)]


def test_layers_are_a_product_and_an_activation():
    torch.manual_seed(1)
    network = FeedForward(3, LAYERS).double()
    inputs = torch.randn(5, 2, 3, dtype=torch.float64)

    first, second = network.linear_layers
    hidden = np.tanh(inputs.numpy() @ first.weight.detach().numpy().T + first.bias.detach().numpy())
    expected = hidden @ second.weight.detach().numpy().T + second.bias.detach().numpy()

    np.testing.assert_allclose(network(inputs).detach(), np.maximum(expected, 0), atol=1e-14)
    assert network.output_dim == 2


def test_dropout_follows_the_activation_in_training_only():
    torch.manual_seed(1)
    network = FeedForward(3, [Layer(1000, "sigmoid", 0.5)])
    inputs = torch.randn(1, 3)

    dropped, kept = network(inputs), network.eval()(inputs)

    assert 0.4 < float((dropped == 0).float().mean()) < 0.6
    torch.testing.assert_close(dropped[dropped > 0], 2 * kept[dropped > 0])


def test_gradients_reach_every_parameter():
    torch.manual_seed(1)
    network = FeedForward(3, [Layer(4, "tanh", 0.0), Layer(2, "linear", 0.0)])

    network(torch.randn(5, 3)).sum().backward()

    assert all(parameter.grad.abs().sum() > 0 for parameter in network.parameters())


def test_without_layers_nothing_changes():
    inputs = torch.randn(2, 3)

    network = FeedForward(3, [])

    assert network.output_dim == 3
    assert torch.equal(network(inputs), inputs)
