"""Weights of labels in a loss."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor

from elmo_framework.config.types import refuse_key
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import allowed

_Weight: TypeAlias = Annotated[float, Ge(0)]

ClassWeights: TypeAlias = Literal["balanced"] | dict[str, _Weight]
"""Weights by label, or those that give all labels the same total weight."""


def weights_of_labels(
    weights: ClassWeights | None, vocabularies: Vocabularies
) -> Float[Tensor, " labels"] | None:
    """Return the weight of each label by its id; None if all are 1.

    Args:
        weights: a label that is not named has weight 1. `balanced` is n / (k n_label), as in
            scikit-learn; a label that was not counted has weight 1 there, too.
        vocabularies: counts of the training data.

    Raises:
        ValueError: a weight is for a label that does not exist.
    """
    if weights is None:
        return None
    labels, counts = vocabularies.labels(), vocabularies.counted("labels")
    if weights == "balanced":
        observed = {label: count for label, count in counts.items() if count}
        mean = sum(observed.values()) / max(1, len(observed))
        weights = {label: mean / count for label, count in observed.items()}
    elif not vocabularies.is_assumed:
        for label in weights.keys() - set(labels.items):
            message = f"has {label!r}, which is not a label of the training data"
            refuse_key("class_weights", f"{message}; {allowed(label, labels.items)}")
    return torch.tensor([weights.get(label, 1.0) for label in labels.items])
