"""Base class of `elmo archive` and `elmo push`, which prepare a run for others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from elmo_framework.commands.command import Command, register_components
from elmo_framework.config.arguments import Argument, Plugins, RunBiLms


@dataclass(frozen=True, kw_only=True)
class ShareCommand(Command):
    """Base class of commands that write a run with all that predicting needs.

    Attributes:
        without_bilm: leave out the biLMs and transformers that the run reads from other folders.
        license: the license in the model card of a run, such as apache-2.0.
    """

    without_bilm: bool = False
    license: Annotated[str | None, Argument("NAME")] = None
    run_bilms: RunBiLms = ()
    packages: Plugins = ()

    def options(self) -> dict[str, Any]:
        """Return the options of `archive_run` and `push`, with all plugins imported."""
        register_components(self.packages)
        return {
            "with_bilm": not self.without_bilm,
            "license_name": self.license,
            "packages": self.packages,
            "bilm": self.run_bilms,
        }
