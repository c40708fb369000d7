"""How fast a prepared corpus is opened, and how fast windows come from it, without a model.

Opening includes the digests of all files. A token is a position of the input, which is predicted
from in both directions, as in `training_step.py`: what is measured there is to be a twentieth of
what is measured here. With `--processes` it is what the first of so many gets, which follows the
rows of all.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

import torch
from measuring import add_threads_argument, report, timed

from elmo_framework.data.characters import ElmoCharacterIndexer
from elmo_framework.data.data_loader import BatchSource, Rank, SourceContext
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.tasks.language_modeling.batch import WindowBatch
from elmo_framework.tasks.language_modeling.corpus import TokenIdCorpus
from elmo_framework.tasks.language_modeling.reader import PreparedCorpusReader
from elmo_framework.tasks.language_modeling.task import LanguageModelingTask
from elmo_framework.tasks.language_modeling.vocabulary import TargetIndexer, target_vocabulary
from elmo_framework.tasks.language_modeling.windows import WindowLoader


def main() -> int:
    """Measure and report."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    corpus, open_s = timed(lambda: PreparedCorpusReader().read(arguments.corpus))
    source, start_s = timed(lambda: _source(corpus, arguments))
    report(
        bench="data_pipeline",
        words=corpus.num_words,
        distinct_words=len(corpus.words),
        batch=arguments.batch,
        unroll=arguments.unroll,
        processes=arguments.processes,
        open_s=round(open_s, 3),
        start_s=round(start_s, 3),
        **_rates(source, arguments.seconds),
    )
    return 0


def _source(corpus: TokenIdCorpus, arguments: Namespace) -> BatchSource[WindowBatch]:
    """Make what a training makes of a corpus before its first step."""
    task = LanguageModelingTask()
    counted = Vocabularies(task.count(corpus))
    vocabulary = target_vocabulary(counted, min_count=1, max_size=None)
    context = SourceContext(
        collate=task.collator(counted, [ElmoCharacterIndexer(), TargetIndexer(vocabulary)]),
        num_tokens=task.num_tokens,
        seed=0,
        is_training=True,
        rank=Rank(0, arguments.processes),
    )
    loader = WindowLoader(batch_size=arguments.batch, unroll_steps=arguments.unroll)
    return loader.source(corpus, context)


def _rates(source: BatchSource[WindowBatch], seconds: float) -> dict[str, float]:
    """Take windows for some time; return tokens a second, also of a core, and its ms a batch."""
    num_batches, num_tokens = 0, 0
    began, cpu_began = time.perf_counter(), time.process_time()
    for batch in _endless(source):
        num_batches, num_tokens = num_batches + 1, num_tokens + batch.num_tokens
        batch.characters.sum()  # so that they are gathered
        if time.perf_counter() - began >= seconds:
            break
    cpu_seconds = time.process_time() - cpu_began
    return {
        "tokens_per_s": round(num_tokens / (time.perf_counter() - began), 1),
        "tokens_per_cpu_s": round(num_tokens / cpu_seconds, 1),
        "cpu_ms_a_batch": round(1000 * cpu_seconds / num_batches, 2),
    }


def _endless(source: BatchSource[WindowBatch]) -> Iterator[WindowBatch]:
    while True:
        yield from source.batches()


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Measure how fast windows come from a prepared corpus.")
    parser.add_argument("corpus", type=Path, help="a part that `elmo prepare` made")
    parser.add_argument("--batch", type=int, default=128, help="rows (128)")
    parser.add_argument("--unroll", type=int, default=20, help="steps of a window (20)")
    parser.add_argument("--seconds", type=float, default=10, help="how long windows are taken (10)")
    parser.add_argument("--processes", type=int, default=1, help="that share the text (1)")
    add_threads_argument(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
