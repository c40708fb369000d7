"""Load a run, or the biLM of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from elmo_framework import components
from elmo_framework.bilm.files.export import export_files
from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.config.parse import parse
from elmo_framework.config.plugins import load_plugins, named_plugins, naming_packages
from elmo_framework.config.registry import members
from elmo_framework.config.types import Lazy
from elmo_framework.data.tokenizer import Tokenizer, TokenizerConfig
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.calibration import load_calibration
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.references import (
    BiLmPaths,
    external_models,
    locate,
    require_recorded,
)
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.io.archives import local_folder
from elmo_framework.model.ensemble import Combination, Ensemble
from elmo_framework.model.head import Head
from elmo_framework.model.model import Model
from elmo_framework.model.weights import load_tensors, load_weights
from elmo_framework.training.process_group import choose_device


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
        path: its folder, or its archive (`elmo archive`) or the URL of one, or a list of them. Of
            a run that is not finished the best weights so far are taken.
        combine: how an ensemble predicts: from `mean` scores, or by `vote`; see `Ensemble`.
        device: `auto`, `cpu` or `cuda`.
        packages: plugins to import in addition to those of the run.
        bilm: where the biLMs of the run are, recognized by their digests; by default at their old
            places relative to the run, or at their old paths.
        weights_file: other weights than the best, such as those of a checkpoint:
            `checkpoints/step-300/model.safetensors`. A calibration is then left out.

    Raises:
        RunError: the device does not exist, the folder has no run with weights, the weights are
            those of another model, a plugin is missing, or the biLM is missing or is not the one
            that the run was trained with; or the runs of an ensemble do not fit together, or have
            a file of weights.
        DataError: the file of weights is missing or damaged.
        ValueError: `path` is an empty list, or `combine` is unknown.
    """
    torch_device = choose_device(device)
    again = partial(
        load,
        path,
        combine=combine,
        device=device,
        packages=packages,
        bilm=bilm,
        weights_file=weights_file,
    )
    if isinstance(path, Path | str):
        file = None if weights_file is None else Path(weights_file)
        return replace(_load(path, torch_device, packages, bilm, file), reload=again)
    if weights_file is not None:
        raise RunError("a file of weights is for one run, not for an ensemble")
    if not path:
        raise ValueError("an ensemble needs at least one run")
    runs = [_load(each, torch_device, packages, bilm) for each in path]
    for run in runs:  # a calibration is fitted to the scores of one model, not to a mean
        run.head().temperature = run.head().fitted_threshold = None
    metric = runs[0].experiment.trainer.validation_metric
    model = Ensemble(
        [run.head() for run in runs],
        [run.vocabularies for run in runs],
        combination=combine,
        agreement=metric[1:] if metric[0] == "+" else "",
    )
    return replace(runs[0], model=model.to(torch_device).eval(), reload=again)


def _load(
    path: Path | str,
    device: torch.device,
    packages: Sequence[str],
    bilm: BiLmPaths,
    weights_file: Path | None = None,
) -> Assembly:
    run = RunDirectory.existing(path)
    located = locate(run, read_experiment(run, packages), bilm)
    experiment = located.build()
    vocabularies = Vocabularies.load(run.vocabulary)
    model = _build(run, experiment, vocabularies)
    require_recorded(run, located, model)
    weights = run.load_weights() if weights_file is None else load_tensors(weights_file)
    load_weights(model, weights, source=str(weights_file or run.weights))
    if isinstance(model, Head) and weights_file is None:  # fitted to the best weights
        load_calibration(run, model)
    return Assembly(
        experiment,
        model.to(device).eval(),
        vocabularies,
        device,
        tokenizer=_recorded_tokenizer(run),
        run=run,
    )


def export_bilm(
    source: Path | str,
    directory: Path,
    *,
    dtype: torch.dtype = torch.float32,
    force: bool = False,
    packages: Sequence[str] = (),
    run_bilms: Sequence[Path | str] = (),
) -> list[Path]:
    """Write a biLM in bilm-tf's format; see `export_files`.

    Args:
        source: the folder of a biLM, of a run that pretrained one, finished or not, or of a run
            that trained one together with its task model; or the name of a biLM.
        directory: of the files; created if it does not exist.
        dtype: of the weights in the files: float32 or float16.
        force: whether files of these names that are there may be replaced or removed.
        packages: plugins to import in addition to those of the run.
        run_bilms: the new folders of biLMs that a run tuned with its task, if they were moved.

    Raises:
        DataError: the biLM is missing; or as of `export_files`.
        RunError: the run cannot be loaded; or as of `export_files`.
    """
    files = None
    try:
        files = resolve_bilm(source)
    except DataError:
        if not RunDirectory(local_folder(source)).config.is_file():
            raise
    if files is None:  # a run that may have trained a biLM with its task
        run = load(source, device="cpu", packages=packages, bilm=run_bilms)
        return run.export(directory, dtype=dtype, force=force)
    if run_bilms:
        raise RunError(f"--bilm is for a run that tuned a biLM with its task; {source} did not")
    return export_files(files, directory, source=source, dtype=dtype, force=force)


def _build(run: RunDirectory, experiment: Experiment, vocabularies: Vocabularies) -> Model[Any]:
    """Build the model of a run, for weights that follow.

    Raises:
        RunError: a model that it reads, such as a biLM, is gone.
    """
    try:
        return experiment.model.build(vocabularies=vocabularies, weights_follow=True)
    except DataError as error:
        if error.path is None or error.path.exists():
            raise
        raise RunError(
            f"{run.path}: this run needs the model that is recorded at {error.path}, and nothing "
            "is there; put it back"
        ) from error


def _recorded_tokenizer(run: RunDirectory) -> TokenizerConfig | None:
    """Return the tokenizer that a run recorded, if it is registered here."""
    recorded = run.read(run.metadata).get("tokenizer")
    name = recorded.get("type") if isinstance(recorded, dict) else recorded
    return recorded if isinstance(name, str) and name in members(Tokenizer) else None


def bilm_of(
    run: RunDirectory, *, packages: Sequence[str] = (), bilms: BiLmPaths = ()
) -> Path | str:
    """Return the folder or the name of the frozen biLM that a run reads.

    Args:
        run: a run with a configuration.
        packages: plugins to import in addition to those of the run.
        bilms: where it is, if it was moved; which one is meant, if there are several.

    Raises:
        RunError: the run reads no frozen biLM, or several; or its biLM is not found.
    """
    bilms = [bilms] if isinstance(bilms, str | Path) else list(bilms)
    models = external_models(locate(run, read_experiment(run, packages), bilms))
    frozen = run.read_digests().get("bilm", {})
    places = [model.bilm_place for model in models if model.module in frozen]
    if models and not places:
        raise RunError(
            f"{run.path}: this run has tuned its biLM with its task; write it to a folder with "
            "`elmo export`"
        )
    located = bilms or list(dict.fromkeys(place for place in places if place is not None))
    if len(located) != 1:
        read = "none"
        if located:
            read = f"several encoders: {', '.join(map(str, located))}; name one by --bilm"
        raise RunError(f"{run.path}: this run trained no biLM, and reads {read}")
    return located[0]


def read_experiment(run: RunDirectory, packages: Sequence[str] = ()) -> Lazy[Experiment]:
    """Read the configuration of a run and import the plugins that it names.

    Raises:
        RunError: a plugin is gone, which names the package that it came from; or the
            configuration is damaged.
        ConfigError: it names a component that is not known here.
    """
    raw = run.read(run.config)
    components.load()
    run_name = f"the run {run.path}"
    # First those that the user names: a run must not import what lies in its own folder otherwise.
    load_plugins(packages, asked_by="--include-package")
    plugins = named_plugins(raw.get("plugins", []), source=run.config)
    with naming_packages(run.read(run.metadata).get("plugins"), needed_by=run_name):
        load_plugins(plugins, asked_by=run_name)
        return parse(Experiment, raw, source=str(run.config))
