"""`elmo cache`: list or clear the cached layers of frozen biLMs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, final

from elmo_framework.commands.command import Command, add_format_argument

if TYPE_CHECKING:
    from elmo_framework.layers.cache.layer_cache import CacheEntry


@final
class Cache(Command):
    """Lists or clears layer caches."""

    name = "cache"
    help = "list or clear the cached layers of frozen biLMs"
    epilog = """\
examples:
  elmo cache                              list the layer caches in $ELMO_CACHE_ROOT, by biLM
  elmo cache clear 5f0c7d6b1a2e3948       remove one; it is computed again when it is needed
  elmo cache clear                        remove all
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the action and KEY."""
        parser.add_argument("action", nargs="?", choices=("list", "clear"), default="list")
        parser.add_argument(
            "keys", nargs="*", metavar="KEY", help="the caches to clear; all by default"
        )
        add_format_argument(parser)

    def run(self, arguments: Namespace) -> int:
        """List or clear."""
        from elmo_framework.errors import RunError

        if arguments.action == "clear":
            return _clear(arguments.keys)
        if arguments.keys:
            raise RunError(
                f"unexpected KEY {arguments.keys[0]!r}; only `elmo cache clear` takes one"
            )
        return _list(as_json=arguments.format == "json")


def _clear(keys: list[str]) -> int:
    from elmo_framework.console import format_bytes
    from elmo_framework.layers.cache.layer_cache import clear, reports

    for key in keys or [entry.key for entry in reports()]:
        print(f"{key}: removed, {format_bytes(clear(key))}")
    return 0


def _list(*, as_json: bool) -> int:
    import json
    from dataclasses import asdict

    from elmo_framework.console import render_table
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

    from elmo_framework.console import format_bytes

    return [
        entry.key,
        f"{entry.num_sentences:,}",
        format_bytes(entry.num_bytes),
        entry.dtype,
        f"{datetime.fromtimestamp(entry.last_used):%Y-%m-%d %H:%M}",
        entry.source,
        entry.digest[:12],
    ]
