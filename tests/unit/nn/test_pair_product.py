import torch

from elmo_framework.nn.pair_product import pair_products


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_pair_products_equal_the_product_of_each_pair():
    torch.manual_seed(1)
    left, right, weight = random(3, 5), random(4, 5), random(2, 5)

    found = pair_products(left, right, weight)

    assert found.shape == (4, 3, 2)
    for j in range(4):
        for i in range(3):
            torch.testing.assert_close(found[j, i], weight @ (left[i] * right[j]))


def test_the_gradients_are_right():
    torch.manual_seed(2)

    assert torch.autograd.gradcheck(pair_products, (random(3, 4), random(2, 4), random(2, 4)))


def test_floats_of_the_usual_size_agree_with_the_plain_product():
    torch.manual_seed(3)
    left, right, weight = torch.randn(17, 40), torch.randn(33, 40), torch.randn(8, 40)

    found = pair_products(left, right, weight)

    torch.testing.assert_close(found, (right[:, None] * left) @ weight.T, rtol=1e-4, atol=1e-4)


def test_lower_precision_is_near():
    torch.manual_seed(4)
    left, right, weight = torch.randn(3, 5), torch.randn(4, 5), torch.randn(2, 5)
    weight.requires_grad_()

    with torch.autocast("cpu", torch.bfloat16):
        found = pair_products(left, right, weight)
    found.sum().backward()

    assert found.dtype == torch.bfloat16
    exact = (right[:, None] * left) @ weight.T
    torch.testing.assert_close(found.float(), exact, rtol=0.05, atol=0.1)
    assert weight.grad.any()
