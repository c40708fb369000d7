"""Both models of question answering."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_framework.data.text import TextBatch
from elmo_framework.metrics.squad import Answer
from elmo_framework.tasks.question_answering.answer_head import AnswerHead
from elmo_framework.tasks.question_answering.example import (
    QuestionBatch,
)
from tests.numpy_bilm import NumpyBiLm
from tests.unit.tasks.carried import carrying_elmo, check_order_of_reading
from tests.unit.tasks.learning import fit
from tests.unit.tasks.question_answering.toy import CONFIGS, EXAMPLES, WORDS, batch_of, head

Array: TypeAlias = NDArray[np.float64]

DROPPED = {
    "bidaf": ({"attention", "start", "end"}, {"encoder", "modeling_layer", "span_end_encoder"}),
    "bidaf_self_attention": (
        {"encoder", "attention", "residual_encoder", "self_attention", "span_start_encoder"},
        {"embedder", "encoder", "residual_encoder"},
    ),
}
"""The parts whose input has gone through dropout, and those whose output goes through it."""

NUM_DROPPED = {"bidaf": 6, "bidaf_self_attention": 7}
"""How often a batch goes through it: before attention, passage and question each by itself."""

pytestmark = pytest.mark.parametrize("kind", sorted(CONFIGS))


def trained(model: AnswerHead) -> AnswerHead:
    fit(model, batch_of(model), lr=0.03, num_steps=50)
    return model.eval()


def padded(text: TextBatch, by: int) -> TextBatch:
    """The same text with more padding, whose ids are those of a word."""
    return TextBatch(
        words=text.words,
        mask=F.pad(text.mask, (0, by)),
        ids={key: F.pad(ids, (0, by), value=2) for key, ids in text.ids.items()},
    )


def softmax(scores: Array) -> Array:
    shares = np.exp(scores)
    return shares / shares.sum(axis=-1, keepdims=True)


def relu(values: Array) -> Array:
    return values * (values > 0)


def affine(layer: nn.Linear, vectors: Array) -> Array:
    moved = vectors @ layer.weight.numpy().T
    return moved if layer.bias is None else moved + layer.bias.numpy()


def encoded(encoder: nn.Module, vectors: Array) -> Array:
    mask = torch.ones(1, len(vectors), dtype=torch.bool)
    return encoder(torch.from_numpy(vectors)[None], mask)[0].numpy()


def trilinear(weight: Tensor, rows: Array, columns: Array) -> Array:
    of_rows, of_columns, of_both = weight.numpy()
    pairs = np.einsum("id,jd,d->ij", rows, columns, of_both)
    return (rows @ of_rows)[:, None] + (columns @ of_columns)[None] + pairs


def bi_attention(model: AnswerHead, passage: Array, question: Array) -> Array:
    scores = trilinear(model.attention.score.weight, passage, question)
    attended = softmax(scores) @ question
    summary = softmax(scores.max(axis=1)) @ passage
    return np.concatenate([passage, attended, passage * attended, passage * summary], axis=1)


def texts_of(model: AnswerHead, batch: QuestionBatch) -> list[Array]:
    return [model.embedder(text)[0].numpy() for text in (batch.passage, batch.question)]


def bidaf(model: AnswerHead, batch: QuestionBatch) -> tuple[Array, Array]:
    lifted = [model.highway(torch.from_numpy(text)).numpy() for text in texts_of(model, batch)]
    attended = bi_attention(model, *(encoded(model.encoder, text) for text in lifted))
    modeled = encoded(model.modeling_layer, attended)
    start = affine(model.start, np.concatenate([attended, modeled], axis=1))[:, 0]
    beginning = np.tile(softmax(start) @ modeled, (len(start), 1))
    flowing = np.concatenate([attended, modeled, beginning, modeled * beginning], axis=1)
    ended = encoded(model.span_end_encoder, flowing)
    return start, affine(model.end, np.concatenate([attended, ended], axis=1))[:, 0]


def bidaf_self_attention(model: AnswerHead, batch: QuestionBatch) -> tuple[Array, Array]:
    texts = (encoded(model.encoder, text) for text in texts_of(model, batch))
    flowing = relu(affine(model.attention_projection, bi_attention(model, *texts)))
    read = encoded(model.residual_encoder, flowing)
    weights = np.exp(trilinear(model.self_attention.score.weight, read, read))
    np.fill_diagonal(weights, 0)
    nothing = np.exp(model.self_attention.nothing.numpy())
    others = weights @ read / (nothing + weights.sum(axis=1, keepdims=True))
    attended = np.concatenate([read, others, read * others], axis=1)
    flowing = flowing + relu(affine(model.residual_projection, attended))
    begun = encoded(model.span_start_encoder, flowing)
    ended = encoded(model.span_end_encoder, np.concatenate([flowing, begun], axis=1))
    return affine(model.start, begun)[:, 0], affine(model.end, ended)[:, 0]


EQUATIONS = {"bidaf": bidaf, "bidaf_self_attention": bidaf_self_attention}


def test_model_fits_its_training_data(kind):
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
def test_loss_of_both_ends_is_averaged_over_questions(kind):
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


@torch.no_grad()
def test_model_equals_its_equations(kind):
    model = head(kind).double().eval()
    batch = batch_of(model, EXAMPLES[1:2])

    start, end = EQUATIONS[kind](model, batch)

    output = model(batch)
    np.testing.assert_allclose(output.start_logits[0].numpy(), start, rtol=0, atol=1e-12)
    np.testing.assert_allclose(output.end_logits[0].numpy(), end, rtol=0, atol=1e-12)


def test_dropout_is_applied_at_the_documented_places(kind):
    model = head(kind, dropout=0.5)
    passed, calls = [], []
    model.dropout.register_forward_hook(
        lambda _, inputs, output: passed.append((inputs[0], output))
    )
    for name, part in model.named_children():
        part.register_forward_hook(
            lambda _, inputs, output, name=name: calls.append((name, inputs[0], output))
        )

    model(batch_of(model))

    before = {name for name, inputs, _ in calls if any(inputs is given for _, given in passed)}
    behind = {name for name, _, output in calls if any(output is taken for taken, _ in passed)}
    assert (before - {"dropout"}, behind - {"dropout"}) == DROPPED[kind]
    assert len(passed) == NUM_DROPPED[kind]


def test_only_self_attention_uses_variational_dropout(kind):
    model = head(kind, dropout=0.5)
    seen = []
    model.attention.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    batch = batch_of(model)

    model(batch)

    rows = zip(seen[0] == 0, batch.passage.mask, strict=True)
    are_alike = {bool((row[mask] == row[0]).all()) for row, mask in rows}
    assert are_alike == {kind == "bidaf_self_attention"}


def test_gradients_reach_every_parameter(kind):
    model = head(kind, output_embedder=WORDS)

    model(batch_of(model)).loss.backward()

    assert {name for name, value in model.named_parameters() if not value.grad.any()} == set()


@torch.no_grad()
def test_unlabeled_batch_has_predictions_without_loss(kind):
    model = head(kind).eval()
    unanswered = [replace(example, answers=None, span=None) for example in EXAMPLES[2:4]]
    batch = batch_of(model, [*EXAMPLES[:2], *unanswered])

    output = model(batch)

    assert output.loss is output.example_losses is None
    for answer, example in zip(model.predict(output, batch), batch.examples, strict=True):
        assert answer.text == example.passage.text[answer.start : answer.end] != ""


@torch.no_grad()
def test_max_span_length_is_configurable(kind):
    model = head(kind, max_span_length=2).eval()
    batch = batch_of(model, EXAMPLES[:1])
    output = model(batch)
    start, end = torch.full_like(output.start_logits, -9), torch.full_like(output.end_logits, -9)
    start[0, 1], end[0, 4], end[0, 2] = 5, 5, 1

    found = model.predict(replace(output, start_logits=start, end_logits=end), batch)

    assert [answer.text for answer in found] == ["lighthouse of"]


@torch.no_grad()
def test_self_attention_limits_answers_to_17_words(kind):
    """As in the paper of Clark and Gardner; BiDAF's answers may have any length."""
    model = head(kind).eval()
    batch = batch_of(model, EXAMPLES[:1])
    output = model(batch)
    num_tokens = output.start_logits.shape[1]
    assert num_tokens > 18
    start, end = torch.full_like(output.start_logits, -9), torch.zeros_like(output.end_logits)
    start[0, 0] = 9
    end[0] = torch.arange(num_tokens)

    (found,) = model.predict(replace(output, start_logits=start, end_logits=end), batch)

    last = 16 if kind == "bidaf_self_attention" else -1
    assert (found.start, found.end) == (0, batch.examples[0].passage.offsets[last][1])


@torch.no_grad()
def test_start_end_and_span_have_accuracies(kind):
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


def test_output_embedder_is_appended_to_the_first_encoder(kind):
    model = head(kind, output_embedder={**WORDS, "lowercase": True})

    assert model.attention.output_dim == head(kind).attention.output_dim + 4 * 8
    assert len(model.indexers) == 2
    assert len(head(kind, output_embedder=WORDS).indexers) == 1


def test_start_and_end_have_no_bias(kind):
    """It would change no distribution over words, and learn nothing."""
    model = head(kind)
    assert model.start.bias is model.end.bias is None


def test_dropout_is_applied_in_training_only(kind):
    model = head(kind, dropout=0.5)
    batch = batch_of(model)

    assert not torch.equal(model(batch).loss, model(batch).loss)
    model.eval()
    assert torch.equal(model(batch).loss, model(batch).loss)


def test_model_can_be_built_without_memory_for_weights(kind):
    with torch.device("meta"):
        model = head(kind)

    assert all(parameter.is_meta for parameter in model.parameters())


def test_a_carried_state_continues_from_question_to_passage(kind: str, tmp_path: Path) -> None:
    bilm, examples = NumpyBiLm.random(), EXAMPLES[:4]
    model = head(kind, embedder=carrying_elmo(bilm, tmp_path))
    batches = [batch_of(model, each) for each in (examples[:2], examples[2:])]
    rows = [
        [text.words for each in examples[row::2] for text in (each.question, each.passage)]
        for row in (0, 1)
    ]
    check_order_of_reading(model, batches, rows, bilm)
