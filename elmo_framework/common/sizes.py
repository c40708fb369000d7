"""Sizes are inferred; one that a config states as well is checked."""

from __future__ import annotations


def require_size(key: str, stated: int | None, *, inferred: int) -> None:
    """Refuse a stated size that is not the inferred one.

    Args:
        key: the config key that states it.
        stated: what the config says; None when it leaves the size to be inferred.
        inferred: what the parts before this one give.

    Raises:
        ValueError: they differ.
    """
    if stated is not None and stated != inferred:
        raise ValueError(
            f"{key} is {stated}, but the vectors that arrive are {inferred} wide; "
            f"remove {key} or set it to {inferred}"
        )
