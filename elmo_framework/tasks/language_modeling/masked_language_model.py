"""The model of masked pretraining: words are hidden, and predicted from both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple, final

import torch
from annotated_types import Gt, Lt
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.context_layers import ContextLayers
from elmo_framework.bilm.residual_context_layers import BidirectionalTransformerContextLayers
from elmo_framework.bilm.token_encoder import TokenEncoder
from elmo_framework.config.types import Count, Default, DropoutRate, Injected, Lazy
from elmo_framework.corpus.vocabulary_file import SPECIAL_WORDS
from elmo_framework.data.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.metrics.ratios import perplexity, ratio
from elmo_framework.model.model import Model, ModelOutput
from elmo_framework.nn.packing import reversed_rows
from elmo_framework.tasks.language_modeling.batch import Window, WindowBatch
from elmo_framework.tasks.language_modeling.language_model import LanguageModel
from elmo_framework.tasks.language_modeling.vocabulary import target_vocabulary

_HIDDEN, _REPLACED = 0.8, 0.1
"""Of the words to predict: masked, and replaced by a random word; the others stay (Devlin et al.
2019, section 3.1)."""

_BOUNDARIES = tuple(map(SPECIAL_WORDS.index, (BEGIN_SENTENCE, END_SENTENCE)))
_UNKNOWN_TARGET = SPECIAL_WORDS.index(BEGIN_SENTENCE)
_SEED = 13


@dataclass(frozen=True, slots=True)
class MaskedOutput(ModelOutput):
    """The loss of a batch.

    Attributes:
        sum: of the losses over all predictions.
        num_predictions: the number of words that were predicted.
        is_sampled: whether the losses are of the sampled softmax, and so not likelihoods.
    """

    sum: Float[Tensor, ""]
    num_predictions: int
    is_sampled: bool


class Rows(NamedTuple):
    """Running text from left to right.

    Attributes:
        words: indices into the distinct words of the batch.
        targets: the id of each word itself in the softmax; of `<S>` where it is not predicted.
        mask: true at words, not at padding.
    """

    words: Int[Tensor, "rows steps"]
    targets: Int[Tensor, "rows steps"]
    mask: Bool[Tensor, "rows steps"]


@final
@Model.register("masked_lm")
class MaskedLanguageModel(LanguageModel):
    """Predicts hidden words from both sides (Devlin et al. 2019).

    A fraction of the words of each window is predicted: 80 % of them are replaced by the mask
    vector, 10 % by another word of the batch, and 10 % stay. Whole words are hidden, whatever they
    are encoded from. The windows of both directions are rows of text, those of the backward one
    turned round, so each batch reads both. Nothing is carried, so use long windows.

    Scores: `loss` and `masked_perplexity`, of the words that are hidden in evaluation: always the
    same ones, all replaced by the mask vector. They are not comparable to the perplexity of a
    biLM, which sees one side. The loss of the sampled softmax in training is `sampled_loss`.

    Args:
        token_encoder: computes a context-independent vector of each word.
        context_layers: layers that read both sides of a word.
        vocabularies: counts of the training text.
        mask_rate: the fraction of the words that is predicted.
        dropout: dropout rate of the top layer, before the softmax.
        num_samples: candidates of the sampled softmax; null, or as many as there are words, takes
            the full softmax in training too.
        max_vocabulary_size: number of most frequent words in the softmax, besides
            `<S>`, `</S>` and `<UNK>`; null means all.
        min_count: words that are rarer in the training text are predicted as `<UNK>`.
        weights_follow: whether all of it will be loaded from a run, and not be trained.
    """

    def __init__(
        self,
        *,
        token_encoder: Annotated[Lazy[TokenEncoder], Default("char_cnn")],
        context_layers: Annotated[Lazy[ContextLayers], Default("bidirectional_transformer")],
        vocabularies: Injected[Vocabularies],
        mask_rate: Annotated[float, Gt(0), Lt(1)] = 0.15,
        dropout: DropoutRate = 0.0,
        num_samples: Count | None = 8192,
        max_vocabulary_size: Count | None = None,
        min_count: Count = 1,
        weights_follow: Injected[bool] = False,
    ) -> None:
        super().__init__(
            BiLm(token_encoder=token_encoder, context_layers=context_layers),
            target_vocabulary(vocabularies, min_count=min_count, max_size=max_vocabulary_size),
            num_samples=num_samples,
            weights_follow=weights_follow,
        )
        if not isinstance(self.bilm.context_layers, BidirectionalTransformerContextLayers):
            name = self.bilm.description["context_layers"]["type"]
            raise ValueError(
                f"context_layers {name!r} read one side of a word; a masked_lm needs "
                "'bidirectional_transformer'"
            )
        self._mask_rate, self.dropout = mask_rate, nn.Dropout(dropout)

    def forward(self, batch: WindowBatch) -> MaskedOutput:
        vectors = self.bilm.token_encoder(batch.characters)[: batch.num_distinct]
        rows = rows_of(batch)
        is_predicted, inputs = self._hidden(rows, vectors)
        layers = self.bilm.context_layers.read(inputs, rows.mask, direction="forward").layers
        places = is_predicted.flatten().nonzero().squeeze(1)
        tops = self.dropout(layers[-1].flatten(0, 1).index_select(0, places))
        targets = rows.targets.flatten().index_select(0, places)
        loss = self.softmax(tops[None], targets[None]).sum()
        return MaskedOutput(
            loss=loss / max(1, len(places)),
            sum=loss.detach(),
            num_predictions=len(places),
            is_sampled=self.softmax.is_sampling,
        )

    def sums(self, output: ModelOutput, batch: WindowBatch) -> Mapping[str, float]:
        """Return the loss and the number of predictions."""
        assert isinstance(output, MaskedOutput), output
        prefix = "sampled_" if output.is_sampled else ""
        return {
            f"{prefix}loss": output.sum.item(),
            f"{prefix}num_predictions": float(output.num_predictions),
        }

    def scores(self, sums: Mapping[str, float]) -> dict[str, float]:
        if "sampled_loss" in sums:
            loss = ratio(sums["sampled_loss"], sums["sampled_num_predictions"])
            return {"sampled_loss": loss}
        num_predictions = sums.get("num_predictions", 0.0)
        loss = ratio(sums.get("loss", 0.0), num_predictions)
        return {
            "loss": loss,
            "masked_perplexity": perplexity(loss),
            "num_predictions": num_predictions,
        }

    def _hidden(self, rows: Rows, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return which words are predicted, and the vectors that the layers read."""
        is_word = rows.mask & (rows.targets != _BOUNDARIES[0]) & (rows.targets != _BOUNDARIES[1])
        generator = None
        if not self.training:
            # The same words in every evaluation, without a trace in the training's generator.
            generator = torch.Generator(rows.words.device).manual_seed(_SEED)
        draws, kinds, others = torch.rand(
            3, *rows.words.shape, generator=generator, device=rows.words.device
        )
        is_predicted = is_word & (draws < self._mask_rate)
        kinds = kinds if self.training else torch.zeros_like(kinds)
        is_replaced = is_predicted & (kinds >= _HIDDEN) & (kinds < _HIDDEN + _REPLACED)
        words = torch.where(is_replaced, (others * len(vectors)).long(), rows.words)
        is_hidden = is_predicted & (kinds < _HIDDEN)
        inputs = functional.embedding(words, vectors)
        layers = self.bilm.context_layers
        assert isinstance(layers, BidirectionalTransformerContextLayers), layers
        mask_vector = layers.mask_vector.to(inputs.dtype)
        return is_predicted, torch.where(is_hidden[:, :, None], mask_vector, inputs)


def rows_of(batch: WindowBatch) -> Rows:
    """Return the windows of both directions as text from left to right."""
    forward, backward = _read(batch.forward), _read(batch.backward)
    turned = Rows(
        reversed_rows(backward.words, backward.mask),
        reversed_rows(backward.targets, backward.mask),
        backward.mask,
    )
    return Rows(*map(torch.cat, zip(forward, turned, strict=True)))


def _read(window: Window) -> Rows:
    """Return a window in its reading order; the word of a step is the target of the one before."""
    first = torch.full_like(window.targets[:, :1], _UNKNOWN_TARGET)
    targets = torch.cat([first, window.targets[:, :-1]], dim=1)
    return Rows(window.words, targets, window.is_word)
