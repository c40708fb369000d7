"""`elmo report`: a page about a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

from elmo_framework.commands.command import register_components
from elmo_framework.commands.inputs import bilm_inputs, run_bilm_inputs, run_inputs
from elmo_framework.commands.neighbors import Corpus, Query, SearchCommand
from elmo_framework.config.arguments import Argument, Force, Plugins, RunBiLms
from elmo_framework.errors import RunError
from elmo_framework.io.outputs import Input, Output

if TYPE_CHECKING:
    from elmo_framework.analysis.neighbors import NeighborSearch


@final
@dataclass(frozen=True, kw_only=True)
class ShowReport(SearchCommand):
    """Write a page about a run: its curves, layer weights, configuration and origin.

    Attributes:
        run_folder: the folder of a run.
        output_file: the path of the page.
        before: the folder or the name of a biLM whose neighbours are shown for comparison.
        force: overwrite FILE.
    """

    name = "report"
    epilog = """\
examples:
  elmo report runs/ner --output-file ner.html
  elmo report runs/bilm --output-file bilm.html --before runs/bilm-random --corpus news.txt \\
      --query "He sat on the river bank" --word bank

the page is one file and needs no network. The run need not be finished. With --query it shows the
nearest neighbours of a word too, by the biLM that the run trained or reads and by the one of
--before.
"""

    run_folder: Annotated[Path, Argument("RUN", is_positional=True)]
    output_file: Annotated[Path, Argument("FILE")]
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
        run = [*run_inputs(self.run_folder, "RUN"), *run_bilm_inputs(self.run_bilms)]
        return [*run, *before, *corpus]

    def run(self) -> int:
        from elmo_framework.analysis.report import write_report

        register_components(self.packages)
        write_report(
            self.run_folder,
            self.output_file,
            search=self._search(),
            before=self.before,
            bilms=self.run_bilms,
            packages=self.packages,
        )
        print(self.output_file)
        return 0

    def _search(self) -> NeighborSearch | None:
        """Return the search for neighbours, if there is one.

        Raises:
            RunError: only a part of the search is given.
        """
        if self.corpus and self.query is not None and self.word is not None:
            return self.search(self.query, self.word, self.corpus)
        needed = {"--corpus": self.corpus, "--query": self.query, "--word": self.word}
        missing = [flag for flag, value in needed.items() if value is None]
        if len(missing) < len(needed) or self.before or self.run_bilms:
            raise RunError(f"neighbours need {', '.join(missing)} too")
        return None
