"""Searches of Optuna, which learn from the scores of earlier trials and stop hopeless runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

from filelock import FileLock

from elmo_framework.config.types import Count, CountOrZero
from elmo_framework.io.extras import import_extra
from elmo_framework.study.distribution import Distribution
from elmo_framework.study.fixed_search import (
    NumTrials,
    Seed,
    examples_of,
    require_keys,
    trial_name,
)
from elmo_framework.study.search import PrunedError, Search, Trial
from elmo_framework.training.callback import Callback
from elmo_framework.training.state import TrainingState

Sampler: TypeAlias = Literal["tpe", "gp", "random"]
Pruner: TypeAlias = Literal["median", "successive_halving", "none"]

_JOURNAL = "optuna.journal"


@final
@Search.register("optuna")
class OptunaSearch(Search):
    """Tries values that Optuna suggests from the scores of earlier trials.

    Its storage is `search/.../optuna.journal` in the folder of the study; `optuna-dashboard` reads
    it. A suggestion depends on the trials that have ended before. So with several runs at a time,
    the trials can differ from study to study.

    Args:
        space: the distribution of each dotted key of the config.
        num_trials: the number of combinations.
        sampler: suggests values: a tree-structured Parzen estimator (`tpe`), a Gaussian process
            (`gp`) or independent draws (`random`).
        pruner: stops a run whose validation score is below the `median` of other trials at the
            same evaluation, or by `successive_halving`; `none` stops none.
        num_startup_trials: the number of trials before `tpe` and `gp` use scores, and before
            `median` stops runs.
        num_warmup_evaluations: the number of evaluations of a run before `median` may stop it.
        seed: of the suggestions.
    """

    def __init__(
        self,
        space: dict[str, Distribution],
        num_trials: NumTrials = 20,
        sampler: Sampler = "tpe",
        pruner: Pruner = "median",
        num_startup_trials: Count = 5,
        num_warmup_evaluations: CountOrZero = 0,
        seed: Seed = 0,
    ) -> None:
        require_keys(space)
        self._space, self._num_trials, self._seed = space, num_trials, seed
        self._sampler_name, self._pruner_name = sampler, pruner
        self._num_startup_trials = num_startup_trials
        self._num_warmup_evaluations = num_warmup_evaluations
        _optuna()  # if it is missing, that is known before anything runs

    def post_init(self, num_seeds: Count = 1) -> None:
        if num_seeds > 1 and self._pruner_name != "none":
            raise ValueError("trials of several seeds cannot be pruned; set pruner to 'none'")
        super().post_init(num_seeds)

    @property
    def num_trials(self) -> int:
        return self._num_trials

    def examples(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        return examples_of(self._space)

    def trials(
        self, scores: Mapping[str, float | None], *, folder: Path, num_open: int
    ) -> Sequence[Trial]:
        study = self._open(folder)
        trials = _by_name(study)
        _tell(study, trials, scores)
        num_missing = min(
            self._num_trials - len(trials), num_open - len(trials.keys() - scores.keys())
        )
        for _ in range(num_missing):
            self._add(folder, trial_name(len(_by_name(study))))
        return [Trial(name, each.user_attrs["overrides"]) for name, each in _by_name(study).items()]

    def callback(self, trial: str, *, folder: Path) -> Callback | None:
        if self._pruner_name == "none":
            return None
        study = self._open(folder)
        return _Pruning(_optuna().trial.Trial(study, _by_name(study)[trial]._trial_id))

    def _add(self, folder: Path, name: str) -> None:
        """Ask Optuna for a trial; without its last attribute, `name`, it does not count."""
        trial = self._open(folder, number=int(name)).ask()
        overrides = {key: each.suggest(trial, key) for key, each in self._space.items()}
        trial.set_user_attr("overrides", overrides)
        trial.set_user_attr("name", name)

    def _open(self, folder: Path, number: int = 0) -> Any:
        """Open or create the Optuna study in a folder; `number` is that of a trial to add."""
        folder.mkdir(parents=True, exist_ok=True)
        journal, optuna = folder / _JOURNAL, _optuna()
        # This lock ends with its process; after a kill, Optuna would wait for its own.
        lock = FileLock(folder / f".{_JOURNAL}.lock")
        with lock:
            _drop_partial_line(journal)
        backend = optuna.storages.journal.JournalFileBackend(str(journal), lock_obj=lock)
        return optuna.create_study(
            storage=optuna.storages.JournalStorage(backend),
            study_name="study",
            direction="maximize",
            sampler=self._sampler(number),
            pruner=self._pruner(),
            load_if_exists=True,
        )

    def _sampler(self, number: int) -> Any:
        samplers, num_startup_trials = _optuna().samplers, self._num_startup_trials
        # After a restart, a sampler would repeat its first draws: each trial has its own seed.
        seed = self._seed + number
        match self._sampler_name:
            case "tpe":
                return samplers.TPESampler(n_startup_trials=num_startup_trials, seed=seed)
            case "gp":
                return samplers.GPSampler(n_startup_trials=num_startup_trials, seed=seed)
            case "random":
                return samplers.RandomSampler(seed=seed)

    def _pruner(self) -> Any:
        pruners = _optuna().pruners
        match self._pruner_name:
            case "median":
                return pruners.MedianPruner(
                    n_startup_trials=self._num_startup_trials,
                    n_warmup_steps=self._num_warmup_evaluations,
                )
            case "successive_halving":
                return pruners.SuccessiveHalvingPruner(min_resource=1)
            case "none":
                return pruners.NopPruner()


@final
class _Pruning(Callback):
    """Reports the validation metric to an `optuna.Trial`, and stops a run that it would prune."""

    def __init__(self, trial: Any) -> None:
        self._trial = trial

    def scores(self, progress: TrainingState, scores: Mapping[str, float]) -> None:
        evaluation = len(progress.scores) - 1  # from 0, as Optuna counts
        if evaluation not in self._trial.study.trials[self._trial.number].intermediate_values:
            self._trial.report(progress.scores[-1], step=evaluation)  # the first time only
        if self._trial.should_prune():
            self._trial.set_user_attr("is_pruned", True)
            raise PrunedError(
                f"pruned after evaluation {evaluation + 1}, as other trials are better"
            )


def _optuna() -> Any:
    """Return the module; the only place that imports it."""
    optuna = import_extra("optuna", "sweep")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _drop_partial_line(journal: Path) -> None:
    """Remove the end of a line whose writer was killed; Optuna could not read past it."""
    content = journal.read_bytes() if journal.exists() else b""
    if content and not content.endswith(b"\n"):
        os.truncate(journal, content.rfind(b"\n") + 1)


def _by_name(study: Any) -> dict[str, Any]:
    """Return the stored trials by our names, without those whose creation was interrupted."""
    stored = [each for each in study.get_trials(deepcopy=False) if "name" in each.user_attrs]
    return {each.user_attrs["name"]: each for each in stored}


def _tell(study: Any, trials: Mapping[str, Any], scores: Mapping[str, float | None]) -> None:
    """Store the ends of trials that the storage does not have yet."""
    states = _optuna().trial.TrialState
    for name, score in scores.items():
        trial = trials.get(name)
        if trial is None or trial.state.is_finished():
            continue
        if score is not None:
            study.tell(trial.number, score)
        else:
            is_pruned = "is_pruned" in trial.user_attrs
            study.tell(trial.number, state=states.PRUNED if is_pruned else states.FAIL)
