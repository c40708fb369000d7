"""A small model with dropout and carried state, and what trains it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from elmo_framework.config.parse import parse
from elmo_framework.data.data_loader import BucketDataLoader, Rank, SourceContext
from elmo_framework.data.text import Indexer
from elmo_framework.data.vocabulary import Counts, Vocabularies
from elmo_framework.model.model import Model, ModelOutput
from elmo_framework.model.task import Task
from elmo_framework.training import optimizer, schedule  # noqa: F401
from elmo_framework.training.callback import Callback, RunLog
from elmo_framework.training.checkpointer import Checkpointer, settle_checkpoints
from elmo_framework.training.evaluator import Evaluator
from elmo_framework.training.interrupt import Interrupt
from elmo_framework.training.moving_average import AveragedWeights
from elmo_framework.training.options import GradientDescent, TrainerOptions
from elmo_framework.training.process_group import ProcessGroup
from elmo_framework.training.seeds import seed_everything
from elmo_framework.training.trainer import Trainer, TrainingResult

CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class ToyBatch:
    inputs: Tensor
    targets: Tensor

    @property
    def num_tokens(self) -> int:
        return len(self.inputs)

    @property
    def title(self) -> str:
        return f"{len(self.inputs)} numbers, the first {float(self.inputs[0]):g}"


class ToyTask(Task[float, ToyBatch]):
    example_type = float

    def count(self, examples: Iterable[float]) -> Counts:
        return {"numbers": Counter(map(str, examples))}

    def collator(
        self, vocabularies: Vocabularies, indexers: Sequence[Indexer]
    ) -> Callable[[Sequence[float]], ToyBatch]:
        return collate

    def num_tokens(self, example: float) -> int:
        return 1


class ToyModel(Model[ToyBatch]):
    """Fits `y = 3 x - 1`; a carried number makes the loss depend on the batches before.

    Attributes:
        memory: by how much it does.
    """

    task: ClassVar[ToyTask] = ToyTask()

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(1, 4), nn.Dropout(0.2), nn.Linear(4, 1))
        self.carried, self.memory = torch.zeros(()), 0.01

    def forward(self, batch: ToyBatch) -> ModelOutput:
        outputs = self.network(batch.inputs[:, None]).squeeze(1)
        self.carried = 0.5 * self.carried + outputs.detach().mean()
        return ModelOutput(((outputs + self.memory * self.carried - batch.targets) ** 2).mean())

    def sums(self, output: ModelOutput, batch: ToyBatch) -> Mapping[str, float]:
        assert output.loss is not None
        return {"loss": float(output.loss) * len(batch.inputs), "count": len(batch.inputs)}

    def scores(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {"loss": sums["loss"] / sums["count"]}

    def carried_state(self) -> dict[str, Tensor]:
        return {"carried": self.carried}

    def load_carried_state(self, state: Mapping[str, Tensor]) -> None:
        self.carried = state.get("carried", torch.zeros(()))


def collate(examples: Sequence[float]) -> ToyBatch:
    inputs = torch.tensor(examples)
    return ToyBatch(inputs, 3 * inputs - 1)


class Alike(ProcessGroup):
    """One of several processes, the others of which do what it does."""

    def gather(self, value: Any) -> list[Any]:
        return [value] * self.rank.world_size

    gather_to_first = gather

    def first(self, value: Any) -> Any:
        return value

    def wait(self) -> None:
        pass

    def trainable(self, model: nn.Module, *, reduce_dtype: str = "float32") -> nn.Module:
        return model


class Toy:
    """A training of the toy model in a directory; a second instance acts as a new process.

    Args:
        directory: of the run.
        examples: of both data sets.
        callbacks: besides the log of the run.
        num_processes: how many there seem to be.
        group: of the processes that there are.
        options: of the trainer.
    """

    def __init__(
        self,
        directory: Path,
        *,
        examples: Sequence[float] = tuple(x / 10 for x in range(21)),
        callbacks: Sequence[Callback] = (),
        num_processes: int = 1,
        group: ProcessGroup | None = None,
        **options: Any,
    ) -> None:
        raw = {"callbacks": [], "num_epochs": 4, "optimizer": {"type": "adam", "lr": 0.05}}
        trainer_options = parse(TrainerOptions, {**raw, **options}, source="toy").build()
        assert isinstance(trainer_options, GradientDescent)
        seed_everything(7)
        rank = Rank(0, num_processes) if group is None else group.rank
        scored = Rank() if group is None else rank
        group = group or Alike(rank)
        self.model = ToyModel()
        if group.is_first:
            settle_checkpoints(directory / "checkpoints")
        self.checkpointer = Checkpointer(
            directory / "checkpoints",
            keep=trainer_options.checkpointer.keep_most_recent_by_count,
            group=group,
        )
        logs = [RunLog(directory)] if group.is_first else []
        self.callbacks = [*logs, *callbacks]
        self.interrupt = Interrupt()
        self.trainer = Trainer(
            options=trainer_options,
            model=self.model,
            optimizer=trainer_options.optimizer.create(self.model.parameters()),
            source=BucketDataLoader(batch_size=4).source(
                examples, context(is_training=True, rank=rank)
            ),
            evaluator=Evaluator(
                BucketDataLoader(batch_size=8).source(
                    examples, context(is_training=False, rank=scored)
                ),
                group=group,
                device=CPU,
            ),
            average=AveragedWeights(self.model, trainer_options.averaged_decay),
            group=group,
            device=CPU,
        )

    def run(self) -> TrainingResult:
        return self.trainer.run(self.checkpointer, self.callbacks, self.interrupt)


def context(*, is_training: bool, rank: Rank | None = None, seed: int = 3) -> SourceContext:
    return SourceContext(
        collate=collate,
        num_tokens=lambda example: 1,
        seed=seed,
        is_training=is_training,
        rank=rank or Rank(),
    )
