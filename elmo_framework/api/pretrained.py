"""A pretrained biLM for programs, and the front door to any pretrained encoder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, final, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_framework.api.arguments import (
    carried_for,
    require_carried,
    require_list,
    require_sentences,
    require_words,
)
from elmo_framework.api.encoder import (
    PretrainedEncoder,
    PretrainedLayers,
    PretrainedTransformer,
    distinct_indices,
    sentence_batches,
    torch_device,
)
from elmo_framework.api.hub import HubModule
from elmo_framework.bilm.files.load import BiLmFiles
from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.bilm.files.softmax import BiLmSoftmax, read_softmax
from elmo_framework.bilm.layer_output import NUM_BOUNDARIES
from elmo_framework.data.batch import to_device
from elmo_framework.data.sentences import longest_first, padded_batches
from elmo_framework.data.text import collate_text
from elmo_framework.errors import allowed
from elmo_framework.io.archives import local_folder
from elmo_framework.io.remote import as_path
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.bilm_source import FrozenBiLm, open_frozen
from elmo_framework.layers.carried_state import CarriedState, require_state
from elmo_framework.layers.documents import read_documents
from elmo_framework.layers.encoder_files import open_encoder, require_no_options
from elmo_framework.layers.encoder_format import encoder_format
from elmo_framework.layers.surprisal import ReadSentence, SentenceScore, surprisals
from elmo_framework.layers.transformer_files import is_transformer
from elmo_framework.layers.transformer_source import TransformerOptions
from elmo_framework.layers.word_pieces import SubTokenMode


@final
class PretrainedBiLm(PretrainedEncoder):
    """Gives the layers of sentences as arrays, and their surprisals; `load_bilm` makes it.

    Args:
        source: of the layers.
        files: of the biLM; the softmax next to them is read when sentences are scored.
        device: computes the layers.
        carried: keeps the states of rows; None if each sentence starts from zeros.

    Attributes:
        num_layers: the layers of a sentence, that of the token encoder included.
        dim: the dimension of a layer, both directions together.
    """

    def __init__(
        self,
        source: FrozenBiLm,
        *,
        files: BiLmFiles,
        device: torch.device,
        carried: CarriedState | None,
    ) -> None:
        super().__init__(source, device=device)
        self._frozen, self._files, self._carried = source, files, carried

    def embed_iter(
        self, sentences: Iterable[Sequence[str]], *, max_tokens: int = 4096
    ) -> Iterator[NDArray[np.float32]]:
        if self._carried is None:
            yield from super().embed_iter(sentences, max_tokens=max_tokens)
            return
        require_list(sentences)
        yield from self._carry_vectors(sentences, self._carried, max_tokens)

    def embed_in_parts(
        self, words: Sequence[str], *, max_tokens: int = 4096
    ) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
        """Yield the layers of one sentence of any length, in bounded memory.

            for words, dims, layers in bilm.embed_in_parts(sentence):
                vectors[:, words, dims] = layers     # vectors: (layers, tokens, dim)

        Each part has some words in one direction. All parts together are what `embed` returns,
        within 1e-5. The sentence starts from zeros, also with `state="carry"`.

        Args:
            words: of the sentence.
            max_tokens: the number of words that are computed at once, boundaries counted.

        Raises:
            TypeError: see `embed`.
            ValueError: `max_tokens` is not above 0.
        """
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}; it must be above 0")
        parts = self._frozen.read_in_parts(
            tuple(require_words(words)), max_tokens=max_tokens, device=self._device
        )
        for part in parts:
            yield part.words, part.dims, part.layers.float().numpy()

    def embed_document(
        self, sentences: Sequence[Sequence[str]], *, max_tokens: int = 4096
    ) -> Iterator[NDArray[np.float32]]:
        """Yield the layers of each sentence of a document, read as running text.

        Both directions start from zeros, at the ends of the document: the forward one continues
        from the sentence before, the backward one from the sentence after. Memory is bounded,
        whatever the length of the document. The states of `state="carry"` are not used.

        Args:
            sentences: of the document, in order.
            max_tokens: the number of words that are computed at once, boundaries counted.

        Raises:
            TypeError: see `embed`.
            ValueError: `max_tokens` is not above 0.
        """
        require_list(sentences)
        words = [tuple(require_words(each)) for each in sentences]
        read = read_documents(self.source, [words], max_tokens=max_tokens, device=self._device)
        for _, layers in read:
            yield layers[:, 1:-1].float().numpy().copy()

    def score(
        self, sentences: Sequence[Sequence[str]], *, max_tokens: int = 4096
    ) -> list[SentenceScore]:
        """Return the surprisals of each sentence in bits, in the order given.

            score = load_bilm("mini").score([["A", "sentence", "."]])[0]
            score.forward                 # 3 numbers, of "A", "sentence" and "."
            score.total.forward           # their sum, and the bits of </S>

        With `state="carry"`, rows continue as in `embed`.

        Args:
            sentences: the words of each.
            max_tokens: see `embed`.

        Raises:
            TypeError: see `embed`.
            DataError: the biLM has no softmax, or its files are damaged.
        """
        require_sentences(sentences)
        softmax = self._softmax
        if self._carried is not None:
            carried = enumerate(self._carry(sentences, self._carried, max_tokens))
            # Numbered, as those without words come before others that still wait.
            numbered = ((number, words, layers) for number, (_, words, layers) in carried)
            scores = dict(surprisals(numbered, softmax, device=self._device))
            return [scores[number] for number in range(len(sentences))]
        numbers = {words: number for number, words in enumerate(distinct_indices(sentences))}
        read = self._read(list(numbers), max_tokens)
        scores = dict(surprisals(read, softmax, device=self._device))
        return [scores[numbers[tuple(words)]] for words in sentences]

    def score_documents(
        self, documents: Sequence[Sequence[Sequence[str]]], *, max_tokens: int = 4096
    ) -> list[list[SentenceScore]]:
        """Return the surprisals of each sentence of documents, reading each through.

        A document starts from zeros. Each direction then continues from its state after the
        sentence before, as in pretraining; so the backward direction, too, has read the
        sentences before, not those after. The states of `state="carry"` are not used.

        Args:
            documents: the sentences of each, in order.
            max_tokens: see `embed`; as many documents as fit are read side by side.

        Raises:
            TypeError: see `embed`.
            DataError: see `score`.
        """
        documents = [require_sentences(sentences) for sentences in documents]
        read = self._read_documents(documents, max_tokens)
        scores = dict(surprisals(read, self._softmax, device=self._device))
        numbers = iter(range(len(scores)))
        return [[scores[next(numbers)] for _ in sentences] for sentences in documents]

    @property
    def hub(self) -> HubModule:
        """The interface of ELMo's module on TensorFlow Hub.

        elmo = load_bilm("original").hub
        elmo(["The dogs bark ."], signature="default", as_dict=True)["elmo"].shape  # 1 4 1024
        """
        reads_both_sides = self._frozen.bilm.context_layers.is_bidirectional
        return HubModule(self, word_dim=self.dim if reads_both_sides else self.dim // 2)

    def warm_up(self, sentences: Sequence[Sequence[str]]) -> None:
        """Read sentences, so that the next ones continue from them.

        Raises:
            ValueError: `state` is `reset`, where there is nothing to warm up.
        """
        require_carried(self._carried)
        self.embed(sentences)

    def reset_states(self) -> None:
        """Let every row start from zeros again."""
        if self._carried is not None:
            self._carried.load({})

    def load_softmax(self) -> None:
        """Read the softmax, which `score` needs.

        Raises:
            DataError: see `score`.
        """
        _ = self._softmax

    @cached_property
    def _softmax(self) -> BiLmSoftmax:
        return read_softmax(self._files, dim=self.dim // 2)

    def read_words(
        self, sentences: Sequence[Sequence[str]], *, max_tokens: int = 4096
    ) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        if self._carried is None:
            yield from super().read_words(sentences, max_tokens=max_tokens)
            return
        carried = self._carry_vectors(sentences, self._carried, max_tokens)
        yield from (([index], layers) for index, layers in enumerate(carried))

    def _carry(
        self, sentences: Iterable[Sequence[str]], carried: CarriedState, max_tokens: int
    ) -> Iterator[ReadSentence]:
        """Read consecutive sentences as rows that continue; the number is that of the row."""
        for batch in sentence_batches(sentences, max_tokens):
            text = to_device(collate_text(batch), self._device)
            output = self.source.compute(text, carried.rows(len(batch), self._device))
            carried.keep(output.state)
            layers = output.layers.cpu()
            for row, words in enumerate(batch):
                yield row, words, layers[:, row, : len(words) + NUM_BOUNDARIES]

    def _carry_vectors(
        self, sentences: Iterable[Sequence[str]], carried: CarriedState, max_tokens: int
    ) -> Iterator[NDArray[np.float32]]:
        for _, words, layers in self._carry(sentences, carried, max_tokens):
            yield layers[:, 1 : len(words) + 1].float().numpy().copy()

    def _read_documents(
        self, documents: Sequence[Sequence[Sequence[str]]], max_tokens: int
    ) -> Iterator[ReadSentence]:
        """Read documents side by side; sentences are numbered through all documents."""
        lengths = [len(sentences) for sentences in documents]
        first = [0, *accumulate(lengths)]
        order = longest_first(range(len(lengths)), lengths)
        longest = [max(map(len, each), default=0) + NUM_BOUNDARIES for each in documents]
        for group in padded_batches(order, longest.__getitem__, max_tokens=max_tokens):
            carried = CarriedState()
            for position in range(lengths[group[0]]):
                # Documents with fewer sentences have ended; they are the last rows.
                rows = [number for number in group if lengths[number] > position]
                sentences = [documents[number][position] for number in rows]
                read = self._carry(sentences, carried, max_tokens)
                yield from (
                    (first[rows[row]] + position, words, layers) for row, words, layers in read
                )


def load_bilm(
    bilm: str | Path,
    *,
    device: str = "auto",
    precision: Precision = "float32",
    state: Literal["reset", "carry"] = "reset",
) -> PretrainedBiLm:
    """Load a pretrained biLM.

        bilm = load_bilm("runs/bilm")
        bilm.embed([["A", "sentence", "."]])[0].shape     # 3 3 1024

    Args:
        bilm: the folder of a biLM, or of the run that trained it, or a name: `mini`, which is
            part of the package, or a published one, which is downloaded once: `original`,
            `original-5.5b`, `medium` or `small`.
        device: `auto` takes a GPU if there is one; else any that torch knows.
        precision: of the products: `float32`, `bfloat16` or `int8`. The vectors are float32 always.
        state: with `reset` a sentence's vectors depend on nothing else. With `carry` batches are
            read in the order given, each as many sentences as fit into `max_tokens`, and row
            i of a batch continues row i of the batch before, as bilm-tf and AllenNLP do.

    Raises:
        DataError: there is none, or its files are damaged.
        ValueError: `precision` or `state` is something else, or the model carries no state.
    """
    carried = carried_for(state)
    _require_one_of(get_args(Precision), precision=precision)
    files = resolve_bilm(bilm)
    source = open_frozen(files, precision=precision)
    require_state(state, reads_both_sides=source.bilm.context_layers.is_bidirectional)
    return PretrainedBiLm(source, files=files, device=torch_device(device), carried=carried)


def load_encoder(
    place: str | Path,
    *,
    device: str = "auto",
    precision: Precision = "float32",
    max_length: int | None = None,
    sub_token_mode: SubTokenMode = "mean",
    layers: Sequence[int] | None = None,
) -> PretrainedEncoder:
    """Load a pretrained encoder: a transformer, one of a plugin, or a biLM as `load_bilm` does.

        encoder = load_encoder("models/bert-base-cased")
        encoder.embed([["A", "sentence", "."]])[0].shape     # 13 3 768

    Args:
        place: the folder of a transformer: its configuration, its weights as safetensors and its
            tokenizer; an encoder in the format of a plugin that is imported; or a biLM, see
            `load_bilm`.
        device: see `load_bilm`.
        precision: see `load_bilm`; a transformer has no `int8`.
        max_length: the largest number of pieces that are read together, special tokens counted; a
            longer sentence is read in overlapping windows. By default what the transformer takes.
        sub_token_mode: the vector of a word of several pieces: `first`, `last` or `mean`.
        layers: of a transformer, -1 being the top one; all by default.

    Raises:
        DataError: there is none, or its files are damaged.
        RunError: a transformer needs the extra `transformers`.
        ValueError: an option does not fit.
    """
    _require_one_of(get_args(Precision), precision=precision)
    _require_one_of(get_args(SubTokenMode), sub_token_mode=sub_token_mode)
    selected = None if layers is None else _layer_numbers(layers)
    options = TransformerOptions(max_length, sub_token_mode, selected)
    has_transformer = is_transformer(as_path(place))
    if not has_transformer and encoder_format(place) is None:
        require_no_options(options)
        return load_bilm(place, device=device, precision=precision)
    source = open_encoder(place, precision=precision, options=options)
    if not has_transformer:
        return PretrainedLayers(source, device=torch_device(device))
    return PretrainedTransformer(
        source, folder=local_folder(place), device=torch_device(device), precision=precision
    )


def _require_one_of(choices: Sequence[str], **option: str) -> None:
    for name, value in option.items():
        if value not in choices:
            raise ValueError(f"{name} is {value!r}; {allowed(value, choices)}")


def _layer_numbers(layers: Any) -> tuple[int, ...]:
    numbers = tuple(layers) if isinstance(layers, Iterable) else (None,)
    if not all(isinstance(each, Integral) for each in numbers):
        raise ValueError(f"layers is {layers!r}; expected a list of numbers")
    return tuple(map(int, numbers))
