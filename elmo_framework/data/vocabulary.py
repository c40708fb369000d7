"""Vocabularies: counted in the training data, saved with a run, and fixed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.data.formats.text_files import read_lines
from elmo_framework.errors import DataError, allowed, shown
from elmo_framework.io.files import write_text

Counts: TypeAlias = Mapping[str, Counter[str]]
"""Counts of items by the name of their vocabulary: "words", "labels", ..."""

_UNPADDED = "non_padded_namespaces"
_OF_NAMESPACES = {"tokens": "words", "token_characters": "characters"}
_BEGINNINGS = ("B-", "U-", "S-")
_FREQUENT = 1_000_000
"""Added to made-up counts, so that no minimum leaves the items out."""

PADDING, UNKNOWN = "@@PADDING@@", "@@UNKNOWN@@"


@final
class Vocabulary:
    """A fixed mapping of items to ids.

    Args:
        items: by id.
        name: the plural noun for the items in messages.
        unknown: the item used for out-of-vocabulary items; by default, they are an error.
        padding: an item that has an id, but is out of vocabulary.
    """

    def __init__(
        self,
        items: Sequence[str],
        *,
        name: str,
        unknown: str | None = None,
        padding: str | None = None,
    ) -> None:
        self.items, self.name = tuple(items), name
        self._ids = {item: index for index, item in enumerate(self.items)}
        if len(self._ids) < len(self.items):
            duplicate = Counter(self.items).most_common(1)[0][0]
            raise ValueError(f"the vocabulary of {name} contains {duplicate!r} more than once")
        self.unknown_id = None if unknown is None else self._ids[unknown]
        if padding is not None:
            del self._ids[padding]

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: str) -> bool:
        return item in self._ids

    def id(self, item: str) -> int:
        """Return the id of an item.

        Raises:
            DataError: it is out of vocabulary, and the vocabulary has no unknown item.
        """
        index = self._ids.get(item, self.unknown_id)
        if index is None:
            choices = allowed(item, self.items)
            raise DataError(
                f"{item!r} is not among the {self.name} of the training data; {choices}"
            )
        return index

    def ids(self, items: Iterable[str]) -> NDArray[np.int64]:
        """Return the ids of several items; raises as `id`."""
        return np.fromiter((self.id(item) for item in items), dtype=np.int64)


class Vocabularies:
    """The counts of a training run, from which components create their vocabularies.

    Args:
        counts: by name; items are sorted by frequency, then alphabetically.

    Attributes:
        is_assumed: whether nothing was counted, and the items are stand-ins for those of the data.
    """

    is_assumed: ClassVar[bool] = False

    def __init__(self, counts: Counts) -> None:
        self._counts = {name: _by_frequency(counted) for name, counted in counts.items()}
        self._labels: dict[str, Vocabulary] = {}

    @property
    def names(self) -> list[str]:
        """The names of the counts, sorted."""
        return sorted(self._counts)

    def counted(self, name: str) -> Mapping[str, int]:
        """Return the counts of one name, most frequent first; empty if there are none."""
        return self._counts.get(name, {})

    def words(self, name: str = "words", *, min_count: int = 1) -> Vocabulary:
        """Return the words with an unknown item; id 0 is padding.

        Words of the text that are written as these two are unknown.
        """
        special = (PADDING, UNKNOWN)
        words = [
            word
            for word, count in self.counted(name).items()
            if count >= min_count and word not in special
        ]
        return Vocabulary([*special, *words], name=name, unknown=UNKNOWN, padding=PADDING)

    def characters(self) -> Vocabulary:
        """Return the characters with an unknown item; id 0 is padding.

        They are those of the counted words, unless they were counted themselves.
        """
        counted = self.counted("characters") or count_characters(self.counted("words"))
        return Vocabularies({"characters": Counter(counted)}).words("characters")

    def labels(self, name: str = "labels") -> Vocabulary:
        """Return the labels, without padding and unknown item."""
        if name not in self._labels:
            self._labels[name] = Vocabulary(list(self.counted(name)), name=name)
        return self._labels[name]

    def required_labels(self) -> Vocabulary:
        """Return `labels`, or raise ValueError if there are none."""
        labels = self.labels()
        if not len(labels):
            raise ValueError("the training data has no labels")
        return labels

    def save(self, directory: Path) -> None:
        """Write one file per name, with one JSON array `[item, count]` per line."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, counted in self._counts.items():
            lines = [json.dumps(pair, ensure_ascii=False) for pair in counted.items()]
            write_text(directory / f"{name}.jsonl", "".join(f"{line}\n" for line in lines))

    @classmethod
    def load(cls, directory: Path) -> Vocabularies:
        """Read the files of `save`, or those of a vocabulary of AllenNLP.

        Raises:
            DataError: the folder or a file in it cannot be read.
        """
        if not directory.is_dir():
            raise DataError("folder of vocabularies not found", path=directory)
        if (directory / f"{_UNPADDED}.txt").is_file():
            return cls(_read_namespaces(directory))
        return cls({path.stem: _read(path) for path in sorted(directory.glob("*.jsonl"))})


def count_characters(words: Mapping[str, int]) -> Counter[str]:
    """Count the characters of counted words."""
    counted: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counted[character] += count
    return counted


def _by_frequency(counted: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


def _read(path: Path) -> Counter[str]:
    counted: Counter[str] = Counter()
    for number, line in read_lines(path):
        if not line:
            continue
        try:
            pair = json.loads(line)
        except ValueError:
            pair = None
        match pair:
            case [str(item), int(count)]:
                counted[item] = count
            case _:
                message = f"expected [item, count], found {shown(line)}"
                raise DataError(message, path=path, line=number)
    return counted


def counts_of_namespaces(namespaces: Mapping[str, Sequence[str]]) -> Counts:
    """Return counts in which the items of AllenNLP's namespaces keep their order.

    Args:
        namespaces: the items by id, without padding and unknown item.
    """
    items = {_OF_NAMESPACES.get(name, name): each for name, each in namespaces.items()}
    if "labels" in items:
        items["beginnings"] = [tag for tag in items["labels"] if tag.startswith(_BEGINNINGS)]
    return {
        name: Counter({item: _FREQUENT + len(listed) - index for index, item in enumerate(listed)})
        for name, listed in items.items()
    }


def _read_namespaces(directory: Path) -> Counts:
    """Read a folder of AllenNLP: one file per namespace with one item per line, by id."""
    unpadded = [pattern for _, pattern in read_lines(directory / f"{_UNPADDED}.txt") if pattern]
    namespaces = {}
    for path in sorted(directory.glob("*.txt")):
        if path.stem == _UNPADDED:
            continue
        items = [line.replace("@@NEWLINE@@", "\n") for _, line in read_lines(path)]
        has_unknown = not any(_is_match(path.stem, pattern) for pattern in unpadded)
        namespaces[path.stem] = items[1:] if has_unknown else items
    return counts_of_namespaces(namespaces)


def _is_match(namespace: str, pattern: str) -> bool:
    """Return whether a namespace ends as a pattern with `*` at its front, or is the pattern."""
    return namespace.endswith(pattern[1:]) if pattern.startswith("*") else namespace == pattern
