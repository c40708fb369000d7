"""One training: what it is made of, and what it writes down before it starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from elmo_framework.config.load import Config
from elmo_framework.config.plugins import plugin_paths
from elmo_framework.config.resolve import leaves
from elmo_framework.config.types import Lazy
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import RunError, dotted
from elmo_framework.experiment.data_sets import count_vocabularies
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.init_from import initial_vocabularies
from elmo_framework.experiment.inputs import run_tokenizer
from elmo_framework.experiment.metadata import (
    describe_environment,
    digest_of_config,
    digests_of_data,
    word_coverage,
)
from elmo_framework.experiment.references import (
    describe_references,
    expected_digest,
    external_models,
)
from elmo_framework.experiment.run_directory import RecordedModel, RunDirectory
from elmo_framework.io.files import replacing, write_text
from elmo_framework.io.outputs import Input, Output, check_outputs
from elmo_framework.model.model import Model
from elmo_framework.training.process_group import ProcessGroup

_DATA = ("train_data_path", "validation_data_path", "test_data_path")


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
            self.run.write_json(self.run.given, self.config.raw)
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
        changed = [
            str(change)
            for change in changes(self.run.read_config(), self.filled)
            if not self._is_moved(change)
        ]
        if changed:
            listed = "".join(f"\n  {line}" for line in changed)
            raise RunError(
                f"{self.run.path}: --recover needs the configuration that the run began with; "
                f"it differs in{listed}"
            )

    def _is_moved(self, change: Change) -> bool:
        """Tell whether a change is that of a path alone, and what is there has stayed the same.

        That is seen by digests for data and biLMs. Another file is taken for the same where the
        user names it by the same relative path as before.
        """
        if not (isinstance(change.before, str) and isinstance(change.now, str)):
            return False
        if change.path in _DATA:
            before = self.run.read_digests().get("data", {}).get(change.before)
            return before == digests_of_data(self.experiment.files()).get(change.now)
        for model in external_models(self.checked):
            if change.path in model.keys:
                expected = expected_digest(self.run, model)
                return expected is not None and expected == model.digest()
        paths = {leaf.path for leaf in leaves(self.checked) if isinstance(leaf.value, Path)}
        given = value_at(self.config.raw, change.path)
        return change.path in paths and given == value_at(self.run.read_given(), change.path)

    def vocabularies(self) -> Vocabularies:
        """Return the run's vocabularies; made once, by the first process."""
        if self.group.is_first and not self.run.vocabulary.exists():
            with replacing(self.run.vocabulary) as aside:
                self._new_vocabularies().save(aside)
        self.group.wait()
        return Vocabularies.load(self.run.vocabulary)

    def _new_vocabularies(self) -> Vocabularies:
        """Take over those that training goes on from; count the data where there are none."""
        init_from = self.experiment.init_from
        kept = None if init_from is None else initial_vocabularies(init_from)
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
        references = describe_references(self.checked, model.references(), self.run.path)
        if changed := self._changed_content(digests, references):
            listed = "".join(f"\n  {line}" for line in changed)
            raise RunError(f"{self.run.path}: the data or the biLM has changed since{listed}")
        self.run.write_json(
            self.run.metadata,
            {
                **describe_environment(self.device, plugins=self.filled["plugins"]),
                "digests": digests,
                "references": {path: asdict(held) for path, held in references.items()},
                "digest_of_config": digest_of_config(self.filled),
                "word_coverage": word_coverage(self.experiment, model),
                "tokenizer": run_tokenizer(self.filled),
            },
        )

    def _changed_content(
        self, digests: Mapping[str, Any], references: Mapping[str, RecordedModel]
    ) -> list[str]:
        """List the digests that differ from those of the run that goes on."""
        before = dict(self.run.read_digests())
        if not before:
            return []
        data = before.get("data", {})
        if len(data) == len(digests["data"]):
            # By their order, for `prepare` has compared the content of data that was moved.
            before["data"] = dict(zip(digests["data"], data.values(), strict=True))
        recorded = self.run.read_references()
        return [
            *differences(before, digests),
            *(
                line
                for path in recorded.keys() & references.keys()
                for line in differences(recorded[path].sha256, references[path].sha256, path)
            ),
        ]


class Change(NamedTuple):
    """One value in which two configurations differ.

    Attributes:
        path: its dotted path.
        before: its first value; None where there is none.
        now: its second value; None where there is none.
    """

    path: str
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.path}: {self.before!r} -> {self.now!r}"


def changes(before: Any, now: Any, path: str = "") -> Iterator[Change]:
    """Yield where two configurations differ; lists are compared as a whole."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            yield from changes(before.get(key), now.get(key), dotted(path, key))
    elif before != now:
        yield Change(path, before, now)


def differences(before: Any, now: Any, path: str = "") -> list[str]:
    """List where two configurations differ: `path: value before -> value now`."""
    return [str(change) for change in changes(before, now, path)]


def value_at(raw: Any, path: str) -> Any:
    """Return what a configuration says at a dotted path; None where it says nothing."""
    for key in path.split("."):
        if not isinstance(raw, dict):
            return None
        raw = raw.get(key)
    return raw
