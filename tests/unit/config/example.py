"""A small framework to configure: the flat experiment, with components that only remember."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, final

from annotated_types import Ge, Gt, Lt

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Default, ExistingPath, Injected, Lazy, Local, require_size

BatchT = TypeVar("BatchT")
ExampleT = TypeVar("ExampleT")
Vocabularies = Mapping[str, list[str]]


class DatasetReader(Registrable, ABC, Generic[ExampleT]):
    @abstractmethod
    def read(self, path: Path) -> list[ExampleT]: ...


@final
@DatasetReader.register("conll2003")
class Conll2003Reader(DatasetReader[str]):
    def __init__(
        self, tag_label: Literal["ner", "pos"] = "ner", coding_scheme: str | None = None
    ) -> None:
        self.tag_label, self.coding_scheme = tag_label, coding_scheme

    def read(self, path: Path) -> list[str]:
        return [str(path)]


class LayerMix(Registrable, ABC):
    @abstractmethod
    def num_layers(self) -> int: ...


@final
@LayerMix.register("scalar_mix")
class ScalarMix(LayerMix):
    def __init__(self, l2: Annotated[float, Ge(0)] = 0.0) -> None:
        self.l2 = l2

    def num_layers(self) -> int:
        return 3


class TokenEmbedder(Registrable, ABC):
    output_dim: int


@final
@TokenEmbedder.register("embedding")
class Embedding(TokenEmbedder):
    """Word vectors.

    Args:
        embedding_dim: width of a vector,
            for each word.
        pretrained_file: vectors to start from.
        vocabularies: the words.
    """

    def __init__(
        self,
        embedding_dim: Annotated[int, Gt(0)],
        vocabularies: Injected[Vocabularies],
        pretrained_file: Path | None = None,
        device: Injected[str] | None = None,
    ) -> None:
        self.output_dim, self.vocabularies = embedding_dim, vocabularies
        self.pretrained_file, self.device = pretrained_file, device


@final
@TokenEmbedder.register("elmo_token_embedder")
class ElmoTokenEmbedder(TokenEmbedder):
    def __init__(
        self,
        bilm: ExistingPath,
        mix: Annotated[LayerMix, Default("scalar_mix")],
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.5,
    ) -> None:
        self.output_dim, self.bilm, self.mix, self.dropout = 1024, bilm, mix, dropout


@final
class TextEmbedder(Registrable):
    def __init__(self, token_embedders: dict[str, TokenEmbedder]) -> None:
        self.token_embedders = token_embedders
        self.output_dim = sum(embedder.output_dim for embedder in token_embedders.values())


class Encoder(Registrable, ABC):
    input_dim: int
    output_dim: int


@final
@Encoder.register("lstm")
class LstmEncoder(Encoder):
    def __init__(
        self,
        input_dim: Local[int],
        hidden_size: Annotated[int, Gt(0)],
        num_layers: int = 1,
        bidirectional: bool = False,
    ) -> None:
        if hidden_size % 2:
            raise ValueError("hidden_size must be even")
        if num_layers == 13:
            raise RuntimeError("a bug of ours")
        self.input_dim, self.num_layers = input_dim, num_layers
        self.output_dim = hidden_size * (2 if bidirectional else 1)


@final
@Encoder.register("pass_through")
class PassThroughEncoder(Encoder):
    def __init__(self, input_dim: Local[int], device: Injected[str] = "cpu") -> None:
        self.input_dim = self.output_dim = input_dim
        self.device = device


@final
@Encoder.register("compose")
class ComposeEncoder(Encoder):
    def __init__(self, input_dim: Local[int], encoders: list[Lazy[Encoder]]) -> None:
        self.input_dim = self.output_dim = input_dim
        self.encoders = []
        for encoder in encoders:
            self.encoders.append(encoder.build(input_dim=self.output_dim))
            self.output_dim = self.encoders[-1].output_dim


@final
@Encoder.register("optional_width")
class OptionalWidthEncoder(Encoder):
    def __init__(self, input_dim: Local[int] | None = None) -> None:
        self.input_dim = self.output_dim = input_dim or 0


@final
@Encoder.register("sized")
class SizedEncoder(Encoder):
    def __init__(self, input_dim: Local[int], input_size: int | None = None) -> None:
        require_size("input_size", input_size, inferred=input_dim)
        self.input_dim = self.output_dim = input_dim


@final
@Encoder.register("careless")
class CarelessEncoder(Encoder):
    def __init__(self, inner: Encoder) -> None:
        self.inner = inner


@final
@Encoder.register("forgetful")
class ForgetfulEncoder(Encoder):
    def __init__(self, input_dim: Local[int], inner: Lazy[Encoder]) -> None:
        self.input_dim, self.inner = input_dim, inner.build()


class Model(Registrable, ABC, Generic[BatchT]):
    @abstractmethod
    def forward(self, batch: BatchT) -> float: ...


class Head(Model[BatchT]):
    pass


@final
@Head.register("crf_tagger")
class CrfTagger(Head[str]):
    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        vocabularies: Injected[Vocabularies],
        output_embedder: Lazy[TokenEmbedder] | None = None,
        dropout: float = 0.0,
        pair: tuple[int, int] | None = None,
        layers: int | list[int] = -1,
    ) -> None:
        self.embedder, self.labels = embedder, vocabularies["labels"]
        self.encoder = encoder.build(input_dim=embedder.output_dim)
        self.output_embedder = output_embedder and output_embedder.build()
        self.dropout, self.pair, self.layers = dropout, pair, layers

    def forward(self, batch: str) -> float:
        return float(len(batch))


class DataLoader(Registrable, ABC):
    default_member = "batches"


@final
@DataLoader.register("batches")
class Batches(DataLoader):
    def __init__(self, batch_size: int = 32) -> None:
        self.batch_size = batch_size


@final
@DataLoader.register("windows")
class Windows(DataLoader):
    def __init__(self, unroll_steps: int) -> None:
        self.unroll_steps = unroll_steps


class Optimizer(Registrable, ABC):
    pass


@final
@Optimizer.register("adam")
class Adam(Optimizer):
    def __init__(self, named_parameters: Injected[list[Any]], lr: float = 0.001) -> None:
        self.named_parameters, self.lr = named_parameters, lr


class Schedule(Registrable, ABC):
    """A factor for each step.

    Args:
        num_steps: how many steps it takes.
        end: not the nearest description.
    """

    @abstractmethod
    def factor(self, step: int) -> float: ...


@final
class ScheduleFunction(Schedule):
    def __init__(self, function: Callable[[int], float]) -> None:
        self.function = function

    def factor(self, step: int) -> float:
        return self.function(step)


@Schedule.register("linear")
def linear(
    num_steps: Annotated[int, Gt(0)], directory: Injected[Path], end: float = 0.0
) -> Schedule:
    """Falls linearly.

    Down to the end.

    Args:
        directory: of the run.
        end: the last factor.
    """
    if end > 1:
        raise ValueError("end is above 1")
    return ScheduleFunction(lambda step: 1 - (1 - end) * step / num_steps)


class Watcher(Registrable, ABC):
    pass


@final
@Watcher.register("console")
class Console(Watcher):
    def __init__(self, directory: Injected[Path]) -> None:
        self.directory = directory


@dataclass(frozen=True)
class Warmup:
    """How the rate grows.

    Attributes:
        steps: how many updates it takes.
    """

    steps: int
    start: float = 0.0

    def __post_init__(self) -> None:
        if self.start > 1:
            raise ValueError("start is a share of the rate, at most 1")


class TrainerOptions(Registrable, ABC):
    default_member = "gradient_descent"


@final
@TrainerOptions.register("gradient_descent")
@dataclass(frozen=True, kw_only=True)
class GradientDescent(TrainerOptions):
    optimizer: Annotated[Lazy[Optimizer], Default("adam")]
    warmup: Annotated[Warmup, Default({"steps": 0})]
    callbacks: Annotated[list[Lazy[Watcher]], Default([])]
    by_group: dict[str, list[Lazy[Watcher]]] | None = None
    num_epochs: int = 20
    grad_norm: float | None = None


@final
class Study(Registrable):
    def __init__(
        self,
        dataset_reader: DatasetReader[Any],
        train_data_path: Path,
        model: Lazy[Model[Any]],
        data_loader: Annotated[Lazy[DataLoader], Default({})],
        trainer: Annotated[TrainerOptions, Default({})],
        validation_data_path: Path | None = None,
        test_data_path: Path | None = None,
        validation_dataset_reader: DatasetReader[Any] | None = None,
        random_seed: int = 13370,
    ) -> None:
        self.dataset_reader, self.validation_dataset_reader = (
            dataset_reader,
            validation_dataset_reader or dataset_reader,
        )
        self.train_data_path, self.validation_data_path = train_data_path, validation_data_path
        self.test_data_path, self.random_seed = test_data_path, random_seed
        self.model, self.data_loader, self.trainer = model, data_loader, trainer


SOURCE = "experiments/ner/elmo.jsonnet"
VOCABULARIES: Vocabularies = {"labels": ["O"], "words": ["a", "b"]}


def flat(**changes: object) -> dict[str, Any]:
    """A whole experiment, with some top keys changed."""
    return {
        "dataset_reader": {"type": "conll2003", "tag_label": "ner", "coding_scheme": "BIOUL"},
        "train_data_path": "data/train.txt",
        "validation_data_path": "data/valid.txt",
        "test_data_path": None,
        "model": tagger(),
        "data_loader": {"batch_size": 8},
        "trainer": {"optimizer": {"type": "adam", "lr": 0.01}, "grad_norm": 5},
        **changes,
    }


def tagger(**changes: object) -> dict[str, Any]:
    """The model block of `flat`, with some keys changed."""
    token_embedders = {
        "elmo": {"type": "elmo_token_embedder", "bilm": "runs/bilm"},
        "tokens": {"type": "embedding", "embedding_dim": 50},
    }
    return {
        "type": "crf_tagger",
        "embedder": {"token_embedders": token_embedders},
        "encoder": {"type": "lstm", "hidden_size": 200, "bidirectional": True},
        **changes,
    }


FILLED: dict[str, Any] = {
    "dataset_reader": {"type": "conll2003", "tag_label": "ner", "coding_scheme": "BIOUL"},
    "train_data_path": "data/train.txt",
    "model": {
        "type": "crf_tagger",
        "embedder": {
            "token_embedders": {
                "elmo": {
                    "type": "elmo_token_embedder",
                    "bilm": "runs/bilm",
                    "mix": {"type": "scalar_mix", "l2": 0.0},
                    "dropout": 0.5,
                },
                "tokens": {"type": "embedding", "embedding_dim": 50, "pretrained_file": None},
            }
        },
        "encoder": {"type": "lstm", "hidden_size": 200, "num_layers": 1, "bidirectional": True},
        "output_embedder": None,
        "dropout": 0.0,
        "pair": None,
        "layers": -1,
    },
    "data_loader": {"type": "batches", "batch_size": 8},
    "trainer": {
        "type": "gradient_descent",
        "optimizer": {"type": "adam", "lr": 0.01},
        "warmup": {"steps": 0, "start": 0.0},
        "callbacks": [],
        "by_group": None,
        "num_epochs": 20,
        "grad_norm": 5.0,
    },
    "validation_data_path": "data/valid.txt",
    "test_data_path": None,
    "validation_dataset_reader": None,
    "random_seed": 13370,
}
