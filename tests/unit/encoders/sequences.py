"""What the tests of encoders and poolers share: rows of several lengths, and what holds for all."""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from elmo_framework.config.parse import parse
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.encoders.pooler import Pooler
from elmo_framework.kernels.backend import accelerator_code

INPUT_DIM, LENGTHS = 3, (2, 5, 0, 1)
MASK = torch.arange(5) < torch.tensor(LENGTHS)[:, None]


def encoder(config: object, input_dim: int = INPUT_DIM) -> Any:
    return _built(Encoder, config, input_dim)


def pooler(config: object, input_dim: int = INPUT_DIM) -> Any:
    return _built(Pooler, config, input_dim)


def inputs() -> Tensor:
    shape = (len(LENGTHS), max(LENGTHS), INPUT_DIM)
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def check_padding_changes_nothing(module: nn.Module) -> None:
    """Whatever padding holds, and however much of it there is."""
    found = module(inputs(), MASK)
    filled = inputs().masked_fill(~MASK[:, :, None], 1000.0)
    longer = torch.cat([filled, filled[:, :3]], dim=1)
    longer_mask = torch.cat([MASK, torch.zeros(len(LENGTHS), 3, dtype=torch.bool)], dim=1)

    torch.testing.assert_close(module(filled, MASK), found, rtol=0, atol=0)
    again = module(longer, longer_mask)
    if found.ndim == 3:
        assert not found[~MASK].any()
        assert not again[~longer_mask].any()
        again = again[:, : max(LENGTHS)]
    torch.testing.assert_close(again, found, rtol=0, atol=1e-12)


def check_a_batch_equals_its_rows(module: nn.Module) -> None:
    found = module(inputs(), MASK)
    for row, length in enumerate(LENGTHS):
        kept = max(1, length)
        own = module(inputs()[row : row + 1, :kept], MASK[row : row + 1, :kept])[0]
        expected = found[row, :kept] if found.ndim == 3 else found[row]
        torch.testing.assert_close(own, expected, rtol=0, atol=1e-12)


def check_gradients(module: nn.Module) -> None:
    """They reach every parameter and every word, and no padding."""
    leaf = inputs().requires_grad_()
    module(leaf, MASK).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in module.parameters())
    assert not leaf.grad[~MASK].any()


def check_accelerators_read_the_same(module: nn.Module) -> None:
    """Outputs and gradients are those of the CPU."""
    found = []
    for code in (nullcontext, accelerator_code):
        leaf = inputs().requires_grad_()
        with code():
            outputs = module(leaf, MASK)
            gradients = torch.autograd.grad(outputs.square().sum(), [leaf, *module.parameters()])
        found.append([outputs, *gradients])
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)


def _built(family: Any, config: object, input_dim: int) -> Any:
    torch.manual_seed(1)
    return parse(family, config, source="a.jsonnet").build(input_dim=input_dim).double().eval()
