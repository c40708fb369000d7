"""One training: what it is made of, and what it writes down before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from elmo_framework.common.component import Lazy
from elmo_framework.common.config import Config
from elmo_framework.common.errors import RunError, dotted
from elmo_framework.common.files import replacing, write_text
from elmo_framework.common.outputs import Input, Output, check_outputs
from elmo_framework.common.plugins import plugin_paths
from elmo_framework.common.walk import leaves
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.experiment.beginning import first_vocabularies
from elmo_framework.experiment.coverage import word_coverage
from elmo_framework.experiment.data_sets import count_vocabularies
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.metadata import (
    describe_environment,
    digest_of_config,
    digests_of_data,
)
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.model.model import Model
from elmo_framework.training.process_group import ProcessGroup


@dataclass(frozen=True)
class TrainingJob:
    """What a training needs beside its parts.

    Attributes:
        checked: the configuration, parsed and checked.
        experiment: built.
        config: as given.
        filled: with every default and every plugin written out, its paths absolute.
        run: the folder of the run.
        group: the processes that train together.
        device: of this process.
    """

    checked: Lazy[Experiment]
    experiment: Experiment
    config: Config
    filled: dict[str, Any]
    run: RunDirectory
    group: ProcessGroup
    device: torch.device

    def prepare(self, *, force: bool, recover: bool) -> None:
        """Make the folder ready and write down what the run is made of."""
        if self.group.is_first:
            self._check_folder(recover=recover)
            self.run.prepare(force=force, recover=recover)
            if recover:
                self._require_same_config()
            # First, for a folder with this file is known for a run.
            self.run.write_json(self.run.config, self.filled)
            write_text(self.run.path / "config.jsonnet", self.config.text)
            self.run.write_json(self.run.path / "config.json", self.config.raw)
        self.group.wait()

    def _check_folder(self, *, recover: bool) -> None:
        """Refuse to write a run over what it reads.

        Raises:
            RunError: data, a biLM, a plugin or the config is in the folder of the run. A run that
                continues may read its own config.
        """
        files = () if recover else self.config.files
        inputs = [
            *(Input(file, "the config") for file in files),
            *(Input(path, leaf.path) for leaf in leaves(self.checked) for path in leaf.paths()),
            *(
                Input(path, "plugins")
                for name in self.filled["plugins"]
                for path in plugin_paths(name)
            ),
        ]
        check_outputs([Output(self.run.path, "--serialization-dir", is_folder=True)], inputs)

    def _require_same_config(self) -> None:
        """Refuse to go on with a run that another configuration began.

        Raises:
            RunError: they differ; says where.
        """
        if not self.run.config.exists():
            return
        before = self.run.read_config()
        changed = differences(before, self.filled)
        if changed:
            listed = "".join(f"\n  {line}" for line in changed)
            raise RunError(
                f"{self.run.path}: --recover needs the configuration that the run began with; "
                f"it differs in{listed}"
            )

    def vocabularies(self) -> Vocabularies:
        """Return the run's vocabularies; made once, by the first process."""
        if self.group.is_first and not self.run.vocabulary.exists():
            with replacing(self.run.vocabulary) as aside:
                self._new_vocabularies().save(aside)
        self.group.wait()
        return Vocabularies.load(self.run.vocabulary)

    def _new_vocabularies(self) -> Vocabularies:
        """Take over those that training goes on from; count the data where there are none."""
        beginning = self.experiment.init_from
        kept = None if beginning is None else first_vocabularies(beginning)
        return kept or count_vocabularies(self.experiment, self.experiment.model.factory)

    def record(self, model: Model[Any]) -> None:
        """Write where the run comes from; refuse to go on with other data or another biLM.

        Raises:
            RunError: a digest differs from that of the run that goes on.
        """
        if not self.group.is_first:
            return
        digests = {
            "data": digests_of_data(self.experiment.files()),
            "bilm": {name: held.digest for name, held in model.references().items()},
        }
        before = self.run.read_digests()
        if before and (changed := differences(before, digests)):
            listed = "".join(f"\n  {line}" for line in changed)
            raise RunError(f"{self.run.path}: the data or the biLM has changed since{listed}")
        self.run.write_json(
            self.run.metadata,
            {
                **describe_environment(self.device),
                "digests": digests,
                "digest_of_config": digest_of_config(self.filled),
                "word_coverage": word_coverage(self.experiment, model),
            },
        )


def differences(before: Any, now: Any, path: str = "") -> list[str]:
    """List where two configurations differ: `path: value before -> value now`."""
    if isinstance(before, dict) and isinstance(now, dict):
        return [
            line
            for key in sorted({*before, *now})
            for line in differences(before.get(key), now.get(key), dotted(path, key))
        ]
    return [] if before == now else [f"{path}: {before!r} -> {now!r}"]
