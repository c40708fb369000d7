"""Plugins whose predictions are structures name the score by which a vote compares them."""

from __future__ import annotations

from typing import Any

import pytest

from elmo_framework.model.task import HeadTask
from plugins.allennlp_heads.constituency_task import ConstituencyTask
from plugins.question_generation.task import QuestionGenerationTask
from plugins.ud_parser.task import UdTask


@pytest.mark.parametrize("task", [ConstituencyTask, QuestionGenerationTask, UdTask])
def test_score_of_agreement_is_one_of_the_task(task: type[HeadTask[Any, Any]]) -> None:
    (score,) = task.agreement_scores
    assert any(score in metric.score({}) for metric in task.metrics.values())
