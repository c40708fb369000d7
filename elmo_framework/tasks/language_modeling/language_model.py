"""Base class of the models that pretrain: a token encoder, context layers and a softmax."""

from __future__ import annotations

import logging
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from torch import Tensor

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import SOFTMAX, BiLmFiles, bilm_files, read_bilm, save_bilm
from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.console import plural
from elmo_framework.corpus.vocabulary_file import (
    SPECIAL_WORDS,
    read_vocabulary_file,
    vocabulary_text,
)
from elmo_framework.data.text import Indexer
from elmo_framework.data.vocabulary import Vocabulary
from elmo_framework.errors import RunError
from elmo_framework.io.files import write_text
from elmo_framework.model.model import Model
from elmo_framework.model.weights import load_tensors, save_tensors
from elmo_framework.nn.sampled_softmax import SampledSoftmax
from elmo_framework.tasks.language_modeling.batch import WindowBatch
from elmo_framework.tasks.language_modeling.task import LanguageModelingTask
from elmo_framework.tasks.language_modeling.vocabulary import TargetIndexer

_LOG = logging.getLogger(__name__)
_SHOWN_DIGITS = 12


class LanguageModel(Model[WindowBatch], ABC):
    """Pretrains a biLM; reads and writes its files.

    Args:
        bilm: the part that heads read afterwards.
        vocabulary: the words of the softmax.
        num_samples: see the members.
        weights_follow: see the members.
    """

    task: LanguageModelingTask = LanguageModelingTask()

    def __init__(
        self, bilm: BiLm, vocabulary: Vocabulary, *, num_samples: int | None, weights_follow: bool
    ) -> None:
        super().__init__()
        self.bilm, self._vocabulary = bilm, vocabulary
        self.softmax = SampledSoftmax(bilm.context_layers.output_dim, len(vocabulary), num_samples)
        if self.softmax.num_samples != num_samples and not weights_follow:
            _LOG.warning(
                "model.num_samples is %d, and there are %d words: training takes the full softmax",
                num_samples,
                len(vocabulary),
            )

    @property
    def indexers(self) -> Sequence[Indexer]:
        return self.bilm.token_encoder.indexer, TargetIndexer(self._vocabulary)

    def encoder_layers(self) -> list[Sequence[Sequence[Tensor]]]:
        return [self.bilm.layer_parameters()]

    def load_bilm(self, location: str | Path) -> None:
        self.load_files(resolve_bilm(location))

    def load_files(self, files: BiLmFiles) -> None:
        """Load the weights of a biLM, and those of the softmax next to it if there is one.

        Raises:
            DataError: a file cannot be read.
            RunError: it is a biLM of other sizes, or its softmax knows other words.
        """
        bilm = read_bilm(files)
        if changed := list(_differences(bilm, self.bilm)):
            raise RunError(f"{files.options}: this is another biLM: {'; '.join(changed)}")
        self.bilm.load_state_dict(bilm.state_dict())
        if not files.softmax.is_file():
            _LOG.warning("%s: no %s next to it: the softmax is initialized", files.weights, SOFTMAX)
            return
        self._require_words_of(files)
        try:
            self.softmax.load_state_dict(load_tensors(files.softmax))
        except RuntimeError as error:
            raise RunError(
                f"{files.softmax}: no softmax of this model: {' '.join(str(error).split())}"
            ) from error

    def save_extras(self, directory: Path) -> None:
        """Write `bilm/`: the biLM in the format of embedders, and its softmax.

        `vocabulary.txt` has its words by id, like bilm-tf's vocabulary files, and
        `softmax.safetensors` its weights.
        """
        folder = directory / "bilm"
        save_bilm(self.bilm, folder)
        files = bilm_files(folder)
        write_text(files.vocabulary, vocabulary_text(self._vocabulary.items[len(SPECIAL_WORDS) :]))
        save_tensors(dict(self.softmax.named_parameters()), files.softmax)

    def _require_words_of(self, files: BiLmFiles) -> None:
        """Raise a RunError if the softmax has other words, or another order of words."""
        own = [*SPECIAL_WORDS, *read_vocabulary_file(files.vocabulary)]
        if own != list(self._vocabulary.items):
            raise RunError(
                f"{files.softmax}: its {plural(len(own), 'word')}, listed in "
                f"{files.vocabulary.name} next to it, are not the "
                f"{len(self._vocabulary):,} of this model, which "
                "model.max_vocabulary_size has cut; set it to null"
            )


def _differences(before: BiLm, now: BiLm) -> Iterator[str]:
    """Yield the differences of two biLMs, except for options of training only."""
    descriptions = _described(before), _described(now)
    for part, keys in descriptions[1].items():
        for key in sorted({*keys, *descriptions[0][part]} - {"dropout"}):
            values = descriptions[0][part].get(key), keys.get(key)
            if values[0] != values[1]:
                yield f"{part}.{key} is {values[0]!r} there, and {values[1]!r} here"


def _described(bilm: BiLm) -> Mapping[str, Mapping[str, Any]]:
    """Return the description of a biLM, with the content of its files instead of their paths."""
    digests = {
        file.key: f"a file with SHA-256 {sha256(file.content).hexdigest()[:_SHOWN_DIGITS]}"
        for file in bilm.token_encoder.files
    }
    token_encoder = {**bilm.description["token_encoder"], **digests}
    return {**bilm.description, "token_encoder": token_encoder}
