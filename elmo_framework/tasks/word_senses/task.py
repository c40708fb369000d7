"""The task of word sense disambiguation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, final

from elmo_framework.data.annotation import Annotation
from elmo_framework.data.formats.records import Record
from elmo_framework.data.inputs import input_words, only_key
from elmo_framework.data.labels import excerpt
from elmo_framework.data.text import Indexer
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Counts, Vocabularies
from elmo_framework.errors import DataError, allowed, shown
from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.word_senses import GoldSense, WordSenseScores
from elmo_framework.model.task import HeadTask, PredictionFormat
from elmo_framework.tasks.word_senses.example import (
    PARTS_OF_SPEECH,
    SenseBatch,
    SenseSentence,
    SenseTarget,
    lemma_and_pos,
    sense_batch,
)

_WORDS = ("sentence", "tokens", "words")


def key_lines(
    predictions: Iterable[tuple[Sequence[str | None], SenseSentence]],
) -> Iterator[str]:
    """Write lines of the id of a word and its sense, as the scorer of the framework reads them."""
    for senses, example in predictions:
        for sense, target in zip(senses, example.targets, strict=True):
            if sense is not None:
                yield f"{target.id} {sense}\n"


@final
class WordSenseTask(HeadTask[SenseSentence, SenseBatch]):
    """Predicts a sense of WordNet for some words of a sentence; evaluated by F1 over these words.

    A prediction is a sense key for each target; None where the model has none.
    """

    example_type = SenseSentence
    metrics: ClassVar[Mapping[str, Metric]] = {"word_senses": WordSenseScores()}
    formats: ClassVar[Mapping[str, PredictionFormat]] = {"wsd": key_lines}
    input_keys = (*_WORDS, "targets")
    agreement_scores = ("f1-measure-overall",)

    def count(self, examples: Iterable[SenseSentence]) -> Counts:
        """Count `words`, and as `labels` the senses."""
        words, senses = Counter[str](), Counter[str]()
        for example in examples:
            words.update(example.words)
            for target in example.targets:
                senses.update(target.senses or ())
        return {"words": words, "labels": senses}

    def collate(
        self,
        examples: Sequence[SenseSentence],
        vocabularies: Vocabularies,
        indexers: Sequence[Indexer],
    ) -> SenseBatch:
        return sense_batch(examples, vocabularies.labels(), indexers)

    def sentences(self, example: SenseSentence) -> Iterable[Sequence[str]]:
        return (example.words,)

    def gold(self, example: SenseSentence) -> tuple[GoldSense, ...]:
        if any(target.senses is None for target in example.targets):
            raise DataError(f"a word without senses cannot be scored: {excerpt(example.words)}")
        return tuple(GoldSense(target.pos, target.senses or ()) for target in example.targets)

    def as_gold(self, prediction: Sequence[str | None]) -> tuple[GoldSense, ...]:
        return tuple(
            GoldSense("", ()) if sense is None else GoldSense(lemma_and_pos(sense)[1], (sense,))
            for sense in prediction
        )

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> SenseSentence:
        """Make an example of words or a sentence, and `targets`.

        A target is an object with `start`, `end` (exclusive), `lemma`, `pos` and perhaps `id`.
        """
        words = input_words(inputs, only_key(inputs, _WORDS), tokenizer)
        try:
            return SenseSentence(words, tuple(map(read_target, Record(inputs).records("targets"))))
        except ValueError as error:
            raise DataError(str(error)) from error

    def to_json(self, prediction: Sequence[str | None], example: SenseSentence) -> dict[str, Any]:
        targets = [
            {
                "start": target.start,
                "end": target.end,
                "lemma": target.lemma,
                "pos": target.pos,
                "sense": sense,
            }
            | ({"id": target.id} if target.id else {})
            for sense, target in zip(prediction, example.targets, strict=True)
        ]
        return {"words": list(example.words), "targets": targets}

    def annotations(
        self, prediction: Sequence[str | None], example: SenseSentence
    ) -> Sequence[Annotation]:
        pairs = zip(prediction, example.targets, strict=True)
        return [Annotation(target.start, target.end, sense) for sense, target in pairs if sense]

    def annotated_objects(self, output: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
        return [target for target in output["targets"] if target["sense"]]


def read_target(record: Record, *, lemma: str | None = None, pos: str | None = None) -> SenseTarget:
    """Read a target from an object with `start` and `end`.

    Args:
        record: the object.
        lemma: by default, that of the object.
        pos: the same.

    Raises:
        DataError: a value is missing, has another type, or is not a part of speech.
    """
    start, end = record.value("start"), record.value("end")
    if type(start) is not int or type(end) is not int:
        raise record.error(f"found start {shown(start)} and end {shown(end)}; expected integers")
    lemma = record.text("lemma") if lemma is None else lemma
    if pos is None:
        pos = record.text("pos")
        if pos not in PARTS_OF_SPEECH:
            raise record.error(f"'pos' is {shown(pos)}; {allowed(pos.upper(), PARTS_OF_SPEECH)}")
    name = record.text("id") if "id" in record.values else ""
    return SenseTarget(start, end, "_".join(lemma.lower().split()), pos, id=name)
