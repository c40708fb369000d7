"""Extract the genre of a document from its name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from elmo_framework.console import plural

ONTONOTES = "^(bc|bn|mz|nw|pt|tc|wb)/"
"""The folders of OntoNotes: broadcast conversation and news, magazines, newswire, pivot texts,
telephone, web."""


@dataclass(frozen=True)
class GenrePattern:
    """Finds the genre in the name of a document.

    Attributes:
        pattern: a regular expression whose one group is the genre; None for no genres.
    """

    pattern: str | None

    def __post_init__(self) -> None:
        if self.pattern is None:
            return
        try:
            num_groups = re.compile(self.pattern).groups
        except re.error as error:
            raise ValueError(f"genre_pattern is {self.pattern!r}: {error}") from error
        if num_groups != 1:
            raise ValueError(
                f"genre_pattern is {self.pattern!r} with {plural(num_groups, 'group')}; "
                "use one group in parentheses for the genre"
            )

    def genre(self, key: str) -> str | None:
        """Return the genre of a document; None if its name has none."""
        match = None if self.pattern is None else re.search(self.pattern, key)
        return None if match is None else match[1]
