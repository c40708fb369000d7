"""Base class for parts of a model, with the hooks that a model calls on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor, nn

from elmo_framework.data.text import Indexer, TextBatch
from elmo_framework.nn.part import TensorPart

_OF_INPUTS = re.compile(r"embed|relative_attention_bias|^encoder\.(LayerNorm|conv)\.")
"""Names of what belongs to the inputs of layers, also where it is registered after them, as in
BART, MPNet and DeBERTa."""

_LAST = re.compile(r"(^|\.)(final_|project_out\.)")
"""Names of what reads the last layer, also where it is registered before the layers, as in OPT."""

Sentences: TypeAlias = Callable[[], Sequence[Sequence[str]]]
"""Returns the sentences of all the data; they are read at the first call."""

Documents: TypeAlias = Callable[[], Sequence[Sequence[Sequence[str]]]]
"""Returns the sentences of each document of the data; none where documents are unknown."""


@dataclass(frozen=True)
class Reference:
    """Files that a model reads and that no checkpoint holds, such as a frozen biLM.

    Attributes:
        path: where they were read.
        digest: SHA-256 of their content.
    """

    path: Path
    digest: str


class Part(TensorPart):
    """A part of a model: every hook is a no-op by default.

    Embedders, encoders, poolers, output layers and the parts of a biLM inherit it. A plain
    `nn.Module` is a valid part of a model too; it has no hooks.

    Attributes:
        indexers: turn words into the ids that the part reads from `TextBatch.ids`.
        reference: files that it reads and that no checkpoint holds.
        num_frozen_parameters: the size of weights that it reads and does not own.
    """

    indexers: Sequence[Indexer] = ()
    reference: Reference | None = None
    num_frozen_parameters: int = 0

    def penalty(self) -> Tensor | None:
        """Return a scalar to add to the training loss."""
        return None

    @property
    def carries_state(self) -> bool:
        """Whether rows continue from batch to batch."""
        return False

    def carried_state(self) -> dict[str, Tensor]:
        """Return the state carried from batch to batch, by name; empty before the first batch."""
        return {}

    def load_carried_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from what `carried_state` returned; from zeros if it is empty."""

    def monitored_values(self) -> Mapping[str, float]:
        """Return values to log during training, by name."""
        return {}

    def precompute(self, sentences: Sentences, device: torch.device) -> None:
        """Compute once, before training, what the sentences of the data need.

        Args:
            sentences: returns them; call it only if they are needed, since it reads the data.
            device: where the model is.
        """

    def precompute_documents(self, documents: Documents, device: torch.device) -> None:
        """Compute once, before training, what the documents of the data need; see `precompute`."""

    def read_ahead(self, text: TextBatch) -> TextBatch:
        """Return a batch with what can be read for it before it is on the device of the model.

        A thread may call it while the model computes.
        """
        return text

    def parameters_from_file(self) -> Iterable[Tensor]:
        """Return the parameters read from a file; initializers leave them alone."""
        return ()

    def layer_parameters(self) -> Sequence[Sequence[Tensor]]:
        """Return the trained parameters of a pretrained encoder by layer, the bottom one first."""
        return ()

    def has_vector(self, word: str) -> bool | None:
        """Return whether the file of vectors has a word; None without such a file."""
        return None


def parts_of(model: nn.Module) -> Iterator[tuple[str, Part]]:
    """Yield the parts of a model with their names; the model itself is not one of them."""
    for name, module in islice(model.named_modules(), 1, None):
        if isinstance(module, Part):
            yield name, module


def parameters_by_layer(module: nn.Module) -> list[list[nn.Parameter]]:
    """Return the parameters of a stack of layers, the bottom layer first.

    The first number in a name is that of the layer, as in `layers.3.weight`. Of the others, what
    belongs to embeddings or positions is a layer below all of them, and a last normalization
    belongs to the top one. Where a name does not tell, what is registered before the layers is
    below them, and what is registered after them belongs to the top one.
    """
    below, layers = list[nn.Parameter](), dict[int, list[nn.Parameter]]()
    above: list[nn.Parameter] = []
    for name, parameter in module.named_parameters():
        number = next((int(part) for part in name.split(".") if part.isdigit()), None)
        if number is not None:
            layers.setdefault(number, []).append(parameter)
        elif not _OF_INPUTS.search(name) and (layers or _LAST.search(name)):
            above.append(parameter)
        else:
            below.append(parameter)
    stack = [layers[key] for key in sorted(layers)]
    top = [*(stack.pop() if stack else ()), *above]
    return [layer for layer in (below, *stack, top) if layer]
