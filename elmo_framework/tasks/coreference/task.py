"""The task of coreference resolution: predict the clusters of mentions of a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, final

from rich.text import Text

from elmo_framework.data.annotation import Annotation
from elmo_framework.data.formats.records import string_of
from elmo_framework.data.inputs import only_key
from elmo_framework.data.labels import excerpt
from elmo_framework.data.text import Indexer
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Counts, Vocabularies
from elmo_framework.errors import DataError
from elmo_framework.metrics.coreference import Clusters, ConllCoref, MentionRecall, Resolution
from elmo_framework.metrics.metric import Metric
from elmo_framework.model.task import HeadTask, PredictionFormat
from elmo_framework.tasks.coreference.columns import colored, conll2012
from elmo_framework.tasks.coreference.example import (
    Cluster,
    CoreferenceBatch,
    Document,
    coreference_batch,
)
from elmo_framework.tasks.coreference.reader import word_lists

_KEYS = ("document", "sentence", "sentences")


@final
class CoreferenceTask(HeadTask[Document, CoreferenceBatch]):
    """Predicts the coreferent mentions of a document; evaluated like the CoNLL-2012 shared task.

    A prediction is a `Resolution`.
    """

    example_type = Document
    metrics: ClassVar[Mapping[str, Metric]] = {
        "conll_coref": ConllCoref(),
        "mention_recall": MentionRecall(),
    }
    formats: ClassVar[Mapping[str, PredictionFormat]] = {
        "conll2012": conll2012,
        "conll": conll2012,
    }
    # Without `doc_key`, which is an input too, as the output includes it.
    input_keys = (*_KEYS, "speakers", "genre")
    agreement_scores = ("coref_f1",)

    def count(self, examples: Iterable[Document]) -> Counts:
        words: Counter[str] = Counter()
        genres: Counter[str] = Counter()
        for example in examples:
            words.update(example.words)
            genres.update([] if example.genre is None else [example.genre])
        return {"words": words, "genres": genres}

    def collate(
        self, examples: Sequence[Document], vocabularies: Vocabularies, indexers: Sequence[Indexer]
    ) -> CoreferenceBatch:
        return coreference_batch(examples, vocabularies.words("genres"), indexers)

    def sentences(self, example: Document) -> Iterable[Sequence[str]]:
        return example.sentences

    def document(self, example: Document) -> Sequence[Sequence[str]]:
        return example.sentences

    def sampling_unit(self, example: Document) -> str:
        """Return the name of the document, or its first sentence: readers may cut the others.

        The parts of a document have its name, so they are one unit.
        """
        return example.key or " ".join(example.sentences[0])

    def gold(self, example: Document) -> tuple[Cluster, ...]:
        if example.clusters is None:
            name = repr(example.key) if example.key else excerpt(example.words)
            raise DataError(f"a document without clusters cannot be scored: {name}")
        return example.clusters

    def as_gold(self, prediction: Resolution) -> Clusters:
        return prediction.clusters

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> Document:
        """Make an example from `{"document": "..."}` or `{"sentences": [["...", ...], ...]}`.

        `sentences` may be combined with `speakers`, one per word. `sentence` is a synonym of
        `document`. `genre` and `doc_key`, the name of the document, are optional.
        """
        key = only_key(inputs, _KEYS)
        sentences, speakers = _sentences(key, inputs, tokenizer), None
        if "speakers" in inputs:
            speakers = word_lists(inputs, "speakers")
        genre = string_of(inputs, "genre") if "genre" in inputs else None
        name = string_of(inputs, "doc_key") if "doc_key" in inputs else ""
        try:
            return Document(sentences, None, key=name, speakers=speakers, genre=genre)
        except ValueError as error:
            raise DataError(str(error)) from error

    def to_json(self, prediction: Resolution, example: Document) -> dict[str, Any]:
        """Return the words, the clusters and the spans that were considered.

        A mention is [first word, last word]; `texts` are the words of those in `clusters`.
        """
        words = example.words
        return {
            "document": list(words),
            "clusters": [list(map(list, cluster)) for cluster in prediction.clusters],
            "texts": [
                [" ".join(words[start : end + 1]) for start, end in cluster]
                for cluster in prediction.clusters
            ],
            "top_spans": list(map(list, prediction.spans)),
        }

    def annotations(self, prediction: Resolution, example: Document) -> Sequence[Annotation]:
        """Return the mentions in clusters; a group for each cluster."""
        return [
            Annotation(start, end + 1, "MENTION", group=number)
            for number, cluster in enumerate(prediction.clusters)
            for start, end in cluster
        ]

    def pretty(self, prediction: Resolution, example: Document) -> Text:
        return colored(prediction, example)


def _sentences(
    key: str, inputs: Mapping[str, Any], tokenizer: Tokenizer
) -> tuple[tuple[str, ...], ...]:
    """Return the sentences of an input; one without words if there are none."""
    if key == "sentences":
        return word_lists(inputs, key)
    split = tokenizer.sentences(string_of(inputs, key))
    return tuple(tuple(tokenizer.words(sentence)) for sentence in split) or ((),)
