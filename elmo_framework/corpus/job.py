"""The job of `elmo prepare`, whose fields are the arguments of the command."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from elmo_framework.config.arguments import AboveZero, Argument, ComponentConfig, Force, Plugins
from elmo_framework.config.job_part import JobPart, parse_part


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


@dataclass(frozen=True)
class PreparationJob:
    """Text, and how it becomes a corpus.

    Attributes:
        texts: files, folders or patterns of files; .gz, .bz2, .xz and .zst are decompressed,
            - reads standard input.
        output: the output folder.
        tokenizer: splits sentences into words: a registered name, or JSON as in a config (default:
            %(default)s, for tokenized text).
        sentence_splitter: splits lines into sentences, by default the tokenizer; whitespace makes
            each line a sentence.
        num_processes: number of tokenizing processes (default: one per core).
        held_out: maximum number of held-out sentences, or their ratio of the distinct ones
            (default: %(default)s); copies of a sentence stay together.
        vocabulary: the vocabulary of the softmax, in the format of bilm-tf; counted in the text by
            default.
        min_count: minimum count of a word in the vocabulary (default: %(default)s).
        max_vocabulary_size: maximum number of counted words in the vocabulary (default: all).
        num_pieces: learn so many byte-level pieces, the 256 bytes included, for a biLM with the
            token encoder pieces (needs the extra pieces; default: none).
        part: tokenize blocks I, I + N, I + 2N, ... only, with I from 0 to N - 1, into
            CORPUS.partial, which several jobs can share; --merge makes the corpus (default: all).
        merge: make the corpus of the blocks that parts have tokenized, which must be complete;
            takes the options of the vocabulary and of the held-out sentences.
        force: overwrite CORPUS if it exists.
        resume: resume an interrupted job.
        packages: import a module that registers components; may be given several times.
    """

    texts: Annotated[Sequence[Path], Argument("TEXT", is_positional=True)]
    output: Annotated[Path, Argument("CORPUS", flags=("--output-dir",))]
    tokenizer: ComponentConfig = "whitespace"
    sentence_splitter: ComponentConfig = None
    num_processes: Annotated[AboveZero, Argument(flags=("--processes",))] = 1
    held_out: Annotated[float, Argument("N|RATIO", parse=_held_out)] = 0.01
    vocabulary: Annotated[Path | None, Argument("FILE")] = None
    min_count: AboveZero = 1
    max_vocabulary_size: AboveZero | None = None
    num_pieces: Annotated[AboveZero | None, Argument("N", flags=("--pieces",))] = None
    part: Annotated[JobPart | None, Argument("I/N", parse=parse_part, excludes="shared")] = None
    merge: Annotated[bool, Argument(excludes="shared")] = False
    force: Force = False
    resume: bool = False
    packages: Plugins = ()
