"""Vocabularies: counted in the training data, kept with a run, never changed afterwards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.data.formats.text_files import read_lines
from elmo_framework.errors import DataError, allowed, shown
from elmo_framework.io.files import write_text

Counts: TypeAlias = Mapping[str, Counter[str]]
"""How often each item was seen, by the name of its vocabulary: "words", "labels", ..."""

PADDING, UNKNOWN = "@@PADDING@@", "@@UNKNOWN@@"


@final
class Vocabulary:
    """Items and their ids, fixed.

    Args:
        items: by id.
        name: what they are, for messages.
        unknown: the item that stands for every other; without one, another item is an error.
    """

    def __init__(self, items: Sequence[str], *, name: str, unknown: str | None = None) -> None:
        self.items, self.name = tuple(items), name
        self._ids = {item: index for index, item in enumerate(self.items)}
        if len(self._ids) < len(self.items):
            raise ValueError(f"the vocabulary of {name} holds {self._twice()!r} more than once")
        self.unknown_id = None if unknown is None else self._ids[unknown]

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: str) -> bool:
        return item in self._ids

    def id(self, item: str) -> int:
        """Return the id of an item.

        Raises:
            DataError: it is not in a vocabulary that has no unknown item.
        """
        found = self._ids.get(item, self.unknown_id)
        if found is None:
            known = allowed(item, self.items)
            raise DataError(f"{item!r} is none of the {self.name} seen in training; {known}")
        return found

    def ids(self, items: Iterable[str]) -> NDArray[np.int64]:
        """Return the ids of several items.

        Raises:
            DataError: see `id`.
        """
        return np.fromiter((self.id(item) for item in items), dtype=np.int64)

    def _twice(self) -> str:
        return Counter(self.items).most_common(1)[0][0]


class Vocabularies:
    """The counts of a training run, from which its parts make their vocabularies.

    Args:
        counts: by name; the order of equally frequent items is alphabetical.
    """

    def __init__(self, counts: Counts) -> None:
        self._counts = {name: _by_frequency(counted) for name, counted in counts.items()}

    @property
    def names(self) -> list[str]:
        """The names that something was counted under."""
        return sorted(self._counts)

    def counted(self, name: str) -> Mapping[str, int]:
        """Return the counts under one name, most frequent first; empty when there are none."""
        return self._counts.get(name, {})

    def words(self, name: str = "words", *, min_count: int = 1) -> Vocabulary:
        """Return the words with an unknown item; id 0 is padding."""
        kept = [word for word, count in self.counted(name).items() if count >= min_count]
        return Vocabulary([PADDING, UNKNOWN, *kept], name=name, unknown=UNKNOWN)

    def labels(self, name: str = "labels") -> Vocabulary:
        """Return labels, without padding and without an unknown item."""
        return Vocabulary(list(self.counted(name)), name=name)

    def required_labels(self) -> Vocabulary:
        """Return `labels`.

        Raises:
            ValueError: there are none.
        """
        labels = self.labels()
        if not len(labels):
            raise ValueError("the training data has no labels")
        return labels

    def save(self, directory: Path) -> None:
        """Write one file a name: a JSON array of item and count a line."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, counted in self._counts.items():
            lines = [json.dumps(pair, ensure_ascii=False) for pair in counted.items()]
            write_text(directory / f"{name}.jsonl", "".join(f"{line}\n" for line in lines))

    @classmethod
    def load(cls, directory: Path) -> Vocabularies:
        """Read what `save` wrote.

        Raises:
            DataError: the folder or a file in it cannot be read.
        """
        if not directory.is_dir():
            raise DataError("there is no such folder of vocabularies", path=directory)
        return cls({path.stem: _read(path) for path in sorted(directory.glob("*.jsonl"))})


def _by_frequency(counted: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


def _read(path: Path) -> Counter[str]:
    counted: Counter[str] = Counter()
    for number, line in read_lines(path):
        if not line:
            continue
        try:
            held = json.loads(line)
        except ValueError:
            held = None
        match held:
            case [str(item), int(count)]:
                counted[item] = count
            case _:
                message = f"expected [item, count], found {shown(line)}"
                raise DataError(message, path=path, line=number)
    return counted
