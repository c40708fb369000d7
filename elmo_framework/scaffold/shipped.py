"""The shipped configs of the tasks, each as one text without imports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from elmo_framework.errors import RunError, allowed

FOLDERS: Mapping[str, str] = {
    "tagging": "ner",
    "classification": "sst",
    "entailment": "snli",
    "regression": "sick",
    "question_answering": "squad",
    "srl": "srl",
    "coreference": "coreference",
    "word_senses": "wsd",
    "language_modeling": "pretrain",
}
"""The folder of configs of each task, which is also another name of the task."""

_IMPORT = re.compile(r"import\s+'([^'\n]+)'")
_INSTALLED = Path(__file__).parent / "experiments"
_SMALL = "small.libsonnet"


def configs_folder() -> Path:
    """Return the folder of the shipped configs: of the installed package, or of the repository."""
    return _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[2] / "experiments"


def task_folder(task: str) -> Path:
    """Return the folder of the configs of a task, by its name or that of the folder.

    Raises:
        RunError: unknown task.
    """
    folder = FOLDERS.get(task, task)
    if folder not in FOLDERS.values():
        names = [*FOLDERS, *FOLDERS.values()]
        raise RunError(f"--task: unknown task {task!r}; {allowed(task, dict.fromkeys(names))}")
    return configs_folder() / folder


def shipped_names(task: str) -> list[str]:
    """Return the names of the shipped configs of a task, such as `baseline` and `elmo`.

    Raises:
        RunError: unknown task.
    """
    return sorted(path.stem for path in task_folder(task).glob("*.jsonnet"))


def shipped_config(task: str, name: str, *, small: bool) -> str:
    """Return the text of a shipped config, with the files that it imports in their places.

    Args:
        task: its name, or that of its folder.
        name: of the config.
        small: add the settings of the task for two cores.

    Raises:
        RunError: unknown task or config, or the task has no such settings.
    """
    folder, names = task_folder(task), shipped_names(task)
    if name not in names:
        raise RunError(f"--from: unknown config {name!r} of {task}; {allowed(name, names)}")
    text = _flat(folder / f"{name}.jsonnet")
    if not small:
        return text
    if not (folder / _SMALL).exists():
        raise RunError(f"--small: there are no settings for two cores of {task}")
    header, body = _split_header(text)
    return f"{header}(\n{body}) + (\n{_flat(folder / _SMALL)})\n"


def _flat(path: Path) -> str:
    """Return the text of a file in which each import is replaced by the text of the file."""
    header, body = _split_header(path.read_text(encoding="utf-8"))

    def imported(match: re.Match[str]) -> str:
        return f"(\n{_flat(path.parent / match[1])})"

    # `(import 'x')` has its own parentheses, and those of `imported` are then redundant.
    return header + _IMPORT.sub(imported, re.sub(rf"\(({_IMPORT.pattern})\)", r"\1", body))


def _split_header(text: str) -> tuple[str, str]:
    """Split a text after the comment that it begins with, which may contain example imports."""
    lines = text.splitlines(keepends=True)
    length = next((n for n, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return "".join(lines[:length]), "".join(lines[length:])
