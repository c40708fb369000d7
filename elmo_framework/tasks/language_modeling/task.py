"""Language modeling: predict each word from those before it, and from those after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import final

from elmo_framework.data.text import Indexer
from elmo_framework.data.vocabulary import Counts, Vocabularies
from elmo_framework.model.task import Task
from elmo_framework.tasks.language_modeling.batch import WindowBatch, WindowCollator
from elmo_framework.tasks.language_modeling.corpus import LanguageModelingExample, TokenIdCorpus


@final
class LanguageModelingTask(Task[LanguageModelingExample, WindowBatch]):
    """Pretraining of a biLM on sentences."""

    example_type = LanguageModelingExample

    def count(self, examples: Iterable[LanguageModelingExample]) -> Counts:
        """Count the words; a prepared corpus already has the counts."""
        if isinstance(examples, TokenIdCorpus) and examples.prepared is not None:
            return {"words": examples.prepared.vocabulary}
        words: Counter[str] = Counter()
        for example in examples:
            words.update(example.words)
        return {"words": words}

    def collator(self, vocabularies: Vocabularies, indexers: Sequence[Indexer]) -> WindowCollator:
        characters, targets = indexers
        return WindowCollator(characters, targets)

    def num_tokens(self, example: LanguageModelingExample) -> int:
        return len(example.words)
