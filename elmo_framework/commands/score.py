"""`elmo score`: the surprisal of text under a biLM."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, final

from elmo_framework import console
from elmo_framework.commands.command import Command, output_files, register_components
from elmo_framework.commands.inputs import bilm_inputs
from elmo_framework.config.arguments import (
    Argument,
    BiLm,
    ComponentConfig,
    Device,
    Force,
    Plugins,
)
from elmo_framework.console import ProgressBar
from elmo_framework.errors import RunError
from elmo_framework.io.outputs import Input, Output

if TYPE_CHECKING:
    from elmo_framework.analysis.scoring import Item
    from elmo_framework.api.encoder import PretrainedEncoder

_STANDARD_INPUT = Path("-")
_JSON_SUFFIXES = (".json", ".jsonl")
_SECONDS_WITHOUT_PROGRESS = 5.0


@final
@dataclass(frozen=True, kw_only=True)
class Score(Command):
    """Write the surprisal of each word of a text, in both directions of a biLM.

    Attributes:
        bilm: the folder of a biLM, or of its run, or its name: mini, or a published one; or the
            folder of a causal transformer, which has no backward direction.
        files: text with one sentence per line; tables or JSON lines with --pairs and --regions;
            .gz, .bz2, .xz and .zst are decompressed, - reads standard input as text.
        pairs: compare minimal pairs, the columns sentence_good and sentence_bad of a table or of
            JSON lines.
        regions: sum over regions, which are in this column of a table or of JSON lines: spans of
            words of the column sentence, or texts with | between them.
        by: the rows for text (default: %(default)s).
        state: the state that a sentence starts from: zeros, or that after the sentence before in
            its document (default: %(default)s).
        tokenizer: the tokenizer: a registered name, or JSON as in a config (default: %(default)s,
            for tokenized text).
        output_file: the output; standard output by default.
        format: tsv, a table with tabs and a header, or jsonl, an object for each row (default:
            jsonl for .json and .jsonl, otherwise tsv).
        force: overwrite the output if it exists.
    """

    name = "score"
    epilog = """\
examples:
  elmo score mini news.txt --output-file news.tsv
  elmo score runs/bilm novel.txt --state document --by sentence
  echo "The horse raced past the barn fell ." | elmo score mini -
  elmo score mini blimp/*.jsonl --pairs --tokenizer spacy --output-file pairs.tsv
  elmo score mini items.tsv --regions spans --output-file regions.tsv

Surprisals are in bits: forward given the words before, backward given the words after, both is
the mean of the two. The kind of a row is known, unknown (the surprisal is that of <UNK>, the class
of all unknown words) or boundary: <S>, which the backward direction predicts, and </S>, which the
forward direction predicts. Totals and the sums of sentences include the boundaries. With --state
document, a blank line or the end of a file ends a document. In R:

  scores <- subset(read.delim("news.tsv", na.strings = ""), kind == "known")
"""

    bilm: BiLm
    files: Annotated[Sequence[Path], Argument("FILE", is_positional=True)]
    pairs: Annotated[bool, Argument(excludes="input")] = False
    regions: Annotated[str | None, Argument("COLUMN", excludes="input")] = None
    by: Literal["word", "sentence"] = "word"
    state: Literal["reset", "document"] = "reset"
    tokenizer: ComponentConfig = "whitespace"
    output_file: Annotated[Path | None, Argument("OUT")] = None
    format: Literal["tsv", "jsonl"] | None = None
    force: Force = False
    device: Device = "auto"
    packages: Plugins = ()

    def outputs(self) -> Sequence[Output]:
        return output_files({"--output-file": self.output_file}, force=self.force)

    def inputs(self) -> Sequence[Input]:
        return [*bilm_inputs(self.bilm, "BILM"), *(Input(path, "FILE") for path in self.files)]

    def run(self) -> int:
        from elmo_framework.analysis.scoring import score_items, show_pairs, show_totals, write_rows
        from elmo_framework.io.files import writing

        self._check_flags()
        register_components(self.packages)
        encoder = self._load()
        sums = defaultdict[str, float](float)
        with ExitStack() as stack:
            items, total = self._items(stack, sums)
            file = sys.stdout
            if self.output_file is not None:
                file = stack.enter_context(writing(self.output_file))
            # A terminal shows the rows themselves.
            delay = inf if file.isatty() else _SECONDS_WITHOUT_PROGRESS
            bar = ProgressBar("scoring", total=total, unit="sentence", delay=delay)
            progress = stack.enter_context(bar)
            write_rows(
                score_items(encoder, items, state=self.state), file, self._format(), progress
            )
        if not self.regions:
            console.info(show_pairs(sums) if self.pairs else show_totals(sums))
        return 0

    def _check_flags(self) -> None:
        """Raise RunError for a flag of text with pairs or regions."""
        for flag, is_given in {"--by": self.by != "word", "--state": self.state != "reset"}.items():
            if is_given and (self.pairs or self.regions):
                raise RunError(f"{flag} is for text, not for --pairs or --regions; remove it")
        for path in self.files:
            if path.suffix in _JSON_SUFFIXES and not (self.pairs or self.regions):
                raise RunError(
                    f"{path} has records, not sentences; pass --pairs or --regions COLUMN"
                )
        if (self.pairs or self.regions) and _STANDARD_INPUT in self.files:
            raise RunError("--pairs and --regions read files, not standard input; name a file")

    def _load(self) -> PretrainedEncoder:
        from elmo_framework.api.pretrained import load_encoder
        from elmo_framework.bilm.files.softmax import check_softmax_published
        from elmo_framework.training.process_group import choose_device

        check_softmax_published(self.bilm)
        encoder = load_encoder(self.bilm, device=choose_device(self.device).type)
        encoder.load_softmax()
        return encoder

    def _items(self, stack: ExitStack, sums: dict[str, float]) -> tuple[Iterator[Item], int]:
        """Return what is scored, and the number of sentences or pairs, which is counted first."""
        from elmo_framework.analysis.scoring import pair_items, region_items, text_items
        from elmo_framework.data.formats.records import read_records
        from elmo_framework.data.formats.text_files import spooled
        from elmo_framework.data.tokenizer import build_tokenizer
        from elmo_framework.embedding.corpus import SentenceFiles

        tokenizer = build_tokenizer(self.tokenizer)
        if self.pairs or self.regions:
            total = sum(1 for path in self.files for _ in read_records(path))
            if self.regions:
                return region_items(self.files, tokenizer, column=self.regions), total
            return pair_items(self.files, tokenizer, correct=sums), total
        is_read = _STANDARD_INPUT in self.files
        copy = stack.enter_context(spooled(sys.stdin.buffer)) if is_read else None
        corpus = SentenceFiles(self.files, tokenizer=tokenizer, standard_input=copy)
        total = sum(1 for line in corpus.lines() if line.text)
        return text_items(corpus, state=self.state, by=self.by, totals=sums), total

    def _format(self) -> Literal["tsv", "jsonl"]:
        if self.format is not None:
            return self.format
        is_json = self.output_file is not None and self.output_file.suffix in _JSON_SUFFIXES
        return "jsonl" if is_json else "tsv"
