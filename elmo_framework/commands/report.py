"""`elmo report`: a page about one or more runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

from elmo_framework.commands.command import register_components
from elmo_framework.commands.inputs import bilm_inputs, run_bilm_inputs, run_inputs
from elmo_framework.commands.neighbors import Corpus, Query, SearchCommand
from elmo_framework.config.arguments import AboveZero, Argument, Force, Plugins, RunBiLms
from elmo_framework.errors import RunError
from elmo_framework.io.outputs import Input, Output

if TYPE_CHECKING:
    from elmo_framework.analysis.neighbors import NeighborSearch
    from elmo_framework.analysis.reported_run import ErrorSearch


@final
@dataclass(frozen=True, kw_only=True)
class ShowReport(SearchCommand):
    """Write a page about runs: curves, scores by class, worst errors, configuration and origin.

    Attributes:
        runs: the folder of a run; several are compared.
        output_file: the path of the page.
        errors: show the N worst predictions of each run on its validation data, in context.
        file: look for errors in this file of labeled data instead.
        before: the folder or the name of a biLM whose neighbors are shown for comparison.
        force: overwrite FILE.
    """

    name = "report"
    epilog = """\
examples:
  elmo report runs/ner --output-file ner.html
  elmo report runs/ner --output-file ner.html --errors 30
  elmo report runs/ner-* --output-file all.html           curves over each other, what differs
  elmo report runs/bilm --output-file bilm.html --before runs/bilm-random --corpus news.txt \\
      --query "He sat on the river bank" --word bank

the page is one file and needs no network. The runs need not be finished. With --errors the runs
predict, which takes as long as `elmo evaluate`. With --query the page shows the nearest neighbors
of a word too, by the biLM that each run trained or reads and by the one of --before.
"""

    runs: Annotated[Sequence[Path], Argument("RUN", is_positional=True)]
    output_file: Annotated[Path, Argument("FILE")]
    errors: Annotated[AboveZero | None, Argument("N")] = None
    file: Annotated[Path | None, Argument("FILE")] = None
    before: Annotated[str | None, Argument("BILM")] = None
    corpus: Corpus | None = None
    query: Query | None = None
    word: str | None = None
    force: Force = False
    run_bilms: RunBiLms = ()
    packages: Plugins = ()

    def outputs(self) -> Sequence[Output]:
        return [Output(self.output_file, "--output-file", force=self.force)]

    def inputs(self) -> Sequence[Input]:
        before = bilm_inputs(self.before, "--before") if self.before else []
        corpus = [Input(path, "--corpus") for path in self.corpus or ()]
        runs = [each for run in self.runs for each in run_inputs(run, "RUN")]
        file = [] if self.file is None else [Input(self.file, "--file")]
        return [*runs, *run_bilm_inputs(self.run_bilms), *file, *before, *corpus]

    def run(self) -> int:
        from elmo_framework.analysis.report import write_report

        register_components(self.packages)
        write_report(
            self.runs,
            self.output_file,
            errors=self._errors(),
            search=self._search(),
            before=self.before,
            bilms=self.run_bilms,
            packages=self.packages,
        )
        print(self.output_file)
        return 0

    def _errors(self) -> ErrorSearch | None:
        """Return the search for errors, if there is one.

        Raises:
            RunError: a file, but no search.
        """
        from elmo_framework.analysis.reported_run import ErrorSearch

        if self.errors is None:
            if self.file is not None:
                raise RunError("--file is for the search for errors; add --errors N")
            return None
        return ErrorSearch(self.errors, self.file, self.device)

    def _search(self) -> NeighborSearch | None:
        """Return the search for neighbors, if there is one.

        Raises:
            RunError: only a part of the search is given.
        """
        if self.corpus and self.query is not None and self.word is not None:
            return self.search(self.query, self.word, self.corpus)
        needed = {"--corpus": self.corpus, "--query": self.query, "--word": self.word}
        missing = [flag for flag, value in needed.items() if value is None]
        is_set = bool(self.before or self.layer or self.any_word)
        is_set |= self.k != ShowReport.k or self.tokenizer != ShowReport.tokenizer
        is_set |= bool(self.run_bilms) and not self.errors
        if len(missing) < len(needed) or is_set:
            raise RunError(f"neighbors need {', '.join(missing)} too")
        return None
