"""`elmo neighbors`: find the nearest neighbors of a word in context."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, final

from elmo_framework.commands.command import Command, ResultFormat, register_components
from elmo_framework.commands.inputs import bilm_inputs
from elmo_framework.config.arguments import (
    AboveZero,
    Argument,
    BiLm,
    ComponentConfig,
    Device,
    Plugins,
)
from elmo_framework.console import plural
from elmo_framework.io.outputs import Input

if TYPE_CHECKING:
    from elmo_framework.analysis.neighbors import Neighbors, NeighborSearch


Corpus: TypeAlias = Annotated[Sequence[Path], Argument("FILE", takes_many=True)]
Query: TypeAlias = Annotated[str, Argument("SENTENCE")]


@dataclass(frozen=True, kw_only=True)
class SearchCommand(Command):
    """Base class of the commands that search for neighbors of a word.

    Attributes:
        corpus: text files with one sentence per line; .gz, .bz2, .xz and .zst are decompressed.
        query: a sentence.
        word: the word of SENTENCE to find neighbors of.
        k: number of neighbors per layer (default: %(default)s).
        layer: a layer to compare, 0 being the token encoder; may be given several times (default:
            all, but 0 only with --any-word).
        any_word: compare with every word of the corpus.
        tokenizer: the tokenizer: a registered name, or JSON as in a config (default: %(default)s).
    """

    k: AboveZero = 10
    layer: Annotated[Sequence[int] | None, Argument("N")] = None
    any_word: bool = False
    tokenizer: ComponentConfig = "whitespace"
    device: Device = "auto"

    def search(self, query: str, word: str, corpus: Sequence[Path]) -> NeighborSearch:
        from elmo_framework.analysis.neighbors import NeighborSearch

        return NeighborSearch(
            query,
            word,
            corpus,
            num_neighbors=self.k,
            layers=self.layer,
            any_word=self.any_word,
            tokenizer=self.tokenizer,
            device=self.device,
        )


@final
@dataclass(frozen=True, kw_only=True)
class ShowNeighbors(SearchCommand):
    """Find the occurrences in a corpus that are nearest to a word of a sentence.

    Attributes:
        bilm: the folder of a biLM, or of its run, or its name: mini, or a published one; or the
            folder of a transformer.
    """

    name = "neighbors"
    epilog = """\
examples:
  elmo neighbors runs/bilm --corpus news.txt --query "He sat on the river bank" --word bank
  elmo neighbors mini --corpus news-*.txt.gz --query "a fine play" --word play -k 3 --layer 2
  elmo neighbors mini --corpus news.txt --query "a fine play" --word play --any-word

Each line of the corpus is a sentence. The neighbors are other occurrences of the word, by cosine
similarity of the vectors of a layer; with --any-word, occurrences of all words.
"""

    bilm: BiLm
    corpus: Corpus
    query: Query
    word: str
    packages: Plugins = ()
    format: ResultFormat = "text"

    def inputs(self) -> Sequence[Input]:
        corpus = [Input(path, "--corpus") for path in self.corpus]
        return [*bilm_inputs(self.bilm, "BILM"), *corpus]

    def run(self) -> int:
        from elmo_framework.analysis.neighbors import find_neighbors

        register_components(self.packages)
        result = find_neighbors(self.bilm, self.search(self.query, self.word, self.corpus))
        print(_as_json(result) if self.format == "json" else _as_text(result))
        return 0


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
