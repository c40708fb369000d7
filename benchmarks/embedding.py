"""How fast a biLM embeds sentences, and how far its vectors are from those of the plain path.

A configuration is a batch size and `u` (as the sentences come) or `s` (longest first), such as
`1u` or `64s`, or `best`: the reader of corpora, which chooses its batches itself. Each gives the
mean of the layers of every sentence, as an array. A token is a word; padding and boundaries do
not count. Every configuration starts without word vectors, and computes those of each distinct
word once.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from clock import device_name, now
from measuring import (
    Sentence,
    add_text_arguments,
    chosen_sentences,
    count_words,
    in_batches,
    peak_rss_mib,
    report,
    timed,
)
from numpy.typing import NDArray
from torch import Tensor

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import bilm_files, read_bilm
from elmo_framework.data.text import collate_text
from elmo_framework.io.process import keep_freed_memory
from elmo_framework.layers.bilm_source import FrozenBiLm

_PRECISIONS = ("float32", "bfloat16", "int8")
_BEST = "best"
_NO_LIMIT = sys.maxsize
"""Keeps a batch of a configuration in one piece."""


def main() -> int:
    """Measure and report."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    files = bilm_files(arguments.model)
    bilm, load_seconds = timed(lambda: read_bilm(files))
    measurement = Measurement(FrozenBiLm(bilm, arguments.precision), arguments)
    rows = [measurement.row(config) for config in arguments.config or ["1u", "32s", "64s", _BEST]]
    # What follows needs memory of its own.
    peak = peak_rss_mib()
    report(
        bench="embedding",
        model=str(arguments.model),
        precision=arguments.precision,
        device=device_name(measurement.device),
        torch=torch.__version__,
        threads=arguments.threads,
        load_s=round(load_seconds, 3),
        peak_rss_mib=peak,
        rows=rows,
        **measurement.difference(read_bilm(files), arguments.check),
    )
    return 0


class Measurement:
    """Embeds the same sentences in several configurations.

    Args:
        frozen: the biLM.
        arguments: of the command line.
    """

    def __init__(self, frozen: FrozenBiLm, arguments: Namespace) -> None:
        self.device = torch.device(arguments.device)
        self._frozen, self._arguments = frozen, arguments
        self._sentences = chosen_sentences(arguments.sentences, arguments.n)

    def row(self, config: str) -> dict[str, Any]:
        """Warm up and measure one configuration, in which every word is new."""
        sentences = self._sentences[: self._arguments.n1] if config == "1u" else self._sentences
        if config == _BEST:
            max_tokens, batches = self._arguments.max_tokens, [sentences]
            warm_up = [sentences[: self._arguments.warm_up]]
        else:
            max_tokens = _NO_LIMIT
            batches = in_batches(sentences, int(config[:-1]), is_sorted=config.endswith("s"))
            warm_up = batches[:1]
        self._embed(max_tokens, warm_up)
        self._frozen.forget_words()
        started = now(self.device)
        self._embed(max_tokens, batches)
        seconds = now(self.device) - started
        num_tokens = count_words(sentences)
        return {
            "config": config,
            "tokens": num_tokens,
            "seconds": round(seconds, 4),
            "tokens_per_s": round(num_tokens / seconds, 2),
        }

    def difference(self, plain: BiLm, num_sentences: int) -> dict[str, float]:
        """Compare some sentences with the biLM computed in float64, one batch, all layers.

        Args:
            plain: the biLM, read once more.
            num_sentences: how many are compared; with 0 there is nothing to return.
        """
        if not num_sentences:
            return {}
        sentences = self._sentences[:num_sentences]
        expected = _plain_layers(plain.double(), sentences)
        deviations = [
            (layers.double() - expected[index]).abs().max().item()
            for index, layers in self._read(sentences, self._arguments.max_tokens)
        ]
        largest = max(layers.abs().max().item() for layers in expected)
        return {
            "largest_difference": max(deviations),
            "relative_difference": max(deviations) / largest,
        }

    def _read(self, sentences: Sequence[Sentence], max_tokens: int) -> Iterator[tuple[int, Tensor]]:
        return self._frozen.read(sentences, max_tokens=max_tokens, device=self.device)

    def _embed(
        self, max_tokens: int, batches: Sequence[Sequence[Sentence]]
    ) -> list[NDArray[np.float32]]:
        read = (pair for batch in batches for pair in self._read(batch, max_tokens))
        return [layers.mean(0).numpy() for _, layers in read]


def _plain_layers(bilm: BiLm, sentences: Sequence[Sentence]) -> list[Tensor]:
    """Return the layers of each sentence, `<S>` and `</S>` among them."""
    indexer = bilm.token_encoder.indexer
    text = collate_text(sentences, [indexer])
    with torch.no_grad():
        output = bilm(text.ids[indexer.key])
    return list(_rows(output.layers, [len(words) + 2 for words in sentences]))


def _rows(layers: Tensor, lengths: Sequence[int]) -> Iterator[Tensor]:
    return (layers[:, row, :length] for row, length in enumerate(lengths))


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Measure how fast a biLM embeds sentences.")
    add_text_arguments(parser, num_sentences=128)
    parser.add_argument("--n1", type=int, default=6, help="how many are read one by one (6)")
    parser.add_argument("--config", action="append", help="see above; repeatable")
    parser.add_argument("--max-tokens", type=int, default=4096, help="of a batch of best (4096)")
    parser.add_argument("--warm-up", type=int, default=32, help="sentences before best (32)")
    parser.add_argument("--precision", choices=_PRECISIONS, default="float32")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument(
        "--check", type=int, default=8, help="sentences compared with the plain path (8)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
