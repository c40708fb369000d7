"""Calls of a forward pass and of a training step: each costs microseconds, whatever it computes."""

from collections import Counter
from collections.abc import Callable
from ctypes import CDLL
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from elmo_framework import Elmo, batch_to_ids, load_bilm
from elmo_framework.kernels import character_maxima, lstm_stack, lstm_step, packed_product
from elmo_framework.kernels.product import Precision
from elmo_framework.nn.elmo_lstm import ProjectedLstm

needs_compiler = pytest.mark.skipif(lstm_stack._library() is None, reason="needs a C compiler")


class CountedLibrary:
    """A compiled library that counts the calls of its functions."""

    def __init__(self, functions: CDLL, calls: Counter[str]) -> None:
        self._functions, self._calls = functions, calls

    def __getattr__(self, name: str) -> Callable[..., object]:
        function = getattr(self._functions, name)

        def counted(*arguments: object) -> object:
            self._calls[name] += 1
            return function(*arguments)

        return counted


@pytest.fixture
def c_calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls into C, by the name of the function."""
    calls, address = Counter[str](), lstm_step.step_address()
    monkeypatch.setattr(lstm_stack, "step_address", lambda: address)
    for module in (lstm_stack, lstm_step, packed_product, character_maxima):
        load: Any = module._library

        def counted_library(*tensors: Any, load: Any = load) -> CountedLibrary | None:
            functions = load(*tensors)
            return None if functions is None else CountedLibrary(functions, calls)

        monkeypatch.setattr(module, "_library", counted_library)
    return calls


class OperatorCount(TorchDispatchMode):
    """Counts the operators that PyTorch runs inside the block, and the memory that they allocate.

    Attributes:
        number: of operators.
        num_allocations: results that are not views and not in the memory of an argument.
        num_bytes: of these results.
    """

    number = num_allocations = num_bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = storages((args, kwargs))
        results = func(*args, **(kwargs or {}))
        sizes = [size for key, size in storages(results).items() if key not in before]
        self.number += 1
        self.num_allocations += len(sizes)
        self.num_bytes += sum(sizes)
        return results


def storages(tensors: Any) -> dict[int, int]:
    """Return the bytes of the memory of all tensors in a tree, by address."""
    found = [
        leaf.untyped_storage()
        for leaf in tree_leaves(tensors)
        if isinstance(leaf, Tensor) and leaf.layout is torch.strided
    ]
    return {storage.data_ptr(): storage.nbytes() for storage in found if storage.nbytes()}


@needs_compiler
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_embedding_needs_one_call_for_any_sentences(
    c_calls: Counter[str], precision: Precision
) -> None:
    bilm, operators, allocations = load_bilm("mini", precision=precision), [], []
    for length in (5, 20):
        sentence = ["a", "dog", "ran", "home", "."] * (length // 5)
        bilm.embed([sentence])  # its words are encoded once
        c_calls.clear()
        with OperatorCount() as count:
            bilm.embed([sentence])
        operators.append(count.number)
        allocations.append(count.num_allocations)
        assert c_calls == {"read_stack": 1}
    assert operators[0] == operators[1] <= 60
    assert allocations[0] == allocations[1] <= 30


@needs_compiler
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_new_words_need_a_call_per_layer(c_calls: Counter[str], precision: Precision) -> None:
    bilm, operators = load_bilm("mini", precision=precision), []
    for words in (["a"], ["new", "words", "of", "any", "number"], ["more"]):
        c_calls.clear()
        with OperatorCount() as count:
            bilm.embed([words])
        operators.append(count.number)
        # Of mini, two products in a highway layer, and the projection.
        assert c_calls == {"character_maxima": 1, "product_of_rows": 3, "read_stack": 1}
    assert operators[1] == operators[2] <= 110


@needs_compiler
def test_elmo_needs_one_call_for_words_that_it_knows(c_calls: Counter[str]) -> None:
    elmo = Elmo("mini", "mini", 1).eval()
    ids = batch_to_ids([["a", "dog", "ran", "home", "."] * 4])
    elmo(ids)
    c_calls.clear()
    with OperatorCount() as count:
        elmo(ids)
    assert c_calls == {"read_stack": 1}
    assert count.number <= 70
    assert count.num_allocations <= 45


@needs_compiler
def test_training_needs_few_calls_per_step(c_calls: Counter[str]) -> None:
    module = ProjectedLstm(16, 64, projection_dim=16, cell_clip=3.0, projection_clip=3.0)

    def count_in(num_steps: int) -> OperatorCount:
        words = torch.randn(num_steps * 8, 16)
        c_calls.clear()
        with OperatorCount() as count:
            outputs, _ = module(words, [8] * num_steps, module.zero_state(8))
            outputs.sum().backward()
        assert c_calls == {"lstm_step": num_steps, "lstm_step_backward": num_steps}
        return count

    count_in(8)
    few, many = count_in(8), count_in(24)
    assert (many.number - few.number) / 16 <= 27
    assert (many.num_allocations - few.num_allocations) / 16 <= 8
    # Five times the gates of 8 rows in float32: 8 rows x 4 gates x 64 cells x 4 bytes is 8,192.
    assert (many.num_bytes - few.num_bytes) / 16 <= 5 * 8192
