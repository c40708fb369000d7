"""The flags of AllenNLP's commands, as those of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from elmo_framework.compat.allennlp.arguments import device_name
from elmo_framework.errors import RunError

_CACHED = "data is read anew, and the layers of a frozen biLM are cached by themselves"

_SAME: Mapping[str, Mapping[str, str]] = {
    "evaluate": {"--predictions-output-file": "--predictions-file"},
}
"""Flags with another name here, by command."""

_WITHOUT_EFFECT: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "train": {
        "--file-friendly-logging": (0, "progress is written line by line to what is no terminal"),
        "--cache-directory": (1, _CACHED),
        "--cache-prefix": (1, _CACHED),
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
_KEYS, _METRICS_FILE = ("-k", "--keys"), ("-m", "--metrics-filename")
_WITH_VALUES = {
    *(_DEVICE, _READER_CHOICE, _NODE_RANK, *_METRICS_FILE),
    *("--predictor", "--batch-weight-key", "--predictions-output-file"),
}
"""Flags that may have their value after `=`."""

_WITHOUT_VALUES = {"--offline", "--traceback"}
"""Flags of ours that any command takes."""

_COMMAND_AND_FOLDER = 2


def translated_flags(command: str, argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of a command with our flags, and notes on what has no effect.

    Args:
        command: its name.
        argv: all arguments; flags of ours are unchanged.

    Raises:
        RunError: a flag means something that is not here.
    """
    notes = list[str]()
    arguments = [*_translated(command, iter(_split(argv)), notes)]
    return [*_one_key_per_flag(arguments)] if command == "print-results" else arguments, notes


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
        elif check := _CHECKED.get(command, {}).get(argument):
            if note := check(next(arguments, "")):
                notes.append(f"{argument} has no effect: {note}")
        else:
            yield _SAME.get(command, {}).get(argument, argument)


def _one_key_per_flag(arguments: Sequence[str]) -> Iterator[str]:
    """Repeat `-k` of `print-results` for each of its keys, if they follow the folder."""
    flag, num_places = "", 0
    for number, argument in enumerate(arguments):
        before = arguments[number - 1] if number else ""
        if argument.startswith("-"):
            flag = argument if argument in _KEYS else ""
        elif before.startswith("-") and before not in _WITHOUT_VALUES:
            pass  # the value of a flag
        elif flag and num_places == _COMMAND_AND_FOLDER:
            yield flag
        else:
            num_places += 1
        yield argument


def _check_metrics_file(text: str) -> str:
    if text != "metrics.json":
        raise RunError(
            f"elmo print-results has no --metrics-filename {text}: each run has metrics.json"
        )
    return "each run has metrics.json"


def _check_rank(text: str) -> str:
    if text != "0":
        raise RunError(
            f"elmo train has no {_NODE_RANK} {text}: torchrun --node-rank starts the processes of "
            "several machines"
        )
    return "it is that of one machine"


def _check_reader(text: str) -> str:
    if text != "validation":
        raise RunError(
            f"{_READER_CHOICE} is {text!r}; the reader is that of the validation data: pass "
            "another one with --reader"
        )
    return ""


_CHECKED: Mapping[str, Mapping[str, Callable[[str], str]]] = {
    "train": {_NODE_RANK: _check_rank},
    "predict": {_READER_CHOICE: _check_reader},
    "print-results": dict.fromkeys(_METRICS_FILE, _check_metrics_file),
}
"""Flags of which one value is accepted; their checks return why it has no effect, if so."""
