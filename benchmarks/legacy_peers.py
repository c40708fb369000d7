"""ELMoForManyLangs and Flair themselves: the other side of `legacy_encoders.py`.

It runs in an environment in which the library is installed. It makes a model with random weights,
writes the files that the library reads, and then the library's own vectors of some sentences.
"""

from __future__ import annotations

import json
import logging
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import Sentence, add_threads_argument, chosen_sentences, count_words, report

_BATCH_SIZE = 32
_DEVIATION = {"small": 0.2, "published": 0.02}
"""Of the random weights."""

_SEED = 13


def main() -> int:
    """Write a model and its vectors, and report the time."""
    arguments = _arguments()
    logging.disable(logging.INFO)  # ELMoForManyLangs logs every batch
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(_SEED)
    sentences = chosen_sentences(arguments.sentences, arguments.n)
    arguments.output.mkdir(parents=True)
    library = {"many_langs": _many_langs, "flair": _flair}[arguments.library]
    embed = library(arguments.output, arguments.size, sentences)
    embed(sentences[:_BATCH_SIZE])
    start = time.process_time()
    vectors = embed(sentences)
    seconds = time.process_time() - start
    named = {str(number): each for number, each in enumerate(vectors)}
    np.savez(arguments.output / "vectors.npz", **named)
    report(bench="legacy_peers", seconds=seconds, words=count_words(sentences))
    return 0


_Embed = Callable[[Sequence[Sentence]], list[np.ndarray]]
"""Returns "layers words dim" of each sentence."""


def _many_langs(folder: Path, size: str, sentences: Sequence[Sentence]) -> _Embed:
    from elmoformanylangs import Embedder  # type: ignore[import-not-found]
    from elmoformanylangs.frontend import Model  # type: ignore[import-not-found]
    from elmoformanylangs.modules.embedding_layer import (  # type: ignore[import-not-found]
        EmbeddingLayer,
    )

    config = _many_langs_config(size)
    dictionaries = _dictionaries(sentences)
    (folder / "config.json").write_text(json.dumps({"config_path": "cnn.json"}))
    (folder / "cnn.json").write_text(json.dumps(config))
    for name, ids in dictionaries.items():
        lines = [f"{item}\t{number}\n" for item, number in ids.items()]
        (folder / f"{name}.dic").write_text("".join(lines), encoding="utf-8")
    tables = [
        EmbeddingLayer(config["token_embedder"][f"{name}_dim"], ids, fix_emb=False)
        for name, ids in dictionaries.items()
    ]
    model = _with_random_weights(Model(config, *tables), size)
    torch.save(model.token_embedder.state_dict(), folder / "token_embedder.pkl")
    torch.save(model.encoder.state_dict(), folder / "encoder.pkl")
    embedder = Embedder(str(folder), batch_size=_BATCH_SIZE)

    def embed(given: Sequence[Sentence]) -> list[np.ndarray]:
        order = sorted(range(len(given)), key=lambda each: -len(given[each]))
        vectors: dict[int, np.ndarray] = {}
        for start in range(0, len(order), _BATCH_SIZE):
            batch = order[start : start + _BATCH_SIZE]
            embedder.model.encoder.reset_states()  # each sentence starts from zeros
            found = embedder.sents2elmo([given[each] for each in batch], output_layer=-2)
            vectors |= dict(zip(batch, found, strict=True))
        return [vectors[number] for number in range(len(given))]

    return embed


def _many_langs_config(size: str) -> dict[str, Any]:
    is_small = size == "small"
    published = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
    return {
        "encoder": {
            "name": "elmo",
            "projection_dim": 24 if is_small else 512,
            "dim": 40 if is_small else 4096,
            "n_layers": 2,
            "cell_clip": 3,
            "proj_clip": 3,
        },
        "token_embedder": {
            "name": "cnn",
            "activation": "relu",
            "filters": [[1, 4], [2, 8], [3, 8], [7, 16]] if is_small else published,
            "n_highway": 2,
            "word_dim": 10 if is_small else 100,
            "char_dim": 8 if is_small else 50,
            "max_characters_per_token": 12 if is_small else 50,
        },
        "dropout": 0.1,
    }


def _dictionaries(sentences: Sequence[Sentence]) -> dict[str, dict[str, int]]:
    """Return ids of two words in three, and of the characters of those words."""
    words = sorted({word for words in sentences for word in words})
    words = [word for number, word in enumerate(words) if number % 3]
    characters = sorted(set("".join(words)))
    special = ["<oov>", "<bos>", "<eos>", "<pad>"]
    items = {"word": [*special, *words], "char": [*characters, *special, "<bow>", "<eow>"]}
    return {name: {item: id_ for id_, item in enumerate(each)} for name, each in items.items()}


def _flair(folder: Path, size: str, sentences: Sequence[Sentence]) -> _Embed:
    from flair.data import Dictionary  # type: ignore[import-not-found]
    from flair.data import Sentence as FlairSentence
    from flair.embeddings import (  # type: ignore[import-not-found]
        FlairEmbeddings,
        StackedEmbeddings,
    )
    from flair.models import LanguageModel  # type: ignore[import-not-found]

    dictionary = Dictionary()
    for character in sorted({" ", "\n", *"".join(word for words in sentences for word in words)}):
        if ord(character) % 7:
            dictionary.add_item(character)
    embeddings = []
    for is_forward in (True, False):
        hidden, width = (24, 8) if size == "small" else (2048, 100)
        model = LanguageModel(dictionary, is_forward, hidden, 1, embedding_size=width)
        path = folder / ("forward.pt" if is_forward else "backward.pt")
        _with_random_weights(model, size).save(path)
        embeddings.append(FlairEmbeddings(str(path)))
    stacked = StackedEmbeddings(embeddings)

    def embed(given: Sequence[Sentence]) -> list[np.ndarray]:
        read = [FlairSentence(list(words)) for words in given]
        order = sorted(read, key=len, reverse=True)
        for start in range(0, len(order), _BATCH_SIZE):
            stacked.embed(order[start : start + _BATCH_SIZE])
        return [
            torch.stack([token.embedding for token in sentence])[None].numpy() for sentence in read
        ]

    return embed


def _with_random_weights(model: Any, size: str) -> Any:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=_DEVIATION[size])
    return model.eval()


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=("many_langs", "flair"))
    parser.add_argument("output", type=Path, help="the folder to write")
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--n", type=int, required=True, help="how many sentences are read")
    parser.add_argument("--size", choices=tuple(_DEVIATION), required=True)
    add_threads_argument(parser)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
