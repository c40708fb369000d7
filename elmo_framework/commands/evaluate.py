"""`elmo evaluate`: scores of a run or of a biLM on files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, final

from elmo_framework.commands.command import (
    Combine,
    Command,
    EnsembleRuns,
    PredictionsFormat,
    ResultFormat,
    WeightsFile,
    load_runs,
    output_files,
)
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
from elmo_framework.console import ProgressBar, plural, render_table
from elmo_framework.errors import RunError
from elmo_framework.io.outputs import Input, Output, format_by_suffix
from elmo_framework.io.remote import as_path

if TYPE_CHECKING:
    from elmo_framework.data.inputs import Predicted
    from elmo_framework.experiment.assembly import Assembly
    from elmo_framework.metrics.metric import Table


_FOR_BILM = ("for a biLM", "a run has its own")


@final
@dataclass(frozen=True, kw_only=True)
class Evaluate(Command):
    """Score a run or a biLM on one or several files.

    Attributes:
        run_or_bilm: a finished run: its folder or archive, or an archive of AllenNLP; or the folder
            or name of a biLM with a softmax.
        files: data to score on.
        test: score on the test data of the run's config instead: its test_data_path, or the part
            of the training data that its test_fraction holds out.
        calibrate: first fit the temperature of the probabilities on FILE, which has labels, and
            keep it with the run: predictions then have calibrated probabilities. Where texts have
            several labels, the threshold is fitted too.
        predictions_file: write the prediction for each example of all files, in order.
        output_file: write the scores there as JSON too.
        force: overwrite the files that are written.
        batch_size: examples in a batch, by default as in the run's config; rows of text that a biLM
            reads at the same time, 16 by default.
        tokenizer: splits lines into words, as those of the biLM's vocabulary are: whitespace by
            default, another registered name, or JSON as in a config.
    """

    name = "evaluate"
    epilog = """\
examples:
  elmo evaluate runs/ner data/conll2003/valid.txt
  elmo evaluate runs/bilm news.txt letters.txt --format json
  elmo evaluate runs/ner valid.txt --predictions-file tags.jsonl --output-file scores.json
  elmo evaluate runs/ner valid.txt --predictions-file tags.txt --predictions-format conll
  elmo evaluate runs/ner --test
  elmo evaluate model.tar.gz test.txt --bilm original          an archive of AllenNLP
  elmo evaluate runs/ner-1 valid.txt --ensemble runs/ner-2 runs/ner-3
  elmo evaluate runs/topics test.csv --calibrate valid.csv
  elmo evaluate mini news.txt
  elmo evaluate exported data/corpus/held_out --batch-size 64

A biLM, by its name or folder, is scored by the softmax that pretraining leaves next to it:
perplexity in both directions, sentence ends counted, and the rate of unknown words. FILE is text,
one sentence per line, with spaces between words, or a part of a corpus of `elmo prepare`.
"""

    run_or_bilm: Annotated[str, Argument("RUN", is_positional=True)]
    files: Annotated[Sequence[Path], Argument("FILE", is_positional=True)] = ()
    test: bool = False
    calibrate: Annotated[Path | None, Argument("FILE")] = None
    predictions_file: Annotated[
        Path | None, Argument("FILE", flags=("--predictions-file", "--predictions"))
    ] = None
    predictions_format: PredictionsFormat = None
    output_file: Annotated[Path | None, Argument("FILE")] = None
    force: Force = False
    ensemble: EnsembleRuns = ()
    combine: Combine = None
    run_bilms: RunBiLms = ()
    weights_file: WeightsFile = None
    batch_size: AboveZero | None = None
    device: Device = "auto"
    packages: Plugins = ()
    format: ResultFormat = "text"
    tokenizer: Annotated[ComponentConfig, Argument(group=_FOR_BILM)] = None

    def outputs(self) -> Sequence[Output]:
        files = {"--predictions-file": self.predictions_file, "--output-file": self.output_file}
        return output_files(files, force=self.force)

    def inputs(self) -> Sequence[Input]:
        files = [Input(path, "FILE") for path in self.files]
        named = {"--calibrate": self.calibrate, "--weights-file": self.weights_file}
        files += [Input(path, flag) for flag, path in named.items() if path is not None]
        run = run_inputs(as_path(self.run_or_bilm), "RUN")
        run += [each for path in self.ensemble for each in run_inputs(path, "--ensemble")]
        return [*run, *run_bilm_inputs(self.run_bilms), *files]

    def run(self) -> int:
        import json

        from elmo_framework.data.formats.text_files import require_data
        from elmo_framework.experiment.prediction_formats import PredictionWriter

        self._require_data()
        self._require_file_for_format()
        run = self._load()
        for path in (*self.files, *filter(None, [self.calibrate])):
            require_data(path)
        written = None
        if self.predictions_file is not None:
            name = self.predictions_format or format_by_suffix(self.predictions_file)
            writer = PredictionWriter.of(run, name)
            if writer.is_folder:
                raise RunError(f"{name} writes a folder of files; use `elmo predict`")
            written = writer.pieces
        calibration = None if self.calibrate is None else _calibrated(run, self)
        predicted: list[Predicted] = []
        with _opened(self.predictions_file) as predictions:
            with _opened(self.output_file) as output:
                collected = None if written is None else predicted
                paths = [None] if self.test else self.files
                scores = {str(path or "test"): _scores(run, path, collected) for path in paths}
                together = scores if calibration is None else {"calibration": calibration, **scores}
                as_json = json.dumps(together, indent=2)
                if output is not None:
                    output.write(f"{as_json}\n")
            # Before the predictions, whose format may refuse them: scores may take hours.
            print(as_json if self.format == "json" else _text(scores, calibration))
            if predictions is not None and written is not None:
                predictions.writelines(written(predicted))
        return 0

    def _load(self) -> Assembly:
        """Load what is scored.

        Raises:
            RunError: it cannot be loaded, or a flag is for the other of the two.
        """
        from elmo_framework.analysis.bilm_scorer import NUM_ROWS, is_bilm, load_bilm_scorer
        from elmo_framework.compat.allennlp.recognize import is_allennlp_archive

        for_bilm = {"--tokenizer": self.tokenizer}
        for_run = {
            "--predictions-file": self.predictions_file,
            "--bilm": self.run_bilms,
            "--test": self.test,
            "--ensemble": self.ensemble,
            "--combine": self.combine,
            "--calibrate": self.calibrate,
            "--weights-file": self.weights_file,
        }
        is_for_bilm = not is_allennlp_archive(self.run_or_bilm) and is_bilm(self.run_or_bilm)
        for flag, value in (for_run if is_for_bilm else for_bilm).items():
            if value:
                kinds = ("run", "biLM") if is_for_bilm else ("biLM", "run")
                raise RunError(
                    f"{flag} is for a {kinds[0]}, and {self.run_or_bilm} is a {kinds[1]}"
                )
        if is_for_bilm:
            return load_bilm_scorer(
                self.run_or_bilm,
                num_rows=self.batch_size or NUM_ROWS,
                tokenizer=self.tokenizer or "whitespace",
                device=self.device,
                packages=self.packages,
            )
        run = load_runs(
            as_path(self.run_or_bilm),
            self.ensemble,
            self.combine,
            device=self.device,
            packages=self.packages,
            bilm=self.run_bilms,
            weights_file=self.weights_file,
        )
        if self.batch_size is None:
            return run
        return replace(run, experiment=run.experiment.with_batch_size(self.batch_size))

    def _require_data(self) -> None:
        """Raise RunError unless there is either a file of data or `--test`, or a calibration."""
        from elmo_framework.experiment.run_directory import RunDirectory

        runs = [path for path in self.files if RunDirectory(path).config.is_file()]
        if runs:
            raise RunError(f"{runs[0]} is a run, not data; --ensemble names further runs")
        if self.calibrate is not None and self.ensemble:
            raise RunError("--calibrate is for one run; --ensemble has no folder to keep it in")
        if self.calibrate is not None and self.weights_file is not None:
            raise RunError("--calibrate is for the best weights of the run; remove --weights-file")
        is_calibration = self.calibrate is not None and not self.test
        if bool(self.files) is self.test and not is_calibration:
            wrong = "both FILE and --test are given" if self.test else "no data to score on"
            raise RunError(f"{wrong}; pass FILE, or --test for the test data of the run's config")

    def _require_file_for_format(self) -> None:
        """Raise RunError for a format of predictions where none are written."""
        if self.predictions_file is None and self.predictions_format is not None:
            raise RunError(
                f"--predictions-format {self.predictions_format} needs --predictions-file, which "
                "names what is written"
            )


def _opened(path: Path | None) -> AbstractContextManager[TextIO | None]:
    """Open a file that may be named; it has its place when the block ends well."""
    from elmo_framework.io.files import writing

    return nullcontext() if path is None else writing(path)


def _calibrated(run: Assembly, command: Evaluate) -> dict[str, Any]:
    """Fit the temperature of a run, and return the content of its file."""
    from elmo_framework.experiment.calibration import calibrate

    assert command.calibrate is not None
    name = f"calibrating on {command.calibrate.name}"
    with ProgressBar(name, unit="batch", delay=0.5) as progress:
        return calibrate(
            run, command.calibrate, force=command.force, note=lambda *_: progress.advance()
        )


def _scores(
    run: Assembly, path: Path | None, predictions: list[Predicted] | None
) -> dict[str, Any]:
    """Score a run on a file; add to `predictions` if there are any to keep."""
    from elmo_framework.data.inputs import Predicted, PredictionInput
    from elmo_framework.experiment.calibration import calibration_scores, scores_to_calibrate

    name, labels = "the test data" if path is None else path.name, scores_to_calibrate(run)
    with ProgressBar(f"evaluating {name}", total=None, unit="batch") as progress:

        def note(batch: Any, result: Any) -> None:
            progress.advance(1)
            if labels is not None:
                labels(batch, result)

        if predictions is None:
            sums = run.sums(path, note=note)
        else:
            scored = run.score(path, note=note)
            sums = scored.sums
            predictions += [
                Predicted(each, PredictionInput(example, {}))
                for each, example in scored.predictions
            ]
    return {**run.model.scores(sums), **calibration_scores(labels), **run.model.tables(sums)}


def _calibration_text(calibration: Mapping[str, Any]) -> str:
    """Format a calibration as a sentence and a table."""
    fitted = plural(calibration["num_items"], calibration["item"])
    before, after = calibration["before"], calibration["after"]
    rows = [
        [name, *(f"{each[name]:.4g}" for each in (before, after))]
        for name in before
        if name != "bins"
    ]
    is_tuned = "threshold" in calibration
    threshold = f" and threshold {calibration['threshold']:.4g}" if is_tuned else ""
    return (
        f"temperature {calibration['temperature']:.4g}{threshold}, fitted on {calibration['data']} "
        f"({fitted}); predictions of this run are calibrated from now on\n\n"
        f"{render_table(['', 'before', 'after'], rows)}"
    )


def _text(scores: Mapping[str, Mapping[str, Any]], calibration: Mapping[str, Any] | None) -> str:
    """Format the calibration, the scores of all files as columns, and their tables."""
    parts = [] if calibration is None else [_calibration_text(calibration)]
    return "\n\n".join([*parts, *([_scores_text(scores)] if scores else [])])


def _scores_text(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Format the scores of all files as columns, and below them their tables."""
    from elmo_framework.metrics.metric import is_over_labels

    columns = [
        {name: f"{value:.6g}" for name, value in metrics.items() if not _is_table(value)}
        for metrics in scores.values()
    ]
    names = dict.fromkeys(name for column in columns for name in column)
    tables = [
        (name, path, value)
        for path, metrics in scores.items()
        for name, value in metrics.items()
        if _is_table(value)
    ]
    in_tables = {f"{score}-{label}" for *_, t in tables for label in t for score in t[label]}
    rows = [
        [name, *(column.get(name, "") for column in columns)]
        for name in names
        if name not in in_tables or is_over_labels(name)
    ]
    return render_table(["", *scores], rows) + "".join(
        f"\n\n{_title(name, value)} of {path}{_explained(value)}:\n\n{_grid(value)}"
        for name, path, value in tables
    )


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _title(name: str, table: Table) -> str:
    return "scores by label" if _has_scores(table) else name


def _explained(table: Table) -> str:
    return "" if _has_scores(table) else ", the right label on the left"


def _has_scores(table: Table) -> bool:
    """Return whether a table has scores of labels, not counts of pairs of labels."""
    return not all(isinstance(value, int) for row in table.values() for value in row.values())


def _grid(table: Table) -> str:
    columns = list(next(iter(table.values())))
    rows = [[name, *(_cell(row[column]) for column in columns)] for name, row in table.items()]
    return render_table(["", *columns], rows)


def _cell(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"
