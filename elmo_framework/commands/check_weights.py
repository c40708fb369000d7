"""`elmo check-weights`: check the files of a biLM and list their tensors."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, final

from elmo_framework.commands.command import Command, ResultFormat, register_components
from elmo_framework.config.arguments import BiLm, Plugins
from elmo_framework.console import render_table

if TYPE_CHECKING:
    from elmo_framework.bilm.files.weights_report import WeightsReport


@final
@dataclass(frozen=True, kw_only=True)
class CheckWeights(Command):
    """Check the files of a biLM: list their tensors, and compute a sentence."""

    name = "check-weights"
    epilog = """\
examples:
  elmo check-weights runs/bilm
  elmo check-weights original --format json
"""

    bilm: BiLm
    packages: Plugins = ()
    format: ResultFormat = "text"

    def run(self) -> int:
        from elmo_framework.bilm.files.published import resolve_bilm
        from elmo_framework.bilm.files.weights_report import inspect_weights

        register_components(self.packages)
        files = resolve_bilm(self.bilm)
        report = inspect_weights(files)
        if self.format == "json":
            print(json.dumps({"weights": str(files.weights), **asdict(report)}, indent=2))
        else:
            print(f"{files.weights}: no problems\n\n{_as_text(report)}")
        return 0


def _as_text(report: WeightsReport) -> str:
    tensors = [
        (
            tensor.name,
            " \N{MULTIPLICATION SIGN} ".join(map(str, tensor.shape)),
            "" if tensor.is_read else "ignored",
        )
        for tensor in report.tensors
    ]
    layers = [
        (str(number), *(f"{statistic:.4f}" for statistic in layer.values()))
        for number, layer in enumerate(report.layers)
    ]
    tables = [
        render_table(("tensor", "shape", ""), tensors),
        render_table(("layer", "mean", "standard deviation", "largest"), layers),
        render_table(("biLM", ""), _properties(report)),
    ]
    return "\n\n".join(tables)


def _properties(report: WeightsReport) -> list[tuple[str, str]]:
    rows = [("parameters", f"{report.num_parameters:,}"), ("output_dim", str(report.output_dim))]
    for name, clip in report.clips.items():
        ratio = "" if clip.limit is None else f", {clip.share:.2%} of the numbers at it"
        rows.append((name, "none" if clip.limit is None else f"{clip.limit:g}{ratio}"))
    if report.use_skip_connections is not None:
        rows.append(("use_skip_connections", str(report.use_skip_connections).lower()))
    return [*rows, ("SHA-256", report.digest)]
