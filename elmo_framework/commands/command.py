"""Base class of the commands of `elmo`, and arguments that several of them share.

The module of a command imports its implementation in `run`, so that `elmo --help` is fast.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from elmo_framework import console
from elmo_framework.config.arguments import Argument, Plugins
from elmo_framework.config.docstrings import summary
from elmo_framework.config.load import Config, Translation
from elmo_framework.errors import RunError
from elmo_framework.io.outputs import Input, Output

if TYPE_CHECKING:
    from elmo_framework.experiment.assembly import Assembly


class Command(ABC):
    """Base class of commands: dataclasses whose fields are the arguments.

    The docstring of a command is its help: the first line appears in the list of commands too, and
    `Attributes` describes the arguments. The entries here are for arguments of several commands.

    Attributes:
        name: the first argument of `elmo`.
        epilog: examples, printed unchanged below the arguments.
        bilm: the folder of a biLM, or of its run, or its name: mini, or a published one.
        run_bilms: the new folder of a biLM that the run was trained with; may be given several
            times.
        device: where to compute; auto is a GPU if there is one (default: %(default)s).
        format: format of the printed result.
        packages: import a module that registers components; may be given several times.
        predictions_format: format of predictions: jsonl, csv, tsv, conll, conllu, brat or another
            one of the task; by default by the suffix of the file, or jsonl.
        resume: resume an interrupted job.
        weights_file: score or predict with other weights than the best, such as those of a
            checkpoint: RUN/checkpoints/step-300/model.safetensors, or model_state_epoch_3.th of
            AllenNLP for an archive of it.
        ensemble: further runs of the task, which predict together with RUN.
        combine: how an ensemble predicts: mean (of the scores of labels, or of the ends of an
            answer; the default), or vote, which takes the prediction that agrees best with the
            others and is for every task.
    """

    name: ClassVar[str]
    epilog: ClassVar[str]

    @classmethod
    def help(cls) -> str:
        """Return the first paragraph of the docstring in the form of a help text."""
        text = summary(cls).removesuffix(".")
        return text[:1].lower() + text[1:]

    def outputs(self) -> Sequence[Output]:
        """Return the files that the command writes, to be checked by `io.outputs`."""
        return ()

    def inputs(self) -> Sequence[Input]:
        """Return the files that the command reads, without plugins."""
        return ()

    @abstractmethod
    def run(self) -> int:
        """Do the work and return the exit code.

        Raises:
            ElmoFrameworkError: the user can fix it; it is printed without a traceback, and the
                exit code is 2.
        """


PredictionsFormat: TypeAlias = Annotated[
    str | None, Argument("NAME", excludes="format of predictions")
]
EnsembleRuns: TypeAlias = Annotated[Sequence[Path], Argument("RUN", takes_many=True)]
WeightsFile: TypeAlias = Annotated[Path | None, Argument("FILE")]
Combine: TypeAlias = Literal["mean", "vote"] | None
ResultFormat: TypeAlias = Literal["text", "json"]


def _external_variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


@dataclass(frozen=True, kw_only=True)
class ConfigCommand(Command):
    """Base class of the commands that read a config.

    Attributes:
        config: a .jsonnet or .json file.
        overrides: change the config: dotted.key=VALUE, or a JSON object; may be given several
            times.
        ext_var: the value of std.extVar(NAME), by default that of the environment; may be given
            several times.
    """

    config: Annotated[Path, Argument("CONFIG", is_positional=True)]
    overrides: Annotated[Sequence[str], Argument("KEY=VALUE", flags=("-o",))] = ()
    ext_var: Annotated[
        Sequence[tuple[str, str]], Argument("NAME=VALUE", parse=_external_variable)
    ] = ()
    packages: Plugins = ()

    def read_config(self) -> Config:
        """Load the config, translate it from AllenNLP, and register its components and plugins.

        Raises:
            ElmoFrameworkError: it cannot be read or translated, or a plugin cannot be imported.
        """
        from elmo_framework.compat.allennlp.recognize import mark_of_allennlp
        from elmo_framework.compat.bilm_tf import refuse_options

        def translate(raw: Mapping[str, Any], source: str) -> Translation | None:
            if mark_of_allennlp(raw) is None:
                return None
            from elmo_framework.compat.allennlp.translate import translate_allennlp

            # First, because plugins register what they can translate.
            register_components(self.packages)
            return translate_allennlp(raw, source)

        config = Config.load(
            self.config,
            overrides=self.overrides,
            external_variables=dict(self.ext_var),
            translators=[refuse_options, translate],
        )
        if config.translation is not None and os.environ.get("RANK", "0") == "0":
            console.info(f"{config.source}: {config.translation.summary}\n")
        register_components(self.packages, config=config)
        return config

    def read_experiment(self) -> Config:
        """Load the config of one experiment, as `read_config` does.

        Raises:
            RunError: it is a study.
            ElmoFrameworkError: as of `read_config`.
        """
        from elmo_framework.study.study import is_study

        config = self.read_config()
        if is_study(config.raw):
            raise RunError(f"{config.source}: this is a study; run `elmo study`")
        return config


def load_runs(
    run: Path,
    ensemble: Sequence[Path],
    combine: Combine,
    *,
    device: str,
    packages: Sequence[str],
    bilm: Sequence[str],
    weights_file: Path | None = None,
) -> Assembly:
    """Load a run, or an ensemble of it and further runs.

    Raises:
        RunError: `combine` without an ensemble, or a run is listed twice; or as of `load`.
        DataError: as of `load`.
    """
    from elmo_framework.compat.allennlp.load import load
    from elmo_framework.experiment.run_directory import require_distinct

    if combine is not None and not ensemble:
        raise RunError("--combine needs --ensemble, which names the other runs")
    if weights_file is not None and ensemble:
        raise RunError("--weights-file is for one run; remove --ensemble")
    require_distinct([run, *ensemble])
    return load(
        [run, *ensemble] if ensemble else run,
        combine=combine or "mean",
        device=device,
        packages=packages,
        bilm=bilm,
        weights_file=weights_file,
    )


def output_files(paths: Mapping[str, Path | None], *, force: bool) -> list[Output]:
    """Return the outputs that are given by flags."""
    return [Output(path, flag, force=force) for flag, path in paths.items() if path]


def register_components(packages: Sequence[str], *, config: Config | None = None) -> None:
    """Import the built-in components and the plugins: installed, in `packages` and in `config`."""
    from elmo_framework import components
    from elmo_framework.config.plugins import load_plugins

    components.load()
    load_plugins(packages, asked_by="--include-package")
    if config is not None:
        load_plugins(config.plugins, asked_by=f"{config.source}: plugins")
