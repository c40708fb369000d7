"""Weights that a model is given by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torch import Tensor, nn

from elmo_framework.errors import RunError

_MOST_NAMES = 3


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], *, source: str) -> None:
    """Give a model its weights.

    Args:
        model: built as its configuration and its vocabulary say.
        weights: of its parameters and buffers.
        source: what an error calls them.

    Raises:
        RunError: they are those of another model; says which, the first of each kind.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        found = "; ".join(_differences(model.state_dict(), weights)) or str(error)
        raise RunError(
            f"{source}: these weights are of another model than the configuration and the "
            f"vocabulary make: {found}"
        ) from error


def _differences(model: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> Iterator[str]:
    shapes = [
        f"{name} {list(weights[name].shape)}, not {list(held.shape)}"
        for name, held in model.items()
        if name in weights and weights[name].shape != held.shape
    ]
    kinds = {
        "missing": [name for name in model if name not in weights],
        "unexpected": [name for name in weights if name not in model],
        "of another shape": shapes,
    }
    for kind, names in kinds.items():
        if names:
            yield f"{kind}: {_first(names)}"


def _first(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
