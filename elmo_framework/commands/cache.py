"""`elmo cache`: the layers of frozen biLMs that are kept between runs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, final

from elmo_framework.commands.command import Command, add_format_argument

if TYPE_CHECKING:
    from elmo_framework.layers.cache.layer_cache import CacheEntry


@final
class Cache(Command):
    """Lists the stores of layers, or removes them."""

    name = "cache"
    help = "list or clear the layers of frozen biLMs that are kept between runs"
    epilog = """\
examples:
  elmo cache                              what is kept in $ELMO_CACHE_ROOT, and for which biLM
  elmo cache clear 5f0c7d6b1a2e3948       remove one store; it is built again when it is needed
  elmo cache clear                        remove all
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare what is done, and to which stores."""
        parser.add_argument("action", nargs="?", choices=("list", "clear"), default="list")
        parser.add_argument("keys", nargs="*", metavar="KEY", help="the stores to clear; or all")
        add_format_argument(parser)

    def run(self, arguments: Namespace) -> int:
        """List or clear."""
        from elmo_framework.errors import RunError

        if arguments.action == "clear":
            return _clear(arguments.keys)
        if arguments.keys:
            raise RunError(f"`elmo cache list` takes no KEY, found {arguments.keys[0]!r}")
        return _list(as_json=arguments.format == "json")


def _clear(keys: list[str]) -> int:
    from elmo_framework.console import format_bytes
    from elmo_framework.layers.cache.layer_cache import clear, reports

    for key in keys or [report.key for report in reports()]:
        print(f"{key}: removed, {format_bytes(clear(key))}")
    return 0


def _list(*, as_json: bool) -> int:
    import json
    from dataclasses import asdict

    from elmo_framework.console import render_table
    from elmo_framework.layers.cache.layer_cache import reports, stores_folder

    found = reports()
    if as_json:
        print(json.dumps([asdict(report) for report in found], indent=2))
    elif not found:
        print(f"{stores_folder()}: nothing is kept")
    else:
        headers = ("key", "sentences", "size", "numbers", "last used", "biLM", "digest")
        print(render_table(headers, map(_row, found)))
    return 0


def _row(report: CacheEntry) -> list[str]:
    from datetime import datetime

    from elmo_framework.console import format_bytes

    return [
        report.key,
        f"{report.num_sentences:,}",
        format_bytes(report.num_bytes),
        report.dtype,
        f"{datetime.fromtimestamp(report.last_used):%Y-%m-%d %H:%M}",
        report.source,
        report.digest[:12],
    ]
