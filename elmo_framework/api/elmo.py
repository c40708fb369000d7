"""ELMo as a module of PyTorch, with the interface that AllenNLP gave it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from elmo_framework.api.arguments import (
    carried_for,
    require_carried,
    require_sentences,
    require_words,
)
from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import read_bilm
from elmo_framework.bilm.files.published import files_at
from elmo_framework.bilm.layer_mix import ScalarMix
from elmo_framework.bilm.layer_output import (
    LayerOutput,
    LayerState,
    framed_mask,
    without_boundaries,
)
from elmo_framework.data.characters import ElmoCharacterIndexer
from elmo_framework.data.text import Indexer, TextBatch, collate_text
from elmo_framework.layers.bilm_source import FrozenBiLm, open_frozen
from elmo_framework.layers.carried_state import require_state
from elmo_framework.layers.word_vector_cache import WordVectorCache
from elmo_framework.nn.eager import eager, refuse_export

_ALLENNLP_BILM = "_elmo_lstm."
"""How AllenNLP's names of the biLM's weights begin in a `state_dict`."""

_CHARACTER_DIMS = 3
"""Dimensions of a batch of characters: sentences, tokens, characters."""


def batch_to_ids(
    batch: Sequence[Sequence[str]], max_characters: int = 50
) -> Int[Tensor, "batch tokens characters"]:
    """Return the ids of the characters of tokenized sentences.

        batch_to_ids([["A", "sentence", "."], ["Another"]]).shape     # 2 3 50

    The boundaries of a sentence are not among them: `Elmo` adds those.

    Args:
        batch: the words of each sentence; 0 fills up the shorter ones.
        max_characters: the ids of a word: `max_characters_per_token` of the biLM, which is 50 for
            `mini` and all published ones.

    Raises:
        TypeError: a sentence is a string, or a word is not.
        ValueError: `max_characters` is below 3.
    """
    indexer = ElmoCharacterIndexer(max_characters)
    return collate_text(require_sentences(batch), [indexer]).ids[indexer.key]


class ElmoOutput(TypedDict):
    """The output of `Elmo`.

    Attributes:
        elmo_representations: one "batch ... tokens dim" for each mix, zero at padding.
        mask: "batch ... tokens", true at words, false at padding.
    """

    elmo_representations: list[Tensor]
    mask: Tensor


@final
class Elmo(nn.Module):
    """Mixes of the layers of a pretrained biLM: gamma sum_j s_j h_j (Peters et al. 2018, eq. 1).

        elmo = Elmo("options.json", "weights.hdf5", num_output_representations=1)
        output = elmo(batch_to_ids([["A", "sentence", "."]]))
        output["elmo_representations"][0]     # 1 3 1024
        output["mask"]                        # 1 3

    Names of arguments, inputs, outputs and weights are AllenNLP's, so that a program written for
    its `Elmo` needs another import and nothing else. Four things are not as there:

    * Each batch starts from zeros by default; see `state`.
    * A frozen biLM is not part of the module: it is shared by all that read the same files, and
      `state_dict` has only the mixes `scalar_mix_{k}`. AllenNLP's weights can be loaded all
      the same; what they have under `_elmo_lstm` is skipped, as the files have it.
    * A row without words is padding as a whole, its boundaries included: AllenNLP reads those,
      which shows in the layer norm and in what the row carries on.
    * `vocab_to_cache` cannot be combined with `requires_grad`.

    Args:
        options_file: bilm-tf's `options.json`: a path, a URL (downloaded once, then cached) or
            the name of a model: `mini`, which is part of the package, or a published one:
            `original`, `original-5.5b`, `medium` or `small`.
        weight_file: bilm-tf's `weights.hdf5`, given in the same ways.
        num_output_representations: the number of mixes, each with separate weights; the biLM runs
            once for all.
        requires_grad: whether the biLM is trained too. It is then the submodule `bilm`.
        do_layer_norm: whether each layer is normalized before it is mixed, over all words of
            the batch together, the boundaries of sentences among them.
        dropout: dropout rate of the vectors.
        vocab_to_cache: words whose vectors from the token encoder are computed now. They are
            used when `forward` is given `word_inputs`, the indices of the words in this list; the
            first word of the list means padding.
        keep_sentence_boundaries: whether the result includes `<S>` and `</S>`.
        scalar_mix_parameters: weights of the layers before the softmax; they are not trained,
            and gamma stays 1. `[-9e10, -9e10, 1]` is the top layer of three.
        module: a biLM in place of the two files. It is trained if its parameters require
            gradients; `requires_grad` is ignored.
        state: with `reset` each batch starts from zeros. With `carry` row i continues row i
            of the batch before, as bilm-tf and AllenNLP do: a row that is new starts from
            zeros, one without words keeps what it had. It is never saved.
    """

    def __init__(
        self,
        options_file: str | Path | None = None,
        weight_file: str | Path | None = None,
        num_output_representations: int = 1,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: Sequence[str] | None = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: Sequence[int | float] | None = None,
        module: BiLm | None = None,
        *,
        state: Literal["reset", "carry"] = "reset",
    ) -> None:
        super().__init__()
        self._carried = carried_for(state)
        if num_output_representations < 1:
            raise ValueError(
                f"num_output_representations is {num_output_representations}; allowed: 1 or more"
            )
        bilm = _trained_or_frozen(options_file, weight_file, requires_grad, module)
        self.bilm = bilm if isinstance(bilm, BiLm) else None
        self._frozen = bilm if isinstance(bilm, FrozenBiLm) else None
        require_state(state, reads_both_sides=self._bilm.context_layers.is_bidirectional)
        self._vocabulary = require_words(vocab_to_cache or (), name="vocab_to_cache")
        self._cache = self._cached_vocabulary() if self._vocabulary else None
        weights: list[float] | None = None
        if scalar_mix_parameters is not None:
            weights = [float(weight) for weight in scalar_mix_parameters]
        self._mixes = [f"scalar_mix_{number}" for number in range(num_output_representations)]
        for name in self._mixes:
            self.add_module(
                name,
                ScalarMix(
                    num_layers=self._bilm.num_layers,
                    layer_norm=do_layer_norm,
                    scalar_mix_parameters=weights,
                ),
            )
        self._dropout = nn.Dropout(dropout)
        self._keep_sentence_boundaries = keep_sentence_boundaries
        hook = _skip_frozen_weights
        self.register_load_state_dict_pre_hook(hook)  # type: ignore[no-untyped-call]

    def forward(
        self,
        inputs: Int[Tensor, "*batch tokens characters"],
        word_inputs: Int[Tensor, "*batch tokens"] | None = None,
    ) -> ElmoOutput:
        """Embed sentences.

        Args:
            inputs: ids as of `batch_to_ids`, with any number of leading dimensions; state is
                carried from row to row of all of them together.
            word_inputs: the same words by their indices in `vocab_to_cache`, 0 at padding. Where
                one is not among them, the whole batch is read from its characters.

        Raises:
            TypeError: `inputs` is not a tensor of ids.
            ValueError: `inputs` has no dimension of characters, or another than the biLM reads;
                or `word_inputs` has another shape than the words of `inputs`.
        """
        _require_ids(inputs, word_inputs)
        leading = inputs.shape[:-2]
        words = None if word_inputs is None else word_inputs.flatten(0, -2)
        output = self._read(inputs.flatten(0, -3), words)
        mask = output.mask if self._keep_sentence_boundaries else output.mask[:, 2:]
        vectors = [self._dropout(self._mixed(name, output)) for name in self._mixes]
        return {
            "elmo_representations": [each.view(*leading, *each.shape[1:]) for each in vectors],
            "mask": mask.reshape(*leading, mask.shape[1]),
        }

    def _cached_vocabulary(self) -> WordVectorCache:
        """Compute the vectors of `vocab_to_cache`.

        Raises:
            ValueError: the biLM is trained.
        """
        if self._frozen is None:
            raise ValueError(
                "vocab_to_cache holds vectors that training would leave behind: "
                "leave it out, or set requires_grad to False"
            )
        device = next(self._bilm.parameters()).device
        cache = WordVectorCache(self._frozen.prepared(device).token_encoder)
        self._cached_version = self._frozen.version
        cache.learn(self._vocabulary[1:], device)
        return cache

    def get_output_dim(self) -> int:
        return self._bilm.output_dim

    def reset_states(self) -> None:
        """Let every row start from zeros again."""
        if self._carried is not None:
            self._carried.load({})

    def warm_up(self, sentences: Sequence[Sequence[str]]) -> None:
        """Read sentences as one batch, so that row i of the next continues sentence i.

        Raises:
            ValueError: `state` is `reset`, where there is nothing to warm up.
            TypeError: a sentence is a string, or a word is not.
        """
        require_carried(self._carried)
        indexer = self._bilm.token_encoder.indexer
        characters = collate_text(require_sentences(sentences), [indexer]).ids[indexer.key]
        with torch.no_grad():
            self._read(characters.to(next(self.parameters()).device), None)

    def train(self, mode: bool = True) -> Elmo:
        """Switch to training; the biLM drops nothing itself, whether it is trained or not."""
        super().train(mode)
        self._bilm.eval()
        return self

    __prepare_scriptable__ = refuse_export  # what torch.jit.script asks for

    @property
    def _bilm(self) -> BiLm:
        bilm = self.bilm if self._frozen is None else self._frozen.bilm
        assert bilm is not None
        return bilm

    @eager
    def _read(
        self,
        characters: Int[Tensor, "batch tokens characters"],
        words: Int[Tensor, "batch tokens"] | None,
    ) -> LayerOutput:
        _require_width(characters, self._bilm.token_encoder.indexer)
        carried = self._carried
        state = None if carried is None else carried.rows(len(characters), characters.device)
        if self._frozen is None:
            output: LayerOutput = self._bilm(characters, state)
        else:
            output = self._read_frozen(self._frozen, characters, words, state)
        if carried is not None:
            carried.keep(output.state)
        return output

    def _read_frozen(
        self,
        frozen: FrozenBiLm,
        characters: Int[Tensor, "batch tokens characters"],
        word_ids: Int[Tensor, "batch tokens"] | None,
        state: LayerState | None,
    ) -> LayerOutput:
        text = None if word_ids is None else self._cached_text(word_ids)
        if self._cache is None or text is None:
            return frozen.read_ids(characters, state)
        with torch.no_grad():
            bilm = frozen.prepared(characters.device)
            if frozen.version != self._cached_version:
                self._cache.clear()
                self._cached_version = frozen.version
            output: LayerOutput = bilm.contextualize(
                self._cache.framed(text), framed_mask(text.mask), state
            )
            return output

    def _cached_text(self, word_ids: Int[Tensor, "batch tokens"]) -> TextBatch | None:
        """Return the words of a batch; None if one is not among those whose vectors are cached."""
        rows = word_ids.tolist()
        ids = range(len(self._vocabulary))
        if not all(word in ids for row in rows for word in row):
            return None
        words = tuple(tuple(self._vocabulary[word] for word in row if word) for row in rows)
        return TextBatch(words, word_ids > 0, {})

    def _mixed(self, name: str, output: LayerOutput) -> Float[Tensor, "batch tokens dim"]:
        mixed: Tensor = self.get_submodule(name)(output.layers, output.mask)
        if self._keep_sentence_boundaries:
            return mixed.masked_fill(~output.mask[:, :, None], 0)
        return without_boundaries(mixed, output.mask)


def _require_ids(inputs: object, word_inputs: Tensor | None) -> None:
    if not isinstance(inputs, Tensor) or inputs.is_floating_point():
        kind = inputs.dtype if isinstance(inputs, Tensor) else type(inputs).__name__
        raise TypeError(f"inputs is of type {kind}; expected the integers of batch_to_ids")
    if inputs.dim() < _CHARACTER_DIMS:
        raise ValueError(
            f"inputs has the shape {tuple(inputs.shape)}; expected (batch, tokens, characters), "
            "as of batch_to_ids"
        )
    if word_inputs is not None and word_inputs.shape != inputs.shape[:-1]:
        raise ValueError(
            f"word_inputs has the shape {tuple(word_inputs.shape)}; expected that of the words of "
            f"inputs, {tuple(inputs.shape[:-1])}"
        )


def _require_width(ids: Tensor, indexer: Indexer) -> None:
    width = ids.shape[-1]
    if isinstance(indexer, ElmoCharacterIndexer) and width != indexer.max_characters:
        raise ValueError(
            f"inputs has {width} ids a word, and this biLM reads {indexer.max_characters}; make "
            f"them with batch_to_ids(batch, max_characters={indexer.max_characters})"
        )


def _trained_or_frozen(
    options_file: str | Path | None,
    weight_file: str | Path | None,
    requires_grad: bool,
    module: BiLm | None,
) -> BiLm | FrozenBiLm:
    if module is not None:
        if options_file is not None or weight_file is not None:
            raise ValueError("module replaces options_file and weight_file; pass one or the other")
        is_trained = any(parameter.requires_grad for parameter in module.parameters())
        return module if is_trained else FrozenBiLm(module.eval())
    if options_file is None or weight_file is None:
        raise ValueError("pass both options_file and weight_file, or module")
    files = files_at(options_file, weight_file)
    if requires_grad:
        return read_bilm(files, requires_grad=True)
    return open_frozen(files)


def _skip_frozen_weights(
    elmo: nn.Module, state_dict: dict[str, Any], prefix: str, *_: object
) -> None:
    if isinstance(elmo, Elmo) and elmo.bilm is None:
        for name in [name for name in state_dict if name.startswith(prefix + _ALLENNLP_BILM)]:
            del state_dict[name]
