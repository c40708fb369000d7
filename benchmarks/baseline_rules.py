"""Baselines by rule: names of the training data, equal mentions, and words near the question's.

Only the names are learned. Capitals and punctuation are read as in English.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TypeAlias

from elmo_framework.data.tagging import beginnings, convert, scheme_of, spans
from elmo_framework.metrics.coreference import Resolution
from elmo_framework.metrics.squad import Answer
from elmo_framework.tasks.coreference.example import Document
from elmo_framework.tasks.question_answering.example import PassageQuestion, Span
from elmo_framework.tasks.tagging.task import TaggedSentence

Words: TypeAlias = tuple[str, ...]


class KnownNames:
    """Tags the spans of the training data, with their most frequent label there.

    The longest known span counts, and of several the first. This is the baseline of the shared
    task of CoNLL-2003 (Tjong Kim Sang and De Meulder 2003): 71.2 on its development data. Without
    spans in the data, as for parts of speech, each word has its most frequent tag.
    """

    name = "known_names"

    def fit(self, examples: Sequence[TaggedSentence]) -> None:
        """Count spans and tags."""
        labels: defaultdict[Words, Counter[str]] = defaultdict(Counter)
        tags: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for words, example_tags in _tagged(examples):
            for word, tag in zip(words, example_tags, strict=True):
                tags[word][tag] += 1
            for start, end, label in spans(example_tags):
                labels[words[start:end]][label] += 1
        counts = sum(tags.values(), Counter[str]())
        self._default = counts.most_common(1)[0][0]
        self._tags = {word: counted.most_common(1)[0][0] for word, counted in tags.items()}
        self._labels = {words: counted.most_common(1)[0][0] for words, counted in labels.items()}
        self._longest = max(map(len, self._labels), default=0)
        begun = Counter(tag for _, each in _tagged(examples) for tag in beginnings(each))
        self._scheme = scheme_of(counts, begun)

    def predict(self, examples: Sequence[TaggedSentence]) -> list[Words]:
        """Return the tags of each sentence."""
        if self._scheme is None or not self._labels:
            return [
                tuple(self._tags.get(word, self._default) for word in example.words)
                for example in examples
            ]
        return [tuple(convert(self._bio(each.words), self._scheme)) for each in examples]

    def _bio(self, words: Words) -> list[str]:
        tags = ["O"] * len(words)
        position = 0
        while position < len(words):
            length = next(
                (n for n in range(self._longest, 0, -1) if self._is_known(words, position, n)), 0
            )
            if length:
                label = self._labels[words[position : position + length]]
                inside = [f"I-{label}"] * (length - 1)
                tags[position : position + length] = [f"B-{label}", *inside]
            position += max(1, length)
        return tags

    def _is_known(self, words: Words, start: int, length: int) -> bool:
        return start + length <= len(words) and words[start : start + length] in self._labels


def _tagged(examples: Iterable[TaggedSentence]) -> Iterator[tuple[Words, Words]]:
    return ((example.words, example.tags) for example in examples if example.tags is not None)


_PRONOUNS = {
    form: forms.split()[0]
    for forms in (
        "i me my mine myself",
        "you your yours yourself yourselves",
        "he him his himself",
        "she her hers herself",
        "it its itself",
        "we us our ours ourselves",
        "they them their theirs themselves",
    )
    for form in forms.split()
}
_OF_SPEAKER = frozenset({"i", "we"})
_POSSESSIVES = frozenset({"'s", "\N{RIGHT SINGLE QUOTATION MARK}s"})
_NOT_NAMES = frozenset(
    {"a", "an", "the", "this", "that", "in", "on", "and", "but", "or", "so", "if"}
)


class EqualMentions:
    """Links mentions with the same words: names, forms of one pronoun, and "the" with a noun.

    A name is a run of capitalized words, with "of" between them, with "the" before it and the
    possessive after it. Its first word does not count at the start of a sentence, unless the
    document has that word with a capital elsewhere. "I" and "we" are linked only for one speaker.
    Nothing is learned; the details were chosen on the development data of OntoGUM.
    """

    name = "equal_mentions"

    def fit(self, examples: Sequence[Document]) -> None:
        """Learn nothing."""

    def predict(self, examples: Sequence[Document]) -> list[Resolution]:
        """Return the clusters of each document; all mentions were considered."""
        return [self._resolved(example) for example in examples]

    def _resolved(self, document: Document) -> Resolution:
        groups: defaultdict[Words, list[tuple[int, int]]] = defaultdict(list)
        names = {
            word for sentence in document.sentences for word in sentence[1:] if word[:1].isupper()
        }
        speakers = document.speakers or [("",) * len(words) for words in document.sentences]
        rows = zip(document.offsets, document.sentences, speakers, strict=True)
        for offset, words, of_words in rows:
            for key, start, end in _mentions(words, of_words, names):
                groups[key].append((offset + start, offset + end - 1))
        clusters = tuple(tuple(group) for group in groups.values() if len(group) > 1)
        return Resolution(clusters, tuple(chain.from_iterable(groups.values())))


def _mentions(
    words: Words, speakers: Sequence[str], names: set[str]
) -> Iterator[tuple[Words, int, int]]:
    """Yield what a mention is compared by, its first word, and the one after its last."""
    start = 0
    while start < len(words):
        word = words[start].lower()
        end = _name_end(words, start) if _is_name(words, start, names) else start
        if pronoun := _PRONOUNS.get(word):
            speaker = speakers[start] if pronoun in _OF_SPEAKER else ""
            yield ("pronoun", pronoun, speaker), start, start + 1
        elif end > start:
            first = start - (start > 0 and words[start - 1].lower() == "the")
            last = end + (end < len(words) and words[end] in _POSSESSIVES)
            yield ("name", *words[start:end]), first, last
        elif word == "the" and start + 1 < len(words) and words[start + 1][:1].islower():
            yield ("the", words[start + 1]), start, start + 2
        start = max(start + 1, end)


def _is_name(words: Words, position: int, names: set[str]) -> bool:
    word = words[position]
    is_capitalized = word[:1].isupper() and word.lower() not in _NOT_NAMES
    return is_capitalized and (position > 0 or word in names)


def _name_end(words: Words, start: int) -> int:
    """Return the end of the run of capitalized words, with "of" between two of them."""
    end = start + 1
    while end < len(words):
        length = 2 if words[end] == "of" and end + 1 < len(words) else 1
        if not words[end + length - 1][:1].isupper():
            break
        end += length
    return end


_FUNCTION_WORDS = frozenset(
    word
    for line in (
        "a an the of in on at to for from by with and or but as is are was were be been being it",
        "its he his him she her they their them that this these those which who whom whose what",
        "when where why how do does did has have had will would can could may might not no than",
        "then so if into about after before during between also there",
    )
    for word in line.split()
)
_NUMBER = re.compile(r"\d|^(one|two|three|four|five|six|seven|eight|nine|ten|hundred|thousand)$")
_ASKS_NUMBER = re.compile(r"\b(how (many|much|long|old|far)|when|what (year|date|day|percent))\b")
_ASKS_NAME = re.compile(r"\b(who|whom|whose|where)\b")
_WINDOW = 12
_MAX_ANSWER = 6


class NearestPhrase:
    """Answers with the phrase that the words of the question are nearest to, without learning.

    A phrase is a run of words of the passage without function words, words of the question and
    punctuation inside. Its score is the sum of the weights of the question's words in the same
    sentence, each divided by one plus a part of its distance. The weight of a word falls with the
    number of the passages that contain it. A phrase of the wrong kind for "when", "how many" or
    "who" (number, name) has half of its score. In the spirit of the sliding window of
    Rajpurkar et al. (2016), which has an F1 of 20 on SQuAD.
    """

    name = "nearest_phrase"

    def fit(self, examples: Sequence[PassageQuestion]) -> None:
        """Count the passages that a word occurs in."""
        passages = {id(example.passage): example.passage for example in examples}
        counts: Counter[str] = Counter()
        for passage in passages.values():
            counts.update({word.lower() for word in passage.words})
        self._weights = {
            word: math.log((len(passages) + 1) / count) for word, count in counts.items()
        }
        self._rare = math.log(len(passages) + 1)

    def predict(self, examples: Sequence[PassageQuestion]) -> list[Answer]:
        """Return an answer to each question."""
        return [self._answer(example) for example in examples]

    def _answer(self, example: PassageQuestion) -> Answer:
        words = [word.lower() for word in example.passage.words]
        asked = {word.lower() for word in example.question.words if _is_content(word.lower())}
        places = [position for position, word in enumerate(words) if word in asked]
        phrases = list(_phrases(example.passage.words, asked)) or [Span(0, 0)]
        kind = _kind(example.question.text.lower())
        scored = [
            (self._score(span, words, places) * _fit(kind, example.passage.words, span), span)
            for span in phrases
        ]
        best = max(scored, key=lambda pair: pair[0])[1]
        start, end = example.passage.characters(best)
        return Answer(example.passage.text[start:end], start, end)

    def _score(self, span: Span, words: Sequence[str], places: Sequence[int]) -> float:
        score = 0.0
        for place in places:
            distance = max(span.first - place, place - span.last)
            if distance <= 2 * _WINDOW and not _crosses_sentence(words, span, place):
                score += self._weights.get(words[place], self._rare) / (1 + distance / _WINDOW)
        return score


def _is_content(word: str) -> bool:
    return word not in _FUNCTION_WORDS and any(map(str.isalnum, word))


def _phrases(words: Words, asked: set[str]) -> Iterator[Span]:
    """Yield the runs of content words that are not in the question."""
    bounds = [
        position
        for position, word in enumerate(words)
        if not _is_content(word.lower()) or word.lower() in asked
    ]
    for before, after in pairwise([-1, *bounds, len(words)]):
        if after - before > 1:
            yield Span(before + 1, min(after - 1, before + _MAX_ANSWER))


def _crosses_sentence(words: Sequence[str], span: Span, place: int) -> bool:
    between = words[place : span.first] if place < span.first else words[span.last + 1 : place]
    return any(word in {".", "?", "!"} for word in between)


def _kind(question: str) -> str:
    if _ASKS_NUMBER.search(question):
        return "number"
    return "name" if _ASKS_NAME.search(question) else ""


def _fit(kind: str, words: Words, span: Span) -> float:
    inside = words[span.first : span.last + 1]
    if kind == "number":
        return 1.0 if any(_NUMBER.search(word.lower()) for word in inside) else 0.5
    if kind == "name":
        return 1.0 if all(word[:1].isupper() for word in inside) else 0.5
    return 1.0
