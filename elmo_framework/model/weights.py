"""Load the weights of a model by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torch import Tensor, nn

from elmo_framework.errors import RunError

_MOST_NAMES = 3


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], *, source: str) -> None:
    """Load the parameters and buffers of a model.

    Args:
        model: built from its config and vocabulary.
        weights: by name.
        source: the origin of the weights, for messages.

    Raises:
        RunError: they belong to another model; names the first differences of each kind.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        differences = "; ".join(_differences(model.state_dict(), weights)) or str(error)
        raise RunError(
            f"{source}: these weights are of another model than the configuration and the "
            f"vocabulary make: {differences}"
        ) from error


def _differences(model: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> Iterator[str]:
    shapes = [
        f"{name} {list(weights[name].shape)}, not {list(tensor.shape)}"
        for name, tensor in model.items()
        if name in weights and weights[name].shape != tensor.shape
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
