"""Explanations: how much each word speaks for a label (integrated gradients, occlusion)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.bilm.layer_mix import LayerMix
from elmo_framework.data.batch import to_device
from elmo_framework.data.text import TextBatch
from elmo_framework.embedders.text_embedder import TextEmbedder, TokenEmbedder
from elmo_framework.errors import RunError, allowed, truncated
from elmo_framework.model.head import Head
from elmo_framework.model.part import parts_of
from elmo_framework.model.task import Collator
from elmo_framework.training.evaluator import autocast, inference

Method: TypeAlias = Literal["integrated_gradients", "occlusion"]
"""How words are scored; see `Explainer`."""

_Probability: TypeAlias = Callable[[Tensor], Tensor]
"""The probability of the label at points: "points sentences words" factors to "points"."""

_MOST_WORDS = 1024
"""The number of words in a batch of points."""


@final
@dataclass(frozen=True)
class Explanation:
    """How much each word of an example speaks for a label.

    Attributes:
        sentences: the words of each sentence: one, or two for a pair.
        scores: of each word, in the same shape: above 0 for the label, below 0 against it. Those
            of integrated gradients add up to `probability` - `baseline`.
        label: that is explained.
        probability: of the label.
        baseline: the probability of the label where all word vectors are zeros.
        is_predicted: whether the label is the predicted one.
        is_calibrated: whether the probabilities are calibrated.
        method: of the scores.
        layer_weights: for each mix of biLM layers, by its name in the model, the weight of each
            layer (`s_0`, `s_1`, ...) and `gamma`.
        word: the index of the word whose label is explained; None if the label is of the whole.
    """

    sentences: tuple[tuple[str, ...], ...]
    scores: tuple[tuple[float, ...], ...]
    label: str
    probability: float
    baseline: float
    is_predicted: bool
    is_calibrated: bool
    method: Method
    layer_weights: Mapping[str, Mapping[str, float]]
    word: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON types."""
        pairs = zip(self.sentences, self.scores, strict=True)
        return {
            "label": self.label,
            "probability": self.probability,
            **({} if self.word is None else {"word": self.word}),
            **({"calibrated": True} if self.is_calibrated else {}),
            "predicted": self.is_predicted,
            "baseline": self.baseline,
            "method": self.method,
            "sentences": [{"words": list(words), "scores": list(each)} for words, each in pairs],
            "layer_weights": {name: dict(mix) for name, mix in self.layer_weights.items()},
        }


@final
@dataclass(frozen=True)
class Explainer:
    """Explains labels of a head by the vectors of words that its embedders give it.

    Let p(a) be the probability of the label where the vector of word i is a_i x_i: all words for
    a = 1, zeros for a = 0, the baseline. The score of word i is

        integrated_gradients: the integral of dp/da_i over a = (t, ..., t) for t from 0 to 1
        occlusion: p(1) - p(1 with a_i = 0)

    The first is that of Sundararajan et al. (2017), summed over the dimensions of a vector; the
    scores add up to p(1) - p(0). The vectors of a biLM have read the whole sentence, so a score is
    that of a position and of what its vector says about the context.

    Modules and weights of the model are not changed, so others may predict with it meanwhile.

    Args:
        head: a classifier of texts or of pairs, or a tagger.
        collate: makes batches for it.
        device: of the head.
        precision: as of the trainer.
        method: of the scores.
        steps: number of points of the integral, by the rule of Gauss and Legendre.
        label: that is explained; by default the predicted one.
        word: for taggers, whose label is explained: the word itself, or its index from 0.
    """

    head: Head[Any]
    collate: Collator
    device: torch.device
    precision: str = "float32"
    method: Method = "integrated_gradients"
    steps: int = 50
    label: str | None = None
    word: str | int | None = None

    def __call__(self, example: Any) -> Explanation:
        """Explain a label of an example.

        Raises:
            RunError: the head gives labels no probabilities; the label or the word is unknown; or
                `word` is missing, or is there and is not for this head.
            ValueError: `steps` is below 1.
        """
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}; it must be above 0")
        head, sentences = self.head, tuple(map(tuple, self.head.task.sentences(example)))
        batch = self._batch(example, 1)
        with inference(head):
            with head.fresh_state(), autocast(self.device, self.precision):
                vectors = {name: embed(batch.text) for name, embed in _embedders(head)}
                output = head(batch)
            word = self._word(head.label_scores(output, batch).dim() == 3, sentences[0])
            gold = head.task.as_gold(head.predict(output, batch)[0])
            predicted = gold if word is None else gold[word]
            label = predicted if self.label is None else self.label
            column = (slice(None), *(() if word is None else (word,)), self._number(label))

            def probability(factors: Tensor) -> Tensor:
                fixed = {name: _Fixed(_scaled(each, factors)) for name, each in vectors.items()}
                copies = self._batch(example, len(factors))
                # Not by cuDNN, whose recurrent layers have no gradients outside training.
                with _without_cudnn(), autocast(self.device, self.precision):
                    return head.probabilities(_replaced(head, fixed)(copies), copies)[column]

            full = torch.ones(len(sentences), batch.text.mask.shape[1], device=self.device)
            score = _METHODS[self.method]
            scores = score(probability, full, self.steps).tolist()
            baseline, whole = probability(torch.stack([0 * full, full])).tolist()
        lengths = map(len, sentences)
        return Explanation(
            sentences,
            tuple(tuple(row[:length]) for row, length in zip(scores, lengths, strict=True)),
            label,
            whole,
            baseline,
            is_predicted=label == predicted,
            is_calibrated=head.temperature is not None,
            method=self.method,
            layer_weights=layer_weights(head),
            word=word,
        )

    def _batch(self, example: Any, number: int) -> Any:
        """Return a batch of so many times the same example."""
        return to_device(self.collate([example] * number), self.device)

    def _number(self, label: str) -> int:
        """Return the number of a label."""
        items = () if self.head.labels is None else self.head.labels.items
        if label not in items:
            raise RunError(f"unknown label {label!r}; {allowed(label, items)}")
        return items.index(label)

    def _word(self, is_tagger: bool, words: Sequence[str]) -> int | None:
        """Return the index of the word whose label is explained; None for that of the whole."""
        word = self.word
        if word is None and not is_tagger:
            return None
        if word is None:
            choices = ", ".join(dict.fromkeys(words))
            raise RunError(
                "a tagger labels each word; pass the word to explain, or its index from 0: "
                f"{truncated(choices)}"
            )
        if not is_tagger:
            raise RunError("this run labels whole texts, not words; remove the word")
        indices = [index for index, each in enumerate(words) if each == word]
        if not indices and str(word).isdecimal():
            if int(word) < len(words):
                return int(word)
            last = len(words) - 1
            raise RunError(f"the word {word} is not in the sentence; allowed: 0 to {last}")
        if len(indices) == 1:
            return indices[0]
        if indices:
            listed = " or ".join(map(str, indices))
            raise RunError(f"{word!r} occurs several times; pass its index: {listed}")
        choices = allowed(str(word), dict.fromkeys(words))
        raise RunError(f"the word {word!r} is not in the sentence; {choices}")


def layer_weights(head: Head[Any]) -> dict[str, dict[str, float]]:
    """Return the weights of the layers in each mix of a head, by its name in the model."""
    mixes = ((name, part) for name, part in parts_of(head) if isinstance(part, LayerMix))
    return {name: dict(mix.monitored_values()) for name, mix in mixes}


def _integrated_gradients(
    probability: _Probability, full: Float[Tensor, "sentences words"], steps: int
) -> Float[Tensor, "sentences words"]:
    nodes, weights = np.polynomial.legendre.leggauss(steps)  # on [-1, 1]
    total = torch.zeros_like(full)
    for rows in _chunks(steps, full):
        factors = full.new_tensor((nodes[rows] + 1) / 2)[:, None, None] * full
        with torch.enable_grad():
            factors.requires_grad_()
            (slopes,) = torch.autograd.grad(probability(factors).sum(), factors)
        total += torch.tensordot(full.new_tensor(weights[rows] / 2), slopes, dims=1)
    return total


def _occlusion(
    probability: _Probability, full: Float[Tensor, "sentences words"], steps: int
) -> Float[Tensor, "sentences words"]:
    without = full - torch.eye(full.numel(), device=full.device).view(-1, *full.shape)
    left = [probability(without[rows]) for rows in _chunks(len(without), full)]
    return (probability(full[None]) - torch.cat(left)).view(full.shape)


_METHODS = {"integrated_gradients": _integrated_gradients, "occlusion": _occlusion}


def _chunks(number: int, full: Tensor) -> Iterator[slice]:
    """Yield ranges of points whose batches have a bounded number of words."""
    size = max(1, _MOST_WORDS // full.numel())
    return (slice(start, start + size) for start in range(0, number, size))


@final
class _Fixed(TokenEmbedder):
    """Replaces an embedder by its vectors."""

    def __init__(self, vectors: Float[Tensor, "rows words dim"]) -> None:
        super().__init__()
        self._vectors, self.output_dim = vectors, vectors.shape[-1]

    def forward(self, text: TextBatch) -> Tensor:
        return self._vectors


def _scaled(
    vectors: Float[Tensor, "sentences words dim"],
    factors: Float[Tensor, "points sentences words"],
) -> Float[Tensor, "rows words dim"]:
    """Return the vectors of all points: of all first sentences, then of all second ones."""
    return (vectors[:, None] * factors.transpose(0, 1)[..., None]).flatten(0, 1)


def _embedders(head: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the outermost modules that give words their vectors, with their names."""
    outer: list[str] = []
    for name, module in head.named_modules():
        is_inner = any(name.startswith(f"{each}.") for each in outer)
        if isinstance(module, TextEmbedder | TokenEmbedder) and not is_inner:
            outer.append(name)
            yield name, module


def _replaced(module: nn.Module, modules: Mapping[str, nn.Module]) -> Any:
    """Return a module with others in place of some of its inner ones; the rest is shared."""
    clone = copy.copy(module)
    clone._modules = dict(module._modules)
    for name, new in modules.items():
        first, dot, rest = name.partition(".")
        inner = clone._modules[first]
        assert inner is not None
        clone._modules[first] = _replaced(inner, {rest: new}) if dot else new
    return clone


def _without_cudnn() -> AbstractContextManager[None]:
    flags: AbstractContextManager[None] = torch.backends.cudnn.flags(enabled=False)
    return flags
