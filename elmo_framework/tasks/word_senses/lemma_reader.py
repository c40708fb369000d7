"""Read the occurrences of polysemous lemmas in SemCor."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias, final

from annotated_types import Ge, Lt

from elmo_framework.config.types import Count
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.reader import DatasetReader
from elmo_framework.errors import DataError
from elmo_framework.tasks.word_senses.example import SenseSentence
from elmo_framework.tasks.word_senses.neighbors import Occurrences, lemma_of
from elmo_framework.tasks.word_senses.reader import SemcorReader

ByLemma: TypeAlias = dict[str, list[tuple[str, SenseSentence]]]
"""The occurrences of each lemma, each with its sense."""


@final
@DatasetReader.register("semcor_lemmas")
class LemmaReader(DatasetReader[Occurrences]):
    """Reads the occurrences of frequent polysemous lemmas from a file for the reader `semcor`.

    An occurrence has one sense key. Senses with fewer than `min_occurrences` are left out, then
    lemmas with fewer than two senses. Of the others, `num_lemmas` are drawn by the seed, and of
    each lemma at most `max_occurrences`.

    Args:
        num_lemmas: number of lemmas; all of them if there are fewer.
        min_occurrences: minimum number of occurrences of a sense.
        max_occurrences: maximum number of occurrences of a lemma.
        seed: of the draw. It is not the `random_seed`, so that all runs compare the same lemmas.
    """

    example_type = Occurrences
    formats = (FileFormat.JSON_LINES,)

    def __init__(
        self,
        num_lemmas: Count = 50,
        min_occurrences: Count = 10,
        max_occurrences: Count = 200,
        seed: Annotated[int, Ge(0), Lt(2**62)] = 1,
    ) -> None:
        self._num_lemmas, self._seed = num_lemmas, seed
        self._min_occurrences, self._max_occurrences = min_occurrences, max_occurrences

    def read(self, path: Path) -> Iterator[Occurrences]:
        eligible = self._eligible(_by_lemma(SemcorReader().read(path)))
        if not eligible:
            raise DataError(
                f"no lemma has two senses with {self._min_occurrences} occurrences", path=path
            )
        draw = random.Random(self._seed)
        names = draw.sample(sorted(eligible), min(self._num_lemmas, len(eligible)))
        for lemma in sorted(names):
            sentences = [sentence for _, sentence in eligible[lemma]]
            # A draw of its own, so that it does not depend on the other lemmas.
            order = random.Random(f"{self._seed} {lemma}").sample(
                range(len(sentences)), min(self._max_occurrences, len(sentences))
            )
            yield Occurrences(lemma, tuple(sentences[index] for index in sorted(order)))

    def _eligible(self, by_lemma: ByLemma) -> ByLemma:
        eligible = {}
        for lemma, occurrences in by_lemma.items():
            counts = Counter(sense for sense, _ in occurrences)
            frequent = {sense for sense in counts if counts[sense] >= self._min_occurrences}
            if len(frequent) > 1:
                eligible[lemma] = [each for each in occurrences if each[0] in frequent]
        return eligible


def _by_lemma(sentences: Iterable[SenseSentence]) -> ByLemma:
    by_lemma: ByLemma = defaultdict(list)
    for sentence in sentences:
        for target in sentence.targets:
            if target.senses is not None and len(target.senses) == 1:
                occurrence = replace(sentence, targets=(target,))
                by_lemma[lemma_of(target.senses)].append((target.senses[0], occurrence))
    return by_lemma
