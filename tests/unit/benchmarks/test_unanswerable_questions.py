from __future__ import annotations

import json
from pathlib import Path

import pytest
import unanswerable_questions
from unanswerable_questions import with_unanswerable

from elmo_framework.data.tokenizer import SpacyTokenizer
from elmo_framework.tasks.question_answering.reader import SquadReader

FIXTURE = Path(__file__).parents[2] / "fixtures" / "squad" / "train.json"
ARTICLES = json.loads(FIXTURE.read_text())["data"]


def test_moved_questions_find_no_answer_in_their_paragraph(tmp_path, monkeypatch, capsys):
    output = tmp_path / "out.json"
    arguments = ["unanswerable_questions.py", str(FIXTURE), str(output), "--fraction", "1"]
    monkeypatch.setattr("sys.argv", arguments)

    assert unanswerable_questions.main() == 0

    examples = list(SquadReader(SpacyTokenizer()).read(output))
    before = {each.id: each for each in SquadReader(SpacyTokenizer()).read(FIXTURE)}
    assert sorted(each.id for each in examples) == sorted(before)
    moved = [each for each in examples if each.span is None]
    assert moved
    for each in moved:
        assert each.passage.text != before[each.id].passage.text
        assert not any(answer in each.passage.text for answer in before[each.id].answers)
    assert f"6 questions, {len(moved)} without an answer" in capsys.readouterr().out


def test_same_seed_moves_the_same_questions():
    once, again, other = (
        with_unanswerable(ARTICLES, fraction=0.5, seed=seed) for seed in (1, 1, 2)
    )

    assert once == again
    assert once != other


@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_question_without_another_paragraph_stays(fraction):
    articles = [{"title": "One", "paragraphs": ARTICLES[0]["paragraphs"][:1]}]

    (changed,) = with_unanswerable(articles, fraction=fraction, seed=0)

    questions = changed["paragraphs"][0]["qas"]
    assert not any(question["is_impossible"] for question in questions)
