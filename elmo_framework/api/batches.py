"""One function for engines that map batches of rows: Ray Data, Spark, Hugging Face datasets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from elmo_framework.api.arguments import WordSplitter
from elmo_framework.api.encoder import PretrainedEncoder
from elmo_framework.api.layer_selection import LayerSelection
from elmo_framework.api.pretrained import load_encoder
from elmo_framework.errors import allowed
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.pool import Pool


def embed_batch(
    batch: Mapping[str, Any],
    encoder: str = "mini",
    *,
    column: str = "text",
    output_column: str = "vectors",
    pool: Pool = "mean",
    layers: LayerSelection = "average",
    tokenizer: WordSplitter = "spacy",
    device: str = "auto",
    precision: Precision = "float32",
) -> dict[str, Any]:
    """Return the columns of a batch of rows, and a column of vectors.

        embed_batch({"text": ["The dogs bark.", "It rains."]})["vectors"][1].shape     # 256

    Engines send it to their workers: `functools.partial(embed_batch, encoder="mini")` can be
    pickled, and each process loads the encoder once, at its first batch.

    Args:
        batch: columns of equal length, by name: lists or arrays.
        encoder: see `load_encoder`.
        column: strings, or lists of words; None and NaN are texts without words.
        output_column: the name of the new column: an array (dim) for each row, with several
            `layers` (layers, dim); with `pool` `none` (words, dim) or (layers, words, dim).
        pool: see `PretrainedEncoder.sentences`; `none` for a vector per word.
        layers: see `PretrainedEncoder.sentences`.
        tokenizer: see `PretrainedEncoder.sentences`.
        device: see `load_bilm`.
        precision: see `load_bilm`.

    Raises:
        TypeError: see `PretrainedEncoder.sentences`.
        ValueError: there is no such column; or see `PretrainedEncoder.sentences`.
        DataError: see `load_encoder`.
    """
    if column not in batch:
        raise ValueError(f"column is {column!r}; {allowed(column, batch)}")
    texts = [_text(value) for value in batch[column]]
    model = _encoder(encoder, device, precision)
    vectors: list[Any]
    if pool == "none":
        read = model.words(texts, layers=layers, tokenizer=tokenizer)
        vectors = [vectors for _, vectors in read]
    else:
        vectors = list(model.sentences(texts, pool=pool, layers=layers, tokenizer=tokenizer))
    return {**batch, output_column: vectors}


@lru_cache(maxsize=1)
def _encoder(encoder: str, device: str, precision: Precision) -> PretrainedEncoder:
    return load_encoder(encoder, device=device, precision=precision)


def _text(value: Any) -> Any:
    """Return a text as `sentences` takes it; engines pass lists as arrays, and Arrow's scalars."""
    if hasattr(value, "as_py"):
        value = value.as_py()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return []
    is_text = isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)
    return value if is_text else list(value)
