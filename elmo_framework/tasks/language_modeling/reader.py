"""Read plain text and prepared corpora for language modeling."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, final

from elmo_framework.config.types import Count, Default
from elmo_framework.corpus.prepared import PreparedSplit
from elmo_framework.data.formats.text_files import (
    NO_SENTENCE,
    read_lines,
    require_nonempty,
    require_plain_text,
)
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.tasks.language_modeling.corpus import LanguageModelingExample, TokenIdCorpus


@final
@DatasetReader.register("language_modeling")
class LanguageModelingReader(FileReader[LanguageModelingExample]):
    """Reads sentences from UTF-8 text: a file, a folder of files or a pattern of files.

    Files whose names end with `.gz`, `.bz2`, `.xz` or `.zst` are decompressed. A line without words
    is skipped. Sentence boundaries (`<S>`, `</S>`) are not written in the text; the model adds
    them.

    Args:
        tokenizer: splits lines into sentences and words; `whitespace` expects tokenized text with
            one sentence per line.
    """

    example_type = LanguageModelingExample

    def __init__(
        self,
        *,
        tokenizer: Annotated[Tokenizer, Default("whitespace")],
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self.tokenizer: Tokenizer = tokenizer

    def examples(self, file: Path) -> Iterator[LanguageModelingExample]:
        require_plain_text([file])
        return require_nonempty(self._sentences(file), NO_SENTENCE, file)

    def _sentences(self, file: Path) -> Iterator[LanguageModelingExample]:
        for _, line in read_lines(file):
            for sentence in self.tokenizer.sentences(line):
                words = self.tokenizer.words(sentence)
                if words:
                    yield LanguageModelingExample(tuple(words))


@final
@DatasetReader.register("prepared_corpus")
class PreparedCorpusReader(DatasetReader[LanguageModelingExample]):
    """Reads a part of a corpus that `elmo prepare` made: `CORPUS/training`, `CORPUS/held_out`.

    Nothing is tokenized again, and the text remains on disk. The model has the corpus's
    vocabulary, unless the top key `vocabulary` or the model's own keys make it smaller.

    Args:
        max_instances: maximum number of sentences to read, evenly spaced.
    """

    example_type = LanguageModelingExample

    def __init__(self, *, max_instances: Count | None = None) -> None:
        self.max_instances = max_instances

    def read(self, path: Path) -> TokenIdCorpus:
        part = PreparedSplit.load(path)
        corpus = TokenIdCorpus(part.words, part.ids, part.offsets, part)
        return corpus if self.max_instances is None else corpus.sample(self.max_instances)
