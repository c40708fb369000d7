"""`elmo find-lr`: losses by learning rate, and a picture of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

from elmo_framework.commands.command import ConfigCommand
from elmo_framework.config.arguments import AboveZero, Argument, Force
from elmo_framework.errors import RunError
from elmo_framework.io.outputs import Input, Output

if TYPE_CHECKING:
    from elmo_framework.experiment.learning_rates import RateLosses, RateRange

_TABLE, _PICTURE = "learning_rates.csv", "learning_rates.svg"


@final
@dataclass(frozen=True, kw_only=True)
class FindLearningRate(ConfigCommand):
    """Show which learning rates fit: train with a rate that grows with each update.

    Attributes:
        serialization_dir: the folder of the table and of the picture; it is not a run.
        start_lr: the rate of the first update (default: %(default)s).
        end_lr: the rate of the last update (default: %(default)s).
        num_batches: number of updates (default: %(default)s).
        stopping_factor: end when the smoothed loss is so many times its minimum
            (default: %(default)s).
        linear: add the same amount to the rate after each update; by default it is multiplied by
            the same factor.
        force: overwrite the table and the picture.
    """

    name = "find-lr"
    epilog = f"""\
examples:
  elmo find-lr experiments/demo/elmo.jsonnet -s rates
  elmo find-lr experiments/demo/elmo.jsonnet -s rates --start-lr 1e-4 --end-lr 1 --num-batches 50

DIR gets {_TABLE} and {_PICTURE}. Choose a rate where the smoothed loss still falls: at its
steepest point, or a tenth of the rate with the lowest loss (Smith 2017).
"""

    serialization_dir: Annotated[Path, Argument("DIR", flags=("-s",))]
    start_lr: Annotated[float, Argument("RATE")] = 1e-5
    end_lr: Annotated[float, Argument("RATE")] = 10.0
    num_batches: AboveZero = 100
    stopping_factor: Annotated[float, Argument("FACTOR")] = 4.0
    linear: bool = False
    force: Force = False

    def outputs(self) -> Sequence[Output]:
        paths = [self.serialization_dir / name for name in (_TABLE, _PICTURE)]
        return [Output(path, "--serialization-dir", force=self.force) for path in paths]

    def inputs(self) -> Sequence[Input]:
        return [Input(self.config, "CONFIG")]

    def run(self) -> int:
        from elmo_framework.analysis.rate_chart import rate_chart
        from elmo_framework.experiment.check import check_config
        from elmo_framework.experiment.learning_rates import rate_losses
        from elmo_framework.io.files import writing

        rates = self._range()
        _, experiment = check_config(self.read_experiment()).unwrap()
        # Where it goes is checked first, as the rest takes long.
        self.serialization_dir.mkdir(parents=True, exist_ok=True)
        table_path, picture_path = (output.path for output in self.outputs())
        with writing(table_path) as table, writing(picture_path) as picture:
            result = rate_losses(experiment, rates)
            table.write(_as_csv(result))
            picture.write(rate_chart(result))
        if result.end:
            print(f"ended after {len(result.losses)} updates: {result.end}")
        print(f"steepest: {result.steepest:.2g}")
        print(f"a tenth of the rate with the lowest loss: {result.lowest / 10:.2g}")
        print(picture_path)
        return 0

    def _range(self) -> RateRange:
        from elmo_framework.experiment.learning_rates import RateRange

        try:
            return RateRange(
                start=self.start_lr,
                end=self.end_lr,
                num_batches=self.num_batches,
                is_linear=self.linear,
                stopping_factor=self.stopping_factor,
            )
        except ValueError as error:
            raise RunError(str(error)) from error


def _as_csv(result: RateLosses) -> str:
    rows = zip(result.rates, result.losses, result.smoothed, strict=True)
    lines = (",".join(f"{value:.6g}" for value in row) for row in rows)
    return "\n".join(["learning_rate,loss,smoothed_loss", *lines]) + "\n"
