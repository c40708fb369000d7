"""`elmo neighbors`: find the nearest neighbours of a word in context."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, final

from elmo_framework.commands.command import (
    Command,
    above_zero,
    add_bilm_argument,
    add_device_argument,
    add_format_argument,
    add_include_package,
    component,
    register_components,
)
from elmo_framework.commands.inputs import bilm_inputs
from elmo_framework.console import plural
from elmo_framework.io.outputs import Input

if TYPE_CHECKING:
    from elmo_framework.analysis.neighbors import Neighbors, NeighborSearch


@final
class ShowNeighbors(Command):
    """Prints the nearest neighbours of a word in context."""

    name = "neighbors"
    help = "find the occurrences in a corpus that are nearest to a word of a sentence"
    epilog = """\
examples:
  elmo neighbors runs/bilm --corpus news.txt --query "He sat on the river bank" --word bank
  elmo neighbors mini --corpus news-*.txt.gz --query "a fine play" --word play -k 3 --layer 2
  elmo neighbors mini --corpus news.txt --query "a fine play" --word play --any-word

Each line of the corpus is a sentence. The neighbours are other occurrences of the word, by cosine
similarity of the vectors of a layer; with --any-word, occurrences of all words.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add BILM, the query and the corpus."""
        add_bilm_argument(parser)
        add_search_arguments(parser, required=True)
        add_include_package(parser)
        add_format_argument(parser)

    def inputs(self, arguments: Namespace) -> Sequence[Input]:
        """Return the biLM and the corpus."""
        corpus = [Input(path, "--corpus") for path in arguments.corpus]
        return [*bilm_inputs(arguments.bilm, "BILM"), *corpus]

    def run(self, arguments: Namespace) -> int:
        """Search and print."""
        from elmo_framework.analysis.neighbors import find_neighbors

        register_components(arguments.include_package)
        result = find_neighbors(arguments.bilm, search(arguments))
        print(_as_json(result) if arguments.format == "json" else _as_text(result))
        return 0


def add_search_arguments(parser: ArgumentParser, *, required: bool) -> None:
    """Add the arguments of `search`."""
    parser.add_argument(
        "--corpus",
        type=Path,
        nargs="+",
        required=required,
        metavar="FILE",
        help="text files with one sentence per line; .gz, .bz2, .xz and .zst are decompressed",
    )
    parser.add_argument("--query", required=required, metavar="SENTENCE", help="a sentence")
    parser.add_argument(
        "--word", required=required, help="the word of SENTENCE to find neighbours of"
    )
    parser.add_argument(
        "-k",
        type=above_zero,
        default=10,
        metavar="N",
        help="number of neighbours per layer (default: %(default)s)",
    )
    parser.add_argument(
        "--layer",
        type=int,
        action="append",
        metavar="N",
        help="a layer to compare, 0 being the token encoder; may be given several times (default: "
        "all, but 0 only with --any-word)",
    )
    parser.add_argument(
        "--any-word", action="store_true", help="compare with every word of the corpus"
    )
    parser.add_argument(
        "--tokenizer",
        type=component,
        default="whitespace",
        metavar="NAME",
        help="the tokenizer: a registered name, or JSON as in a config (default: %(default)s)",
    )
    add_device_argument(parser)


def search(arguments: Namespace) -> NeighborSearch:
    """Return the search of `add_search_arguments`."""
    from elmo_framework.analysis.neighbors import NeighborSearch

    return NeighborSearch(
        arguments.query,
        arguments.word,
        arguments.corpus,
        num_neighbors=arguments.k,
        layers=arguments.layer,
        any_word=arguments.any_word,
        tokenizer=arguments.tokenizer,
        device=arguments.device,
    )


def _as_json(result: Neighbors) -> str:
    layers = [
        {"layer": layer, "neighbors": [asdict(neighbor) for neighbor in neighbors]}
        for layer, neighbors in result.by_layer.items()
    ]
    whole = {"query": asdict(result.query), "num_compared": result.num_compared, "layers": layers}
    return json.dumps(whole, ensure_ascii=False, indent=2)


def _as_text(result: Neighbors) -> str:
    lines = [str(result.query)]
    for layer, neighbors in result.by_layer.items():
        lines += ["", f"layer {layer}, of {plural(result.num_compared, 'occurrence')}"]
        lines += [
            f"  {each.similarity:6.3f}  {each.place}  {each.occurrence}" for each in neighbors
        ]
    return "\n".join(lines)
