"""`elmo cache`: list or clear the cached layers of frozen biLMs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, final

from elmo_framework.commands.command import Command, ResultFormat
from elmo_framework.config.arguments import Argument
from elmo_framework.console import format_bytes, render_table
from elmo_framework.errors import RunError

if TYPE_CHECKING:
    from elmo_framework.layers.cache.layer_cache import CacheEntry


@final
@dataclass(frozen=True, kw_only=True)
class Cache(Command):
    """List or clear the cached layers of frozen biLMs.

    Attributes:
        keys: the caches to clear; all by default.
    """

    name = "cache"
    epilog = """\
examples:
  elmo cache                              list the layer caches in $ELMO_CACHE_ROOT, by biLM
  elmo cache clear 5f0c7d6b1a2e3948       remove one; it is computed again when it is needed
  elmo cache clear                        remove all
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
    from elmo_framework.layers.cache.layer_cache import clear, reports

    for key in keys or [entry.key for entry in reports()]:
        print(f"{key}: removed, {format_bytes(clear(key))}")
    return 0


def _list(*, as_json: bool) -> int:
    import json
    from dataclasses import asdict

    from elmo_framework.layers.cache.layer_cache import caches_folder, reports

    entries = reports()
    if as_json:
        print(json.dumps([asdict(entry) for entry in entries], indent=2))
    elif not entries:
        print(f"{caches_folder()}: no cached layers")
    else:
        headers = ("key", "sentences", "size", "numbers", "last used", "biLM", "digest")
        print(render_table(headers, map(_row, entries)))
    return 0


def _row(entry: CacheEntry) -> list[str]:
    from datetime import datetime

    return [
        entry.key,
        f"{entry.num_sentences:,}",
        format_bytes(entry.num_bytes),
        entry.dtype,
        f"{datetime.fromtimestamp(entry.last_used):%Y-%m-%d %H:%M}",
        entry.source,
        entry.digest[:12],
    ]
