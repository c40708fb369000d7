"""`ElmoEmbedder` of AllenNLP 0.9: sentences in, arrays of layers or a file of them out."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Literal, TypeAlias, final, get_args

import h5py  # type: ignore[import-untyped]
import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from elmo_framework.api.arguments import carried_for, require_list
from elmo_framework.api.encoder import torch_device
from elmo_framework.api.layer_selection import select_layers
from elmo_framework.api.pretrained import PretrainedBiLm
from elmo_framework.bilm.files.published import files_at
from elmo_framework.bilm.layer_output import NUM_BOUNDARIES
from elmo_framework.errors import DataError, allowed
from elmo_framework.io.files import replacing
from elmo_framework.layers.bilm_source import open_frozen

_LOG = logging.getLogger(__name__)

OutputFormat: TypeAlias = Literal["all", "top", "average"]


@final
class ElmoEmbedder:
    """Layers of sentences, with the methods of AllenNLP 0.9; `load_bilm` does the same and more.

        elmo = ElmoEmbedder("options.json", "weights.hdf5")
        elmo.embed_sentence(["A", "sentence", "."]).shape     # 3 3 1024

    Unlike there, a sentence's vectors depend on nothing else by default; see `state`.

    Args:
        options_file: bilm-tf's `options.json`: a path, a URL, or the name of a model.
        weight_file: bilm-tf's `weights.hdf5`, given in the same ways.
        cuda_device: the number of a GPU; -1 is the CPU.
        state: with `reset` each batch starts from zeros. With `carry` row i continues row i of the
            batch before, as in AllenNLP.
    """

    def __init__(
        self,
        options_file: str | Path = "original",
        weight_file: str | Path = "original",
        cuda_device: int = -1,
        *,
        state: Literal["reset", "carry"] = "reset",
    ) -> None:
        files = files_at(options_file, weight_file)
        device = "cpu" if cuda_device < 0 else f"cuda:{cuda_device}"
        self._bilm = PretrainedBiLm(
            open_frozen(files),
            files=files,
            device=torch_device(device),
            carried=carried_for(state),
        )

    def batch_to_embeddings(
        self, batch: Sequence[Sequence[str]]
    ) -> tuple[Float[Tensor, "batch layers tokens dim"], Bool[Tensor, "batch tokens"]]:
        """Return the layers of sentences, zero at padding, and the mask of their words."""
        vectors = self.embed_batch(batch)
        width = max((each.shape[1] for each in vectors), default=0)
        layers = torch.zeros(len(vectors), self._bilm.num_layers, width, self._bilm.dim)
        mask = torch.zeros(len(vectors), width, dtype=torch.bool)
        for row, each in enumerate(vectors):
            layers[row, :, : each.shape[1]] = torch.from_numpy(each)
            mask[row, : each.shape[1]] = True
        return layers, mask

    def embed_sentence(self, sentence: Sequence[str]) -> NDArray[np.float32]:
        """Return the layers of a sentence: (layers, tokens, dim)."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Return the layers of each sentence, read as one batch: (layers, tokens, dim).

        Raises:
            TypeError: a sentence is a string, or a word is not.
        """
        require_list(batch)
        longest = max(map(len, batch), default=0) + NUM_BOUNDARIES
        return list(self._bilm.embed_iter(batch, max_tokens=max(1, len(batch)) * longest))

    def embed_sentences(
        self, sentences: Iterable[Sequence[str]], batch_size: int = 64
    ) -> Iterator[NDArray[np.float32]]:
        """Yield the layers of each sentence: (layers, tokens, dim).

        Raises:
            TypeError: see `embed_batch`.
            ValueError: `batch_size` is below 1.
        """
        require_list(sentences)
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; allowed: 1 or more")
        rest = iter(sentences)
        while batch := list(islice(rest, batch_size)):
            yield from self.embed_batch(batch)

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: str | Path,
        output_format: OutputFormat = "all",
        batch_size: int = 64,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """Write the layers of each line of a file as HDF5; the file appears when it is complete.

        `elmo embed` writes the same files, continues after an interruption, and needs less memory.

        Args:
            input_file: one tokenized sentence per line.
            output_file_path: has a dataset "0", "1", ... for each line. An existing file is
                replaced.
            output_format: `all` layers (layers, tokens, dim), the `top` one or their `average`
                (tokens, dim).
            batch_size: sentences in a batch.
            forget_sentences: leaves out the dataset `sentence_to_index`, a JSON object with the
                number of each sentence.
            use_sentence_keys: names datasets by their sentences. Of equal sentences the first is
                written, and `sentence_to_index` is left out.

        Raises:
            DataError: a line is blank, or a sentence cannot be the name of a dataset.
            ValueError: unknown format, both flags, or `batch_size` is below 1.
        """
        if output_format not in get_args(OutputFormat):
            choices = allowed(output_format, get_args(OutputFormat))
            raise ValueError(f"output_format is {output_format!r}; {choices}")
        if forget_sentences and use_sentence_keys:
            raise ValueError("use_sentence_keys writes the sentences that forget_sentences omits")
        lines = _read_lines(input_file, as_keys=use_sentence_keys)
        vectors = self.embed_sentences((line.split() for line in lines), batch_size)
        # HDF5 itself would end the process on a full disk; a file of Python raises OSError.
        with (
            replacing(Path(output_file_path)) as aside,
            aside.open("w+b") as stream,
            h5py.File(stream, "w") as file,
        ):
            for number, (line, layers) in enumerate(zip(lines, vectors, strict=True)):
                key = line if use_sentence_keys else str(number)
                if key in file:
                    _LOG.warning("line %d: %r was written before; skipped", number + 1, line)
                    continue
                file.create_dataset(key, data=select_layers(layers, output_format))
            if not (forget_sentences or use_sentence_keys):
                numbers = {line: str(number) for number, line in enumerate(lines)}
                text = json.dumps(numbers)
                file.create_dataset("sentence_to_index", (1,), h5py.string_dtype(), data=[text])


def _read_lines(input_file: IO[str], *, as_keys: bool) -> list[str]:
    lines = [line.strip() for line in input_file]
    for number, line in enumerate(lines, start=1):
        if not line:
            raise DataError("a blank line has no vectors", line=number)
        if as_keys and ("/" in line or "\0" in line or line == "."):
            raise DataError(f"HDF5 allows no dataset with the name {line!r}", line=number)
    return lines
