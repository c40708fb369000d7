"""Peak memory of reading one long document as running text, in fresh processes.

    python benchmarks/documents.py --words 2000 20000

Each row is the peak memory of the whole process, so what the imports and the weights take is in it.
The document has random words in sentences of twenty. `masked_lm` and the kinds of context layers
have random weights in the sizes of `experiments/pretrain/today`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from measuring import peak_rss_mib, say

from elmo_framework import components, load_bilm
from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import save_bilm
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse

_CONFIGS = Path(__file__).parents[1] / "experiments/pretrain/today"
_KINDS = ("lstm", "gru", "linear_recurrence", "transformer", "masked_lm", "bytes")
_SENTENCE, _NUM_DISTINCT = 20, 5000
_MAX_TOKENS = 1024
"""Steps in a part; shorter than each document, so that both lengths are read in parts."""


def main() -> int:
    """Measure all kinds and lengths, or one in this process."""
    arguments = _arguments()
    if arguments.folder is not None:
        say(json.dumps(measure(arguments.folder, arguments.words[0])))
        return 0
    say("| layers | words | peak memory, MiB | words/s |")
    say("|---|---|---|---|")
    with TemporaryDirectory() as root:
        for kind in arguments.kinds:
            folder = Path(root) / kind
            _save(kind, folder)
            for words in arguments.words:
                command = [sys.executable, __file__, "--folder", str(folder), "--words", str(words)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                found = json.loads(done.stdout)
                speed = f"{found['words_per_second']:,.0f}"
                say(f"| {kind} | {words:,} | {found['peak_rss_mib']:,.0f} | {speed} |")
    return 0


def measure(folder: Path, num_words: int) -> dict[str, float]:
    """Read a document and drop its layers, as a program that writes them to a file would."""
    torch.set_num_threads(1)
    bilm = load_bilm(folder, device="cpu")
    words = [f"word{number % _NUM_DISTINCT}" for number in range(num_words)]
    sentences = [words[at : at + _SENTENCE] for at in range(0, num_words, _SENTENCE)]
    start = time.perf_counter()
    total = sum(
        layers.shape[1] for layers in bilm.embed_document(sentences, max_tokens=_MAX_TOKENS)
    )
    assert total == num_words, total
    seconds = time.perf_counter() - start
    return {"peak_rss_mib": peak_rss_mib(), "words_per_second": num_words / seconds}


def _save(kind: str, folder: Path) -> None:
    components.load()
    torch.manual_seed(0)
    model = Config.load(_CONFIGS / f"{kind}.jsonnet").raw["model"]
    parts = {name: model[name] for name in ("token_encoder", "context_layers")}
    save_bilm(parse(BiLm, parts, source=kind).build(), folder)


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, nargs="+", default=[2000, 20_000])
    parser.add_argument("--kinds", nargs="+", choices=_KINDS, default=_KINDS)
    parser.add_argument("--folder", type=Path, help="measure this biLM, with the first of --words")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
