"""Read the configuration of a run, and find the biLM that it names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.config.plugins import load_plugins, named_plugins, naming_packages
from elmo_framework.config.types import Lazy
from elmo_framework.errors import RunError
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.references import BiLmPaths, external_models, locate
from elmo_framework.experiment.run_directory import RunDirectory


def bilm_of(
    run: RunDirectory, *, packages: Sequence[str] = (), bilms: BiLmPaths = ()
) -> Path | str:
    """Return the folder or the name of the frozen biLM that a run reads.

    Args:
        run: a run with a configuration.
        packages: plugins besides those that the run was trained with.
        bilms: where it is, if it was moved; which one is meant, if there are several.

    Raises:
        RunError: the run reads no frozen biLM, or several; or its biLM is not found.
    """
    given = [bilms] if isinstance(bilms, str | Path) else list(bilms)
    models = external_models(locate(run, read_experiment(run, packages), given))
    frozen = run.read_digests().get("bilm", {})
    places = [model.bilm_place for model in models if model.module in frozen]
    if models and not places:
        raise RunError(
            f"{run.path}: this run has tuned its biLM with its task; write it to a folder with "
            "`elmo export`"
        )
    found = given or list(dict.fromkeys(place for place in places if place is not None))
    if len(found) != 1:
        read = f"several: {', '.join(map(str, found))}; name one by --bilm" if found else "none"
        raise RunError(f"{run.path}: this run trained no biLM, and reads {read}")
    return found[0]


def read_experiment(run: RunDirectory, packages: Sequence[str] = ()) -> Lazy[Experiment]:
    """Read the configuration of a run and import the plugins that it names.

    Raises:
        RunError: a plugin is gone, which names the package that it came from; or the
            configuration is damaged.
        ConfigError: it names a component that is not known here.
    """
    raw = run.read_config()
    components.load()
    run_name = f"the run {run.path}"
    # First those that the user names: a run must not import what lies in its own folder otherwise.
    load_plugins(packages, asked_by="--include-package")
    plugins = named_plugins(raw.get("plugins", []), source=run.config)
    with naming_packages(run.read_metadata().get("plugins"), needed_by=run_name):
        load_plugins(plugins, asked_by=run_name)
        return parse(Experiment, raw, source=str(run.config))
