"""Recognize what a file or a folder contains: the task, the dataset reader, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from elmo_framework.console import plural
from elmo_framework.data.formats.columns import columns_of, read_sentences
from elmo_framework.data.formats.compressed import data_suffix
from elmo_framework.data.formats.file_format import FileFormat, FileSample
from elmo_framework.data.formats.text_files import is_visible
from elmo_framework.errors import DataError, RunError, shown
from elmo_framework.scaffold.records import recognize_records
from elmo_framework.tasks.classification.reader import has_label_folders

TaskName: TypeAlias = Literal[
    "classification",
    "multi_label",
    "regression",
    "entailment",
    "tagging",
    "question_answering",
    "language_modeling",
]
"""The tasks that configs are written for."""


@dataclass(frozen=True)
class UserChoices:
    """What the user decides by flags.

    Attributes:
        task: the task; None to recognize it.
        texts: the columns of the texts: one, or two for pairs.
        label: the column of the labels or tags.
    """

    task: TaskName | None = None
    texts: Sequence[str] = ()
    label: str | None = None


@dataclass(frozen=True)
class RecognizedData:
    """What a file or a folder is taken for.

    Attributes:
        task: what to learn from it.
        reader: the config of the dataset reader, without a tokenizer; empty for plain text.
        description: the data in a few words.
        reasons: why.
        hints: what else it may be, and how to decide.
    """

    task: TaskName
    reader: Mapping[str, Any]
    description: str
    reasons: Sequence[str] = ()
    hints: Sequence[str] = ()


_SRL = "semantic roles are labeled by a shipped config: elmo new --task srl --from elmo"
_OTHERS: dict[FileFormat, str] = {
    FileFormat.CONLL2012: f"{_SRL} (or --task coreference)",
    FileFormat.PROPOSITIONS: _SRL,
    FileFormat.XML: "word senses are read by a shipped config: elmo new --task word_senses --from "
    "elmo; export other XML as a table",
}
"""What to do with formats that configs are not written for."""

_MAX_COLUMNS = 4
_NUM_SENTENCES = 100


def recognize(path: Path, choices: UserChoices) -> RecognizedData:
    """Recognize the data of a file or a folder.

    Raises:
        DataError: it cannot be read.
        RunError: it is not data to train on, or it contradicts the choices; the message says what
            to do.
    """
    data = _of_folder(path) if path.is_dir() else _of_file(FileSample.of(path), choices)
    if choices.task not in (None, data.task):
        raise RunError(
            f"{path}: this is {data.description}, which is data for the task {data.task!r}, not "
            f"{choices.task!r}"
        )
    if data.task in ("tagging", "question_answering", "language_modeling") and choices.texts:
        raise RunError(f"--text is for tables and JSON lines of texts; {path} is {data.task} data")
    return data


def _of_folder(path: Path) -> RecognizedData:
    if has_label_folders(path):
        labels = sorted(entry.name for entry in path.iterdir() if is_visible(entry))
        return RecognizedData(
            "classification",
            {"type": "text_classification_folder"},
            f"a folder with one folder of texts for each of {plural(len(labels), 'label')}",
            [f"each folder in it is taken for a label: {', '.join(map(repr, labels[:6]))}"],
        )
    entries = sorted(filter(is_visible, path.iterdir()))
    files = [entry for entry in entries if entry.is_file()]
    if not files:
        listed = ", ".join(shown(entry.name) for entry in entries[:6]) or "nothing"
        raise RunError(
            f"{path}: expected a folder for each label with one text per file, or a folder of "
            f"texts; it contains {listed}"
        )
    for file in files:
        if _training_files([file]) or FileSample.of(file).formats():
            raise RunError(
                f"{path}: this folder contains data files, not texts; pass the file to train on: "
                f"elmo new {(_training_files(files) or files)[0]}"
            )
    return _plain_text(f"a folder with {plural(len(files), 'file')} of plain text", is_folder=True)


def _training_files(files: Sequence[Path]) -> list[Path]:
    return [file for file in files if "train" in file.name.casefold()]


def _plain_text(description: str, *, is_folder: bool) -> RecognizedData:
    labels = "a folder for each label, or " if is_folder else ""
    return RecognizedData(
        "language_modeling",
        {},
        description,
        ["there are no labels, so a biLM can be trained on it"],
        [
            f"to learn labels, make {labels}a table with a text and a label in each row",
            "for vectors of the text no config is needed: elmo embed mini FILE --output-file OUT",
        ],
    )


def _of_file(sample: FileSample, choices: UserChoices) -> RecognizedData:
    if not sample.filled_lines:
        raise DataError("this file is empty", path=sample.path)
    if choices.task != "language_modeling":
        for recognizer in (_of_word_lines, _of_document, _of_records):
            data = recognizer(sample, choices)
            if data is not None:
                return data
    return _plain_text("plain text", is_folder=False)


def _of_word_lines(sample: FileSample, choices: UserChoices) -> RecognizedData | None:
    """Recognize formats with one word per line, and trees."""
    formats = sample.formats()
    if FileFormat.COLUMNS in formats and data_suffix(sample.path) not in (".csv", ".tsv"):
        return _of_columns(sample.path, choices)
    if FileFormat.CONLLU in formats:
        return _of_conllu(choices)
    if FileFormat.TREES in formats:
        return RecognizedData(
            "classification",
            {"type": "sst_tokens"},
            "bracketed trees with classes from 0 to 4",
            ["this is the format of the Stanford Sentiment Treebank"],
            ["add granularity: '2-class' to the reader for positive and negative only"],
        )
    return None


def _of_document(sample: FileSample, choices: UserChoices) -> RecognizedData | None:
    """Recognize SQuAD's JSON; refuse formats that configs are not written for."""
    path, formats = sample.path, sample.formats()
    if FileFormat.JSON in formats and _is_squad(sample):
        return RecognizedData(
            "question_answering",
            {"type": "squad"},
            "questions with passages in the JSON of SQuAD",
            ["it is one JSON document with the key 'data'"],
        )
    for format_, advice in _OTHERS.items():
        if format_ in formats:
            raise RunError(f"{path}: this looks like {format_.value}; {advice}")
    if FileFormat.JSON in formats and FileFormat.JSON_LINES not in formats:
        raise RunError(
            f"{path}: this is a JSON document, of which only SQuAD's form is read; write one "
            "object per line to a file that ends with .jsonl"
        )
    return None


def _of_records(sample: FileSample, choices: UserChoices) -> RecognizedData | None:
    """Recognize the columns of tables and the keys of JSON lines."""
    if not sample.formats() & {FileFormat.TABLE, FileFormat.JSON_LINES}:
        return None
    data = recognize_records(sample, task=choices.task, texts=choices.texts, label=choices.label)
    return RecognizedData(*data)


def _is_squad(sample: FileSample) -> bool:
    first = sample.object()
    has_key = any('"data"' in line for line in sample.lines) or any(
        '"paragraphs"' in line for line in sample.lines
    )
    return ("data" in first) if first is not None else has_key


def _of_conllu(choices: UserChoices) -> RecognizedData:
    columns = {"upos": {}, "xpos": {"use_language_specific_pos": True}}
    label = choices.label or "upos"
    if label not in columns:
        raise RunError(f"--label {label}: of CoNLL-U, the tags of upos and xpos are read")
    return RecognizedData(
        "tagging",
        {"type": "universal_dependencies_pos", **columns[label]},
        "CoNLL-U",
        [f"the tags are parts of speech, of the column {label.upper()}"],
        ["--label xpos takes the tags of the treebank"] if label == "upos" else [],
    )


def _of_columns(path: Path, choices: UserChoices) -> RecognizedData:
    rows = [row for sentence in islice(read_sentences(path), _NUM_SENTENCES) for row in sentence]
    first, width = rows[0], len(rows[0].columns)
    if width > _MAX_COLUMNS:
        raise RunError(
            f"{path}:{first.line}: found {width} columns, and files with up to {_MAX_COLUMNS} are "
            "read; keep the columns of the words and of their tags"
        )
    names = ["pos", "chunk", "ner"][: width - 1]
    if choices.label not in (None, "ner", *names):
        raise RunError(
            f"--label {choices.label}: choose from {', '.join(names)}, or ner (the last)"
        )
    label = choices.label or "ner"
    columns = columns_of(rows, ["words", *names])
    others = [name for name in names[:-1] if name != label and len(set(columns[name])) > 1]
    place = "last column" if label == "ner" else f"column {names.index(label) + 2}"
    return RecognizedData(
        "tagging",
        {"type": "conll2003", **({"tag_label": label} if label != "ner" else {})},
        f"one word per line in {plural(width, 'column')}, with blank lines between sentences",
        [f"the words are in the first column, their tags in the {place}"],
        [f"--label {name} takes column {names.index(name) + 2} as tags" for name in others],
    )
