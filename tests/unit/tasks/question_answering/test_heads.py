"""Both models of question answering."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from elmo_framework.data.text import TextBatch
from elmo_framework.tasks.question_answering.answer_head import AnswerHead
from elmo_framework.tasks.question_answering.example import Answer
from tests.unit.tasks.question_answering.toy import CONFIGS, EXAMPLES, WORDS, batch_of, head

pytestmark = pytest.mark.parametrize("kind", sorted(CONFIGS))


def trained(model: AnswerHead) -> AnswerHead:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    batch = batch_of(model)
    for _ in range(50):
        optimizer.zero_grad()
        model(batch).loss.backward()
        optimizer.step()
    return model.eval()


def padded(text: TextBatch, by: int) -> TextBatch:
    """The same text with more padding, whose ids are those of a word."""
    return TextBatch(
        words=text.words,
        mask=F.pad(text.mask, (0, by)),
        ids={key: F.pad(ids, (0, by), value=2) for key, ids in text.ids.items()},
    )


def test_it_learns_its_training_data(kind):
    model = trained(head(kind))
    batch = batch_of(model)
    with torch.no_grad():
        output = model(batch)

    scores = model.scores(model.sums(output, batch))

    assert scores["em"] == scores["f1"] == 1.0
    assert scores["start_acc"] == scores["end_acc"] == scores["span_acc"] == 1.0
    assert scores["loss"] < 1.0
    assert model.predict(output, batch)[1] == Answer("Anna Lund", 99, 108)


@torch.no_grad()
def test_a_batch_equals_its_questions_one_by_one(kind):
    model = head(kind).eval()
    batch = batch_of(model)
    together = model(batch)

    for row, example in enumerate(EXAMPLES):
        own = batch_of(model, [example])
        alone = model(own)
        torch.testing.assert_close(alone.loss, together.example_losses[row])
        num_words = len(example.passage.words)
        torch.testing.assert_close(
            alone.start_logits[0], together.start_logits[row, :num_words], rtol=1e-4, atol=1e-6
        )
        assert model.predict(alone, own) == [model.predict(together, batch)[row]]


@torch.no_grad()
def test_padding_changes_nothing(kind):
    model = head(kind, output_embedder=WORDS).eval()
    batch = batch_of(model)
    wider = replace(batch, passage=padded(batch.passage, 4), question=padded(batch.question, 3))

    short, long = model(batch), model(wider)

    torch.testing.assert_close(long.example_losses, short.example_losses)
    torch.testing.assert_close(long.start_logits[:, :-4], short.start_logits)
    torch.testing.assert_close(long.end_logits[:, :-4], short.end_logits)
    assert (long.end_logits[:, -4:] == float("-inf")).all()
    assert model.predict(long, wider) == model.predict(short, batch)


@torch.no_grad()
def test_the_loss_is_that_of_both_ends_averaged_over_questions(kind):
    model = head(kind).eval()

    output = model(batch_of(model))

    start, end = output.start_logits.double().numpy(), output.end_logits.double().numpy()
    expected = []
    for row, example in enumerate(EXAMPLES):
        of_start = start[row] - np.log(np.exp(start[row]).sum())
        of_end = end[row] - np.log(np.exp(end[row]).sum())
        expected.append(-of_start[example.span.first] - of_end[example.span.last])
    np.testing.assert_allclose(output.example_losses.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(output.loss.item(), np.mean(expected), rtol=1e-5)


def test_gradients_reach_every_parameter(kind):
    model = head(kind, output_embedder=WORDS)

    model(batch_of(model)).loss.backward()

    assert {name for name, value in model.named_parameters() if not value.grad.any()} == set()


@torch.no_grad()
def test_without_answers_there_are_predictions_and_no_loss(kind):
    model = head(kind).eval()
    unanswered = [replace(example, answers=None, span=None) for example in EXAMPLES[2:4]]
    batch = batch_of(model, [*EXAMPLES[:2], *unanswered])

    output = model(batch)

    assert output.loss is output.example_losses is None
    for answer, example in zip(model.predict(output, batch), batch.examples, strict=True):
        assert answer.text == example.passage.text[answer.start : answer.end] != ""


@torch.no_grad()
def test_answers_are_as_long_as_is_allowed(kind):
    model = head(kind, max_span_length=2).eval()
    batch = batch_of(model, EXAMPLES[:1])
    output = model(batch)
    start, end = torch.full_like(output.start_logits, -9), torch.full_like(output.end_logits, -9)
    start[0, 1], end[0, 4], end[0, 2] = 5, 5, 1

    found = model.predict(replace(output, start_logits=start, end_logits=end), batch)

    assert [answer.text for answer in found] == ["lighthouse of"]


@torch.no_grad()
def test_each_end_of_an_answer_is_scored_for_itself_and_both_together(kind):
    model = head(kind).eval()
    batches = [batch_of(model, EXAMPLES[:2]), batch_of(model, EXAMPLES[2:4])]
    sums: Counter[str] = Counter()
    for batch, are_wrong in zip(batches, [[(0, 0), (0, 1)], [(1, 0), (1, 1)]], strict=True):
        output = model(batch)
        start, end = (torch.full_like(output.start_logits, -9) for _ in range(2))
        for row, (at_start, at_end) in enumerate(are_wrong):
            first, last = batch.spans[row].tolist()
            start[row, first - at_start] = end[row, last + at_end] = 9
        sums.update(model.sums(replace(output, start_logits=start, end_logits=end), batch))

    scores = model.scores(sums)

    assert (scores["start_acc"], scores["end_acc"], scores["span_acc"]) == (0.5, 0.5, 0.25)


@torch.no_grad()
def test_the_best_answer_is_found_in_half_precision(kind):
    model = head(kind).eval()
    batch = batch_of(model, EXAMPLES[:1])
    output = model(batch)
    start, end = (torch.full_like(output.start_logits, -9).bfloat16() for _ in range(2))
    start[0, 1], end[0, 1], end[0, 3] = 100, 0.1, 0.2

    found = model.predict(replace(output, start_logits=start, end_logits=end), batch)

    assert [answer.text for answer in found] == ["lighthouse of Norvik"]


def test_vectors_at_the_output_stand_behind_those_of_the_first_encoder(kind):
    model = head(kind, output_embedder={**WORDS, "lowercase": True})

    assert model.attention.output_dim == head(kind).attention.output_dim + 4 * 8
    assert len(model.indexers) == 2
    assert len(head(kind, output_embedder=WORDS).indexers) == 1


def test_dropout_acts_in_training_alone(kind):
    model = head(kind, dropout=0.5)
    batch = batch_of(model)

    assert not torch.equal(model(batch).loss, model(batch).loss)
    model.eval()
    assert torch.equal(model(batch).loss, model(batch).loss)


def test_it_can_be_built_without_memory_for_its_weights(kind):
    with torch.device("meta"):
        model = head(kind)

    assert all(parameter.is_meta for parameter in model.parameters())
