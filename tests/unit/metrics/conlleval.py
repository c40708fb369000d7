"""The scorer of CoNLL-2000 to 2003, written from its rules, in per cent: the oracle of `SpanF1`.

It goes through the words once and notes where chunks begin and end in the gold and in the
predicted tags, from the tags of two neighboring words at a time.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

Sentence = tuple[Sequence[str], Sequence[str]]
_BEGINNINGS = {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I")}
_ENDINGS = {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O")}


def conlleval(sentences: Iterable[Sentence]) -> dict[str, float]:
    """Score pairs of gold and predicted tags, in IOB1 or BIO."""
    correct: Counter[str] = Counter()
    gold: Counter[str] = Counter()
    guessed: Counter[str] = Counter()
    num_tokens = num_correct_tokens = 0
    in_correct = False
    last_gold = last_guess = ("O", "")
    for gold_tag, guess_tag in _with_boundaries(sentences):
        now_gold, now_guess = _split(gold_tag), _split(guess_tag)
        gold_ends, guess_ends = _ends(last_gold, now_gold), _ends(last_guess, now_guess)
        if in_correct:
            if gold_ends and guess_ends and last_gold[1] == last_guess[1]:
                in_correct = False
                correct[last_gold[1]] += 1
            elif gold_ends != guess_ends or now_gold[1] != now_guess[1]:
                in_correct = False
        gold_starts, guess_starts = _starts(last_gold, now_gold), _starts(last_guess, now_guess)
        if gold_starts and guess_starts and now_gold[1] == now_guess[1]:
            in_correct = True
        gold[now_gold[1]] += gold_starts
        guessed[now_guess[1]] += guess_starts
        if gold_tag is not None:
            num_tokens += 1
            num_correct_tokens += now_gold == now_guess
        last_gold, last_guess = now_gold, now_guess
    scores = {"accuracy": _divided(100 * num_correct_tokens, num_tokens)}
    for label in {*gold, *guessed} - {""}:
        scores |= label_scores(label, correct[label], guessed[label], gold[label])
    return scores | label_scores("overall", correct.total(), guessed.total(), gold.total())


def _with_boundaries(sentences: Iterable[Sentence]) -> Iterable[tuple[str | None, str | None]]:
    for gold, guess in sentences:
        yield from zip(gold, guess, strict=True)
        yield None, None


def _split(tag: str | None) -> tuple[str, str]:
    prefix, _, label = (tag or "O").partition("-")
    return prefix, label


def _starts(last: tuple[str, str], now: tuple[str, str]) -> bool:
    return (last[0], now[0]) in _BEGINNINGS or (now[0] != "O" and last[1] != now[1])


def _ends(last: tuple[str, str], now: tuple[str, str]) -> bool:
    return (last[0], now[0]) in _ENDINGS or (last[0] != "O" and last[1] != now[1])


def label_scores(label: str, correct: int, guessed: int, gold: int) -> dict[str, float]:
    """Score a label by how often it is right, predicted and there; FB1 is made of per cents."""
    precision, recall = _divided(100 * correct, guessed), _divided(100 * correct, gold)
    return {
        f"precision-{label}": precision,
        f"recall-{label}": recall,
        f"f1-measure-{label}": _divided(2 * precision * recall, precision + recall),
    }


def _divided(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
