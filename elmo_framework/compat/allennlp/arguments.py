"""Arguments of AllenNLP's commands and classes, as those of ours."""

from __future__ import annotations

from elmo_framework.errors import RunError


def device_name(cuda_device: int | str, *, flag: str = "cuda_device") -> str:
    """Return the name of AllenNLP's number of a device.

    Args:
        cuda_device: -1 for the CPU, 0 for the GPU.
        flag: its name in messages.

    Raises:
        RunError: it is another number.
    """
    names = {"-1": "cpu", "0": "cuda"}
    if (name := names.get(str(cuda_device))) is None:
        raise RunError(
            f"{flag} is {cuda_device!r}; it may be -1 (the CPU) or 0 (the GPU): choose another GPU "
            "by CUDA_VISIBLE_DEVICES"
        )
    return name
