"""`elmo evaluate`: scores of a run on files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

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

        from elmo_framework.common.files import replacing, write_text
        from elmo_framework.experiment.loaded_run import load

        run = load(arguments.run, device=arguments.device, packages=arguments.include_package)
        with ExitStack() as files:
            output = None
            if arguments.predictions is not None:
                aside = files.enter_context(replacing(arguments.predictions))
                output = files.enter_context(aside.open("w", encoding="utf-8"))
            scores = {str(path): _scores(run, path, output) for path in arguments.files}
        if arguments.output_file is not None:
            write_text(arguments.output_file, json.dumps(scores, indent=2) + "\n")
        print(json.dumps(scores, indent=2) if arguments.format == "json" else _table(scores))
        return 0


def _scores(run: LoadedRun, path: Path, output: Any) -> dict[str, float]:
    """Score a run on a file, with a progress bar; write predictions to `output` if there is one."""
    import json

    from elmo_framework.common.logs import Progress
    from elmo_framework.model.head import Head

    with Progress(f"evaluating {path.name}", total=None, unit="batches") as progress:

        def note(batch: Any, result: Any) -> None:
            progress.advance(1)
            if output is None or not isinstance(run.model, Head):
                return
            predictions = run.model.predict(result, batch)
            for prediction, example in zip(predictions, batch.examples, strict=True):
                line = run.model.task.to_json(prediction, example)
                output.write(json.dumps(line, ensure_ascii=False) + "\n")

        return run.evaluate(path, note=note)


def _table(scores: dict[str, dict[str, float]]) -> str:
    from elmo_framework.common.logs import render_table

    names = sorted({name for figures in scores.values() for name in figures})
    rows = [[name, *(_shown(figures.get(name)) for figures in scores.values())] for name in names]
    return render_table(["", *scores], rows)


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
