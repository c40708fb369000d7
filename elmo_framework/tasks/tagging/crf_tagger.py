"""Tagger with a conditional random field."""

from __future__ import annotations

import logging
from typing import Annotated, final

from annotated_types import Ge, Lt

from elmo_framework.config.types import Injected, Lazy
from elmo_framework.data.tagging import Scheme
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import TextEmbedder, TokenEmbedder
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.metrics.metric import Metric
from elmo_framework.model.head import Head
from elmo_framework.model.initializer import Initializers
from elmo_framework.model.regularizer import Regularizers
from elmo_framework.tasks.tagging.tagger import Tagger, tag_crf

_log = logging.getLogger(__name__)


@final
@Head.register("crf_tagger")
class CrfTagger(Tagger):
    """An encoder with a conditional random field over its outputs (section 4 of the paper).

    The loss is the negative log-likelihood of the tags, summed over the sentences of a batch.

    Args:
        encoder: encoder of the embedded sentence.
        output_encoder: encoder of the output of `encoder` and `output_embedder`; with a language
            model's vectors between two recurrent layers, the tagger of Peters et al. (2017).
        include_start_end_transitions: whether each tag has a score as the first and as the last
            one.
        constrain_transitions: whether to predict only sequences that the scheme of the tags
            allows. Without a scheme, as for parts of speech, nothing is constrained.
    """

    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        vocabularies: Injected[Vocabularies],
        output_embedder: TokenEmbedder | None = None,
        output_encoder: Lazy[Encoder] | None = None,
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.0,
        include_start_end_transitions: bool = False,
        constrain_transitions: bool = True,
        label_encoding: Scheme | None = None,
        initializer: Initializers | None = None,
        regularizer: Regularizers | None = None,
        metrics: list[Metric] | None = None,
    ) -> None:
        super().__init__(
            embedder=embedder,
            encoder=encoder,
            vocabularies=vocabularies,
            output_embedder=output_embedder,
            output_encoder=output_encoder,
            dropout=dropout,
            label_encoding=label_encoding,
        )
        _log.info("the %d tags are of the scheme %s", len(self._labels), self._scheme)
        self.crf = tag_crf(
            self._labels,
            self._scheme if constrain_transitions else None,
            include_start_end_transitions=include_start_end_transitions,
        )
        self.initialize(initializer, regularizer, metrics)
