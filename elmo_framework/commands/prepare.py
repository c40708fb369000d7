"""`elmo prepare`: tokenize text into a corpus to pretrain on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, final

from elmo_framework.commands.command import Command
from elmo_framework.config.arguments import AboveZero, Argument
from elmo_framework.corpus.job import PreparationJob
from elmo_framework.io.outputs import Input, Output
from elmo_framework.io.process import num_usable_cpus


@final
@dataclass(frozen=True)
class Prepare(PreparationJob, Command):
    """Tokenize text once, for all pretraining on it."""

    name = "prepare"
    epilog = """\
examples:
  elmo prepare news/*.txt.gz --output-dir corpus               one tokenized sentence per line
  elmo prepare wiki.txt --output-dir corpus --tokenizer spacy  raw text, one paragraph per line
  elmo prepare shards --output-dir corpus --vocabulary vocab.txt --held-out 20000
  elmo prepare news --output-dir corpus --tokenizer '{"type": "spacy", "language": "de"}'

on several machines:
  elmo prepare news --output-dir corpus --part 3/8             for 0/8 to 7/8, then:
  elmo prepare news --output-dir corpus --merge

to train on it:
  dataset_reader: { type: 'prepared_corpus' },
  train_data_path: 'corpus/training',
  validation_data_path: 'corpus/held_out',
"""

    num_processes: Annotated[AboveZero, Argument(flags=("--processes",))] = field(
        default_factory=num_usable_cpus
    )

    def outputs(self) -> Sequence[Output]:
        return [Output(self.output, "--output-dir", is_folder=True)]

    def inputs(self) -> Sequence[Input]:
        vocabulary = [Input(self.vocabulary, "--vocabulary")] if self.vocabulary else []
        return [*(Input(path, "TEXT") for path in self.texts), *vocabulary]

    def run(self) -> int:
        from elmo_framework.corpus.prepare import prepare

        prepare(self)
        return 0
