"""Data loader of language modeling: windows of running text whose rows continue."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from elmo_framework.bilm.context_layers import Direction
from elmo_framework.config.types import Count
from elmo_framework.console import plural
from elmo_framework.data.data_loader import BatchSource, DataLoader, Rank, SourceContext
from elmo_framework.errors import BuildError, DataError, RunError
from elmo_framework.tasks.language_modeling.batch import (
    WindowBatch,
    WindowCollator,
    WordTables,
    WordWindow,
)
from elmo_framework.tasks.language_modeling.corpus import LanguageModelingExample, TokenIdCorpus
from elmo_framework.tasks.language_modeling.rows import Segments, SentenceOrder, SentenceStreams
from elmo_framework.tasks.language_modeling.vocabulary import require_fit

_LOG = logging.getLogger(__name__)


@final
@DataLoader.register("windows")
class WindowLoader(DataLoader):
    """Windows of running text for truncated back-propagation (section 3.4 of the paper).

    A batch holds the next `unroll_steps` words of each of `batch_size` rows, in each direction.
    A row continues its sentence in the next batch; when a sentence ends, it takes the next
    one of a stream that all rows share. In training the stream is endless and shuffled, and
    nothing is padded; in evaluation each sentence comes once, in order, and the last windows
    are padded, so that every prediction counts once.

    Args:
        batch_size: rows, in each process.
        unroll_steps: words of a row in one batch, and so the length of back-propagation.
        aligned: whether both directions read the same sentences in training; otherwise each
            has a separate order, as in bilm-tf.
        num_train_tokens: the expected number of words of the training text, as in bilm-tf's
            options. A warning reports if the actual number differs.
    """

    def __init__(
        self,
        *,
        batch_size: Count,
        unroll_steps: Count,
        aligned: bool = False,
        num_train_tokens: Count | None = None,
    ) -> None:
        self.batch_size, self.unroll_steps, self.aligned = batch_size, unroll_steps, aligned
        self.num_train_tokens = num_train_tokens

    def source(
        self, examples: Iterable[LanguageModelingExample], context: SourceContext
    ) -> BatchSource[WindowBatch]:
        """Read the examples once (prepared ones are memory-mapped) and return their windows.

        Raises:
            BuildError: the model does not read windows.
            DataError: the text is too short for a batch, or none of its words is in the vocabulary.
        """
        if not isinstance(context.collate, WindowCollator):
            raise BuildError(
                "data_loader: 'windows' makes batches for language modeling only; "
                "use 'batches' with this model"
            )
        corpus = TokenIdCorpus.read(examples)
        tables = context.collate.tables(corpus)
        sampler = WindowSampler(corpus, tables, self.batch_size, self.unroll_steps, context.rank)
        if not context.is_training:
            return EvaluationWindows(sampler)
        if self.num_train_tokens not in (None, corpus.num_words) and context.rank.index == 0:
            _LOG.warning(
                "data_loader.num_train_tokens is %s, and the text has %s: an epoch is the words of "
                "the text",
                self.num_train_tokens,
                plural(corpus.num_words, "word"),
            )
        windows = TrainingWindows(sampler, seed=context.seed, aligned=self.aligned)
        is_unknown = tables.targets == context.collate.unknown
        require_fit(corpus, is_unknown, is_logged=context.rank.index == 0)
        return windows


@final
@dataclass(frozen=True)
class WindowSampler:
    """Makes windows of a corpus: one process's rows of a stream that all processes share.

    Attributes:
        corpus: the text.
        tables: its distinct words.
        num_rows: of this process.
        num_steps: words of a row in a window.
        rank: selects the rows of this process.
    """

    corpus: TokenIdCorpus
    tables: WordTables
    num_rows: int
    num_steps: int
    rank: Rank

    @property
    def num_all_rows(self) -> int:
        """The number of rows over all processes."""
        return self.num_rows * self.rank.world_size

    def rows(self, sentences: SentenceOrder, direction: Direction) -> SentenceStreams:
        """Return the rows of all processes, at their beginning."""
        return SentenceStreams(
            self.corpus,
            sentences,
            num_rows=self.num_all_rows,
            num_steps=self.num_steps,
            direction=direction,
        )

    def batch(self, forward: Segments, backward: Segments) -> WindowBatch:
        return self.tables.batch(self._window(forward, step=1), self._window(backward, step=-1))

    def _window(self, segments: Segments, *, step: int) -> WordWindow:
        size = self.num_rows * self.num_steps
        begin = self.rank.index * size
        is_own = (begin <= segments.places) & (segments.places < begin + size)
        places, cursors, lengths = (values[is_own] for values in segments)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        filled = np.repeat(places - begin, lengths) + within
        read = np.repeat(cursors, lengths) + step * within
        shape = self.num_rows, self.num_steps
        window = WordWindow(
            np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.zeros(shape, np.bool_)
        )
        window.inputs.flat[filled] = self.corpus.ids[read]
        window.targets.flat[filled] = self.corpus.ids[read + step]
        window.mask.flat[filled] = True
        return window


@final
class EvaluationWindows(BatchSource[WindowBatch]):
    """Each sentence once, in order; always from the first one.

    Raises:
        DataError: the text is empty.
    """

    def __init__(self, sampler: WindowSampler) -> None:
        if not sampler.corpus.num_sentences:
            raise DataError("the text has no sentences to make windows of")
        self._sampler = sampler
        self._num_batches = sum(1 for _ in self._windows("forward"))

    @property
    def num_batches(self) -> int:
        return self._num_batches

    @property
    def num_left(self) -> int:
        """Always 0: each iteration yields all batches."""
        return 0

    def batches(self) -> Iterator[WindowBatch]:
        both = zip(self._windows("forward"), self._windows("backward"), strict=True)
        for forward, backward in both:
            yield self._sampler.batch(forward, backward)

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` returned."""

    def load_state_of_others(self, state: Mapping[str, Any], num_processes: int) -> None:
        """Take back nothing."""

    def _windows(self, direction: Direction) -> Iterator[Segments]:
        sentences = SentenceOrder(self._sampler.corpus.num_sentences)
        rows = self._sampler.rows(sentences, direction)
        while len((segments := rows.window()).places):
            yield segments


@final
class TrainingWindows(BatchSource[WindowBatch]):
    """An endless shuffled stream; an epoch is as many batches as one pass fills.

    The stream does not start over when an epoch ends.

    Args:
        sampler: the corpus and the size of the windows.
        seed: fixes the order of the sentences.
        aligned: whether both directions have the same order.

    Raises:
        DataError: the text does not fill a batch.
    """

    def __init__(self, sampler: WindowSampler, *, seed: int, aligned: bool) -> None:
        self._sampler, corpus = sampler, sampler.corpus
        self._num_batches = corpus.num_predictions // (sampler.num_all_rows * sampler.num_steps)
        if not self._num_batches:
            raise DataError(_too_short(sampler))
        directions: tuple[Direction, Direction] = ("forward", "backward")
        self._sentences = {
            direction: SentenceOrder(corpus.num_sentences, [seed, 0 if aligned else number])
            for number, direction in enumerate(directions)
        }
        self._rows = {each: sampler.rows(self._sentences[each], each) for each in directions}
        self._epoch, self._num_delivered = 0, 0

    @property
    def num_batches(self) -> int:
        return self._num_batches

    @property
    def num_tokens(self) -> int:
        return self._num_batches * self._sampler.num_all_rows * self._sampler.num_steps

    @property
    def num_left(self) -> int:
        return self._num_batches - self._num_delivered

    def batches(self) -> Iterator[WindowBatch]:
        if self.is_at_epoch_end:
            self._epoch, self._num_delivered = self._epoch + 1, 0
        while self._num_delivered < self._num_batches:
            batch = self._sampler.batch(
                self._rows["forward"].window(), self._rows["backward"].window()
            )
            self._num_delivered += 1
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """Return the position: what was delivered, the streams, each row's sentence."""
        return {
            "epoch": self._epoch,
            "delivered": self._num_delivered,
            "sizes": self._sizes,
            "sentences": {name: stream.state_dict() for name, stream in self._sentences.items()},
            "rows": {name: rows.state_dict() for name, rows in self._rows.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a position immediately, without reading again.

        Raises:
            RunError: it is a position in another text, or in windows of another size.
        """
        if state["sizes"] != self._sizes:
            raise RunError(
                f"the run was at a position in windows of {state['sizes']}, and now they are of "
                f"{self._sizes}: resume with the same text, data_loader and number of processes"
            )
        self._epoch, self._num_delivered = state["epoch"], state["delivered"]
        for name, sentences in self._sentences.items():
            sentences.load_state_dict(state["sentences"][name])
            self._rows[name].load_state_dict(state["rows"][name])

    def load_state_of_others(self, state: Mapping[str, Any], num_processes: int) -> None:
        """Resume the same streams of sentences; every row starts a new one."""
        sizes, corpus = state["sizes"], self._sampler.corpus
        of_others = corpus.num_predictions // (sizes["rows"] * sizes["steps"])
        # As a fraction of the epoch, so that an epoch has ended here if and only if it had there.
        self._num_delivered = state["delivered"] * self._num_batches // of_others
        self._epoch = state["epoch"]
        for name, sentences in self._sentences.items():
            sentences.load_state_dict(state["sentences"][name])

    @property
    def _sizes(self) -> dict[str, int]:
        return {
            "rows": self._sampler.num_all_rows,
            "steps": self._sampler.num_steps,
            "sentences": self._sampler.corpus.num_sentences,
            "words": self._sampler.corpus.num_words,
        }


def _too_short(sampler: WindowSampler) -> str:
    corpus, num_rows, num_steps = sampler.corpus, sampler.num_all_rows, sampler.num_steps
    return (
        f"the text has {plural(corpus.num_words, 'word')} in "
        f"{plural(corpus.num_sentences, 'sentence')}, so {corpus.num_predictions:,} words and "
        f"sentence ends to predict; one batch of {plural(num_rows, 'row')} and "
        f"{plural(num_steps, 'step')} needs {num_rows * num_steps}: give more text, or a smaller "
        "data_loader.batch_size or unroll_steps"
    )
