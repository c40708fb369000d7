"""Recognize what a table or JSON lines contain: texts, pairs of texts, or tagged words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from elmo_framework.console import plural
from elmo_framework.data.formats.compressed import data_suffix
from elmo_framework.data.formats.file_format import FileFormat, FileSample
from elmo_framework.data.formats.records import read_records
from elmo_framework.errors import DataError, RunError
from elmo_framework.scaffold.columns import Column, Columns, require_learnable

_TABLES = (".csv", ".tsv", ".txt")

RecordTask: TypeAlias = Literal[
    "classification", "multi_label", "regression", "entailment", "tagging"
]


class RecordsFound(NamedTuple):
    """The task of a file of records, its reader, a description, reasons and hints."""

    task: RecordTask
    reader: dict[str, Any]
    description: str
    reasons: Sequence[str]
    hints: Sequence[str]


def recognize_records(
    sample: FileSample, *, task: str | None, texts: Sequence[str], label: str | None
) -> RecordsFound:
    """Recognize the columns of a table, or the keys of JSON lines.

    Args:
        sample: of the file.
        task: what the user wants; None to decide.
        texts: the columns of the texts that the user names, if any.
        label: the column of the labels that the user names, if any.

    Raises:
        DataError: the file cannot be read, or the table has no names of columns.
        RunError: no column looks like texts or labels, or one that the user names does not exist.
    """
    path = sample.path
    is_table = FileFormat.TABLE in sample.formats()
    if is_table and data_suffix(path) not in _TABLES:
        raise DataError("this looks like a table with tabs; rename it to end with .tsv", path=path)
    columns = Columns.of(path, read_records(path))
    if is_table:
        columns.require_header()
    noun = "column" if is_table else "key"
    size = f"{plural(len(columns.by_name), noun)} and {plural(columns.num_rows, 'row')}"
    description = f"a table with {size}" if is_table else f"JSON lines with {size}"
    tagged = columns.tagged_words()
    if task == "tagging" or (task is None and tagged and not texts and _are_words(columns, tagged)):
        return _tagging(columns, description, tagged, label, is_table=is_table)
    pair = _pair(columns, task, texts)
    if pair is not None:
        return _pairs(columns, description, pair, label, task)
    return _single_texts(columns, description, texts, label, task)


def _are_words(columns: Columns, tagged: tuple[str, str]) -> bool:
    word = columns.by_name[tagged[0]]
    return word.num_lists > 0 or word.mean_words < 1.1


def _tagging(
    columns: Columns,
    description: str,
    tagged: tuple[str, str] | None,
    label: str | None,
    *,
    is_table: bool,
) -> RecordsFound:
    if tagged is None:
        raise RunError(
            f"{columns.path}: found no columns of words and tags, called word and tag; columns:\n"
            f"{columns.listed()}"
        )
    word, tag = tagged[0], columns.named(label, "--label").name if label else tagged[1]
    reasons = [f"the words are in {word!r} and their tags in {tag!r}, by these names"]
    if not is_table:
        if columns.by_name[tag].num_lists == 0:
            raise RunError(
                f"{columns.path}: {tag!r} is not a list of strings; write the names of the tags, "
                "one for each word"
            )
        keys = {"tokens_key": word, "tags_key": tag}
        return RecordsFound("tagging", {"type": "tagging_json", **keys}, description, reasons, [])
    reader = {"type": "tagging_table", "word_column": word, "tag_column": tag}
    sentence = columns.sentence_number()
    if sentence is not None:
        reader["sentence_column"] = sentence
        reasons.append(f"a new value in {sentence!r} begins a sentence")
    else:
        reasons.append("a blank line ends a sentence")
    others = [
        f"--label {name!r} takes these tags instead"
        for name, column in columns.by_name.items()
        if name not in (word, tag, sentence) and column.is_label
    ]
    return RecordsFound("tagging", reader, description, reasons, others)


def _pair(columns: Columns, task: str | None, texts: Sequence[str]) -> tuple[str, str] | None:
    """Return the two columns of a pair of texts; None for single texts."""
    if len(texts) > 2:
        raise RunError("--text: name one column, or two for pairs of texts")
    if len(texts) == 2:
        if task in ("classification", "multi_label"):
            raise RunError(f"--task {task} reads one --text; two are for entailment or regression")
        first, second = (columns.named(name, "--text").name for name in texts)
        return first, second
    if texts or task in ("classification", "multi_label"):
        return None
    pair = columns.pair()
    if task == "entailment" and pair is None:
        raise RunError(
            f"{columns.path}: which columns are the pair? name them: --text FIRST --text SECOND; "
            f"columns:\n{columns.listed()}"
        )
    return pair


def _pairs(
    columns: Columns,
    description: str,
    pair: tuple[str, str],
    label: str | None,
    task: str | None,
) -> RecordsFound:
    chosen, hints = _target(columns, pair, label, task)
    is_number = task == "regression" or (task is None and chosen.is_number)
    target = {"value_key" if is_number else "label_key": chosen.name}
    keys = {"premise_key": pair[0], "hypothesis_key": pair[1], **target}
    skipping, skipped = _skipping(columns, [*pair, chosen.name])
    reasons = [
        f"the pairs are in {pair[0]!r} and {pair[1]!r}",
        f"the {'numbers' if is_number else 'labels'} are in {chosen.name!r}, {chosen.described()}",
        *skipped,
    ]
    reader = {"type": "pair_regression_json" if is_number else "snli", **keys, **skipping}
    single = f"--text {pair[1]!r} takes single texts instead of pairs"
    recognized: RecordTask = "regression" if is_number else "entailment"
    return RecordsFound(recognized, reader, description, reasons, [*hints, single])


def _single_texts(
    columns: Columns,
    description: str,
    texts: Sequence[str],
    label: str | None,
    task: str | None,
) -> RecordsFound:
    candidates = [columns.named(name, "--text") for name in texts] or columns.texts()
    candidates = [column for column in candidates if column.name != label]
    if not candidates:
        raise RunError(
            f"{columns.path}: no column looks like texts; name it: --text COLUMN; columns:\n"
            f"{columns.listed()}"
        )
    text, *others = candidates
    if not text.is_plain:
        raise RunError(f"{columns.path}: {text.name!r} has other values than texts")
    others = [] if texts else others
    chosen, hints = _target(columns, [text.name, *(other.name for other in others)], label, task)
    recognized = _task_of(chosen, task)
    can_be_empty = recognized == "multi_label" and text.num_filled == columns.num_rows
    required = [text.name] if can_be_empty else [text.name, chosen.name]
    skipping, skipped = _skipping(columns, required)
    reader = {**_reader_of(recognized, text, chosen), **skipping}
    noun = "numbers" if recognized == "regression" else "labels"
    values = "lists" if chosen.num_lists else chosen.described()
    reasons = [
        f"the texts are in {text.name!r}, {plural(round(text.mean_words), 'word')} on average",
        f"the {noun} are in {chosen.name!r}, {values}",
        *skipped,
    ]
    if "separator" in reader:
        reasons.append(
            f"a text has any number of labels, with {reader['separator']!r} between them"
        )
        hints = ["--task classification takes all labels of a text as one label", *hints]
    alternatives = [f"--text {other.name!r} reads other texts" for other in others]
    if others:
        pair = f"--text {text.name!r} --text {others[0].name!r}"
        alternatives.append(f"{pair} takes them as pairs, as two texts to compare")
    return RecordsFound(recognized, reader, description, reasons, [*alternatives, *hints])


def _task_of(target: Column, task: str | None) -> RecordTask:
    """Return what is learned from single texts with a target."""
    if task == "multi_label" or (task is None and target.has_several_labels):
        return "multi_label"
    if task == "regression" or (task is None and target.is_number):
        return "regression"
    return "classification"


def _reader_of(task: RecordTask, text: Column, target: Column) -> dict[str, Any]:
    """Return the dataset reader of single texts, without a tokenizer."""
    match task:
        case "multi_label":
            separator = {} if target.num_lists else {"separator": target.separator or ","}
            names = {"text_key": text.name, "labels_key": target.name}
            return {"type": "multi_label_json", **names, **separator}
        case "regression":
            names = {"text_key": text.name, "value_key": target.name}
            return {"type": "text_regression_json", **names}
        case _:
            names = {"text_key": text.name, "label_key": target.name}
            return {"type": "text_classification_json", **names}


def _target(
    columns: Columns, texts: Sequence[str], label: str | None, task: str | None
) -> tuple[Column, list[str]]:
    """Return the column of labels or numbers, and hints about others."""
    if label is not None:
        chosen = columns.named(label, "--label")
        if label in texts:
            raise RunError(f"--label {label}: this column has the texts")
        if task == "regression":
            chosen.require_numbers(columns.path)
        elif _task_of(chosen, task) == "classification":
            require_learnable(chosen, columns.path)
        return chosen, []
    candidates = columns.targets(texts, task)
    if not candidates:
        raise RunError(_without_labels(columns.path, columns))
    chosen, *others = candidates
    return chosen, [f"--label {each.name!r} learns {each.described()}" for each in others]


def _without_labels(path: Path, columns: Columns) -> str:
    return (
        f"{path}: no column looks like labels, which are few and occur several times each; name "
        f"it: --label COLUMN; columns:\n{columns.listed()}\nWithout labels, vectors need no config:"
        " elmo embed mini TEXT --output-file OUT, with one sentence per line"
    )


def _skipping(columns: Columns, names: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the key of the reader for rows with empty cells, and a line about them, if any."""
    empty = [name for name in names if columns.by_name[name].num_filled < columns.num_rows]
    if not empty:
        return {}, []
    listed = " or ".join(map(repr, empty))
    return {"skip_incomplete": True}, [f"rows with an empty {listed} are skipped"]
