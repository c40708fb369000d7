"""`elmo evaluate`: scores of a run on files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, final

from elmo_framework.commands.command import Command, add_format_argument, add_include_package

if TYPE_CHECKING:
    from elmo_framework.experiment.loaded_run import LoadedRun


@final
class Evaluate(Command):
    """Scores a run on files in the format of its reader."""

    name = "evaluate"
    help = "score a run on one or several files"
    epilog = """\
examples:
  elmo evaluate runs/ner data/conll2003/valid.txt
  elmo evaluate runs/bilm news.txt letters.txt --format json
  elmo evaluate runs/ner valid.txt --predictions predictions.jsonl --output-file scores.json
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the run, the files, and what is written."""
        parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a finished run")
        parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="data to score on")
        parser.add_argument(
            "--predictions",
            type=Path,
            metavar="FILE",
            help="write a JSON line for each example of all files, in order",
        )
        parser.add_argument(
            "--output-file", type=Path, metavar="FILE", help="write the scores there as JSON too"
        )
        parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
        add_include_package(parser)
        add_format_argument(parser)

    def run(self, arguments: Namespace) -> int:
        """Score and print."""
        import json
        from contextlib import ExitStack

        from elmo_framework.common.errors import RunError
        from elmo_framework.common.files import writing
        from elmo_framework.experiment.loaded_run import load

        if arguments.predictions is not None and arguments.predictions == arguments.output_file:
            raise RunError(f"--predictions and --output-file both name {arguments.output_file}")
        run = load(arguments.run, device=arguments.device, packages=arguments.include_package)
        if arguments.predictions is not None:
            run.head()  # refuses a model without predictions before anything is evaluated
        with ExitStack() as files:
            predictions, output = (
                None if path is None else files.enter_context(writing(path))
                for path in (arguments.predictions, arguments.output_file)
            )
            scores = {str(path): _scores(run, path, predictions) for path in arguments.files}
            if output is not None:
                output.write(json.dumps(scores, indent=2) + "\n")
        print(json.dumps(scores, indent=2) if arguments.format == "json" else _table(scores))
        return 0


def _scores(run: LoadedRun, path: Path, output: TextIO | None) -> dict[str, float]:
    """Score a run on a file, with a progress bar; write predictions to `output` if there is one."""
    from elmo_framework.common.files import json_line
    from elmo_framework.common.logs import Progress

    with Progress(f"evaluating {path.name}", total=None, unit="batches") as progress:

        def note(batch: Any, result: Any) -> None:
            progress.advance(1)
            if output is None:
                return
            head = run.head()
            predictions = head.predict(result, batch)
            for prediction, example in zip(predictions, batch.examples, strict=True):
                line = head.task.to_json(prediction, example)
                output.write(json_line(line))

        return run.evaluate(path, note=note)


def _table(scores: dict[str, dict[str, float]]) -> str:
    from elmo_framework.common.logs import render_table

    names = sorted({name for figures in scores.values() for name in figures})
    rows = [[name, *(_shown(figures.get(name)) for figures in scores.values())] for name in names]
    return render_table(["", *scores], rows)


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
