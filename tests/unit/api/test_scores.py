"""The surprisals of `load_bilm(...).score` are those of a reference in NumPy."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from elmo_framework import load_bilm
from elmo_framework.bilm.files import softmax as softmax_module
from elmo_framework.errors import DataError
from elmo_framework.layers import surprisal as surprisal_module
from elmo_framework.layers.surprisal import SentenceScore
from tests.numpy_bilm import NumpyBiLm, NumpySoftmax

SENTENCES = [["Wörter", "are", "words"], [], ["a"], ["are", "many", "!", "a"], ["a"]]


def require_score(score: SentenceScore, ahead: list[float], back: list[float]) -> None:
    np.testing.assert_allclose([*score.forward, score.end], ahead, atol=2e-5)
    np.testing.assert_allclose([score.begin, *score.backward], back, atol=2e-5)
    np.testing.assert_allclose(score.both, np.add(ahead[:-1], back[1:]) / 2, atol=2e-5)
    assert score.total.forward == pytest.approx(sum(ahead), abs=1e-4)
    assert score.total.backward == pytest.approx(sum(back), abs=1e-4)
    assert score.total.both == pytest.approx(sum(ahead + back) / 2, abs=1e-4)


@pytest.mark.parametrize("max_tokens", [1, 12, 4096])
def test_bits_equal_the_numpy_reference(
    scorer: Path, numpy_bilm: NumpyBiLm, numpy_softmax: NumpySoftmax, max_tokens: int
) -> None:
    scores = load_bilm(scorer).score(SENTENCES, max_tokens=max_tokens)
    assert len(scores) == len(SENTENCES)
    for words, score in zip(SENTENCES, scores, strict=True):
        if words:
            require_score(score, *numpy_softmax.score(numpy_bilm, words)[:2])
        else:
            assert (len(score.forward), len(score.backward), score.total) == (0, 0, (0, 0))


def test_blocks_of_the_softmax_change_no_bits(
    scorer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load_bilm(scorer).score(SENTENCES)
    monkeypatch.setattr(softmax_module, "_MIN_POSITIONS", 1)
    monkeypatch.setattr(softmax_module, "_LOGITS_AT_ONCE", 16)  # two positions
    monkeypatch.setattr(surprisal_module, "_POSITIONS_AT_ONCE", 5)
    for one, other in zip(load_bilm(scorer).score(SENTENCES), expected, strict=True):
        np.testing.assert_allclose(one.forward, other.forward, atol=1e-5)
        np.testing.assert_allclose(one.backward, other.backward, atol=1e-5)
        assert one.total == pytest.approx(other.total, abs=1e-5)


def test_memory_of_the_softmax_is_bounded(scorer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    negative_log_likelihood = softmax_module._negative_log_likelihood

    def noted(logits, targets):
        sizes.append(logits.numel())
        return negative_log_likelihood(logits, targets)

    monkeypatch.setattr(softmax_module, "_MIN_POSITIONS", 1)
    monkeypatch.setattr(softmax_module, "_LOGITS_AT_ONCE", 16)
    monkeypatch.setattr(softmax_module, "_negative_log_likelihood", noted)
    load_bilm(scorer).score(SENTENCES)
    assert max(sizes) <= 16
    num_predictions = sum(len(words) + 1 for words in SENTENCES[:4] if words)  # the last is equal
    assert sum(sizes) == 2 * 7 * num_predictions  # no padding, and nothing for an empty sentence


def test_unknown_words_are_marked_and_scored_as_their_class(
    scorer: Path, numpy_softmax: NumpySoftmax, numpy_bilm: NumpyBiLm
) -> None:
    (first, second) = load_bilm(scorer).score([["many", "a"], ["Wörter", "a"]])
    assert first.is_unknown.tolist() == second.is_unknown.tolist() == [True, False]
    # The class has one probability, and the biLM reads the characters of the word.
    assert first.forward[0] == pytest.approx(second.forward[0], abs=1e-5)
    assert first.forward[1] != pytest.approx(second.forward[1], abs=1e-3)
    require_score(first, *numpy_softmax.score(numpy_bilm, ["many", "a"])[:2])


def test_probabilities_of_all_words_sum_to_one(scorer: Path, numpy_softmax: NumpySoftmax) -> None:
    words = ["</S>", "<S>", "many", *numpy_softmax.words]  # "many" is all unknown words
    scores = load_bilm(scorer).score([["are", word] for word in words])
    assert sum(2 ** -score.forward[1] for score in scores) == pytest.approx(1, abs=1e-5)
    assert sum(2 ** -score.forward[1] for score in scores[:-1]) < 0.999


def test_sums_over_words_leave_the_boundaries_out(scorer: Path) -> None:
    (score,) = load_bilm(scorer).score([["a", "are", "!"]])
    assert score.words(1, 3) == (score.forward[1:].sum(), score.backward[1:].sum())
    assert score.words(0, 3).forward + score.end == pytest.approx(score.total.forward)
    assert score.words(2, 2) == (0, 0)


DOCUMENTS = [
    [["a"], ["many", "words", "!"]],
    [["are", "a"], ["a"], ["words", "are", "many", "a"]],
    [],
    [["a"]],
]


@pytest.mark.parametrize("max_tokens", [1, 12, 4096])
def test_documents_are_read_through_as_in_numpy(
    scorer: Path, numpy_bilm: NumpyBiLm, numpy_softmax: NumpySoftmax, max_tokens: int
) -> None:
    bilm = load_bilm(scorer)
    for _ in range(2):  # each starts from zeros
        scores = bilm.score_documents(DOCUMENTS, max_tokens=max_tokens)
        assert list(map(len, scores)) == list(map(len, DOCUMENTS))
        for document, of_document in zip(DOCUMENTS, scores, strict=True):
            state = None
            for words, score in zip(document, of_document, strict=True):
                ahead, back, state = numpy_softmax.score(numpy_bilm, words, state)
                require_score(score, ahead, back)


def test_carried_rows_continue(
    scorer: Path, numpy_bilm: NumpyBiLm, numpy_softmax: NumpySoftmax
) -> None:
    bilm, state = load_bilm(scorer, state="carry"), None
    for words in DOCUMENTS[1]:
        ahead, back, state = numpy_softmax.score(numpy_bilm, words, state)
        require_score(bilm.score([words])[0], ahead, back)


def test_carried_scores_are_in_the_order_given(scorer: Path) -> None:
    sentences = [["a", "many"], [], ["words"], [], ["are", "a", "!"]]
    scores = load_bilm(scorer, state="carry").score(sentences)
    assert [len(score.forward) for score in scores] == [2, 0, 1, 0, 3]


def test_scores_after_pickling_are_the_same(scorer: Path) -> None:
    bilm = load_bilm(scorer)
    (expected,) = bilm.score([["a", "many"]])
    (score,) = pickle.loads(pickle.dumps(bilm)).score([["a", "many"]])
    assert (score.forward == expected.forward).all()


def test_strings_are_refused(scorer: Path) -> None:
    bilm = load_bilm(scorer)
    for score, text in (
        (bilm.score, "a words"),
        (bilm.score, ["a words"]),
        (bilm.score_documents, ["a words"]),
        (bilm.score_documents, [["a words"]]),
    ):
        with pytest.raises(TypeError, match="not the string 'a words'"):
            score(text)


def test_a_missing_softmax_is_reported(folder: Path) -> None:
    with pytest.raises(DataError, match=r"no softmax.safetensors and no vocabulary.txt"):
        load_bilm(folder).score([["a"]])


def test_a_softmax_of_another_bilm_is_refused(scorer: Path) -> None:
    with (scorer / "vocabulary.txt").open("a") as file:
        file.write("another\n")
    with pytest.raises(DataError, match=r"softmax.safetensors: not the softmax of this biLM: .*8"):
        load_bilm(scorer).score([["a"]])
