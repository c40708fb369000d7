"""A text classifier that pools word vectors."""

from __future__ import annotations

from typing import Annotated, final

from annotated_types import Ge, Lt
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.config import Default, Injected, Lazy
from elmo_framework.data import LabeledBatch, Vocabularies
from elmo_framework.embedders import TextEmbedder
from elmo_framework.encoders import FeedForwardOptions, Pooler
from elmo_framework.model import Classifier, Head

from .task import TextClassificationTask

_AVERAGE = {"type": "bag_of_embeddings", "averaged": True}
_LAYERS = {"num_layers": 2, "hidden_dims": [1024, 256], "activations": "relu", "dropout": 0.2}


@final
@Head.register("pooled_classifier")
class PooledClassifier(Classifier):
    """Pools the word vectors of a text and classifies the result.

        p = softmax(W f(pool(dropout(x_1 ... x_n))) + b)

    with f a feed-forward network. The loss is the mean of -log p over the texts of a batch.

    Args:
        embedder: embeds the words.
        vocabularies: counted in the training data; the labels are the classes.
        pooler: combines the word vectors to one vector; by default their average.
        feedforward: the layers between that vector and the classes.
        dropout: the dropout rate of the word vectors.
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
        super().__init__(vocabularies)
        self.embedder = embedder
        self.dropout = nn.Dropout(dropout)
        self.pooler = pooler.build(input_dim=embedder.output_dim)
        self.feedforward = feedforward.build(input_dim=self.pooler.output_dim)
        self.projection = nn.Linear(self.feedforward.output_dim, self.num_labels)

    def logits(self, batch: LabeledBatch) -> Float[Tensor, "batch labels"]:
        """Score the classes of each text."""
        vectors = self.dropout(self.embedder(batch.text))
        pooled = self.pooler(vectors, batch.text.mask)
        logits: Tensor = self.projection(self.feedforward(pooled))
        return logits
