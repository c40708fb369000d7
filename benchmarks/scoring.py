"""How much of the time of `elmo score` is the softmax.

Computes the layers of sentences as `elmo embed` does, and then the surprisals of the same
sentences, several times in turn. Both are measured in seconds of the processor; the least counts.

    python benchmarks/scoring.py --model elmo_framework/bilm/mini --sentences text.txt
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable

from measuring import add_text_arguments, chosen_sentences, say

_ROUNDS = 3


def main() -> int:
    """Measure and print a line."""
    parser = ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add_text_arguments(parser, num_sentences=2000)
    arguments = parser.parse_args()

    import torch

    from elmo_framework import load_bilm
    from elmo_framework.bilm.files import resolve_bilm
    from elmo_framework.layers.bilm_source import open_layers

    torch.set_num_threads(arguments.threads)
    sentences = chosen_sentences(arguments.sentences, arguments.n)
    bilm = load_bilm(arguments.model, device="cpu")
    source = open_layers(resolve_bilm(arguments.model))
    bilm.score(sentences)  # encodes the words

    def read() -> None:
        for _ in source.read(sentences):
            pass

    rounds = [(seconds(read), seconds(lambda: bilm.score(sentences))) for _ in range(_ROUNDS)]
    layers, whole = map(min, zip(*rounds, strict=True))
    num_words = sum(map(len, sentences))
    say(
        f"{num_words:,} words: layers {num_words / layers:,.0f} words/s, surprisals "
        f"{num_words / whole:,.0f} words/s, softmax {1 - layers / whole:.0%} of the time"
    )
    return 0


def seconds(work: Callable[[], object]) -> float:
    """Return the processor's seconds of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
