"""A classifier of texts that pools the vectors of their words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

from annotated_types import Ge, Lt
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.common.component import Default, Injected, Lazy
from elmo_framework.data.text import Indexer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import TextEmbedder
from elmo_framework.encoders.feedforward import FeedForwardOptions
from elmo_framework.encoders.pooler import Pooler
from elmo_framework.model.head import Head, HeadOutput

from .batch import ClassificationBatch
from .example import Classification
from .task import TextClassificationTask

_AVERAGE = {"type": "bag_of_embeddings", "averaged": True}
_LAYERS = {"num_layers": 2, "hidden_dims": [1024, 256], "activations": "relu", "dropout": 0.2}


@dataclass(frozen=True, slots=True)
class ClassificationOutput(HeadOutput):
    """What the classifier computes for a batch.

    Attributes:
        logits: the score of each class.
    """

    logits: Float[Tensor, "batch labels"]


@final
@Head.register("pooled_classifier")
class PooledClassifier(Head[ClassificationBatch]):
    """Pools the vectors of a text's words and classifies the result.

        p = softmax(W f(pool(dropout(x_1 ... x_n))) + b)

    with f a feed-forward network. The loss is the mean of -log p over the texts of a batch.

    Args:
        embedder: gives each word its vector.
        vocabularies: what was counted in the training data; its labels are the classes.
        pooler: makes one vector of a text; the average of its words unless stated.
        feedforward: the layers between that vector and the classes.
        dropout: the share of values dropped from the vectors of the words.
    """

    task = TextClassificationTask()

    def __init__(
        self,
        embedder: TextEmbedder,
        vocabularies: Injected[Vocabularies],
        pooler: Annotated[Lazy[Pooler], Default(_AVERAGE)],
        feedforward: Annotated[FeedForwardOptions, Default(_LAYERS)],
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.0,
    ) -> None:
        super().__init__()
        self._labels = vocabularies.labels()
        self.embedder = embedder
        self.dropout = nn.Dropout(dropout)
        self.pooler = pooler.build(input_dim=embedder.output_dim)
        self.feedforward = feedforward.build(input_dim=self.pooler.output_dim)
        self.projection = nn.Linear(self.feedforward.output_dim, len(self._labels))

    @property
    def indexers(self) -> Sequence[Indexer]:
        """What turns words into the ids that the embedders read."""
        return self.embedder.indexers

    def forward(self, batch: ClassificationBatch) -> ClassificationOutput:
        """Score the classes of each text."""
        vectors = self.dropout(self.embedder(batch.text))
        logits = self.projection(self.feedforward(self.pooler(vectors, batch.text.mask)))
        if batch.labels is None:
            return ClassificationOutput(loss=None, example_losses=None, logits=logits)
        losses = functional.cross_entropy(logits, batch.labels, reduction="none")
        return ClassificationOutput(loss=losses.mean(), example_losses=losses, logits=logits)

    def predict(
        self, output: ClassificationOutput, batch: ClassificationBatch
    ) -> list[Classification]:
        """Return the most probable class of each text, and the probabilities of all."""
        return [self._classification(row) for row in output.logits.float().softmax(dim=1).tolist()]

    def _classification(self, row: list[float]) -> Classification:
        probabilities = dict(zip(self._labels.items, row, strict=True))
        return Classification(max(probabilities, key=probabilities.__getitem__), probabilities)
