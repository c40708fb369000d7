"""Which layers of a biLM are written, or what is made of them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_framework.bilm.layer_mix import LayerMix
from elmo_framework.embedders.elmo import ElmoTokenEmbedder
from elmo_framework.errors import RunError, allowed
from elmo_framework.experiment.assembly import Assembly, load
from elmo_framework.experiment.references import recorded_digests
from elmo_framework.experiment.run_directory import RunDirectory

_MIXED = re.compile(r"mixed\((.+)\)")


class LayerSelector(ABC):
    """Makes what is written of the layers of one sentence.

    Attributes:
        name: as the user wrote it, and anything else that distinguishes two selectors.
    """

    name: str

    def rows(self, num_layers: int) -> int | None:
        """Return the number of vectors of a word; None for one vector without a row axis."""
        return None

    @abstractmethod
    def select(self, layers: Float[Tensor, "layers steps dim"]) -> Float[Tensor, "*rows words dim"]:
        """Return the vectors of the words; in `layers` `<S>` is first and `</S>` last."""


@final
class AllLayers(LayerSelector):
    """All layers, each by itself."""

    name = "all"

    def rows(self, num_layers: int) -> int | None:
        """Return one for each layer."""
        return num_layers

    def select(self, layers: Float[Tensor, "layers steps dim"]) -> Float[Tensor, "*rows words dim"]:
        """Return all layers."""
        return layers[:, 1:-1]


@final
class AverageLayer(LayerSelector):
    """The mean of all layers."""

    name = "average"

    def select(self, layers: Float[Tensor, "layers steps dim"]) -> Float[Tensor, "*rows words dim"]:
        """Return the mean."""
        return layers[:, 1:-1].mean(dim=0)


@final
class OneLayer(LayerSelector):
    """One layer.

    Args:
        index: its number; 0 is that of the token encoder.
    """

    def __init__(self, index: int) -> None:
        self.name, self._index = str(index), index

    def select(self, layers: Float[Tensor, "layers steps dim"]) -> Float[Tensor, "*rows words dim"]:
        """Return the layer."""
        return layers[self._index, 1:-1]


@final
class MixedLayers(LayerSelector):
    """The mix that a task model has learned, without its dropout and projection.

    A mix that normalizes layers does so over each sentence, its boundaries counted.

    Args:
        name: as the user wrote it.
        mix: the learned mix.
    """

    def __init__(self, name: str, mix: LayerMix) -> None:
        weights = b"".join(value.numpy().tobytes() for value in mix.state_dict().values())
        self.name = f"{name} with SHA-256 {sha256(weights).hexdigest()[:12]}"
        self._mix = mix

    def select(self, layers: Float[Tensor, "layers steps dim"]) -> Float[Tensor, "*rows words dim"]:
        """Return the mix."""
        mask = torch.ones(1, layers.shape[1], dtype=torch.bool)
        with torch.no_grad():
            mixed: Tensor = self._mix(layers[:, None], mask)
        return mixed[0, 1:-1]


@dataclass(frozen=True)
class MixOrigin:
    """Loads the run whose layer mix is used.

    Attributes:
        bilm: the place of the biLM whose layers are mixed.
        digest: of its files.
        run_bilms: where other biLMs of the run are, if they were moved.
        packages: plugins that the run needs besides its own.
    """

    bilm: Path | str
    digest: str
    run_bilms: Sequence[Path | str] = ()
    packages: Sequence[str] = ()

    def load(self, path: Path) -> Assembly:
        """Load the run; the biLM whose layers are mixed need not be named again.

        Raises:
            RunError: the run cannot be loaded.
        """
        run = RunDirectory.existing(path)
        own = [self.bilm] if self.digest in recorded_digests(run) else []
        return load(path, device="cpu", packages=self.packages, bilm=[*self.run_bilms, *own])


def layer_selector(text: str, *, num_layers: int, origin: MixOrigin) -> LayerSelector:
    """Return what `--layers` means.

    Args:
        text: `all`, `top`, `average`, the number of a layer, `mixed(RUN)` for the first mix of the
            task model in a run's folder, or `mixed(RUN:NAME)` for the one of that name.
        num_layers: of the biLM.
        origin: loads the run of a mix.

    Raises:
        RunError: it means nothing, `--bilm` is given without a mix, or the run has no mix for this
            biLM.
    """
    if mixed := mixed_target(text):
        return MixedLayers(text, _learned_mix(*mixed, origin))
    if origin.run_bilms:
        raise RunError(f"--bilm belongs to --layers mixed(RUN), not to --layers {text}")
    numbers = [str(number) for number in range(num_layers)]
    if text in ("all", "average"):
        return AllLayers() if text == "all" else AverageLayer()
    if text == "top" or text in numbers:
        return OneLayer(num_layers - 1 if text == "top" else int(text))
    choices = ["all", "top", "average", *numbers, "mixed(RUN)", "mixed(RUN:NAME)"]
    raise RunError(f"--layers: unknown layers {text!r}; {allowed(text, choices)}")


def mixed_target(text: str) -> tuple[Path, str] | None:
    """Return the run and the embedder of `mixed(RUN)` or `mixed(RUN:NAME)`; None for other layers.

    The name is empty where none is given. A folder with a colon in its name is taken as it is.
    """
    if not (mixed := _MIXED.fullmatch(text)):
        return None
    path, colon, name = mixed[1].rpartition(":")
    return (Path(path), name) if colon and not Path(mixed[1]).is_dir() else (Path(mixed[1]), "")


def _learned_mix(path: Path, name: str, origin: MixOrigin) -> LayerMix:
    """Return the mix of a run."""
    target = f"{path}:{name}" if name else str(path)
    embedders = {
        key.rpartition(".")[2]: module
        for key, module in origin.load(path).model.named_modules()
        if isinstance(module, ElmoTokenEmbedder)
    }
    if not embedders:
        raise RunError(f"--layers mixed({target}): the model of this run reads no biLM")
    if name and name not in embedders:
        message = f"no {name!r} in {path}; {allowed(name, embedders)}"
        raise RunError(f"--layers mixed({target}): {message}")
    embedder = embedders[name] if name else next(iter(embedders.values()))
    if embedder.reference is None:
        raise RunError(
            f"--layers mixed({target}): this run has trained the biLM with its task, so that its "
            "mix fits no other; train one with requires_grad: false"
        )
    if embedder.reference.digest != origin.digest:
        raise RunError(
            f"--layers mixed({target}): this run has learned its mix on another biLM, "
            f"{embedder.reference.path} (SHA-256 {embedder.reference.digest[:12]}, "
            f"not {origin.digest[:12]})"
        )
    return embedder.mix
