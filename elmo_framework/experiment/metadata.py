"""The config and the metadata that a training writes to its run directory."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from elmo_framework.config.load import Config
from elmo_framework.config.plugins import plugin_paths
from elmo_framework.config.resolve import existing_paths, leaves, paths_in
from elmo_framework.config.types import Lazy
from elmo_framework.errors import RunError
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.config_changes import (
    Change,
    changes,
    differences,
    shown_change,
    value_at,
)
from elmo_framework.experiment.environment import describe_environment
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.inputs import run_tokenizer
from elmo_framework.experiment.predict import digest_of_files
from elmo_framework.experiment.references import (
    RecordedModel,
    describe_references,
    expected_digest,
    external_models,
    recorded_models,
)
from elmo_framework.experiment.run_directory import FORMAT, RunDirectory
from elmo_framework.io.files import digest, write_text
from elmo_framework.io.outputs import Input, Output, check_outputs
from elmo_framework.io.remote import archive_path
from elmo_framework.model.part import Part, parts_of

DATA_KEYS = ("train_data_path", "validation_data_path", "test_data_path")
"""Where a config names its data."""


@dataclass(frozen=True)
class RunRecord:
    """The config and the metadata that a training writes to its run directory.

    A training that continues a run may change neither the config nor the files that it reads.

    Attributes:
        parsed: the experiment as its config describes it.
        experiment: built.
        config: as given.
        filled: the config with all defaults, all plugins and absolute paths.
        run: the run directory.
    """

    parsed: Lazy[Experiment]
    experiment: Experiment
    config: Config
    filled: dict[str, Any]
    run: RunDirectory

    def write_config(self, *, force: bool, recover: bool) -> None:
        """Write the config to the run directory, after `RunDirectory.prepare` with these options.

        Raises:
            RunError: the directory is in use or has inputs of the training; or the run to continue
                has another config.
        """
        self._check_directory(recover=recover)
        self.run.prepare(force=force, recover=recover)
        if recover:
            self._require_same_config()
        # The filled config is first: it marks the directory as a run.
        self.run.write_json(self.run.config, self.filled)
        write_text(self.run.path / "config.jsonnet", self.config.text)
        self.run.write_json(self.run.given, self.config.raw)
        if self.config.translation is not None:
            write_text(self.run.path / "translated.jsonnet", self.config.translation.text)

    def _check_directory(self, *, recover: bool) -> None:
        """Refuse to write a run over what it reads; one that continues may read its own config."""
        files = () if recover else self.config.files
        inputs = [
            *(Input(file, "the config") for file in files),
            *(
                Input(file, path)
                for leaf in leaves(self.parsed)
                for path, file in paths_in(leaf.value, leaf.path)
            ),
            *(
                Input(path, "plugins")
                for name in self.filled["plugins"]
                for path in plugin_paths(name)
            ),
        ]
        check_outputs([Output(self.run.path, "--serialization-dir", is_folder=True)], inputs)

    def _require_same_config(self) -> None:
        if not self.run.config.exists():
            return
        recorded = self.run.read(self.run.config)
        changed = [
            shown_change(change)
            for change in changes(recorded, self.filled, given=self.config.raw)
            if not self._is_moved(change)
        ]
        if changed:
            listed = "".join(f"\n  {line}" for line in changed)
            raise RunError(
                f"{self.run.path}: --recover needs the configuration that the run began with, "
                f"as in {self.run.given}; it differs in{listed}"
            )

    def _is_moved(self, change: Change) -> bool:
        """Return whether only a path has changed, and not the files at the path.

        That is seen by digests. A file without one, of an earlier version, must have the same
        relative path as before.
        """
        path, before, now = change
        if not (isinstance(before, str) and isinstance(now, str)):
            return False
        if path in DATA_KEYS:
            digest_before = self.run.read_digests().get("data", {}).get(before)
            return digest_before == digests_of_data(self.experiment.files()).get(now)
        for model in external_models(self.parsed):
            if path in model.keys:
                expected = expected_digest(self.run, model)
                return expected is not None and expected == model.digest()
        recorded = self.run.read_digests().get("files", {}).get(path)
        if recorded is not None:
            return recorded == digests_of_other_files(self.parsed).get(path)
        paths = {leaf.path for leaf in leaves(self.parsed) if isinstance(leaf.value, Path)}
        configured = value_at(self.config.raw, path)
        return path in paths and configured == value_at(self.run.read(self.run.given), path)

    def write_metadata(self, assembly: Assembly, *, has_data: bool = True) -> None:
        """Write the metadata; those of a run that continues must have the same digests.

        Args:
            assembly: of the run.
            has_data: whether the data of the config are there; not for an imported run.

        Raises:
            RunError: the digest of the data, of a biLM or of another file has changed.
        """
        files_read = assembly.model.references()
        digests = {
            "data": digests_of_data(self.experiment.files()) if has_data else {},
            "files": digests_of_other_files(self.parsed) if has_data else {},
            "bilm": {name: reference.digest for name, reference in files_read.items()},
        }
        references = describe_references(self.parsed, files_read, self.run.path)
        if changed := self._changed_content(digests, references):
            listed = "".join(f"\n  {line}" for line in changed)
            raise RunError(f"{self.run.path}: what the run reads has changed since{listed}")
        self.run.write_json(
            self.run.metadata,
            {
                "format": FORMAT,
                **describe_environment(assembly.device, plugins=self.filled["plugins"]),
                "digests": digests,
                "references": {path: asdict(model) for path, model in references.items()},
                "digest_of_config": digest_of_config(self.filled),
                "word_coverage": word_coverage(assembly) if has_data else {},
                "tokenizer": run_tokenizer(self.filled),
            },
        )

    def _changed_content(
        self, digests: Mapping[str, Any], references: Mapping[str, RecordedModel]
    ) -> list[str]:
        before = dict(self.run.read_digests())
        if not before:
            return []
        data = before.get("data", {})
        if len(data) == len(digests["data"]):
            # By their order, for `prepare` has compared the content of data that was moved.
            before["data"] = dict(zip(digests["data"], data.values(), strict=True))
        before.setdefault("files", digests["files"])  # runs of earlier versions have none
        recorded = recorded_models(self.run)
        return [
            *differences(before, digests),
            *(
                line
                for path in recorded.keys() & references.keys()
                for line in differences(recorded[path].sha256, references[path].sha256, path)
            ),
        ]


def digest_of_config(filled: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a filled configuration."""
    return sha256(json.dumps(filled, sort_keys=True).encode()).hexdigest()


def digests_of_data(files: Mapping[Path, Iterable[Path]]) -> dict[str, str]:
    """Return the SHA-256 of the files of each path, by its absolute form."""
    return {str(path.absolute()): digest(paths) for path, paths in files.items()}


def digests_of_other_files(parsed: Lazy[Experiment]) -> dict[str, str]:
    """Return the SHA-256 of the other files that a run begins with, by their dotted paths.

    Such as word vectors and vocabularies: not data, and not models in separate files.

    Raises:
        OSError: one cannot be read.
    """
    return {
        leaf.path: digest_of_files(archive_path(leaf.value).file)
        for leaf, mark in existing_paths(parsed)
        if not mark.is_reference and leaf.path not in DATA_KEYS
    }


_log = logging.getLogger(__name__)


def word_coverage(assembly: Assembly) -> dict[str, dict[str, dict[str, float]]]:
    """Measure the ratio of words with a vector, for each embedder with a file and each split.

    Returns:
        by the embedder's name and the data set: `running_words`, the ratio of all words, and
        `distinct_words`. Empty where no embedder reads a file.

    Raises:
        DataError: some of the data cannot be read.
    """
    parts = {
        name: part for name, part in parts_of(assembly.model) if part.has_vector("") is not None
    }
    if not parts:
        return {}
    counts: dict[str, Counter[str]] = {
        split: Counter(chain.from_iterable(assembly.sentences(split)))
        for split in assembly.experiment.used_splits
    }
    coverage = {
        name: {split: _ratios(part, counted) for split, counted in counts.items()}
        for name, part in parts.items()
    }
    for name, by_split in coverage.items():
        listed = (
            f"{100 * ratios['running_words']:.1f} % of the words of {split} "
            f"({100 * ratios['distinct_words']:.1f} % of the distinct ones)"
            for split, ratios in by_split.items()
        )
        _log.info("%s has vectors for %s", name, ", ".join(listed))
    return coverage


def _ratios(part: Part, counted: Counter[str]) -> dict[str, float]:
    covered = Counter({word: count for word, count in counted.items() if part.has_vector(word)})
    return {
        "running_words": covered.total() / max(counted.total(), 1),
        "distinct_words": len(covered) / max(len(counted), 1),
    }
