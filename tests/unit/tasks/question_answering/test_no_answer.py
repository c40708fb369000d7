"""The option that a question has no answer, in both models."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from elmo_framework.data.tokenizer import SpacyTokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError, RunError
from elmo_framework.metrics.squad import Answer
from elmo_framework.model.ensemble import Ensemble
from elmo_framework.model.head import mean
from elmo_framework.tasks.question_answering.answer_head import AnswerHead, AnswerOutput
from elmo_framework.tasks.question_answering.example import QuestionBatch
from elmo_framework.tasks.question_answering.no_answer import NoAnswerScore
from elmo_framework.tasks.question_answering.reader import SquadReader
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask
from tests.unit.tasks.learning import fit
from tests.unit.tasks.question_answering.toy import CONFIGS, COUNTS, EXAMPLES, batch_of, head

PATH = Path(__file__).parents[3] / "fixtures" / "squad" / "no_answer.json"
QUESTIONS = list(SquadReader(SpacyTokenizer()).read(PATH))
TASK = QuestionAnsweringTask()
KINDS = pytest.mark.parametrize("kind", sorted(CONFIGS))


def output_of(model: AnswerHead, batch: QuestionBatch) -> AnswerOutput:
    with torch.no_grad():
        output = model.double().eval()(batch)
    assert isinstance(output, AnswerOutput)
    return output


def enumerated(output: AnswerOutput, row: int) -> tuple[dict[tuple[int, int], float], float]:
    """The probability of each pair of a first and a last word, and that of no answer."""
    start, end = output.start_logits[row], output.end_logits[row]
    num_words = int(start.isfinite().sum())
    weights = {
        (first, last): float(np.exp((start[first] + end[last]).item()))
        for first, last in product(range(num_words), repeat=2)
    }
    none = float(np.exp(output.no_answer_logits[row].item()))
    total = sum(weights.values()) + none
    return {span: weight / total for span, weight in weights.items()}, none / total


@KINDS
def test_loss_equals_enumeration_of_all_options(kind):
    model = head(kind, no_answer=True)
    output = output_of(model, batch_of(model, QUESTIONS))

    for row, example in enumerate(QUESTIONS):
        spans, none = enumerated(output, row)
        probability = none if example.span is None else spans[tuple(example.span)]
        assert output.example_losses[row].item() == pytest.approx(-np.log(probability), rel=1e-9)
    assert output.loss.item() == pytest.approx(output.example_losses.mean().item())


@KINDS
def test_no_answer_probability_equals_enumeration(kind):
    model = head(kind, no_answer=True)
    batch = batch_of(model, QUESTIONS)
    output = output_of(model, batch)
    output = replace(output, no_answer_logits=torch.tensor([0.0, 4.0, 9.0, 5.0, 6.0]).double())

    answers = model.predict(output, batch)

    for row, answer in enumerate(answers):
        none = enumerated(output, row)[1]
        assert answer.no_answer_probability == pytest.approx(none, rel=1e-9)
        assert answer.is_no_answer is (none > 0.5)
        assert (answer.text == "") is answer.is_no_answer
        assert answer.best_span
    assert {answer.is_no_answer for answer in answers} == {True, False}


@KINDS
def test_best_span_is_kept_without_an_answer(kind):
    model = head(kind, no_answer=True)
    batch = batch_of(model, QUESTIONS)
    output = output_of(model, batch)
    low, high = (torch.full((5,), value).double() for value in (-99.0, 99.0))

    with_spans, without = (
        model.predict(replace(output, no_answer_logits=logits), batch) for logits in (low, high)
    )

    assert [answer.text for answer in without] == [""] * 5
    assert {(answer.start, answer.end) for answer in without} == {(0, 0)}
    assert [answer.best_span for answer in without] == [answer.text for answer in with_spans]


@KINDS
def test_model_learns_which_questions_have_no_answer(kind):
    model = head(kind, no_answer=True)
    batch = batch_of(model, QUESTIONS)
    fit(model, batch, lr=0.03, num_steps=60)
    with torch.no_grad():
        output = model.eval()(batch)

    scores = model.scores(model.sums(output, batch))

    assert {scores[name] for name in ("em", "f1", "HasAns_f1", "NoAns_exact", "best_f1")} == {1.0}
    assert scores["start_acc"] == scores["end_acc"] == scores["span_acc"] == 1.0


def test_accuracies_count_abstaining_as_right():
    model = head("bidaf", no_answer=True)
    batch = batch_of(model, [QUESTIONS[1], QUESTIONS[4], QUESTIONS[1], QUESTIONS[4]])
    logits = torch.tensor([99.0, 99.0, 99.0, -99.0]).double()
    output = replace(output_of(model, batch), no_answer_logits=logits)

    scores = model.scores(model.sums(output, batch))

    assert scores["start_acc"] == scores["end_acc"] == scores["span_acc"] == 0.75
    assert scores["NoAns_exact"] == 0.75


@KINDS
def test_gradients_reach_the_option(kind):
    model = head(kind, no_answer=True)

    model(batch_of(model, QUESTIONS)).loss.backward()

    assert all(parameter.grad.any() for parameter in model.no_answer.parameters())


@KINDS
@torch.no_grad()
def test_padding_does_not_change_the_option(kind):
    model = head(kind, no_answer=True).double().eval()
    batch = batch_of(model, QUESTIONS)
    passage = replace(
        batch.passage,
        mask=F.pad(batch.passage.mask, (0, 3)),
        ids={key: F.pad(ids, (0, 3), value=2) for key, ids in batch.passage.ids.items()},
    )

    padded = model(replace(batch, passage=passage))

    torch.testing.assert_close(padded.no_answer_logits, model(batch).no_answer_logits)


@torch.no_grad()
def test_score_equals_its_equations():
    generator = torch.Generator().manual_seed(3)
    score = NoAnswerScore(start_dim=3, end_dim=4, state_dim=2).double()
    states, ends, starts = (
        torch.randn(1, 5, dim, generator=generator).double() for dim in (2, 4, 3)
    )
    s, g = torch.randn(2, 1, 5, generator=generator).double()

    found = score((starts, s), (ends, g), states, torch.ones(1, 5, dtype=torch.bool)).item()

    def pooled(scores: Any, vectors: Any) -> Any:
        weights = np.exp(scores)
        return weights / weights.sum() @ vectors

    x, y, r = (each[0].numpy() for each in (starts, ends, states))
    attention = (r @ score.attention.weight.numpy().T)[:, 0]
    weighted = ((s[0].numpy(), x), (g[0].numpy(), y), (attention, r))
    vectors = np.concatenate([pooled(*each) for each in weighted])
    hidden = score.hidden.weight.numpy() @ vectors + score.hidden.bias.numpy()
    expected = score.output.weight.numpy() @ np.maximum(hidden, 0) + score.output.bias.numpy()
    assert found == pytest.approx(expected.item(), rel=1e-12)
    assert len(hidden) == 80


@KINDS
def test_plain_model_refuses_an_unanswerable_question(kind):
    model = head(kind)
    collate = model.collator(Vocabularies({"words": COUNTS.counted("words")}))

    with pytest.raises(DataError) as raised:
        collate(QUESTIONS)

    assert str(raised.value) == (
        f"{PATH}: question 'norvik-painted' has no answer; set 'no_answer: true' in the model, or "
        "use data in which every question has one"
    )


@KINDS
def test_plain_model_has_nothing_of_the_option(kind):
    plain, with_option = head(kind), head(kind, no_answer=True)

    added = with_option.state_dict().keys() - plain.state_dict().keys()

    assert added
    assert all(name.startswith("no_answer.") for name in added)
    assert "best_f1" in with_option.scores({})
    assert "best_f1" not in plain.scores({})
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(with_option.state_dict()[name], value, rtol=0, atol=0)


@KINDS
def test_unlabeled_question_has_no_loss(kind):
    model = head(kind, no_answer=True)
    unlabeled = replace(QUESTIONS[1], answers=None)

    output = output_of(model, batch_of(model, [QUESTIONS[0], unlabeled]))

    assert output.loss is output.example_losses is None


def test_ensemble_averages_the_option_in_the_same_softmax():
    heads = [head("bidaf", no_answer=True) for _ in range(2)]
    torch.nn.init.normal_(heads[1].start.weight)
    torch.nn.init.constant_(heads[1].no_answer.output.bias, 3.0)
    batch = batch_of(heads[0], QUESTIONS)
    outputs = [output_of(each, batch) for each in heads]

    found = heads[0].mean_output(outputs, heads)

    spans, none = zip(*(enumerated(output, 0) for output in outputs), strict=True)
    weights = [np.sqrt(p * q) for p, q in zip(spans[0].values(), spans[1].values(), strict=True)]
    no_answer = np.sqrt(none[0] * none[1])
    assert enumerated(found, 0)[1] == pytest.approx(no_answer / (sum(weights) + no_answer))
    assert torch.equal(found.no_answer_logits, mean([each.no_answer_logits for each in outputs]))


def test_mean_with_and_without_the_option_is_refused():
    heads = [head("bidaf", no_answer=True), head("bidaf")]

    with pytest.raises(RunError, match="only some of these runs have 'no_answer: true'"):
        Ensemble(heads, [COUNTS, COUNTS])


@pytest.mark.parametrize("are_plain", [(True, False), (False, True)])
def test_heads_with_and_without_the_option_vote(are_plain):
    heads = [head("bidaf", no_answer=not is_plain) for is_plain in are_plain]
    ensemble = Ensemble(heads, [COUNTS, COUNTS], combination="vote", agreement="f1")
    batch = ensemble.collator(COUNTS)(EXAMPLES)
    with torch.no_grad():
        output = ensemble.eval()(batch)

    scores = ensemble.scores(ensemble.sums(output, batch))

    assert ("HasAns_f1" in scores) is not are_plain[0]
    assert scores.get("HasAns_f1", scores["f1"]) == scores["f1"]


def test_a_vote_for_no_answer_counts_as_the_right_span():
    heads = [head("bidaf", no_answer=True) for _ in range(2)]
    for each in heads:
        torch.nn.init.constant_(each.no_answer.output.bias, 99.0)
    ensemble = Ensemble(heads, [COUNTS, COUNTS], combination="vote", agreement="f1")
    batch = ensemble.collator(COUNTS)(QUESTIONS)
    with torch.no_grad():
        output = ensemble.eval()(batch)

    scores = ensemble.scores(ensemble.sums(output, batch))

    unanswerable = sum(each.span is None for each in QUESTIONS)
    assert scores["span_acc"] == unanswerable / len(QUESTIONS) > 0


SURE = Answer("", 0, 0, 0.75, "Anna Lund")
UNSURE = Answer("Anna Lund", 99, 108, 0.25, "Anna Lund")


def test_prediction_has_the_probability_and_the_best_span():
    example = QUESTIONS[1]

    sure, unsure = (TASK.to_json(answer, example) for answer in (SURE, UNSURE))

    expected = {"answer": "", "start": None, "end": None, "no_answer_probability": 0.75}
    assert expected.items() <= sure.items()
    assert sure["best_span"] == unsure["best_span"] == "Anna Lund"
    assert (unsure["answer"], unsure["start"], unsure["end"]) == ("Anna Lund", 99, 108)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("squad", {"norvik-painted": "", "norvik-built": "Anna Lund"}),
        ("squad_no_answer", {"norvik-painted": 0.75, "norvik-built": 0.25}),
        ("squad_spans", {"norvik-painted": "Anna Lund", "norvik-built": "Anna Lund"}),
    ],
)
def test_official_files_are_objects_by_id(name, expected):
    pairs = [(SURE, QUESTIONS[1]), (UNSURE, QUESTIONS[0])]

    assert json.loads("".join(TASK.formats[name](pairs))) == expected


@pytest.mark.parametrize("name", ["squad_no_answer", "squad_spans"])
def test_files_of_the_option_need_a_model_with_it(name):
    with pytest.raises(DataError, match="train a model with 'no_answer: true'"):
        list(TASK.formats[name]([(Answer("Anna", 99, 103), QUESTIONS[0])]))


def test_no_answer_is_displayed_without_brackets():
    sure, unsure = (TASK.pretty(answer, QUESTIONS[1]).plain for answer in (SURE, UNSURE))

    question, probability, passage = sure.split("\n")
    assert question == "Who painted the door of the tower?"
    assert probability == "no answer, probability 0.75"
    assert passage == QUESTIONS[1].passage.text
    assert unsure.split("\n")[1] == "probability of no answer 0.25"
    assert "when the keeper, [Anna Lund], bought" in unsure


def test_question_without_an_answer_has_empty_gold():
    assert TASK.gold(QUESTIONS[1]) == () == TASK.as_gold(SURE)
    assert TASK.as_gold(UNSURE) == ("Anna Lund",)
