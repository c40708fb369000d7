"""The import path `allennlp.models.archival`: archives and runs with the names of AllenNLP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from elmo_framework.compat.allennlp.arguments import device_name
from elmo_framework.compat.allennlp.load import load
from elmo_framework.data.reader import DatasetReader
from elmo_framework.errors import RunError
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.references import BiLmPaths
from elmo_framework.model.model import Model


@final
@dataclass(frozen=True)
class Archive:
    """A trained model with the attributes of AllenNLP's archive.

    Attributes:
        run: the same model with the methods of `load`.
    """

    run: Assembly

    @property
    def model(self) -> Model[Any]:
        """The model, in evaluation mode."""
        return self.run.model

    @property
    def config(self) -> dict[str, Any]:
        """The config of the run, with the keys of this framework."""
        return {} if self.run.run is None else self.run.run.read(self.run.run.config)

    @property
    def dataset_reader(self) -> DatasetReader[Any]:
        """The reader of the training data."""
        return self.run.experiment.dataset_reader

    @property
    def validation_dataset_reader(self) -> DatasetReader[Any]:
        """The reader of the validation data."""
        return self.run.experiment.validation_dataset_reader

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the training; none of an imported archive, which has no such file."""
        run = self.run.run
        return {} if run is None or not run.metrics.is_file() else run.read(run.metrics)


def load_archive(
    archive_file: Path | str,
    cuda_device: int = -1,
    overrides: str | Mapping[str, Any] = "",
    weights_file: Path | str | None = None,
    *,
    packages: Sequence[str] = (),
    bilm: BiLmPaths = (),
) -> Archive:
    """Load an archive of AllenNLP or a run; `load` does the same and more.

    Args:
        archive_file: `model.tar.gz` of AllenNLP, or the folder or the archive of a run.
        cuda_device: -1 for the CPU, 0 for the GPU.
        overrides: must be empty: a model is loaded with the config of its training.
        weights_file: other weights than the best; see `load`.
        packages: plugins to import.
        bilm: where the biLM is that the model reads; see `load`.

    Raises:
        ElmoFrameworkError: as of `load`; or an argument has no counterpart here.
    """
    if overrides:
        raise RunError("overrides: a model is loaded with the config of its training; remove them")
    run = load(
        archive_file,
        device=device_name(cuda_device),
        packages=packages,
        bilm=bilm,
        weights_file=weights_file,
    )
    return Archive(run)
