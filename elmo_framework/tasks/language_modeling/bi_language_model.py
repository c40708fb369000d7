"""The model of pretraining: a biLM and the softmax that its two directions share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, final

import torch
import torch.nn.functional as F
from annotated_types import Ge, Le
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.context_layers import ContextLayers, Direction, State
from elmo_framework.bilm.token_encoder import TokenEncoder
from elmo_framework.config.types import Count, Default, DropoutRate, Injected, Lazy
from elmo_framework.corpus.vocabulary_file import (
    SPECIAL_WORDS,
    UNKNOWN_WORD,
)
from elmo_framework.data.characters import END_SENTENCE
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.kernels.backend import side_by_side
from elmo_framework.layers.carried_state import named_states, states_by_name
from elmo_framework.metrics.ratios import perplexity, ratio
from elmo_framework.model.model import Model, ModelOutput
from elmo_framework.tasks.language_modeling.batch import Window, WindowBatch
from elmo_framework.tasks.language_modeling.language_model import LanguageModel
from elmo_framework.tasks.language_modeling.vocabulary import target_vocabulary

_DIRECTIONS: tuple[Direction, Direction] = ("forward", "backward")


@dataclass(frozen=True, slots=True)
class LanguageModelOutput(ModelOutput):
    """The loss of a batch of windows.

    Attributes:
        sums: of the losses over all predictions, forward and backward.
        is_sampled: whether they are of the sampled softmax, and so not likelihoods.
    """

    sums: Float[Tensor, " directions"]
    is_sampled: bool


@final
@Model.register("bilm")
class BiLanguageModel(LanguageModel):
    """Predicts each word from those before it and from those after it (section 3.1 of the paper).

    `L = U / 2 * sum over both directions of mean(-log p(word))`, with `U` the steps of a window:
    bilm-tf sums over time and averages over rows, and its clipping of gradients relies on it.
    The token encoder and the softmax are shared by the directions. Each row's state is carried
    from batch to batch; the gradient stops between them.

    Scores: `forward_perplexity` and `backward_perplexity`, sentence ends counted; `perplexity`,
    their geometric mean; `loss`, its logarithm; `unknown_word_rate`, the fraction of the words,
    sentence ends not counted, that the softmax does not know. They come from the full softmax;
    the loss of the sampled softmax in training is called `sampled_loss`.

    Args:
        token_encoder: computes a context-independent vector of each word.
        context_layers: the recurrent layers of both directions.
        vocabularies: counts of the training text.
        dropout: dropout rate of the top layer, before the softmax.
        state_reset_rate: the fraction of rows whose state is reset to zeros at each batch of
            training. The paper's biLM never does so; a biLM after a short training can then
            fail on the zero state that every evaluation and every frozen use starts from.
        num_samples: candidates of the sampled softmax, drawn for each direction and batch; null,
            or as many as there are words, takes the full softmax in training too.
        max_vocabulary_size: number of most frequent words in the softmax, besides
            `<S>`, `</S>` and `<UNK>`; null means all.
        min_count: words that are rarer in the training text are predicted as `<UNK>`.
        weights_follow: whether all of it will be loaded from a run, and not be trained.
    """

    has_static_steps = True

    def __init__(
        self,
        *,
        token_encoder: Annotated[Lazy[TokenEncoder], Default("char_cnn")],
        context_layers: Lazy[ContextLayers],
        vocabularies: Injected[Vocabularies],
        dropout: DropoutRate = 0.1,
        state_reset_rate: Annotated[float, Ge(0), Le(1)] = 0.0,
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
        if self.bilm.context_layers.is_bidirectional:
            name = self.bilm.description["context_layers"]["type"]
            raise ValueError(
                f"context_layers {name!r} see the words that a biLM predicts; use them in a model "
                "of type 'masked_lm'"
            )
        self.dropout, self._state_reset_rate = nn.Dropout(dropout), state_reset_rate
        self._states: dict[Direction, State] = {}

    def forward(self, batch: WindowBatch) -> LanguageModelOutput:
        vectors = self.bilm.token_encoder(batch.characters)
        windows = (batch.forward, batch.backward)
        tops = side_by_side(
            vectors,
            partial(self._top, "forward", batch.forward, vectors),
            partial(self._top, "backward", batch.backward, vectors),
        )
        mask = torch.stack([window.is_word.flatten() for window in windows])
        losses = self.softmax(
            torch.stack([top.flatten(0, 1) for top in tops]),
            torch.stack([window.targets.flatten() for window in windows]),
        )
        sums = (losses * mask).sum(1)
        num_steps = batch.forward.words.shape[1]
        return LanguageModelOutput(
            loss=num_steps * (sums / mask.sum(1).clamp(min=1)).mean(),
            sums=sums.detach(),
            is_sampled=self.softmax.is_sampling,
        )

    def sums(self, output: ModelOutput, batch: WindowBatch) -> Mapping[str, float]:
        """Return the losses and the number of predictions of each direction.

        In evaluation also the number of words, and of those that are predicted as `<UNK>`.
        """
        assert isinstance(output, LanguageModelOutput), output
        prefix = "sampled_" if output.is_sampled else ""
        counts = {} if self.training else _word_counts(batch.forward)
        return counts | {
            f"{prefix}{direction}/{name}": value
            for direction, loss in zip(_DIRECTIONS, output.sums.tolist(), strict=True)
            for name, value in (("loss", loss), ("num_predictions", float(batch.num_tokens)))
        }

    def scores(self, sums: Mapping[str, float]) -> dict[str, float]:
        is_sampled = any(name.startswith("sampled_") for name in sums)
        prefix = "sampled_" if is_sampled else ""
        forward, backward = (_mean_loss(sums, f"{prefix}{direction}") for direction in _DIRECTIONS)
        loss = (forward + backward) / 2
        if is_sampled:
            return {"sampled_loss": loss}
        return {
            "loss": loss,
            "perplexity": perplexity(loss),
            "forward_perplexity": perplexity(forward),
            "backward_perplexity": perplexity(backward),
            "num_predictions": sums.get("forward/num_predictions", 0.0),
            "unknown_word_rate": ratio(sums.get("unknown_words", 0.0), sums.get("words", 0.0)),
        }

    def monitored_values(self) -> dict[str, float]:
        """Return the fraction of the carried values that are clipped, too."""
        rates = [self.bilm.context_layers.clip_rates(state) for state in self._states.values()]
        names = rates[0] if rates else {}
        means = {f"clip_rate.{name}": sum(r[name] for r in rates) / len(rates) for name in names}
        return {**super().monitored_values(), **means}

    def carried_state(self) -> dict[str, Tensor]:
        return named_states(self._states)

    def load_carried_state(self, state: Mapping[str, Tensor]) -> None:
        self._states = states_by_name(state)

    def _start(self, direction: Direction) -> State | None:
        """Return the state that rows continue from; in training some are reset to zeros."""
        state = self._states.get(direction)
        if state is None or not (self.training and self._state_reset_rate):
            return state
        is_kept = torch.rand(len(state[0]), device=state[0].device) >= self._state_reset_rate
        return tuple(tensor * is_kept.view(-1, *[1] * (tensor.dim() - 1)) for tensor in state)

    def _top(
        self, direction: Direction, window: Window, vectors: Float[Tensor, "distinct dim"]
    ) -> Float[Tensor, "rows steps top_dim"]:
        """Read a window from the state of its rows; return the top layer for the softmax."""
        reading = self.bilm.context_layers.read(
            F.embedding(window.words, vectors),
            window.mask,
            direction=direction,
            state=self._start(direction),
        )
        self._states[direction] = tuple(tensor.detach() for tensor in reading.state)
        top: Tensor = self.dropout(reading.layers[-1])
        return top


def _word_counts(window: Window) -> dict[str, float]:
    """Count the targets that are words, and those among them that the softmax does not know."""
    targets = window.targets[window.is_word]
    is_word = targets != SPECIAL_WORDS.index(END_SENTENCE)
    is_unknown = targets == SPECIAL_WORDS.index(UNKNOWN_WORD)
    return {"words": float(is_word.sum()), "unknown_words": float(is_unknown.sum())}


def _mean_loss(sums: Mapping[str, float], direction: str) -> float:
    return ratio(sums.get(f"{direction}/loss", 0.0), sums.get(f"{direction}/num_predictions", 0))
