"""The job of `elmo new FILE`: recognize data and write a config for it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, get_args

from elmo_framework.data.formats.compressed import data_suffix
from elmo_framework.data.formats.text_files import data_files, read_lines
from elmo_framework.errors import DataError, RunError, allowed, with_hint
from elmo_framework.io.files import path_hint, writing
from elmo_framework.scaffold.data_config import (
    MAX_WORDS,
    DataPaths,
    head_task,
    is_truncated,
    render_config,
    render_pretraining,
)
from elmo_framework.scaffold.data_statistics import (
    DataStatistics,
    data_statistics,
    fast_reader,
)
from elmo_framework.scaffold.encoding import require_encoding, require_utf8, write_utf8_copy
from elmo_framework.scaffold.language import guess_language, tokenizer_of
from elmo_framework.scaffold.recognize import RecognizedData, TaskName, UserChoices, recognize
from elmo_framework.scaffold.shipped import FOLDERS


@dataclass(frozen=True)
class ConfigRequest:
    """What the user asks for; the attributes are the arguments of the command.

    Attributes:
        command: the command line, for the comment of the config.
    """

    data: Path
    task: str | None
    texts: Sequence[str]
    label: str | None
    language: str | None
    encoding: str | None
    bilm: str
    command: str
    force: bool


@dataclass(frozen=True)
class WrittenConfig:
    """A config that was written.

    Attributes:
        lines: what the data was taken for, and why.
        commands: what to run next.
    """

    lines: Sequence[str]
    commands: Sequence[str]


def new_config(request: ConfigRequest, output: Path) -> WrittenConfig:
    """Look at data and write a config.

    Args:
        request: the data, and what the user decides.
        output: the config.

    Raises:
        DataError: the data cannot be read.
        RunError: it cannot be recognized; the message says how to decide.
        ConfigError: the biLM cannot be used.
    """
    if not request.data.exists():
        raise DataError(with_hint("not found", path_hint(request.data)), path=request.data)
    choices = UserChoices(_task(request.task), request.texts, request.label)
    paths, encoding = _readable(request)
    data = recognize(paths.training, choices)
    if encoding is not None and data.task == "classification":
        data = replace(data, reader={**data.reader, "encoding": encoding})
    if data.task == "language_modeling":
        return _pretraining(request, data, output)
    paths, unused = _usable(paths, data)
    statistics = data_statistics(paths.training, data.reader, head_task(data))
    language = request.language or statistics.language
    text = render_config(
        paths, data, statistics, bilm=request.bilm, language=language, command=request.command
    )
    with writing(output) as file:
        file.write(text)
    lines = [*_lines(paths, data, statistics, language), *unused]
    return WrittenConfig(_with_hints(lines, data, output), _commands(paths.training, output))


def _task(name: str | None) -> TaskName | None:
    """Return a task by its name, or that of its folder of shipped configs."""
    if name is None:
        return None
    tasks = get_args(TaskName)
    by_folder = {folder: task for task, folder in FOLDERS.items()}
    task = by_folder.get(name, name)
    if task in FOLDERS and task not in tasks:
        raise RunError(
            f"--task {name}: its data are read by a shipped config: elmo new --task {name} --from "
            "elmo"
        )
    if task not in tasks:
        raise RunError(f"--task: unknown task {name!r}; {allowed(name, tasks)}")
    return cast(TaskName, task)


def _readable(request: ConfigRequest) -> tuple[DataPaths, str | None]:
    """Return the paths of data in UTF-8, or of a folder with the encoding of its files."""
    path, encoding = request.data, request.encoding
    if encoding is None:
        require_utf8(path)
        return DataPaths.of(path), None
    require_encoding(encoding)
    if path.is_dir():
        return DataPaths.of(path), encoding
    return DataPaths(write_utf8_copy(path, encoding, force=request.force)), None


def _usable(paths: DataPaths, data: RecognizedData) -> tuple[DataPaths, list[str]]:
    """Leave out data next to the training data that has no labels; with a line that says so."""
    used: dict[str, Path | None] = {"validation": paths.validation, "test": paths.test}
    lines = []
    for name, path in used.items():
        reason = None if path is None else _unreadable(path, data.reader)
        if reason is not None:
            used[name] = None
            lines.append(f"  {path} is next to it, but not used as {name} data: {reason}")
    return DataPaths(paths.training, **used), lines


def _unreadable(path: Path, reader: Mapping[str, Any]) -> str | None:
    """Return why a reader reads no example of a path; None if it does."""
    try:
        has_examples = any(True for _ in fast_reader(reader).read(path))
    except DataError as error:
        return str(error)
    return None if has_examples else "it has no examples"


def _lines(
    paths: DataPaths, data: RecognizedData, statistics: DataStatistics, language: str
) -> list[str]:
    lines = [f"{paths.training}: {data.description}, for the task {data.task}"]
    lines += [f"  {reason}" for reason in data.reasons]
    lines.append(
        f"  {statistics.num_examples:,} examples, the longest of {statistics.longest:,} words"
    )
    if is_truncated(data, statistics):
        num_longer = sum(length > MAX_WORDS for length in statistics.lengths)
        lines.append(
            f"  {num_longer:,} of them have more than {MAX_WORDS} words, and only the first "
            f"{MAX_WORDS} are read; dataset_reader.max_sequence_length=null reads all"
        )
    for name, path in (("validation", paths.validation), ("test", paths.test)):
        if path is not None:
            lines.append(f"  {path} is next to it, and taken for {name} data")
    if statistics.rarest is not None and statistics.rarest < 5:
        rare = [label for label, number in statistics.labels.items() if number < 5]
        listed = ", ".join(map(repr, rare[:6])) + (", ..." if len(rare) > 6 else "")
        lines.append(f"  {len(rare):,} of the labels have fewer than 5 examples: {listed}")
    if language == "characters":
        lines.append(
            "  words are not separated by spaces, so each character is read as a word; for words, "
            "name the language: --language ja, zh or th"
        )
    if language != "en":
        lines.append(
            f"  the text is not taken for English ({language}); mini has read English only, so a "
            "biLM of this language is better: --bilm"
        )
    return lines


def _with_hints(lines: Sequence[str], data: RecognizedData, output: Path) -> list[str]:
    hints = ["if that is not what you want:", *(f"  {hint}" for hint in data.hints)]
    return [*lines, *(hints if data.hints else []), f"wrote {output}"]


def _commands(data: Path, output: Path) -> list[str]:
    run = Path("runs", output.name.removesuffix(".jsonnet"))
    new = "FOLDER" if data.is_dir() else f"new{data_suffix(data)}"
    return [
        shlex.join(["elmo", "train", str(output), "-s", str(run)]),
        shlex.join(["elmo", "evaluate", str(run), "--test"]),
        shlex.join(["elmo", "predict", str(run), new]),
    ]


def _pretraining(request: ConfigRequest, data: RecognizedData, output: Path) -> WrittenConfig:
    """Write a config that pretrains a biLM on plain text, which is tokenized first."""
    if request.encoding is not None:
        raise RunError("--encoding is for texts with labels; convert plain text to UTF-8 first")
    path = request.data
    words = [line.split() for file in data_files(path) for _, line in read_lines(file)]
    num_words = sum(map(len, words))
    if not num_words:
        raise DataError("there are no words", path=path)
    language = request.language or guess_language(words)
    tokenizer = tokenizer_of(language)
    name = tokenizer if isinstance(tokenizer, str) else json.dumps(tokenizer)
    corpus = Path(f"{output.with_suffix('')}-corpus")
    options = ["--tokenizer", name, "--output-dir", str(corpus), "--held-out", "0.05"]
    prepare = shlex.join(["elmo", "prepare", str(path), *options])
    text = render_pretraining(
        data,
        corpus=corpus,
        num_words=num_words,
        is_english=language == "en",
        prepare=prepare,
        command=request.command,
    )
    with writing(output) as file:
        file.write(text)
    lines = [f"{path}: {data.description}, {num_words:,} words, to pretrain a biLM"]
    lines += [f"  {reason}" for reason in data.reasons]
    run = Path("runs", output.name.removesuffix(".jsonnet"))
    commands = [
        prepare,
        shlex.join(["elmo", "train", str(output), "-s", str(run)]),
        shlex.join(["elmo", "evaluate", str(run), str(corpus / "held_out")]),
        shlex.join(["elmo", "embed", str(run), "FILE", "--output-file", "vectors.hdf5"]),
    ]
    return WrittenConfig(_with_hints(lines, data, output), commands)
