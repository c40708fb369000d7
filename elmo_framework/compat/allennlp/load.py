"""Load runs, and archives of AllenNLP as runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_framework import components, console
from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.compat.allennlp.recognize import is_allennlp_archive, serialized_files
from elmo_framework.config.plugins import load_plugins
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment import load_run
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.references import BiLmPaths
from elmo_framework.io.archives import cached_folder
from elmo_framework.io.files import digest
from elmo_framework.io.remote import as_path
from elmo_framework.model.ensemble import Combination
from elmo_framework.version import VERSION


def load(
    path: Path | str | Sequence[Path | str],
    *,
    combine: Combination = "mean",
    device: str = "auto",
    packages: Sequence[str] = (),
    bilm: BiLmPaths = (),
    weights_file: Path | str | None = None,
) -> Assembly:
    """Load a run, or several as an ensemble.

    An ensemble reads and scores data as its first run does, without a loss. Its probabilities are
    not calibrated, also if those of its runs are.

    A pickle of the result has the arguments of this call, not the weights.

    Args:
        path: its folder, or its archive (`elmo archive`), or an archive of AllenNLP
            (`model.tar.gz`) or its serialization directory, or the URL of one, or a list of them.
            Of a run that is not finished the best weights so far are taken. A model of AllenNLP
            becomes a run in the cache at its first use; the table of what differs in effect is
            written to standard error then.
        combine: how an ensemble predicts: from `mean` scores, or by `vote`; see `Ensemble`.
        device: `auto`, `cpu` or `cuda`.
        packages: plugins to import in addition to those of the run.
        bilm: where the biLMs of the run are, recognized by their digests; by default at their old
            places relative to the run, or at their old paths. For an archive of AllenNLP, the
            folder or the name of the one that it reads.
        weights_file: other weights than the best, such as those of a checkpoint:
            `checkpoints/step-300/model.safetensors`, or `model_state_epoch_3.th` of AllenNLP for
            an archive of it. A calibration is then left out.

    Raises:
        RunError: the device does not exist, the folder has no run with weights, the weights are
            those of another model, a plugin is missing, or the biLM is missing or is not the one
            that the run was trained with; or the runs of an ensemble do not fit together, or have
            a file of weights.
        ConfigError: a part of the config of AllenNLP has no counterpart.
        DataError: an archive or the file of weights is damaged, or its weights or its biLM do not
            fit its config.
        ValueError: `path` is an empty list.
    """
    again = partial(
        load,
        path,
        combine=combine,
        device=device,
        packages=packages,
        bilm=bilm,
        weights_file=weights_file,
    )
    places = [path] if isinstance(path, Path | str) else list(path)
    folders = [_run_place(place, packages, bilm, weights_file) for place in places]
    if isinstance(path, Path | str) and folders != places:
        weights_file = None  # they are in the run that the archive became
    run = load_run.load(
        folders[0] if isinstance(path, Path | str) else folders,
        combine=combine,
        device=device,
        packages=packages,
        bilm=bilm,
        weights_file=weights_file,
    )
    return replace(run, reload=again)


def _run_place(
    place: Path | str,
    packages: Sequence[str],
    bilm: BiLmPaths,
    weights_file: Path | str | None,
) -> Path | str:
    """Return the folder in the cache of an archive of AllenNLP; other places as they are.

    Raises:
        RunError: several biLMs are named for an archive.
    """
    if not is_allennlp_archive(place):
        return place
    bilms = [bilm] if isinstance(bilm, Path | str) else list(bilm)
    if len(bilms) > 1:
        raise RunError(f"{place}: an archive of AllenNLP reads one biLM; name one with --bilm")
    archive, bilm_place = Path(os.fspath(as_path(place))), next(iter(bilms), None)
    components.load()
    load_plugins(packages, asked_by="--include-package")

    def write(folder: Path) -> None:
        # Here, because a run of ours is loaded without it.
        from elmo_framework.compat.allennlp.archive import import_archive

        # Not in place: no command may write a run inside the cache.
        with TemporaryDirectory() as temporary:
            translation = import_archive(
                archive, Path(temporary) / "run", bilm=bilm_place, weights_file=weights
            )
            shutil.move(Path(temporary) / "run", folder)
        console.info(f"{place}: {translation.summary}\n")

    weights = None if weights_file is None else Path(weights_file)
    if weights is not None and not weights.is_file():
        raise DataError("file of weights not found", path=weights)
    parts = [*serialized_files(archive).values()] or [archive]
    files = [] if bilm_place is None else [*_weights_of(bilm_place)]
    files += [] if weights is None else [weights]
    # Another version may translate or map weights in another way.
    return cached_folder(f"{digest([*parts, *files])[:32]}-{VERSION}", write)


def _weights_of(bilm: Path | str) -> tuple[Path, Path]:
    files = resolve_bilm(bilm)
    return files.options, files.weights
