"""`elmo cache`: list or clear cached layers, unpacked archives and downloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, final

from elmo_framework.commands.command import Command, ResultFormat
from elmo_framework.config.arguments import Argument
from elmo_framework.console import format_bytes, render_table
from elmo_framework.errors import RunError, allowed

if TYPE_CHECKING:
    from elmo_framework.layers.cache.layer_cache import CacheEntry


@final
@dataclass(frozen=True, kw_only=True)
class Cache(Command):
    """List or clear cached layers, unpacked archives and downloads.

    Attributes:
        keys: the caches to clear; all by default.
    """

    name = "cache"
    epilog = """\
examples:
  elmo cache                              list what is in $ELMO_CACHE_ROOT
  elmo cache clear 5f0c7d6b1a2e3948       remove the cached layers of one biLM
  elmo cache clear archives/3b5d          remove one unpacked archive, or one download
  elmo cache clear                        remove all cached layers, archives and downloads

What was removed is computed, unpacked or downloaded again when it is needed.
"""

    action: Annotated[Literal["list", "clear"], Argument(is_positional=True)] = "list"
    keys: Annotated[Sequence[str], Argument("KEY", is_positional=True)] = ()
    format: ResultFormat = "text"

    def run(self) -> int:
        if self.action == "clear":
            return _clear(self.keys)
        if self.keys:
            raise RunError(f"unexpected KEY {self.keys[0]!r}; only `elmo cache clear` takes one")
        return _list(as_json=self.format == "json")


def _clear(keys: Sequence[str]) -> int:
    from elmo_framework.io.files import cache_root
    from elmo_framework.io.stored import clear_stored, stored_items
    from elmo_framework.layers.cache.layer_cache import clear, reports

    every = [*(entry.key for entry in reports()), *(each.key for each in stored_items())]
    for key in keys:
        if key not in every:
            raise RunError(f"unknown key {key!r} in {cache_root()}; {allowed(key, every)}")
    for key in keys or every:
        size = clear_stored(key) if "/" in key else clear(key)
        print(f"{key}: removed, {format_bytes(size)}")
    return 0


def _list(*, as_json: bool) -> int:
    import json
    from dataclasses import asdict

    from elmo_framework.io.stored import stored_items
    from elmo_framework.layers.cache.layer_cache import caches_folder, reports

    entries, stored = reports(), stored_items()
    if as_json:
        print(json.dumps([*map(asdict, entries), *map(asdict, stored)], indent=2))
        return 0
    tables = []
    if entries or not stored:
        headers = ("key", "sentences", "size", "numbers", "last used", "biLM", "digest")
        empty = f"{caches_folder()}: no cached layers"
        tables.append(render_table(headers, map(_row, entries)) if entries else empty)
    if stored:
        rows = [[each.key, format_bytes(each.num_bytes), _day(each.last_used)] for each in stored]
        tables.append(render_table(("key", "size", "last used"), rows))
    print("\n\n".join(tables))
    return 0


def _row(entry: CacheEntry) -> list[str]:
    return [
        entry.key,
        f"{entry.num_sentences:,}",
        format_bytes(entry.num_bytes),
        entry.dtype,
        _day(entry.last_used),
        entry.source,
        entry.digest[:12],
    ]


def _day(seconds: float) -> str:
    from datetime import datetime

    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"
