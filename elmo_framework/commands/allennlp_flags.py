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
        "--batch-weight-key": (1, "scores are sums over examples, whatever the batches"),
    },
    "predict": {
        "--file-friendly-logging": (0, "progress is written line by line to what is no terminal"),
        "--silent": (0, "nothing is printed with --output-file"),
        "--predictor": (1, "the run knows its task"),
    },
}
"""Flags that are not needed, with the number of their values and the reason."""

_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "evaluate": {
        "--extend-vocab": "words that were not seen in training have characters and ELMo vectors",
        "--embedding-sources-mapping": "words that were not seen in training have ELMo vectors",
        "--auto-names": "pass several files; the scores of each have its path",
        "--overrides": "a run is scored with the config that it was trained with",
        "-o": "a run is scored with the config that it was trained with",
    },
    "predict": {
        "--multitask-head": "a run has one task",
        "--predictor-args": "pass another reader with --reader, another tokenizer with --tokenizer",
        "--overrides": "a run predicts with the config that it was trained with",
        "-o": "a run predicts with the config that it was trained with",
    },
}
"""Flags that are refused, and what there is instead."""

_DEVICE, _READER_CHOICE = "--cuda-device", "--dataset-reader-choice"
_NODE_RANK = "--node-rank"
_WITH_VALUES = {
    *(_DEVICE, _READER_CHOICE, _NODE_RANK),
    *("--predictor", "--batch-weight-key", "--predictions-output-file"),
}
"""Flags that may have their value after `=`."""


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
        if equals and flag in _WITH_VALUES:
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
        elif command == "train" and argument == _NODE_RANK:
            _check_rank(next(arguments, ""))
            notes.append(f"{_NODE_RANK} 0 has no effect: it is that of one machine")
        else:
            yield _SAME.get(command, {}).get(argument, argument)


def _check_rank(text: str) -> None:
    if text != "0":
        raise RunError(
            f"elmo train has no {_NODE_RANK} {text}: torchrun --node-rank starts the processes of "
            "several machines"
        )


def _check_reader(text: str) -> None:
    if text != "validation":
        raise RunError(
            f"{_READER_CHOICE} is {text!r}; the reader is that of the validation data: pass "
            "another one with --reader"
        )
