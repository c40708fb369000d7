"""`elmo explain`: which words speak for a label."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, final

from elmo_framework.commands.command import Command, load_runs, output_files
from elmo_framework.commands.inputs import run_bilm_inputs, run_inputs
from elmo_framework.config.arguments import (
    AboveZero,
    Argument,
    ComponentConfig,
    Device,
    Force,
    Plugins,
    RunBiLms,
)
from elmo_framework.console import ProgressBar
from elmo_framework.errors import RunError
from elmo_framework.io.outputs import Input, Output

if TYPE_CHECKING:
    from elmo_framework.data.inputs import PredictionInput
    from elmo_framework.experiment.assembly import Assembly
    from elmo_framework.experiment.explain import Explanation


@final
@dataclass(frozen=True, kw_only=True)
class Explain(Command):
    """Show which words speak for a label; JSON lines, colors or a page out.

    Attributes:
        run_folder: the folder or the archive of a finished run.
        file: as of `elmo predict`; - or nothing reads standard input.
        sentence: explain this text, not FILE; may be given several times. For pairs each two of
            them are a pair.
        method: how words are scored: by gradients along the way from no vectors to those of the
            words, or by leaving out the vector of each word (default: %(default)s).
        steps: points of that way (default: %(default)s).
        label: the label to explain; by default the predicted one.
        word: for taggers: the word whose tag is explained, or its number from 0.
        pretty: for reading: words shaded by their scores.
        output_file: write there, not to standard output; a page if it ends in .html.
        force: overwrite the output file if it exists.
        tokenizer: the tokenizer of raw text: a registered name, or JSON as in a config.
    """

    name = "explain"
    epilog = """\
examples:
  elmo explain runs/topics --sentence "A fine film." --pretty
  elmo explain runs/topics reviews.csv --output-file reviews.html
  elmo explain runs/topics --sentence "A fine film." --label negative --method occlusion
  elmo explain runs/snli --sentence "A man sleeps." --sentence "He is awake." --pretty
  elmo explain runs/ner --sentence "Anna left Oslo." --word Oslo --pretty

A score above 0 speaks for the label, below 0 against it. Scores of integrated gradients add up to
the probability of the label minus its baseline, the probability where all vectors are zeros.
Classifiers of texts and of pairs can be explained, and each tag of a tagger.
"""

    run_folder: Annotated[Path, Argument("RUN", is_positional=True)]
    file: Annotated[Path, Argument("FILE", is_positional=True)] = Path("-")
    sentence: Annotated[Sequence[str], Argument("TEXT", flags=("--sentence",))] = ()
    method: Literal["integrated_gradients", "occlusion"] = "integrated_gradients"
    steps: AboveZero = 50
    label: str | None = None
    word: str | None = None
    pretty: bool = False
    output_file: Annotated[Path | None, Argument("FILE")] = None
    force: Force = False
    tokenizer: ComponentConfig = None
    run_bilms: RunBiLms = ()
    device: Device = "auto"
    packages: Plugins = ()

    def outputs(self) -> Sequence[Output]:
        return output_files({"--output-file": self.output_file}, force=self.force)

    def inputs(self) -> Sequence[Input]:
        run = [*run_inputs(self.run_folder, "RUN"), *run_bilm_inputs(self.run_bilms)]
        return run if self.sentence else [*run, Input(self.file, "FILE")]

    def run(self) -> int:
        from elmo_framework.io.files import writing

        if self.sentence and self.file != Path("-"):
            raise RunError("both FILE and --sentence are given; remove one")
        run = load_runs(
            self.run_folder,
            (),
            None,
            device=self.device,
            packages=self.packages,
            bilm=self.run_bilms,
        )
        path = self.output_file
        with nullcontext(sys.stdout) if path is None else writing(path) as file:
            self._write(self._explanations(run), file)
        return 0

    def _write(
        self, explained: Iterator[tuple[Explanation, PredictionInput[Any]]], file: TextIO
    ) -> None:
        from elmo_framework.analysis.shading import explanation_page, print_shaded

        if self.output_file is not None and self.output_file.suffix == ".html":
            file.write(explanation_page(str(self.run_folder), [each for each, _ in explained]))
            return
        for explanation, each in explained:
            if self.pretty:
                print_shaded(explanation, file)
            else:
                output = each.output(explanation.to_json())
                file.write(json.dumps(output, ensure_ascii=False) + "\n")
            file.flush()

    def _explanations(self, run: Assembly) -> Iterator[tuple[Explanation, PredictionInput[Any]]]:
        explain = run.explainer(
            method=self.method, steps=self.steps, label=self.label, word=self.word
        )
        reader = run.input_reader(tokenizer=self.tokenizer)
        inputs = reader.of_all(self._texts(run)) if self.sentence else reader.read(self.file)
        if self.sentence:
            yield from ((explain(each.example), each) for each in inputs)
            return
        with ProgressBar("explaining", total=None, unit="input") as progress:
            for number, each in enumerate(inputs, start=1):
                try:
                    explanation = explain(each.example)
                except RunError as error:  # of a word that this sentence does not have
                    raise RunError(f"{self.file}: input {number}: {error}") from error
                yield explanation, each
                progress.advance(1)

    def _texts(self, run: Assembly) -> list[dict[str, str]]:
        """Return the texts of `--sentence` as objects with the keys of the task."""
        keys = getattr(run.head().task, "sentence_keys", ())
        if len(keys) < 2:
            return [{"sentence": text} for text in self.sentence]
        if len(self.sentence) % len(keys):
            raise RunError(f"this run reads {' and '.join(keys)}: pass --sentence for each of them")
        starts = range(0, len(self.sentence), len(keys))
        groups = (self.sentence[start : start + len(keys)] for start in starts)
        return [dict(zip(keys, group, strict=True)) for group in groups]
