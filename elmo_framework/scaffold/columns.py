"""Statistics of the columns of a table or of JSON lines, and the choice of texts and labels."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import Any

from elmo_framework.console import plural
from elmo_framework.data.formats.records import Record, is_words
from elmo_framework.errors import DataError, RunError, allowed, shown

_MAX_VALUES = 20_000
"""Number of distinct values of a column that are counted."""

_MIN_WORDS = 3
_MIN_PER_LABEL = 5
_MAX_LABELS = 500
_SHOWN_LABELS, _SHOWN_LENGTH = 4, 30
_BOOLEANS = "true and false; write them as strings, such as 'yes' and 'no'"

_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)*")
_DECIMAL = re.compile(r"[-+]?\d*[.,]\d+")
_DATE = re.compile(r"\d{4}-\d\d?(-\d\d?.*)?|\d\d?[./]\d\d?[./]\d{2,4}.*")
_WITHOUT_SPACES = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")

_TEXTS = ("text", "texts", "sentence", "review", "comment", "note", "message", "body", "content")
_LABELS = (
    *("label", "labels", "gold_label", "class", "category", "target", "sentiment", "topic"),
    *("polarity", "emotion", "intent", "rating", "stars", "score", "grade", "diagnosis", "outcome"),
)
_VALUES = ("value", "relatedness", "relatedness_score", "similarity")
_SEPARATORS = (",", ";", "|")
_MAX_LABEL_WORDS = 3
_PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("sentence_a", "sentence_b"),
    ("question1", "question2"),
    ("text_a", "text_b"),
    ("text1", "text2"),
)
_WORDS = ("word", "words", "token", "tokens", "form")
_TAGS = ("tag", "tags", "ner", "ner_tag", "ner_tags", "pos", "upos", "label", "labels", "entity")
_SENTENCE = re.compile(r"sent(ence)?[ _#]*(id|number|no)?\.?", re.IGNORECASE)


@dataclass
class Column:
    """Statistics of the values of one column.

    Attributes:
        name: the name of the column, or the JSON key.
        num_filled: the number of values that are not empty.
        num_words: in all values, separated by spaces.
        num_letters: in all values, with spaces.
        values: the number of each value; of the first 20,000 distinct ones.
        num_distinct: the number of distinct values, at most one more than are counted.
        num_numbers: the number of values that are numbers or dates.
        num_lists: the number of values that are lists of strings.
        num_booleans: the number of values that are `true` or `false` of JSON.
        has_decimals: whether a number has decimal places.
        is_plain: whether all values are strings, whole numbers or empty.
    """

    name: str
    num_filled: int = 0
    num_words: int = 0
    num_letters: int = 0
    values: Counter[str] = field(default_factory=Counter)
    num_distinct: int = 0
    num_numbers: int = 0
    num_lists: int = 0
    num_booleans: int = 0
    has_decimals: bool = False
    is_plain: bool = True

    def add(self, value: Any) -> None:
        """Count a value."""
        if value is None or value == "" or value == []:
            return
        if isinstance(value, list | dict | bool):
            self.num_filled += 1
            self.num_lists += is_words(value)
            self.num_booleans += isinstance(value, bool)
            self.is_plain = False
            return
        text = str(value).strip()
        if not text:
            return
        self.num_filled += 1
        self.is_plain &= not isinstance(value, float)
        self.num_words += len(text.split())
        self.num_letters += len(text)
        if _NUMBER.fullmatch(text) or _DATE.fullmatch(text):
            self.num_numbers += 1
            self.has_decimals |= bool(_DECIMAL.fullmatch(text))
        if text in self.values or len(self.values) < _MAX_VALUES:
            self.num_distinct += text not in self.values
            self.values[text] += 1
        else:
            self.num_distinct = _MAX_VALUES + 1

    @property
    def mean_words(self) -> float:
        return self.num_words / max(self.num_filled, 1)

    @property
    def is_text(self) -> bool:
        """Whether the values look like texts: several words each, and most of them different."""
        if not self.is_plain or not self.values or 2 * self.num_numbers > self.num_filled:
            return False
        if self.separator is not None:
            return False
        has_words = self.mean_words >= _MIN_WORDS
        if not has_words:
            sample = "".join(list(self.values)[:100])
            has_words = 2 * len(_WITHOUT_SPACES.findall(sample)) > len(sample)
        varied = 10 * self.num_distinct >= self.num_filled or self.num_distinct > _MAX_LABELS
        return has_words and varied

    @property
    def is_label(self) -> bool:
        """Whether the values look like labels: few, and each of them several times."""
        return (
            self.is_plain
            and 2 <= self.num_distinct <= _MAX_LABELS
            and self.num_filled >= _MIN_PER_LABEL * self.num_distinct
            and not self.has_decimals
            and not any(map(_DATE.fullmatch, self.values))
        )

    @property
    def has_numbers(self) -> bool:
        """Whether there are at least two values, and all of them are numbers."""
        has_others = self.num_numbers < self.num_filled
        return not has_others and self.num_distinct > 1 and all(map(_is_float, self.values))

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers that are too many and too fine to be labels."""
        is_fine = self.has_decimals and self.num_distinct > _SHOWN_LABELS * _MIN_PER_LABEL
        return is_fine and self.has_numbers

    def require_numbers(self, path: Path) -> None:
        """Raise RunError unless all values are numbers, and not all the same."""
        if not self.has_numbers:
            raise RunError(
                f"{path}: the column {self.name!r} is not for regression ({self.described()}): "
                "expected different numbers, with a point before the decimals"
            )

    @property
    def separator(self) -> str | None:
        """What separates the labels of a value; None unless the values look like several labels.

        The labels are those of other values too, so they are fewer than the values: `food`,
        `service` and `food,service` are two labels, and `yes, very` and `no` are not three.
        """
        if not self.is_plain or self.num_distinct > _MAX_VALUES or self.num_numbers:
            return None
        for separator in _SEPARATORS:
            labels: Counter[str] = Counter()
            for value, count in self.values.items():
                labels.update({part.strip(): count for part in value.split(separator)})
            is_short = all(1 <= len(label.split()) <= _MAX_LABEL_WORDS for label in labels)
            if is_short and 2 <= len(labels) < self.num_distinct and min(labels.values()) > 1:
                return separator
        return None

    @property
    def has_several_labels(self) -> bool:
        """Whether each value looks like any number of labels: a list, or a string of them."""
        is_listed = self.num_lists > 0 and self.num_lists == self.num_filled
        return is_listed or self.separator is not None

    def has_own_name(self) -> bool:
        """Return whether the name looks like a value of this column."""
        return self.name in self.values or _NUMBER.fullmatch(self.name) is not None

    def described(self) -> str:
        """Return the number of values and the most frequent ones: `3 values: a, b, c`."""
        frequent = self.values.most_common(_SHOWN_LABELS)
        listed = [shorten(value, width=_SHOWN_LENGTH, placeholder=" ...") for value, _ in frequent]
        more = ", ..." if self.num_distinct > len(listed) else ""
        number = "more than " * (self.num_distinct > _MAX_VALUES) + plural(
            min(self.num_distinct, _MAX_VALUES), "value"
        )
        return f"{number}: {', '.join(listed)}{more}"


@dataclass(frozen=True)
class Columns:
    """The columns of a file.

    Attributes:
        path: of the file.
        by_name: the columns in the order of the file.
        num_rows: the number of records.
    """

    path: Path
    by_name: Mapping[str, Column]
    num_rows: int

    @classmethod
    def of(cls, path: Path, records: Iterable[Record]) -> Columns:
        """Count the values of all records.

        Raises:
            DataError: a record cannot be read.
        """
        columns: dict[str, Column] = {}
        num_rows = 0
        for record in records:
            num_rows += 1
            for name, value in record.values.items():
                if name not in columns:
                    columns[name] = Column(name)
                columns[name].add(value)
        return cls(path, columns, num_rows)

    def named(self, name: str, flag: str) -> Column:
        """Return the column that a flag names.

        Raises:
            RunError: unknown column.
        """
        if name not in self.by_name:
            message = f"unknown column {name!r}; {allowed(name, self.by_name)}"
            raise RunError(f"{flag}: {self.path}: {message}")
        return self.by_name[name]

    def texts(self) -> list[Column]:
        """Return the columns that look like texts, the best choice first."""
        columns = [column for column in self.by_name.values() if column.is_text]
        by_name = {name.casefold(): column for name, column in self.by_name.items()}
        named = [by_name[name] for name in _TEXTS if name in by_name and by_name[name].is_plain]
        candidates = columns or named[:1]
        return sorted(candidates, key=lambda column: (column not in named, -column.num_letters))

    def targets(self, others: Sequence[str], task: str | None) -> list[Column]:
        """Return the columns with labels, or else with numbers, the best choice first.

        Args:
            others: the columns that have another role.
            task: what the user wants; None to decide.
        """
        columns = [column for name, column in self.by_name.items() if name not in others]
        match task:
            case "regression":
                matching = [column for column in columns if column.has_numbers]
            case "multi_label":
                matching = [column for column in columns if column.has_several_labels]
            case None:
                matching = [c for c in columns if c.is_label or c.has_several_labels]
                matching = matching or [column for column in columns if column.is_number]
            case _:
                matching = [column for column in columns if column.is_label]
        names, last_first = (*_LABELS, *_VALUES), matching[::-1]
        return sorted(last_first, key=lambda column: not _is_named(column.name, names))

    def pair(self) -> tuple[str, str] | None:
        """Return the two columns with the names of a known data set of pairs, if any."""
        by_name = {name.casefold(): name for name in self.by_name}
        for first, second in _PAIRS:
            if first in by_name and second in by_name:
                return by_name[first], by_name[second]
        return None

    def tagged_words(self) -> tuple[str, str] | None:
        """Return the columns of words and of their tags by their names, if there are both."""
        word = next((name for name in self.by_name if name.casefold() in _WORDS), None)
        by_name = {name.casefold(): name for name in self.by_name}
        tag = next((by_name[name] for name in _TAGS if name in by_name), None)
        return None if word is None or tag is None else (word, tag)

    def sentence_number(self) -> str | None:
        """Return the column of sentence numbers by its name, if any."""
        return next((name for name in self.by_name if _SENTENCE.fullmatch(name.strip())), None)

    def require_header(self) -> None:
        """Raise DataError if the names of the columns look like values: the header is missing."""
        names = list(self.by_name)
        is_long = any(len(name.split()) > 2 * _MIN_WORDS for name in names)
        if is_long or all(column.has_own_name() for column in self.by_name.values()):
            header = ", ".join(map(shown, names))
            raise DataError(
                f"the first line looks like data, not like names of columns ({header}); add a "
                "first line with the names, such as text and label",
                path=self.path,
                line=1,
            )

    def listed(self) -> str:
        """Return one line for each column, for messages."""
        return "\n".join(
            f"  {column.name!r}: {_described(column)}" for column in self.by_name.values()
        )


def _described(column: Column) -> str:
    if column.num_booleans:
        return _BOOLEANS
    return column.described() if column.values else "empty, or no text"


def require_learnable(column: Column, path: Path) -> None:
    """Raise RunError if the values of a column cannot be learned as labels."""
    once = sum(1 for count in column.values.values() if count == 1)
    problem = None
    if column.num_booleans:
        problem = f"has {_BOOLEANS}"
    elif column.num_lists or not column.values:
        problem = "does not have one label for each text"
    elif column.num_distinct == 1:
        problem = f"has only one value ({shown(next(iter(column.values)))}): nothing to learn"
    elif column.has_decimals and column.num_distinct > _SHOWN_LABELS * _MIN_PER_LABEL:
        problem = (
            f"has {column.num_distinct:,} different numbers: a measurement, not a label; "
            "pass --task regression, or replace them by a few classes, such as low and high"
        )
    elif 2 * once > column.num_filled:
        problem = (
            f"has a different value in most rows ({column.described()}): a label needs several "
            "examples"
        )
    if problem is not None:
        raise RunError(f"{path}: the column {column.name!r} {problem}")


def _is_float(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_named(name: str, names: Sequence[str]) -> bool:
    return name.casefold() in names
