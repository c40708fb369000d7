"""`elmo prepare`: tokenize text into a corpus to pretrain on."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, final

from elmo_framework.commands.command import Command
from elmo_framework.config.arguments import AboveZero, Argument, ComponentConfig, Force, Plugins
from elmo_framework.io.outputs import Input, Output


def _num_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _held_out(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not (0 <= number < 1 or (number >= 1 and number.is_integer())):
        raise ArgumentTypeError(
            f"{text!r} is neither a number of sentences nor a ratio from 0 to below 1"
        )
    return number


@final
@dataclass(frozen=True, kw_only=True)
class Prepare(Command):
    """Tokenize text once, for all pretraining on it.

    Attributes:
        texts: files, folders or patterns of files; .gz, .bz2, .xz and .zst are decompressed, -
            reads standard input.
        output_dir: the output folder.
        tokenizer: splits sentences into words: a registered name, or JSON as in a config (default:
            %(default)s, for tokenized text).
        sentence_splitter: splits lines into sentences, by default the tokenizer; whitespace makes
            each line a sentence.
        processes: number of tokenizing processes (default: one per core).
        held_out: maximum number of held-out sentences, or their ratio of the distinct ones
            (default: %(default)s); copies of a sentence stay together.
        vocabulary: the vocabulary of the softmax, in the format of bilm-tf; counted in the text by
            default.
        min_count: minimum count of a word in the vocabulary (default: %(default)s).
        max_vocabulary_size: maximum number of counted words in the vocabulary (default: all).
        force: overwrite CORPUS if it exists.
    """

    name = "prepare"
    epilog = """\
examples:
  elmo prepare news/*.txt.gz --output-dir corpus               one tokenized sentence per line
  elmo prepare wiki.txt --output-dir corpus --tokenizer spacy  raw text, one paragraph per line
  elmo prepare shards --output-dir corpus --vocabulary vocab.txt --held-out 20000
  elmo prepare news --output-dir corpus --tokenizer '{"type": "spacy", "language": "de"}'

to train on it:
  dataset_reader: { type: 'prepared_corpus' },
  train_data_path: 'corpus/training',
  validation_data_path: 'corpus/held_out',
"""

    texts: Annotated[Sequence[Path], Argument("TEXT", is_positional=True)]
    output_dir: Annotated[Path, Argument("CORPUS")]
    tokenizer: ComponentConfig = "whitespace"
    sentence_splitter: ComponentConfig = None
    processes: AboveZero = field(default_factory=_num_cores)
    held_out: Annotated[float, Argument("N|RATIO", parse=_held_out)] = 0.01
    vocabulary: Annotated[Path | None, Argument("FILE")] = None
    min_count: AboveZero = 1
    max_vocabulary_size: AboveZero | None = None
    force: Force = False
    resume: bool = False
    packages: Plugins = ()

    def outputs(self) -> Sequence[Output]:
        return [Output(self.output_dir, "--output-dir", is_folder=True)]

    def inputs(self) -> Sequence[Input]:
        vocabulary = [Input(self.vocabulary, "--vocabulary")] if self.vocabulary else []
        return [*(Input(path, "TEXT") for path in self.texts), *vocabulary]

    def run(self) -> int:
        from elmo_framework.corpus.prepare import PreparationJob, prepare

        prepare(
            PreparationJob(
                self.texts,
                self.output_dir,
                tokenizer=self.tokenizer,
                sentence_splitter=self.sentence_splitter,
                held_out=self.held_out,
                vocabulary=self.vocabulary,
                min_count=self.min_count,
                max_vocabulary_size=self.max_vocabulary_size,
                num_processes=self.processes,
                resume=self.resume,
                force=self.force,
                packages=self.packages,
            )
        )
        return 0
