"""Read sense-tagged text: SemCor, and the files of the unified evaluation framework."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, final
from xml.etree.ElementTree import Element, parse

from elmo_framework.config.types import Count, TextPath
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.formats.records import Record, is_words
from elmo_framework.data.formats.text_files import parsed_lines
from elmo_framework.data.inputs import PredictionInput, other_fields
from elmo_framework.data.reader import DatasetReader, FileReader, RecordReader
from elmo_framework.errors import DataError, shown
from elmo_framework.tasks.word_senses.example import SenseSentence, SenseTarget, lemma_and_pos

_GAPS = re.compile(r"[\s_]+")
_XML, _KEYS = ".data.xml", ".gold.key.txt"


class SenseReader(FileReader[SenseSentence]):
    """Reads sentences with sense-tagged words.

    An entry of WordNet that is written with `_` or spaces becomes several words.

    Args:
        sense_index: WordNet's `index.sense`, from which each word gets the first sense of its
            lemma; null for none.
    """

    example_type = SenseSentence

    def __init__(
        self, sense_index: TextPath | None = None, max_instances: Count | None = None
    ) -> None:
        super().__init__(max_instances)
        self._sense_index = sense_index

    @cached_property
    def first_senses(self) -> Mapping[tuple[str, str], str]:
        """The first sense of each lemma and part of speech."""
        if self._sense_index is None:
            return {}
        rows = parsed_lines(self._sense_index, _index_line)
        return {lemma_and_pos(sense): sense for sense, number in rows if number == 1}

    def sentence(
        self, tokens: Sequence[str], targets: Mapping[int, Mapping[str, Any]]
    ) -> SenseSentence:
        """Return a sentence.

        Args:
            tokens: each one or several words, as in `take_place`.
            targets: by the index of their token, what `SenseTarget` takes.
        """
        words: list[str] = []
        read: list[SenseTarget] = []
        for index, token in enumerate(tokens):
            start = len(words)
            words += [word for word in _GAPS.split(token) if word] or [token or "_"]
            if index in targets:
                values = targets[index]
                first = self.first_senses.get((values["lemma"], values["pos"]))
                read.append(SenseTarget(start, len(words), first_sense=first, **values))
        return SenseSentence(tuple(words), tuple(read))


@final
@DatasetReader.register("semcor")
class SemcorReader(RecordReader[SenseSentence], SenseReader):
    """Reads one JSON object per line: `tokens`, and `senses`, the keys by the index of a token.

    `{"tokens": ["They", "took_place"], "senses": {"1": ["take_place%2:30:00::"]}}`. Lemma and part
    of speech are those of the first sense key. Other keys, such as `id`, are not read.
    """

    formats = (FileFormat.JSON_LINES,)
    input_keys, input_type, other_keys = ("tokens",), list, ("senses",)

    def takes(self, values: Mapping[str, Any]) -> bool:
        """Return whether values have `tokens`; those with `targets` are left to the task."""
        return "targets" not in values and super().takes(values)

    def examples(self, file: Path) -> Iterator[SenseSentence]:
        return map(self._example, self.records(file))

    def unlabeled(self, record: Record) -> SenseSentence:
        return self._example(record, is_labeled=False)

    def _example(self, record: Record, *, is_labeled: bool = True) -> SenseSentence:
        tokens = record.value("tokens")
        senses = record.value("senses") if is_labeled else record.values.get("senses", {})
        with record.located():
            if not (is_words(tokens) and tokens):
                raise DataError(f"'tokens' is {shown(tokens)}; expected a list of strings")
            if not isinstance(senses, dict):
                raise DataError(f"'senses' is {shown(senses)}; expected an object")
            return self.sentence(tokens, dict(_tagged(senses, len(tokens), is_labeled=is_labeled)))


def _tagged(
    senses: Mapping[str, Any], num_tokens: int, *, is_labeled: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    for index, keys in senses.items():
        if not (index.isdecimal() and int(index) < num_tokens):
            raise DataError(f"'senses' has the index {index!r} for {num_tokens} tokens")
        if not (is_words(keys) and keys):
            raise DataError(f"'senses' has {shown(keys)}; expected lists of sense keys")
        lemma, pos = lemma_and_pos(keys[0])
        yield (
            int(index),
            {"lemma": lemma, "pos": pos, "senses": tuple(keys) if is_labeled else None},
        )


@final
@DatasetReader.register("wsd")
class WsdReader(SenseReader):
    """Reads `NAME.data.xml` of the unified evaluation framework (Raganato et al. 2017).

    The senses are those of `NAME.gold.key.txt` in the same folder: lines of an id and one or more
    sense keys.
    """

    formats = (FileFormat.XML,)

    def examples(self, file: Path) -> Iterator[SenseSentence]:
        keys = file.with_name(file.name.removesuffix(_XML) + _KEYS)
        if not (file.name.endswith(_XML) and keys.exists()):
            raise DataError(f"expected a file NAME{_XML} with NAME{_KEYS} next to it", path=file)
        senses = dict(parsed_lines(keys, _key_line))
        for sentence in parse(file).iter("sentence"):
            yield self._sentence(sentence, senses)

    def inputs(self, file: Path) -> Iterator[PredictionInput[SenseSentence]]:
        """Yield the sentences of a file without senses; it needs no gold keys."""
        for sentence in parse(file).iter("sentence"):
            fields = other_fields(sentence.attrib, ())
            yield PredictionInput(self._sentence(sentence, None), fields)

    def _sentence(
        self, sentence: Element, senses: Mapping[str, tuple[str, ...]] | None
    ) -> SenseSentence:
        tokens, targets = list[str](), dict[int, dict[str, Any]]()
        for index, element in enumerate(sentence):
            tokens.append(element.text or "")
            if element.tag != "instance":
                continue
            name = _attribute(element, "id")
            if senses is not None and name not in senses:
                raise DataError(f"the instance {name!r} has no line in the gold keys")
            targets[index] = {
                "lemma": _attribute(element, "lemma").lower(),
                "pos": _attribute(element, "pos"),
                "senses": None if senses is None else senses[name],
                "id": name,
            }
        return self.sentence(tokens, targets)


def _attribute(element: Element, name: str) -> str:
    value = element.get(name)
    if value is None:
        raise DataError(f"an instance has no {name!r}: {shown(element.attrib)}")
    return value


def _key_line(line: str) -> tuple[str, tuple[str, ...]]:
    name, *senses = line.split()
    if not senses:
        raise ValueError(f"found {line.strip()!r}; expected an id and sense keys")
    return name, tuple(senses)


def _index_line(line: str) -> tuple[str, int]:
    match line.split():
        case [sense, _, number, _] if number.isdecimal():
            return sense, int(number)
    raise ValueError(f"found {shown(line)}; expected a sense key and three numbers")
