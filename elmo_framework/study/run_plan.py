"""One run of a study: its name and its config."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from elmo_framework.config.load import Config
from elmo_framework.study.record import CellKey, run_name


@dataclass(frozen=True)
class RunPlan:
    """One run of a study; it can be pickled.

    Attributes:
        config: the name of the config in the study.
        variant: the name of the variant.
        seed: the `random_seed`.
        fraction: the `train_fraction`.
        metric: the score that is compared, with its sign.
        raw: the config of the run, without its test data.
        test_data_path: the test data of the config, which only `--final` reads.
        source: the file of the study, for messages.
        trial: the name of a trial of the search.
        overrides: of the trial, by dotted key.
    """

    config: str
    variant: str
    seed: int
    fraction: float
    metric: str
    raw: Mapping[str, Any] = field(repr=False)
    test_data_path: str | None
    source: str
    trial: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return run_name(
            self.config, self.variant, fraction=self.fraction, trial=self.trial, seed=self.seed
        )

    @property
    def cell(self) -> CellKey:
        return self.config, self.variant, self.fraction

    @property
    def recorded(self) -> dict[str, Any]:
        """What the record of the run has of its plan, by the names of `Record`."""
        names = ("config", "variant", "seed", "fraction", "trial", "overrides", "metric")
        return {name: getattr(self, name) for name in names}

    def experiment_config(self) -> Config:
        """Return the config of the run, for `train`."""
        text = json.dumps(self.raw, indent=2, ensure_ascii=False) + "\n"
        return Config(dict(self.raw), f"{self.source}: {self.name}", text)
