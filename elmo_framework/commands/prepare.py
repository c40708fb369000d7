"""`elmo prepare`: tokenize text into a corpus to pretrain on."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import final

from elmo_framework.commands.command import (
    Command,
    above_zero,
    add_include_package,
    add_resume_arguments,
    component,
)
from elmo_framework.io.outputs import Input, Output


@final
class Prepare(Command):
    """Makes a corpus of text."""

    name = "prepare"
    help = "tokenize text once, for all pretraining on it"
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

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add TEXT and the options."""
        parser.add_argument(
            "texts",
            type=Path,
            nargs="+",
            metavar="TEXT",
            help="files, folders or patterns of files; .gz, .bz2, .xz and .zst are decompressed, "
            "- reads standard input",
        )
        parser.add_argument(
            "--output-dir", type=Path, required=True, metavar="CORPUS", help="the output folder"
        )
        _add_tokenizing(parser)
        _add_selection(parser)
        add_resume_arguments(parser, result="CORPUS")
        add_include_package(parser)

    def outputs(self, arguments: Namespace) -> Sequence[Output]:
        """Return the folder of the corpus."""
        return [Output(arguments.output_dir, "--output-dir", is_folder=True)]

    def inputs(self, arguments: Namespace) -> Sequence[Input]:
        """Return the texts and the vocabulary."""
        vocabulary = [Input(arguments.vocabulary, "--vocabulary")] if arguments.vocabulary else []
        return [*(Input(path, "TEXT") for path in arguments.texts), *vocabulary]

    def run(self, arguments: Namespace) -> int:
        """Prepare the corpus."""
        from elmo_framework.corpus.prepare import PreparationJob, prepare

        prepare(
            PreparationJob(
                arguments.texts,
                arguments.output_dir,
                tokenizer=arguments.tokenizer,
                sentence_splitter=arguments.sentence_splitter,
                held_out=arguments.held_out,
                vocabulary=arguments.vocabulary,
                min_count=arguments.min_count,
                max_vocabulary_size=arguments.max_vocabulary_size,
                num_processes=arguments.processes,
                resume=arguments.resume,
                force=arguments.force,
                packages=arguments.include_package,
            )
        )
        return 0


def _add_tokenizing(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--tokenizer",
        type=component,
        default="whitespace",
        metavar="NAME",
        help="splits sentences into words: a registered name, or JSON as in a config (default: "
        "%(default)s, for tokenized text)",
    )
    parser.add_argument(
        "--sentence-splitter",
        type=component,
        metavar="NAME",
        help="splits lines into sentences, by default the tokenizer; whitespace makes each line a "
        "sentence",
    )
    parser.add_argument(
        "--processes",
        type=above_zero,
        default=_num_cores(),
        metavar="N",
        help="number of tokenizing processes (default: one per core)",
    )


def _add_selection(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--held-out",
        type=_held_out,
        default=0.01,
        metavar="N|RATIO",
        help="maximum number of held-out sentences, or their ratio of the distinct ones (default: "
        "%(default)s); copies of a sentence stay together",
    )
    parser.add_argument(
        "--vocabulary",
        type=Path,
        metavar="FILE",
        help="the vocabulary of the softmax, in the format of bilm-tf; counted in the text by "
        "default",
    )
    parser.add_argument(
        "--min-count",
        type=above_zero,
        default=1,
        metavar="N",
        help="minimum count of a word in the vocabulary (default: %(default)s)",
    )
    parser.add_argument(
        "--max-vocabulary-size",
        type=above_zero,
        metavar="N",
        help="maximum number of counted words in the vocabulary (default: all)",
    )


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
