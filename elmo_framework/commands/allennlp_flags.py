"""The flags of AllenNLP's commands, as those of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from elmo_framework.compat.allennlp.arguments import device_name
from elmo_framework.errors import RunError

_SAME: Mapping[str, Mapping[str, str]] = {
    "evaluate": {"--predictions-output-file": "--predictions-file"},
}
"""Flags with another name here, by command."""

_WITHOUT_EFFECT: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "train": {
        "--file-friendly-logging": (0, "progress is written line by line to what is no terminal"),
    },
    "evaluate": {
        "--file-friendly-logging": (0, "progress is written line by line to what is no terminal"),
    },
    "predict": {
        "--silent": (0, "nothing is printed with --output-file"),
        "--predictor": (1, "the run knows its task"),
    },
}
"""Flags that are not needed, with the number of their values and the reason."""

_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "train": {
        "--dry-run": "elmo check CONFIG --data reads the data and lists every problem",
        "--node-rank": "torchrun --node-rank starts the processes of several machines",
    },
    "evaluate": {
        "--weights-file": "a run is scored with its best weights",
        "--extend-vocab": "words that were not seen in training have characters and ELMo vectors",
        "--overrides": "a run is scored with the config that it was trained with",
        "-o": "a run is scored with the config that it was trained with",
    },
    "predict": {
        "--weights-file": "a run predicts with its best weights",
        "--overrides": "a run predicts with the config that it was trained with",
        "-o": "a run predicts with the config that it was trained with",
    },
}
"""Flags that are refused, and what there is instead."""

_DEVICE, _READER_CHOICE = "--cuda-device", "--dataset-reader-choice"


def translated_flags(command: str, argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of a command with our flags, and notes on what has no effect.

    Args:
        command: its name.
        argv: all arguments; flags of ours are unchanged.

    Raises:
        RunError: a flag means something that is not here.
    """
    notes = list[str]()
    return [*_translated(command, iter(_split(argv)), notes)], notes


def _split(argv: Sequence[str]) -> Iterator[str]:
    """Yield the arguments, with `--flag=value` of AllenNLP's flags in two."""
    for argument in argv:
        flag, equals, value = argument.partition("=")
        if equals and flag in (_DEVICE, _READER_CHOICE, "--predictor", "--predictions-output-file"):
            yield from (flag, value)
        else:
            yield argument


def _translated(command: str, arguments: Iterator[str], notes: list[str]) -> Iterator[str]:
    for argument in arguments:
        if reason := _ELSEWHERE.get(command, {}).get(argument):
            raise RunError(f"elmo {command} has no {argument}: {reason}")
        num_values, without_effect = _WITHOUT_EFFECT.get(command, {}).get(argument, (0, None))
        if without_effect is not None:
            for _ in range(num_values):
                next(arguments, None)
            notes.append(f"{argument} has no effect: {without_effect}")
        elif command in ("evaluate", "predict") and argument == _DEVICE:
            yield from ("--device", device_name(next(arguments, ""), flag=_DEVICE))
        elif command == "predict" and argument == _READER_CHOICE:
            _check_reader(next(arguments, ""))
        else:
            yield _SAME.get(command, {}).get(argument, argument)


def _check_reader(text: str) -> None:
    if text != "validation":
        raise RunError(
            f"{_READER_CHOICE} is {text!r}; the reader is that of the validation data: pass "
            "another one with --reader"
        )
