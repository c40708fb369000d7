"""The run directory: the files of a run, written, read and locked."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from torch import Tensor

from elmo_framework.errors import RunError, with_hint
from elmo_framework.io.archives import local_folder
from elmo_framework.io.files import path_hint, write_text
from elmo_framework.io.formats import check_format
from elmo_framework.io.outputs import PARTS
from elmo_framework.io.resumable_output import FolderRules, ResumableOutput
from elmo_framework.model.weights import load_tensors, save_tensors
from elmo_framework.training.checkpointer import Checkpointer, settle_checkpoints
from elmo_framework.training.process_group import ProcessGroup

FORMAT = 1
"""The format number of run directories, in `metadata.json`."""

_LOG = logging.getLogger(__name__)
_RULES = FolderRules(
    marker="filled_config.json",
    progress=("checkpoints", "weights.safetensors"),
    busy=("{path}: another process is training here; wait for it to end, or choose another {flag}"),
    foreign=(
        "{path}: not a run directory; it contains other files ({other}, ...); choose another {flag}"
    ),
    unfinished=(
        "{path}: the folder is not empty; pass --recover to resume the run in it, --force to "
        "remove it, or choose another {flag}"
    ),
)


class RunDirectory:
    """The folder of one run.

    | name | what |
    |---|---|
    | `config.jsonnet` | the configuration as given |
    | `config.json` | the same with imports, variables and overrides applied |
    | `translated.jsonnet` | of a configuration that was written for AllenNLP: ours, with comments |
    | `filled_config.json` | the same with every default written out; what the run is built from |
    | `metadata.json` | versions, machine, commit, digests; where the biLMs are that it reads |
    | `vocabulary/` | what was counted in the training data |
    | `checkpoints/` | the last checkpoints and the best |
    | `weights.safetensors` | the best weights |
    | `metrics.jsonl` | a line for each evaluation |
    | `steps.jsonl` | a line for every twentieth update |
    | `metrics.json` | the metrics of the finished run |
    | `calibration.json` | temperature and threshold (`elmo evaluate --calibrate`) |
    | `README.md` | its model card |
    | `log/` | TensorBoard events |
    | `bilm/` | after pretraining: the biLM in the form that embedders read |
    | `models/` | in an archive: the models that the run reads |

    The attributes are paths: `config` is `filled_config.json`, and `given` is `config.json`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config, self.vocabulary = path / _RULES.marker, path / "vocabulary"
        self.given = path / "config.json"
        self.checkpoints, self.weights = path / "checkpoints", path / "weights.safetensors"
        self.metadata, self.metrics = path / "metadata.json", path / "metrics.json"
        self.calibration = path / "calibration.json"
        self.model_card = path / "README.md"

    @classmethod
    def begun(cls, path: Path | str) -> RunDirectory:
        """Return the folder of a run, finished or not; that of an archive is in the cache.

        Raises:
            RunError: there is none, or it is of a newer format.
            DataError: the archive is damaged.
        """
        run = cls(local_folder(path))
        run.check_format()
        if not run.config.is_file():
            problem = f"not a run directory: it has no {run.config.name}"
            message = (
                f"{path}: {problem if run.path.exists() else 'does not exist'}; pass the folder "
                "that `elmo train` wrote to (--serialization-dir), or a file of `elmo archive`"
            )
            raise RunError(with_hint(message, path_hint(run.path)))
        return run

    @classmethod
    def existing(cls, path: Path | str) -> RunDirectory:
        """Return the folder of a run that has weights; that of an archive is in the cache.

        Raises:
            RunError: there is none, or it has no checkpoint yet.
            DataError: the archive is damaged.
        """
        run = cls.begun(path)
        if not run.has_weights:
            raise RunError(f"{path}: this run has no weights yet; resume it with --recover")
        return run

    @property
    def has_weights(self) -> bool:
        """Whether there are weights, of the finished run or so far."""
        return self.weights.is_file() or any(self.checkpoints.glob("step-*"))

    def check_format(self) -> None:
        """Raise RunError if the run is of a newer format."""
        metadata = self.read(self.metadata)
        check_format(metadata, name="a run", supported=FORMAT, path=self.path, error=RunError)

    def parts(self) -> list[Path]:
        """Return the files and folders of the run that exist; others are the user's."""
        parts = (self.path / name for name in PARTS["run"])
        return [part for part in parts if part.exists()]

    def locked(self) -> AbstractContextManager[None]:
        """Keep other processes from training in this folder; see `ResumableOutput`."""
        return self._output().locked()

    def prepare(self, *, force: bool, recover: bool) -> None:
        """Make the folder ready for a run; files that are not `parts` of one are kept.

        Args:
            force: remove the run that is there.
            recover: continue the run that is there, from its last checkpoint.

        Raises:
            RunError: the folder has a run with a checkpoint and neither option is set, or files
                that do not belong to a run; or the run to continue is of a newer format.
        """
        if recover:
            self.check_format()
        output = self._output()
        output.check_overwritable(resume=recover, force=force)
        if recover:
            settle_checkpoints(self.checkpoints)
        else:
            output.clear(name for name in PARTS["run"] if name != ".lock")

    def _output(self) -> ResumableOutput:
        return ResumableOutput(self.path, flag="--serialization-dir", in_place=_RULES)

    def save_weights(self, weights: Mapping[str, Tensor]) -> None:
        save_tensors(weights, self.weights)

    def load_weights(self) -> Mapping[str, Tensor]:
        """Read the best weights: of the finished run, or so far.

        Raises:
            DataError: the file is damaged.
            RunError: the checkpoint is.
        """
        best = None if self.weights.is_file() else self.best_checkpoint()
        if best is not None:
            _LOG.warning("%s: not finished yet; these are its best weights so far", self.path)
            return best[0]
        return load_tensors(self.weights)

    def best_checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Read the best weights, and the optimizer's state at their step; None without checkpoint.

        Raises:
            RunError: it cannot be read.
        """
        return Checkpointer(self.checkpoints, keep=1, group=ProcessGroup()).best()

    def write_json(self, path: Path, content: Any) -> None:
        write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def read(self, path: Path) -> dict[str, Any]:
        """Read one of the folder's JSON files; empty if it was not written.

        Raises:
            RunError: it is not a JSON object.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        except ValueError as error:
            raise RunError(f"{path}: not a JSON file: {error}") from error
        if not isinstance(content, dict):
            raise RunError(f"{path}: expected an object, found {content!r}")
        return content

    def read_digests(self) -> dict[str, dict[str, str]]:
        """Read the digests of the data and of the biLM; empty when nothing was recorded.

        Raises:
            RunError: the file is damaged.
        """
        metadata = self.read(self.metadata)
        if not metadata:
            return {}
        digests = metadata.get("digests")
        if not isinstance(digests, dict):
            raise RunError(f"{self.metadata}: the digests of the run are missing")
        return digests


def require_distinct(paths: Sequence[Path]) -> None:
    """Raise RunError if a run is listed twice, also by another path."""
    places = [path.resolve() for path in paths]
    repeated = [path for path in paths if places.count(path.resolve()) > 1]
    if repeated:
        raise RunError(f"{repeated[0]} is listed twice; name each run once")
