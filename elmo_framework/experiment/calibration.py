"""Calibration of a run: the temperature of its probabilities, and the threshold of its labels."""

from __future__ import annotations

import logging
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any, final

import numpy as np

from elmo_framework.console import plural
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.assembly import Assembly, Note
from elmo_framework.experiment.model_card import update_model_card
from elmo_framework.experiment.predict import digest_of_files, fingerprint
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.io.archives import is_from_elsewhere
from elmo_framework.io.formats import check_format
from elmo_framework.io.remote import as_path
from elmo_framework.metrics.calibration import (
    Reliability,
    ScoredLabels,
    fit_temperature,
    fit_threshold,
    reliability,
)
from elmo_framework.model.ensemble import Ensemble
from elmo_framework.model.head import Head
from elmo_framework.model.multi_label import MultiLabelHead

_LOG = logging.getLogger(__name__)

FORMAT = 1
"""The format number of `calibration.json`."""


@final
class LabelScores:
    """The scores of all labels and the gold labels of a data set.

    An instance is a `note` of `Assembly.sums`.

    Args:
        head: scores the labels.
    """

    def __init__(self, head: Head[Any]) -> None:
        self._head = head
        self._batches: list[ScoredLabels] = []

    def __call__(self, batch: Any, output: Any) -> None:
        self._batches.append(self._head.scored_labels(output, batch))

    @property
    def item(self) -> str:
        """The noun for what has a label: `example`, `word` or `decision`."""
        return self._batches[0].item if self._batches else "example"

    def fit(self) -> float:
        """Return the temperature that fits best.

        Raises:
            DataError: no label is predicted wrongly, so that no temperature is too low.
        """
        if (self._scores(1.0).argmax(axis=1) == self._gold).all():
            right = plural(len(self), self.item)
            raise DataError(f"{right}, and none predicted wrongly: a temperature needs errors")
        return fit_temperature(lambda at: sum(each.slope(at) for each in self._batches))

    def threshold(self, temperature: float) -> float | None:
        """Return the threshold with the best micro F1; None for heads that have no threshold.

        Raises:
            DataError: no example has a label.
        """
        if not isinstance(self._head, MultiLabelHead):
            return None
        if not self._gold.any():
            raise DataError("no example has a label, so that no threshold is best")
        return fit_threshold(1 / (1 + np.exp(-self._scores(temperature)[:, 1])), self._gold)

    def reliability(self, temperature: float | None = None) -> Reliability:
        """Compare the probabilities with the gold labels; by default at the head's temperature."""
        return reliability(self._scores(temperature or self._head.temperature or 1.0), self._gold)

    def _scores(self, temperature: float) -> np.ndarray[Any, Any]:
        scores = [each.scores(temperature) for each in self._batches]
        return np.concatenate(scores) if scores else np.zeros((0, 1))

    @property
    def _gold(self) -> np.ndarray[Any, Any]:
        gold = [each.gold for each in self._batches]
        return np.concatenate(gold) if gold else np.zeros(0, dtype=int)

    def __len__(self) -> int:
        return sum(len(each.gold) for each in self._batches)


def scores_to_calibrate(run: Assembly) -> LabelScores | None:
    """Return what collects the scores of a calibrated run; None for other runs."""
    model = run.model
    is_calibrated = isinstance(model, Head) and model.temperature is not None
    return LabelScores(run.head()) if is_calibrated else None


def calibration_scores(scores: LabelScores | None) -> dict[str, float]:
    """Return the calibration error and its like, by name; empty without data."""
    if not scores:
        return {}
    measured = asdict(scores.reliability())
    return {name: value for name, value in measured.items() if name != "bins"}


def calibrate(
    run: Assembly, path: Path | str, *, force: bool = False, note: Note | None = None
) -> dict[str, Any]:
    """Fit the temperature of a loaded run on labeled data, and write `calibration.json`.

    A head with any number of labels also gets the threshold with the best micro F1. The model
    predicts calibrated probabilities from then on, as does all that loads the run. The
    model card gets a section about it.

    Args:
        run: of one run, in a folder.
        path: the data, in the format of the run's evaluation reader. The data that chose the best
            weights is fine; training data is not, as its probabilities are too good.
        force: whether to replace an earlier calibration.
        note: as of `Assembly.sums`.

    Returns:
        The content of the file.

    Raises:
        RunError: the run is an ensemble, an archive or on the Hub; it has a calibration and `force`
            is false; or its head gives labels no probabilities.
        DataError: the data cannot be read, has no labels, or none that is predicted wrongly.
    """
    directory = _directory(run, force=force)
    head, scores = run.head(), LabelScores(run.head())

    def add(batch: Any, output: Any) -> None:
        scores(batch, output)
        if note is not None:
            note(batch, output)

    digest = digest_of_files(as_path(path))
    if digest == _digest_of_training_data(directory):
        _LOG.warning(
            "%s: the run was trained on this data, so its probabilities there are too good; fit "
            "the temperature on other data",
            path,
        )
    run.sums(path, note=add)
    temperature = scores.fit()
    threshold = scores.threshold(temperature)
    content = {
        "format": FORMAT,
        "temperature": temperature,
        **({} if threshold is None else {"threshold": threshold}),
        "data": Path(path).name,
        "sha256": digest,
        "num_items": len(scores),
        "item": scores.item,
        "before": asdict(scores.reliability(1.0)),
        "after": asdict(scores.reliability(temperature)),
        "weights": fingerprint(head),
    }
    directory.write_json(directory.calibration, content)
    update_model_card(directory)
    head.temperature, head.fitted_threshold = temperature, threshold
    return content


def _directory(run: Assembly, *, force: bool) -> RunDirectory:
    """Return the folder of a run whose calibration may be written."""
    if isinstance(run.model, Ensemble) or run.run is None:
        raise RunError("an ensemble has no folder for a calibration; calibrate one run")
    if is_from_elsewhere(run.run.path):
        raise RunError(
            "an archive is read-only; calibrate the run that it was made of, then run "
            "`elmo archive` again"
        )
    if run.run.calibration.exists() and not force:
        raise RunError(f"{run.run.calibration} already exists; pass --force to overwrite it")
    return run.run


def _digest_of_training_data(run: RunDirectory) -> str | None:
    path = run.read(run.config).get("train_data_path")
    return run.read_digests().get("data", {}).get(str(path))


def load_calibration(run: RunDirectory, head: Head[Any]) -> None:
    """Set the temperature, and the threshold if there is one, that were fitted to a head.

    A calibration of other weights, such as those before more training, is ignored with a warning.

    Raises:
        RunError: the file is damaged or of a newer format.
    """
    content = run.read(run.calibration)
    if not content:
        return
    path = run.calibration
    check_format(content, name="a calibration", supported=FORMAT, path=path, error=RunError)
    temperature, threshold = content.get("temperature"), content.get("threshold")
    if not isinstance(temperature, float) or not 0 < temperature < math.inf:
        raise RunError(f"{path}: expected a temperature above 0, found {temperature!r}")
    if threshold is not None and not (isinstance(threshold, float) and 0 <= threshold <= 1):
        raise RunError(f"{path}: expected a threshold from 0 to 1, found {threshold!r}")
    if content.get("weights") != fingerprint(head):
        _LOG.warning(
            "%s: fitted to other weights, so probabilities are not calibrated; fit it again with "
            "elmo evaluate RUN --calibrate FILE --force",
            path,
        )
        return
    head.temperature, head.fitted_threshold = temperature, threshold
