"""Long documents: what is held at once, at the sizes of Lee et al. (2017)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from elmo_framework.encoders.feedforward import FeedForwardOptions
from elmo_framework.tasks.coreference.antecedents import AntecedentScorer
from elmo_framework.tasks.coreference.mentions import MentionRanker, Spans, Words

NUM_WORDS, NUM_SPANS = 5000, 2000
EMBEDDED, ENCODED, FEATURE, WIDTH, CANDIDATES = 500, 400, 20, 10, 250
FEEDFORWARD = FeedForwardOptions(num_layers=2, hidden_dims=150, activations="relu")


class _Sizes(TorchDispatchMode):
    """Notes the largest tensor that any operation gives."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        held = [leaf.numel() for leaf in tree_leaves(found) if isinstance(leaf, torch.Tensor)]
        self.largest = max(self.largest, *held, 0)
        return found


@contextmanager
def sizes() -> Iterator[_Sizes]:
    with torch.no_grad(), _Sizes() as noted:
        yield noted


def test_span_vectors_are_never_materialized():
    ranker = MentionRanker(
        embedded_dim=EMBEDDED,
        encoded_dim=ENCODED,
        feedforward=FEEDFORWARD,
        feature_size=FEATURE,
        max_span_width=WIDTH,
        spans_per_word=0.4,
        dropout=0.0,
    )
    vectors = torch.randn(NUM_WORDS, EMBEDDED), torch.randn(NUM_WORDS, ENCODED)
    words = Words(*vectors, torch.arange(NUM_WORDS) // 25, [25] * (NUM_WORDS // 25))

    with sizes() as noted:
        spans = ranker(words)

    assert len(spans.scores) == NUM_SPANS
    # The words in the spans that are kept are the most; all spans would be 13,200 numbers a word.
    assert noted.largest <= NUM_SPANS * WIDTH * EMBEDDED == 2000 * NUM_WORDS


def test_pair_products_are_never_materialized():
    # Fewer spans, for the time that it takes: what is held at once is of the same size.
    num_spans, span_dim = 300, 2 * ENCODED + EMBEDDED + FEATURE
    scorer = AntecedentScorer(
        span_dim=span_dim,
        feedforward=FEEDFORWARD,
        feature_size=FEATURE,
        max_antecedents=CANDIDATES,
        dropout=0.0,
        use_speakers=True,
        genres=None,
    )
    numbers = torch.arange(num_spans)
    spans = Spans(numbers, numbers * 0, torch.zeros(num_spans), torch.randn(num_spans, span_dim))

    with sizes() as noted:
        found = scorer(spans, numbers * 0, torch.tensor(0))

    assert found.shape == (num_spans, CANDIDATES)
    # The weights of a chunk of spans are the most; the products would be 132,000 numbers a word.
    assert noted.largest < 700 * NUM_WORDS
