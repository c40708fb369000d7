"""The encoders of `plugins/legacy_encoders`, compared with the libraries they come from.

    python benchmarks/legacy_encoders.py --peers DIR --sentences FILE

`DIR/many_langs/bin/python` has `elmoformanylangs` (which needs `overrides<4`), and
`DIR/flair/bin/python` has `flair` and `safetensors`. Each library makes a model with random weights
and embeds the sentences (`legacy_peers.py`). Its files are converted as a user would do it, and the
vectors of both are compared. Time is that of the processor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from compare import folder
from measuring import Sentence, add_threads_argument, chosen_sentences, count_words, report

from elmo_framework import load_encoder

_ROOT = Path(__file__).parents[1]
_PLUGIN = _ROOT / "plugins/legacy_encoders"
_LIBRARIES = ("many_langs", "flair")
_ALLOWED = 1e-5


def main() -> int:
    """Compare with each library; return 1 when vectors differ by more than 1e-5."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    sys.path.insert(0, str(_ROOT))
    sentences = chosen_sentences(arguments.sentences, arguments.n)
    differences = []
    for library in arguments.only or _LIBRARIES:
        with tempfile.TemporaryDirectory() as scratch:
            differences.append(_compare(library, Path(scratch), sentences, arguments))
    return int(max(differences) > _ALLOWED)


def _compare(
    library: str, scratch: Path, sentences: Sequence[Sentence], arguments: Namespace
) -> float:
    """Report the largest difference and the times, and return the difference."""
    python = str(arguments.peers / library / "bin/python")
    theirs = scratch / "theirs"
    options = ["--sentences", arguments.sentences, "--n", arguments.n, "--size", arguments.size]
    words = [library, theirs, *options, "--threads", arguments.threads]
    peer = _run(python, "-W", "ignore", _ROOT / "benchmarks/legacy_peers.py", *words)
    expected = np.load(theirs / "vectors.npz")
    converted = _convert(library, theirs, scratch / "ours", python)
    encoder = load_encoder(converted, device="cpu")
    encoder.embed(sentences[:1])
    start = time.process_time()
    vectors = encoder.embed(sentences)
    seconds = time.process_time() - start
    difference = max(
        float(np.abs(each - expected[str(number)]).max()) for number, each in enumerate(vectors)
    )
    num_words = count_words(sentences)
    their_seconds = json.loads(peer.splitlines()[-1])["seconds"]
    report(
        bench="legacy_encoders",
        library=library,
        size=arguments.size,
        threads=arguments.threads,
        largest_difference=difference,
        largest_value=max(float(np.abs(each).max()) for each in vectors),
        words=num_words,
        words_per_second=round(num_words / seconds),
        their_words_per_second=round(num_words / their_seconds),
    )
    return difference


def _convert(library: str, published: Path, output: Path, python: str) -> Path:
    """Convert a model, that of Flair in its own environment."""
    from plugins.legacy_encoders import convert_many_langs

    if library == "many_langs":
        convert_many_langs(published, output)
    else:
        models = ["--forward", published / "forward.pt", "--backward", published / "backward.pt"]
        _run(python, "-W", "ignore", _PLUGIN / "convert_flair.py", output, *models)
    return output


def _run(*words: object) -> str:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "FLAIR_DEVICE": "cpu"}
    done = subprocess.run(
        [str(word) for word in words],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    return done.stdout


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=folder, required=True, help="where the libraries are")
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--n", type=int, default=128, help="how many sentences are read (128)")
    parser.add_argument("--size", choices=("small", "published"), default="small")
    parser.add_argument("--only", action="append", choices=_LIBRARIES)
    add_threads_argument(parser)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
