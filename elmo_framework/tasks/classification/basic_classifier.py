"""Text models with an encoder, a pooler and linear layers, for each kind of target."""

from __future__ import annotations

from typing import Annotated, final

from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.config.types import Default, DropoutRate, Injected, Lazy
from elmo_framework.data.labels import LabeledBatch
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import (
    TextEmbedder,
    TokenEmbedder,
    concatenate,
    joined_dim,
)
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.encoders.feedforward import FeedForwardOptions
from elmo_framework.encoders.pooler import Pooler
from elmo_framework.model.classifier import Classifier, TargetHead
from elmo_framework.model.head import Head
from elmo_framework.model.multi_label import MultiLabelHead
from elmo_framework.model.regression import RegressionHead
from elmo_framework.tasks.classification.task import (
    MultiLabelTextTask,
    TextClassificationTask,
    TextRegressionTask,
)


class PooledText(TargetHead):
    """Encodes a text, pools it to one vector, and scores it.

        logits = W f(dropout(pool(encode(x_1 ... x_n)))) + b

    with f a feed-forward network.

    Args:
        embedder: word embeddings.
        pooler: pools the vectors of a text to one.
        encoder: encoder of the vectors before pooling; by default they stay unchanged.
        output_embedder: vectors appended to the output of the encoder: ELMo at the output.
        feedforward: the layers between the pooled vector and the scores; null for none.
        dropout: dropout rate of the pooled vector.
    """

    def __init__(
        self,
        embedder: TextEmbedder,
        vocabularies: Injected[Vocabularies],
        pooler: Lazy[Pooler],
        encoder: Annotated[Lazy[Encoder], Default("pass_through")],
        output_embedder: TokenEmbedder | None = None,
        feedforward: FeedForwardOptions | None = None,
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__(vocabularies)
        self.embedder = embedder
        self.encoder = encoder.build(input_dim=embedder.output_dim)
        self.output_embedder = output_embedder
        self.pooler = pooler.build(input_dim=joined_dim(self.encoder.output_dim, output_embedder))
        self.dropout = nn.Dropout(dropout)
        pooled_dim = self.pooler.output_dim
        self.feedforward = (
            None
            if feedforward is None
            else feedforward.build(input_dim=pooled_dim, key="feedforward")
        )
        hidden_dim = pooled_dim if self.feedforward is None else self.feedforward.output_dim
        self.projection = nn.Linear(hidden_dim, self.num_outputs)

    def logits(self, batch: LabeledBatch) -> Float[Tensor, "batch outputs"]:
        text = batch.text
        encoded = self.encoder(self.embedder(text), text.mask)
        pooled = self.dropout(
            self.pooler(concatenate(encoded, self.output_embedder, text), text.mask)
        )
        hidden = pooled if self.feedforward is None else self.feedforward(pooled)
        logits: Tensor = self.projection(hidden)
        return logits


@final
@Head.register("basic_classifier")
class BasicClassifier(PooledText, Classifier):
    """Predicts one label for each text: p = softmax(logits)."""

    task = TextClassificationTask()


@final
@Head.register("multi_label_classifier")
class MultiLabelClassifier(PooledText, MultiLabelHead):
    """Predicts any number of labels for each text: p_label = sigmoid(logit_label)."""

    task = MultiLabelTextTask()


@final
@Head.register("text_regression")
class TextRegression(PooledText, RegressionHead):
    """Predicts a number for each text: mean + deviation * logit."""

    task = TextRegressionTask()
