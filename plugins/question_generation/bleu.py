"""BLEU of generated questions, computed by sacrebleu."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, final

from elmo_framework import RunError
from elmo_framework.metrics import Metric

from .example import GeneratedQuestion

_ORDER = 4


@final
@Metric.register("bleu")
class Bleu(Metric):
    """BLEU of a corpus with one reference for each question (Papineni et al. 2002), from 0 to 1.

    The words are those of the tokenizer, in lower case. sacrebleu counts the n-grams and combines
    their sums, with its default smoothing: `exp`.
    """

    def count(self, prediction: GeneratedQuestion, gold: Sequence[str]) -> Mapping[str, float]:
        """Count the n-grams of a question that occur in the reference."""
        hypothesis, reference = " ".join(prediction.words), " ".join(gold)
        score = _sacrebleu().corpus_score([hypothesis], [[reference]])
        counts = {f"correct/{n}": float(score.counts[n - 1]) for n in range(1, _ORDER + 1)}
        totals = {f"total/{n}": float(score.totals[n - 1]) for n in range(1, _ORDER + 1)}
        lengths = {"words": float(score.sys_len), "reference_words": float(score.ref_len)}
        return counts | totals | lengths

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return `bleu` of the whole corpus."""
        if not sums.get("words"):
            return {"bleu": 0.0}
        score = _sacrebleu().compute_bleu(
            correct=[int(sums.get(f"correct/{n}", 0)) for n in range(1, _ORDER + 1)],
            total=[int(sums.get(f"total/{n}", 0)) for n in range(1, _ORDER + 1)],
            sys_len=int(sums["words"]),
            ref_len=int(sums.get("reference_words", 0)),
            smooth_method="exp",
        )
        return {"bleu": float(score.score) / 100}


def _sacrebleu() -> Any:
    """Return sacrebleu's metric for text that is tokenized.

    Raises:
        RunError: sacrebleu is not installed.
    """
    try:
        metrics = import_module("sacrebleu.metrics")
    except ModuleNotFoundError:
        raise RunError("sacrebleu is not installed; run: pip install sacrebleu") from None
    return metrics.BLEU(tokenize="none", lowercase=True, force=True)
