from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from kneser_ney import KneserNey, Text, discounts_of, main, words_of

from elmo_framework.bilm.context_layers import Direction
from elmo_framework.commands.main import main as elmo
from elmo_framework.data.characters import ElmoCharacterIndexer
from elmo_framework.data.data_loader import SourceContext
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary
from elmo_framework.tasks.language_modeling.corpus import LanguageModelingExample, TokenIdCorpus
from elmo_framework.tasks.language_modeling.reader import PreparedCorpusReader
from elmo_framework.tasks.language_modeling.task import LanguageModelingTask
from elmo_framework.tasks.language_modeling.vocabulary import TargetIndexer
from elmo_framework.tasks.language_modeling.windows import WindowLoader

Sentence = tuple[int, ...]
Ngram = tuple[int, ...]
BEGIN, END, NUM_WORDS, ORDER = 0, 1, 9, 5
DIRECTIONS: tuple[Direction, Direction] = ("forward", "backward")


class BruteForce:
    """The formula of the benchmark, read aloud."""

    def __init__(self, sentences: Sequence[Sentence], order: int) -> None:
        self._order = order
        self._counts: defaultdict[int, Counter[Ngram]] = defaultdict(Counter)
        before: defaultdict[Ngram, set[int]] = defaultdict(set)
        for sentence in sentences:
            for end in range(1, len(sentence)):
                for length in range(1, min(order, end + 1) + 1):
                    ngram = sentence[end - length + 1 : end + 1]
                    self._counts[length][ngram] += 1
                    before[ngram[1:]].add(ngram[0])
        for length in range(1, order):
            for ngram in self._counts[length]:
                if ngram[0] != BEGIN:
                    self._counts[length][ngram] = len(before[ngram])

    def probability(self, context: Sentence, word: int) -> float:
        return self._probability(context[-self._order + 1 :] if self._order > 1 else (), word)

    def _probability(self, context: Sentence, word: int) -> float:
        counts = self._counts[len(context) + 1]
        own = {ngram[-1]: held for ngram, held in counts.items() if ngram[:-1] == context}
        lower = self._probability(context[1:], word) if context else 1 / NUM_WORDS
        if not own:
            return lower
        discount = self._discounts(counts)
        mass = sum(discount[min(held, 3)] for held in own.values())
        held = own.get(word, 0)
        return (held - discount[min(held, 3)] + mass * lower) / sum(own.values())

    @staticmethod
    def _discounts(counts: Counter[Ngram]) -> list[float]:
        n = Counter(counts.values())
        if not n[1] * n[2] * n[3] * n[4]:
            return [0, 0.5, 1, 1.5]
        share = n[1] / (n[1] + 2 * n[2])
        discounts = [i - (i + 1) * share * n[i + 1] / n[i] for i in range(1, 4)]
        allowed = all(0 <= discount <= i for i, discount in enumerate(discounts, 1))
        return [0, *discounts] if allowed else [0, 0.5, 1, 1.5]


def random_sentences(number: int, seed: int) -> list[Sentence]:
    """Rare and frequent words, so that all discounts and seen and unseen contexts come."""
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, NUM_WORDS - 1) ** 1.5
    lengths = random.integers(1, 9, number)
    words = (random.choice(np.arange(2, NUM_WORDS), n, p=weights / weights.sum()) for n in lengths)
    return [(BEGIN, *inner.tolist(), END) for inner in words]


def text_of(sentences: Sequence[Sentence]) -> Text:
    words = np.array([word for sentence in sentences for word in sentence], np.int32)
    places = [np.arange(len(sentence), dtype=np.int32) for sentence in sentences]
    return Text(words, np.concatenate(places))


@pytest.fixture(scope="module")
def training() -> list[Sentence]:
    return random_sentences(400, seed=1)


@pytest.fixture(scope="module")
def model(training: list[Sentence]) -> KneserNey:
    return KneserNey.of(text_of(training), order=ORDER, num_words=NUM_WORDS)


@pytest.mark.parametrize("num_sentences", [400, 5], ids=["discounts", "fallback"])
def test_every_order_is_the_formula(num_sentences: int) -> None:
    training, held_out = random_sentences(num_sentences, seed=2), random_sentences(40, seed=3)
    model = KneserNey.of(text_of(training), order=ORDER, num_words=NUM_WORDS)
    text = text_of(held_out)
    for order, probabilities in enumerate(model.probabilities(text), start=1):
        reference = BruteForce(training, order)
        expected = [
            reference.probability(sentence[:place], sentence[place])
            for sentence in held_out
            for place in range(1, len(sentence))
        ]
        np.testing.assert_allclose(probabilities[text.places > 0], expected, rtol=1e-9)


def test_the_discounts_of_the_test_are_of_both_kinds(training: list[Sentence]) -> None:
    levels = KneserNey.of(text_of(training), order=ORDER, num_words=NUM_WORDS).levels
    discounts = [discounts_of(level.counts) for level in levels]
    assert (0.0, 0.5, 1.0, 1.5) in discounts
    assert len(set(discounts)) >= 4


def test_probabilities_sum_to_one_in_any_context(model: KneserNey) -> None:
    contexts = [sentence[:-1] for sentence in random_sentences(30, seed=4)]
    contexts += [(BEGIN,), (BEGIN, 8, 8, 8, 8, 8, 8)]
    text = text_of([(*context, word) for context in contexts for word in range(NUM_WORDS)])
    last = np.append(text.places[1:] == 0, True)
    for probabilities in model.probabilities(text):
        sums = probabilities[last].reshape(len(contexts), NUM_WORDS).sum(1)
        np.testing.assert_allclose(sums, 1, rtol=1e-12)
        assert (probabilities[last] > 0).all()


def test_a_loss_is_the_mean_of_the_negative_logs(
    model: KneserNey, training: list[Sentence]
) -> None:
    held_out = random_sentences(20, seed=5)
    for order, loss in enumerate(model.losses(text_of(held_out)), start=1):
        reference = BruteForce(training, order)
        logs = [
            math.log(reference.probability(sentence[:place], sentence[place]))
            for sentence in held_out
            for place in range(1, len(sentence))
        ]
        assert loss == pytest.approx(-sum(logs) / len(logs), rel=1e-9)


def test_discounts_are_those_of_the_paper_or_fixed() -> None:
    counts = np.repeat(np.arange(1, 7, dtype=np.int32), [8, 4, 2, 1, 5, 5])
    assert discounts_of(counts) == pytest.approx((0, 0.5, 2 - 3 / 4, 3 - 4 / 4))
    assert discounts_of(counts[counts != 3]) == (0, 0.5, 1, 1.5)
    many_threes = np.repeat(np.arange(1, 5, dtype=np.int32), [8, 1, 9, 1])
    assert discounts_of(many_threes) == (0, 0.5, 1, 1.5)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_predictions_are_those_of_a_bilm(direction: Direction) -> None:
    lines = ["a b c", "a", "c c rare b a", "b a b"]
    corpus = TokenIdCorpus.read(LanguageModelingExample(tuple(line.split())) for line in lines)
    vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "a", "b", "c"], name="words", unknown="<UNK>")
    text = Text.of(corpus, vocabulary, direction)
    task = LanguageModelingTask()
    context = SourceContext(
        collate=task.collator(
            Vocabularies({}), [ElmoCharacterIndexer(), TargetIndexer(vocabulary)]
        ),
        num_tokens=task.num_tokens,
        seed=0,
        is_training=False,
    )
    source = WindowLoader(batch_size=1, unroll_steps=3).source(corpus, context)
    windows = [getattr(batch, direction) for batch in source.batches()]
    targets = [target for window in windows for target in window.targets[window.mask].tolist()]
    in_order = (
        text
        if direction == "forward"
        else Text.of(reversed_sentences(corpus), vocabulary, direction)
    )
    assert in_order.words[in_order.places > 0].tolist() == targets
    assert (text.places > 0).sum() == corpus.num_predictions
    near = vocabulary.id("<S>" if direction == "forward" else "</S>")
    assert set(text.words[text.places == 0].tolist()) == {near}


def reversed_sentences(corpus: TokenIdCorpus) -> TokenIdCorpus:
    return TokenIdCorpus.read(reversed(list(corpus)))


def test_a_prepared_corpus_is_measured_in_both_directions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = {" ".join(f"w{word}" for word in inner[1:-1]) for inner in random_sentences(300, 6)}
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in sorted(lines)))
    corpus = tmp_path / "corpus"
    options = ["--held-out", "20", "--max-vocabulary-size", "5", "--tokenizer", "whitespace"]
    assert elmo(["prepare", str(tmp_path / "text.txt"), "--output-dir", str(corpus), *options]) == 0
    capsys.readouterr()
    monkeypatch.setattr("sys.argv", ["kneser_ney.py", str(corpus), "--max-instances", "7"])
    assert main() == 0
    figures = json.loads(capsys.readouterr().out)
    training = PreparedCorpusReader().read(corpus / "training")
    held_out = PreparedCorpusReader(max_instances=7).read(corpus / "held_out")
    vocabulary = words_of(training)
    assert (figures["vocabulary"], figures["sentences"]) == (8, 7)
    for direction in DIRECTIONS:
        model = KneserNey.of(Text.of(training, vocabulary, direction), order=5, num_words=8)
        losses = model.losses(Text.of(held_out, vocabulary, direction))
        for loss, row in zip(losses, figures["rows"], strict=True):
            assert row[f"{direction}_perplexity"] == pytest.approx(math.exp(loss), abs=1e-3)
