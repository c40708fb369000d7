"""The fast paths against the plain ones in one process, in two minutes: the ratios of their speeds.

    make bench-smoke

The plain path is PyTorch's operations without compiled code, in float32. Both do the same work in
turn, so that other programs slow down both. The exit code is 1 where the fast path is slower, or
where its vectors or losses are not those of the plain one.
"""

from __future__ import annotations

import statistics
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import get_args

import torch
from measuring import Sentence, say
from training_step import Training

from elmo_framework.bilm.files.load import read_bilm
from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.encoders.lstm import LstmEncoder
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.kernels.compiler import slow_path_reason
from elmo_framework.kernels.packed_product import Precision
from elmo_framework.layers.bilm_source import FrozenBiLm

_CPU = torch.device("cpu")
_NUM_DISTINCT = 1500
_TOLERANCES = {"float32": 1e-5, "bfloat16": 1e-2, "int8": 2e-2}
"""The largest differences, relative to the largest number."""


@dataclass(frozen=True)
class Case:
    """Work that both paths do.

    Attributes:
        name: in the table.
        fast: does the work and returns numbers.
        plain: does the same work in the block of `accelerator_code`.
        tolerance: of the numbers.
    """

    name: str
    fast: Callable[[], torch.Tensor]
    plain: Callable[[], torch.Tensor]
    tolerance: float


def main() -> int:
    """Measure all cases and print a table; return 1 if one fails."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="mini", help="the name or the folder of a biLM (mini)")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each path (7)")
    parser.add_argument("--threads", type=int, default=2, help="of torch (2)")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if reason := slow_path_reason():
        say(f"the fast path is not available: {reason}")
        return 1
    say("| work | fast, ms | plain, ms | times faster | difference |")
    say("|---|---|---|---|---|")
    passed = [is_faster(case, arguments.rounds) for case in _cases(arguments)]
    return int(not all(passed))


def is_faster(case: Case, rounds: int) -> bool:
    """Print the row of a case; return whether it is faster than the plain path, and equal to it."""
    paths: Sequence[tuple[Callable[[], torch.Tensor], AbstractContextManager[None]]]
    times: list[list[float]] = [[], []]
    difference = 0.0
    for number in range(rounds + 1):
        results = []
        paths = (case.fast, nullcontext()), (case.plain, accelerator_code())
        for durations, (work, path) in zip(times, paths, strict=True):
            with path:
                started = time.perf_counter()
                results.append(work())
                durations += [1000 * (time.perf_counter() - started)] if number else []
        fast, plain = results
        difference = max(difference, float((fast - plain).abs().max() / plain.abs().max()))
    ours, theirs = map(statistics.median, times)
    say(f"| {case.name} | {ours:.2f} | {theirs:.2f} | {theirs / ours:.2f} | {difference:.1e} |")
    return ours < theirs and difference <= case.tolerance


def _cases(arguments: Namespace) -> list[Case]:
    words = [f"word{number}" for number in range(_NUM_DISTINCT)]
    many = [
        [words[(17 * row + column) % _NUM_DISTINCT] for column in range(8 + row % 24)]
        for row in range(96)
    ]
    cases = []
    files = resolve_bilm(arguments.model)
    plain = _reader(FrozenBiLm(read_bilm(files)))
    for precision in get_args(Precision):
        fast = _reader(FrozenBiLm(read_bilm(files), precision))
        for name, sentences in (("one sentence", many[12:13]), ("96 sentences", many)):
            cases.append(
                Case(
                    f"embed {name}, {precision}",
                    lambda fast=fast, chosen=sentences: fast(chosen),  # type: ignore[misc]
                    lambda chosen=sentences: plain(chosen),  # type: ignore[misc]
                    _TOLERANCES[precision],
                )
            )
    return [*cases, _training_case(arguments), _head_case()]


def _reader(frozen: FrozenBiLm) -> Callable[[Sequence[Sentence]], torch.Tensor]:
    def read(sentences: Sequence[Sentence]) -> torch.Tensor:
        layers = dict(frozen.read(sentences, device=_CPU))
        return torch.cat([layers[index].flatten() for index in sorted(layers)])

    return read


def _training_case(arguments: Namespace) -> Case:
    shape = {"batch": 16, "unroll": 20, "vocabulary": 20_000, "samples": 2048, "word_pool": 2000}
    options = Namespace(size="small", device="cpu", precision="float32", **shape)

    def updates() -> Callable[[], torch.Tensor]:
        torch.manual_seed(0)
        training = Training(options)

        def update() -> torch.Tensor:
            torch.manual_seed(1)  # both paths draw the same words for the softmax
            training.update()
            return torch.tensor([training.loss])

        return update

    fast = updates()
    with accelerator_code():
        plain = updates()
    return Case("training step, small", fast, plain, 1e-3)


def _head_case() -> Case:
    torch.manual_seed(0)
    encoder = LstmEncoder(input_dim=300, hidden_size=300, bidirectional=True)
    vectors = torch.randn(64, 24, 300)
    mask = torch.arange(24) < torch.tensor([24 - row % 16 for row in range(64)])[:, None]

    def update() -> torch.Tensor:
        encoder.zero_grad()
        encoder(vectors, mask).pow(2).sum().backward()
        gradients = [parameter.grad for parameter in encoder.parameters()]
        return torch.cat([each.flatten() for each in gradients if each is not None])

    return Case("gradients of an LSTM of a head", update, update, _TOLERANCES["float32"])


if __name__ == "__main__":
    sys.exit(main())
