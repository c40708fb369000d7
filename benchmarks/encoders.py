"""Encoders of several kinds and sizes, with random weights, as sources of layers on one text.

Each encoder is measured in a process of its own: words a second when its layers are computed and
when they are read from the layer cache, the memory of the process, the bytes that the cache needs a
word, and the epochs of a `crf_tagger` on its frozen layers with a pass every epoch and with the
cache. A word is a word of the text; pieces, boundaries and padding do not count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tagger_epochs
import torch
from measuring import (
    Sentence,
    add_threads_argument,
    chosen_sentences,
    count_words,
    in_batches,
    peak_rss_mib,
    report,
    say,
    timed,
)
from published_sizes import SIZES, write_random_bilm

from elmo_framework.bilm.files.published import PACKAGED, resolve_bilm
from elmo_framework.data.text import collate_text
from elmo_framework.layers.bilm_source import open_layers
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.layers.transformer_source import TransformerOptions, open_transformer

_BERT_VOCABULARY = 30_522
TRANSFORMERS: dict[str, dict[str, int]] = {
    "bert-base": {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
    },
    "minilm": {
        "hidden_size": 384,
        "num_hidden_layers": 6,
        "num_attention_heads": 12,
        "intermediate_size": 1536,
    },
}
"""The shapes of BERT-base and of MiniLM-L6-H384."""

ENCODERS = ("mini", *reversed(SIZES), *TRANSFORMERS)
_BATCH_SIZE = 32


def main() -> int:
    """Measure each encoder in a process of its own, or the one that was asked for."""
    arguments = _arguments()
    if arguments.only:
        report(bench="encoders", **_measured(arguments.only, arguments))
        return 0
    for name in arguments.encoder or ENCODERS:
        command = [sys.executable, __file__, *sys.argv[1:], "--only", name]
        say(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
    return 0


def _measured(name: str, arguments: Namespace) -> dict[str, Any]:
    torch.set_num_threads(arguments.threads)
    sentences = chosen_sentences(arguments.sentences, arguments.n)
    num_words, device = count_words(sentences), torch.device("cpu")
    with tempfile.TemporaryDirectory() as root:
        directory = Path(root)
        os.environ["ELMO_CACHE_ROOT"] = str(directory / "cache")
        open_source = _opener(name, directory / name, arguments.sentences)
        source = open_source(cache="none")
        list(source.read(sentences[:1]))  # loads the weights; compiles what is compiled once
        _, cold = timed(lambda: [None for _ in source.read(sentences)])
        memory = peak_rss_mib()
        cached = open_source(cache="disk", cache_dtype="float16")
        cached.precompute(lambda: sentences, device)
        _read_batches(cached, sentences)  # verifies the checksums
        _, warm = timed(lambda: _read_batches(cached, sentences))
        files = (directory / "cache").rglob("vectors.bin")
        num_bytes = sum(path.stat().st_size for path in files)
        epochs = _epochs(name, directory, arguments)
    passing, caching = (float(np.median(each)) for each in epochs)
    return {
        "encoder": name,
        "threads": arguments.threads,
        "words": num_words,
        "layers": source.num_layers,
        "dim": source.dim,
        "parameters": source.num_frozen_parameters,
        "cold_words_per_s": round(num_words / cold, 1),
        "warm_words_per_s": round(num_words / warm, 1),
        "memory_mib": memory,
        "cache_bytes_per_word": round(num_bytes / num_words),
        "epoch_with_a_pass_s": round(passing, 3),
        "epoch_from_the_cache_s": round(caching, 3),
        "ratio_of_epochs": round(passing / caching, 1),
    }


def _opener(name: str, folder: Path, text: Path) -> Callable[..., LayerSource]:
    """Write an encoder, and return what opens it."""
    if name in TRANSFORMERS:
        _write_transformer(name, folder, text)
        return partial(open_transformer, folder, TransformerOptions())
    if name not in PACKAGED:
        write_random_bilm(name, folder)
    return partial(open_layers, resolve_bilm(name if name in PACKAGED else folder))


def _write_transformer(name: str, folder: Path, text: Path) -> None:
    """Write a transformer with random weights, and word pieces that are counted in a text."""
    import tokenizers
    import transformers

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer = tokenizers.BertWordPieceTokenizer(lowercase=False)
    tokenizer.train([str(text)], vocab_size=_BERT_VOCABULARY, special_tokens=special)
    folder.mkdir(parents=True)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer._tokenizer, unk_token="[UNK]", pad_token="[PAD]"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=_BERT_VOCABULARY, **TRANSFORMERS[name])
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(folder)


def _read_batches(source: LayerSource, sentences: Sequence[Sentence]) -> None:
    for batch in in_batches(sentences, _BATCH_SIZE, is_sorted=True):
        source.compute(collate_text(batch))


def _epochs(name: str, directory: Path, arguments: Namespace) -> list[Sequence[float]]:
    """Return the seconds of epochs after the first: with a pass each, and from a full cache."""
    embedder: dict[str, Any] = {"type": "elmo_token_embedder", "bilm": name}
    if name in TRANSFORMERS:
        embedder = {"type": "pretrained_transformer_mismatched", "train_parameters": False}
        embedder |= {"last_layer_only": False, "model_name": str(directory / name)}
    elif name not in PACKAGED:
        embedder["bilm"] = str(directory / name)
    data = directory / "train.txt"
    tagger_epochs.write_data(data, arguments)
    seconds = []
    for cache, epochs in (("none", arguments.epochs), ("disk", 5 * arguments.epochs)):
        config = directory / f"{cache}.json"
        experiment = tagger_epochs.experiment(data, {**embedder, "cache": cache}, epochs)
        config.write_text(json.dumps(experiment))
        tagger_epochs.train(config, directory / cache)
        seconds.append(tagger_epochs.epochs(directory / cache, epochs))
    return seconds


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Measure encoders of several kinds on the same text.")
    parser.add_argument(
        "--sentences", type=Path, required=True, help="a tokenized sentence a line, words by spaces"
    )
    parser.add_argument("--n", type=int, default=96, help="how many are read (96)")
    parser.add_argument("--epochs", type=int, default=3, help="with a pass each, 2 at least (3)")
    parser.add_argument("--encoder", action="append", choices=ENCODERS, help="by default all")
    parser.add_argument("--only", choices=ENCODERS, help="measure one, in this process")
    add_threads_argument(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
