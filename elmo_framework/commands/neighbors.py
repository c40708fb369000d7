"""`elmo neighbors`: the words of a corpus that a biLM sees alike."""

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

a line of the corpus is a sentence. The neighbours are other occurrences of the word, by the cosine
between the vectors that a layer gives them; with --any-word, occurrences of all words.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the biLM, the query and the corpus."""
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
        found = find_neighbors(arguments.bilm, search(arguments))
        print(_as_json(found) if arguments.format == "json" else _as_text(found))
        return 0


def add_search_arguments(parser: ArgumentParser, *, required: bool) -> None:
    """Declare what `search` reads."""
    parser.add_argument(
        "--corpus",
        type=Path,
        nargs="+",
        required=required,
        metavar="FILE",
        help="text files, a sentence a line; .gz, .bz2, .xz and .zst are decompressed",
    )
    parser.add_argument("--query", required=required, metavar="SENTENCE", help="a sentence")
    parser.add_argument(
        "--word", required=required, help="the word of it whose neighbours are wanted"
    )
    parser.add_argument(
        "-k",
        type=above_zero,
        default=10,
        metavar="N",
        help="how many neighbours of each layer; %(default)s unless given",
    )
    parser.add_argument(
        "--layer",
        type=int,
        action="append",
        metavar="N",
        help="a layer to compare, 0 being that of the token encoder; may be given several times; "
        "all unless given, without 0 where it tells nothing",
    )
    parser.add_argument(
        "--any-word", action="store_true", help="compare with every word of the corpus"
    )
    parser.add_argument(
        "--tokenizer",
        type=component,
        default="whitespace",
        metavar="NAME",
        help="what splits sentences into words: a registered name, or JSON as in a config; "
        "%(default)s unless given",
    )
    add_device_argument(parser)


def search(arguments: Namespace) -> NeighborSearch:
    """Return what `add_search_arguments` asked for."""
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


def _as_json(found: Neighbors) -> str:
    layers = [
        {"layer": layer, "neighbors": [asdict(neighbor) for neighbor in neighbors]}
        for layer, neighbors in found.by_layer.items()
    ]
    whole = {"query": asdict(found.query), "num_compared": found.num_compared, "layers": layers}
    return json.dumps(whole, ensure_ascii=False, indent=2)


def _as_text(found: Neighbors) -> str:
    lines = [str(found.query)]
    for layer, neighbors in found.by_layer.items():
        lines += ["", f"layer {layer}, of {plural(found.num_compared, 'occurrence')}"]
        lines += [
            f"  {each.similarity:6.3f}  {each.place}  {each.occurrence}" for each in neighbors
        ]
    return "\n".join(lines)
