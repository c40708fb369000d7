"""Make questions without an answer: pair questions of SQuAD 1.1 with other paragraphs.

    python benchmarks/unanswerable_questions.py train-v1.1.json train.json
    python benchmarks/unanswerable_questions.py dev-v1.1.json dev.json --fraction 0.5

Writes the JSON of SQuAD 2.0. A question that is chosen moves to another paragraph of its article in
which none of its answers occurs, and is marked with `is_impossible`. The others stay where they
are. These questions are easier to recognize than those of SQuAD 2.0, which people wrote to be
plausible.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measuring import say

from elmo_framework.metrics.squad import normalized


def with_unanswerable(
    articles: Sequence[dict[str, Any]], *, fraction: float, seed: int
) -> list[dict[str, Any]]:
    """Return articles in which a part of the questions has no answer.

    Args:
        articles: `data` of SQuAD 1.1.
        fraction: the probability with which a question moves, if there is a paragraph for it.
        seed: of the choices.
    """
    generator = random.Random(seed)
    changed = []
    for article in articles:
        contexts = [paragraph["context"] for paragraph in article["paragraphs"]]
        texts = [f" {normalized(context)} " for context in contexts]
        questions: list[list[dict[str, Any]]] = [[] for _ in contexts]
        for index, paragraph in enumerate(article["paragraphs"]):
            for question in paragraph["qas"]:
                answers = [normalized(answer["text"]) for answer in question["answers"]]
                others = [
                    other
                    for other, text in enumerate(texts)
                    if other != index and not any(f" {answer} " in text for answer in answers)
                ]
                if others and generator.random() < fraction:
                    moved = {**question, "answers": [], "is_impossible": True}
                    questions[generator.choice(others)].append(moved)
                else:
                    questions[index].append({**question, "is_impossible": False})
        paragraphs = [
            {"context": context, "qas": own}
            for context, own in zip(contexts, questions, strict=True)
            if own
        ]
        changed.append({"title": article["title"], "paragraphs": paragraphs})
    return changed


def main() -> int:
    """Read questions, move some of them, and write all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("input", type=Path, help="a file of SQuAD 1.1")
    parser.add_argument("output", type=Path, help="the file to write, of SQuAD 2.0's form")
    parser.add_argument("--fraction", type=float, default=1 / 3, help="of the questions that move")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    try:
        articles = json.loads(arguments.input.read_text(encoding="utf-8"))["data"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"{arguments.input}: not a file of SQuAD: {error!r}")
    data = with_unanswerable(articles, fraction=arguments.fraction, seed=arguments.seed)
    arguments.output.write_text(json.dumps({"version": "v2.0", "data": data}), encoding="utf-8")
    flags = [
        question["is_impossible"]
        for article in data
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    say(f"{len(flags):,} questions, {sum(flags):,} without an answer: {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
