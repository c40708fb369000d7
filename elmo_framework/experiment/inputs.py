"""Inputs of predictions: sentences, JSON objects and data files, and their tokenizer."""

from __future__ import annotations

import difflib
import json
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from glob import has_magic
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, TypeVar

from elmo_framework.config.parse import parse
from elmo_framework.config.registry import members, registered_name
from elmo_framework.corpus.manifest import Manifest
from elmo_framework.data.formats.file_format import (
    NUM_SAMPLED_LINES,
    FileFormat,
    FileSample,
    described,
    formats_of_lines,
)
from elmo_framework.data.formats.records import Record, json_object, read_records
from elmo_framework.data.formats.text_files import (
    STANDARD_INPUT,
    decoded_lines,
    error_context,
    read_lines,
)
from elmo_framework.data.inputs import PredictionInput, other_fields, raw_texts
from elmo_framework.data.reader import DatasetReader, RecordReader, readers_of
from elmo_framework.data.tokenizer import Tokenizer, TokenizerConfig
from elmo_framework.errors import DataError, RunError, allowed, shown
from elmo_framework.model.task import HeadTask

_log = logging.getLogger(__name__)

ValueT = TypeVar("ValueT")

InputForm: TypeAlias = Literal["auto", "dataset", "sentences"]
"""How a file is read: as its suffix and its first lines suggest; by the dataset reader; or as plain
text with one sentence per line."""

_SIMILAR = 0.85
_WAYS = "name the file, or pass --sentences if each line is a sentence"


@dataclass(frozen=True)
class InputReader:
    """Makes inputs of what people give to a run.

    Attributes:
        task: of the run.
        reader: of data files.
        tokenizer: splits raw text that the reader does not read.
        standard_input: the stream that `-` means, rewound before reading if it is seekable; by
            default the standard input of the process.
    """

    task: HeadTask[Any, Any]
    reader: DatasetReader[Any]
    tokenizer: Tokenizer
    standard_input: BinaryIO | None = None
    _seen: set[str] = field(default_factory=set)

    @property
    def input_keys(self) -> list[str]:
        """The keys of an object: those that the run's reader of records takes, then the task's."""
        of_reader = self.reader.input_keys if isinstance(self.reader, RecordReader) else ()
        return list(dict.fromkeys([*of_reader, *self.task.input_keys]))

    def of(self, value: object) -> PredictionInput[Any]:
        """Make an input of a sentence, or of a JSON object.

        An object may have the keys of the task, or those that the run's reader of records takes.

        Raises:
            DataError: it is neither, or has not what the task needs.
        """
        values = {"sentence": value} if isinstance(value, str) else value
        if not isinstance(values, Mapping):
            raise DataError(f"expected a sentence or an object, found {shown(value)}")
        if isinstance(self.reader, RecordReader) and self.reader.takes(values):
            return self.reader.input(Record(values))
        try:
            example = self.task.example(values, self.tokenizer)
        except DataError as error:
            raise DataError(self._with_reader_keys(str(error))) from error
        fields = other_fields(values, self.task.input_keys)
        self._warn_of_similar(fields, values)
        return PredictionInput(example, fields, raw_texts(values, self.task.input_keys))

    def of_all(self, values: Iterable[object]) -> Iterator[PredictionInput[Any]]:
        """Yield what `of` makes of each value; an error has the number of its input."""
        for number, value in enumerate(values, start=1):
            try:
                yield self.of(value)
            except DataError as error:
                raise DataError(f"input {number}: {error}") from error

    def read(self, path: Path, form: InputForm = "auto") -> Iterator[PredictionInput[Any]]:
        """Yield the inputs of a file, of the files of a folder or a pattern, or of `-`.

        Raises:
            DataError: it cannot be read, or is data that neither the reader nor the task knows.
        """
        is_piped = path == STANDARD_INPUT
        if form == "dataset" and is_piped:
            raise DataError("the dataset reader reads files, not standard input; name the file")
        if form == "dataset" or _is_collection(path):
            return iter(self.reader.read_inputs(path))
        if form == "sentences":
            lines = self._piped_lines() if is_piped else read_lines(path)
            return _inputs_of_lines(path, lines, self._of_sentence)
        return self._read_piped() if is_piped else self._read_file(FileSample.of(path))

    def _piped_lines(self) -> Iterator[tuple[int, str]]:
        stream = self.standard_input
        if stream is not None and stream.seekable():
            stream.seek(0)
        return decoded_lines(stream or sys.stdin.buffer, STANDARD_INPUT)

    def _read_piped(self) -> Iterator[PredictionInput[Any]]:
        lines = self._piped_lines()
        first = list(islice(lines, NUM_SAMPLED_LINES))
        formats = formats_of_lines([line for _, line in first])
        if formats and FileFormat.JSON_LINES not in formats:
            looks = f"standard input looks like {described(formats)}, which is read from a file"
            raise DataError(f"{looks}: {_WAYS}")
        return _inputs_of_lines(STANDARD_INPUT, chain(first, lines), self._of_line)

    def _read_file(self, sample: FileSample) -> Iterator[PredictionInput[Any]]:
        path, formats = sample.path, sample.formats()
        is_for_reader = self.reader.recognizes(sample)
        if FileFormat.JSON_LINES in formats:
            is_document = is_for_reader and FileFormat.JSON_LINES not in self.reader.formats
            if not is_document:
                of_line = self._of_object if sample.is_json_by_name() else self._of_line
                return _inputs_of_lines(path, read_lines(path), of_line)
        elif FileFormat.TABLE in formats and self._has_columns_of_inputs(sample, is_for_reader):
            self._check_columns(sample)
            records = read_records(path, table=True)
            return _placed_inputs(path, ((each.line, each.values) for each in records), self.of)
        elif not formats and not is_for_reader:
            return _inputs_of_lines(path, read_lines(path), self._of_line)
        if not is_for_reader:
            raise self._unknown_data(path, formats)
        _log.info("%s: read by %s, the dataset reader", path, registered_name(self.reader))
        return iter(self.reader.read_inputs(path))

    def _has_columns_of_inputs(self, sample: FileSample, is_for_reader: bool) -> bool:
        """Return whether each row of a table is an input, as an object on a line is."""
        if is_for_reader:
            return isinstance(self.reader, RecordReader)
        names = sample.column_names()
        return any(key in names for key in self.task.input_keys)

    def _check_columns(self, sample: FileSample) -> None:
        """Refuse a table without any column that is read; maybe it is text with tabs."""
        names = sample.column_names()
        if not names:
            raise DataError("this file is empty", path=sample.path)
        keys = self.input_keys
        if len(names) == 1 or not set(keys).isdisjoint(names):
            return  # one column: the separator may be another, which the reader of tables reports
        similar = next((name for name in names if difflib.get_close_matches(name, keys)), "")
        raise DataError(
            f"this looks like a table without a column of texts: found {shown(names)}, "
            f"{allowed(similar, keys)} Name a dataset reader with --reader NAME, or pass "
            "--sentences if each line is a sentence",
            path=sample.path,
        )

    def _of_line(self, line: str) -> PredictionInput[Any]:
        text = line.strip()
        if text.startswith("{"):
            return self.of(json_object(line))
        return replace(self.of(text), texts={"sentence": line})  # offsets count from its beginning

    def _of_object(self, line: str) -> PredictionInput[Any]:
        if not line.lstrip().startswith("{"):
            raise DataError(
                f"expected a JSON object, found {shown(line.strip())}; pass --sentences if each "
                "line is a sentence"
            )
        return self.of(json_object(line))

    def _of_sentence(self, line: str) -> PredictionInput[Any]:
        example = self.task.example({"sentence": line.strip()}, self.tokenizer)
        return PredictionInput(example, {}, {"sentence": line})

    def _unknown_data(self, path: Path, formats: Collection[FileFormat]) -> DataError:
        name = registered_name(self.reader)
        fitting = readers_of(self.task.example_type, formats)
        others = f" (of this task: {', '.join(fitting)})" if fitting else ""
        return DataError(
            f"this looks like {described(formats)}, which the run's dataset reader {name!r} does "
            f"not read; name one that does with --reader NAME{others}, or pass --sentences if each "
            "line is a sentence",
            path=path,
        )

    def _with_reader_keys(self, message: str) -> str:
        """Add which keys the dataset reader takes to a message about keys of the task."""
        if not isinstance(self.reader, RecordReader):
            return message
        keys = [key for key in self.reader.input_keys if key not in self.task.input_keys]
        listed = ", ".join(map(repr, self.reader.input_keys))
        ended = message if message.endswith((".", "?")) else f"{message}."
        return f"{ended} The run's dataset reader takes {listed}." if keys else message

    def _warn_of_similar(self, fields: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """Warn once of a key that is copied to the output and may be a mistyped one of the task."""
        missing = [key for key in self.task.input_keys if key not in values]
        for name in fields:
            if name in self._seen:
                continue
            self._seen.add(name)
            if near := difflib.get_close_matches(name, missing, n=1, cutoff=_SIMILAR):
                _log.warning("the key %r is not read; did you mean %r?", name, near[0])


def dataset_reader(config: str | dict[str, Any], task: HeadTask[Any, Any]) -> DatasetReader[Any]:
    """Build a reader of the examples of a task.

    Raises:
        RunError: there is none of that name, or it reads the examples of another task.
        ConfigError: its keys are wrong.
    """
    readers = members(DatasetReader)
    if isinstance(config, str) and config not in readers:
        raise RunError(f"unknown dataset reader {config!r}; {allowed(config, readers)}")
    reader: DatasetReader[Any] = parse(DatasetReader, config, source="reader").build()
    if reader.example_type is not task.example_type:
        raise RunError(
            f"{registered_name(reader)!r} reads {reader.example_type.__name__}, "
            f"but the model takes {task.example_type.__name__}; "
            f"readers that fit: {', '.join(readers_of(task.example_type))}"
        )
    return reader


def _is_collection(path: Path) -> bool:
    return path.is_dir() or (has_magic(str(path)) and not path.exists())


def _placed_inputs(
    path: Path,
    numbered: Iterable[tuple[int | None, ValueT]],
    make: Callable[[ValueT], PredictionInput[Any]],
) -> Iterator[PredictionInput[Any]]:
    """Yield what is made of each value; an error names its file and line."""
    for number, value in numbered:
        with error_context(path, number):
            made = make(value)
        yield made


def _inputs_of_lines(
    path: Path,
    lines: Iterable[tuple[int, str]],
    make: Callable[[str], PredictionInput[Any]],
) -> Iterator[PredictionInput[Any]]:
    not_blank = ((number, line) for number, line in lines if line.strip())
    return _placed_inputs(path, not_blank, make)


_READERS = ("validation_dataset_reader", "dataset_reader")
_WHITESPACE = "whitespace"


def run_tokenizer(filled: Mapping[str, Any]) -> TokenizerConfig | None:
    """Return the tokenizer for new raw text, by the filled config of a run; None if it is unknown.

    The first of: the key `tokenizer`, that of a dataset reader, that of the corpus that a biLM is
    trained on, that of the run of the model's biLM. Of text that was tokenized already, with spaces
    between words, it is not known.
    """
    readers = [reader for key in _READERS if isinstance(reader := filled.get(key), dict)]
    candidates = [
        filled.get("tokenizer"),
        *(reader.get("tokenizer") for reader in readers),
        _of_corpus(filled),
        *(_of_bilm(Path(path)) for path in _bilms(filled.get("model"))),
    ]
    return next((each for each in candidates if each and _name(each) != _WHITESPACE), None)


def _of_corpus(filled: Mapping[str, Any]) -> TokenizerConfig | None:
    """Return the tokenizer of `elmo prepare`, if the training data is a part of its corpus."""
    path = filled.get("train_data_path")
    try:
        settings = Manifest.read(Path(str(path)).parent).settings if path else {}
    except DataError:
        return None
    tokenizer = settings.get("tokenizer")
    return tokenizer if isinstance(tokenizer, str | dict) else None


def _of_bilm(folder: Path) -> TokenizerConfig | None:
    """Return what the run of a biLM recorded, given its folder or the folder `bilm` in it."""
    for place in (folder, folder.parent):
        try:
            recorded = json.loads((place / "metadata.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        tokenizer = recorded.get("tokenizer") if isinstance(recorded, dict) else None
        if isinstance(tokenizer, str | dict):
            return tokenizer
    return None


def _bilms(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "bilm" and isinstance(inner, str):
                yield inner
            else:
                yield from _bilms(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _bilms(inner)


def _name(tokenizer: object) -> object:
    return tokenizer.get("type") if isinstance(tokenizer, dict) else tokenizer
