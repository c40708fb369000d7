import numpy as np
import torch

from elmo_framework.nn.maxout import Maxout, MaxoutLayer

LAYERS = [MaxoutLayer(4, 3, 0.0), MaxoutLayer(2, 2, 0.0)]


def network(layers=LAYERS):
    torch.manual_seed(1)
    return Maxout(5, layers).double()


def inputs(num_rows=6):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(num_rows, 5, dtype=torch.float64, generator=generator)


def test_maxout_is_the_maximum_of_its_products():
    maxout = network()

    expected = inputs().numpy()
    for linear, layer in zip(maxout.linear_layers, LAYERS, strict=True):
        weight, bias = (value.detach().numpy() for value in linear.parameters())
        products = expected @ weight.T + bias
        columns = [
            products[:, at * layer.pool_size : (at + 1) * layer.pool_size].max(axis=1)
            for at in range(layer.dim)
        ]
        expected = np.stack(columns, axis=1)
    np.testing.assert_allclose(maxout(inputs()).detach(), expected, atol=1e-12)
    assert maxout.output_dim == 2


def test_a_batch_equals_its_rows_one_by_one():
    maxout = network()

    rows = torch.cat([maxout(row[None]) for row in inputs()])

    torch.testing.assert_close(maxout(inputs()), rows, rtol=0, atol=1e-12)


def test_gradients_reach_every_parameter():
    maxout = network()

    maxout(inputs(100)).square().sum().backward()

    assert all(value.grad.any() for value in maxout.parameters())


def test_dropout_follows_each_layer_in_training_only():
    maxout = network([MaxoutLayer(1000, 2, 0.4)])
    torch.manual_seed(3)

    share = float((maxout(inputs(1)) == 0).double().mean())

    assert 0.3 < share < 0.5
    assert maxout.eval()(inputs(1)).all()
