import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.data.labels import LabeledBatch
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import BuildError
from elmo_framework.model.model import Model
from elmo_framework.tasks.tagging.tagger import SimpleTagger
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask

components.load()
WORDS = {"type": "embedding", "embedding_dim": 8}
WIDE = {"embedding_dim": 200}
LSTM = {"type": "lstm", "hidden_size": 3, "bidirectional": True}
EXAMPLES = [
    TaggedSentence(("Maria", "Lund", "left", "Oslo"), ("B-PER", "I-PER", "O", "B-LOC")),
    TaggedSentence(("Rain",), ("O",)),
    TaggedSentence(("Oslo", "and", "Turku"), ("B-LOC", "O", "B-LOC")),
]
COUNTS = Vocabularies(TaggingTask().count(EXAMPLES))


def tagger(**options: Any) -> SimpleTagger:
    torch.manual_seed(1)
    config = {"type": "simple_tagger", "embedder": {"token_embedders": {"tokens": WORDS}}}
    built = parse(Model, {**config, **options}, source="a.jsonnet").build(vocabularies=COUNTS)
    assert isinstance(built, SimpleTagger)
    return built


def batch_of(model: SimpleTagger, examples: Sequence[TaggedSentence] = EXAMPLES) -> LabeledBatch:
    batch = model.task.collator(COUNTS, model.indexers)(examples)
    assert isinstance(batch, LabeledBatch)
    return batch


def expected_loss(logits: np.ndarray, example: TaggedSentence) -> float:
    """The mean of -log p over the words of a sentence."""
    losses = []
    for row, tag in zip(logits, example.tags or (), strict=False):
        p = np.exp(row - row.max())
        losses.append(-math.log(p[COUNTS.labels().id(tag)] / p.sum()))
    return sum(losses) / len(losses)


def test_loss_is_mean_over_words_then_sentences():
    model = tagger().double()
    batch = batch_of(model)

    output = model(batch)

    logits = output.logits.detach().numpy()
    losses = [expected_loss(rows, example) for rows, example in zip(logits, EXAMPLES, strict=True)]
    assert output.example_losses.tolist() == pytest.approx(losses, abs=1e-12)
    assert output.loss.item() == pytest.approx(sum(losses) / 3, abs=1e-12)


def test_empty_sentences_have_no_loss():
    model = tagger()
    empty = TaggedSentence((), ())

    output = model(batch_of(model, [*EXAMPLES, empty]))

    torch.testing.assert_close(output.loss, model(batch_of(model)).loss)
    assert output.example_losses[3] == 0
    alone = batch_of(model, [empty])
    assert model(alone).loss == 0
    assert model.predict(model(alone), alone) == [()]


def test_each_word_has_its_best_tag():
    model = tagger()
    batch = batch_of(model)
    output = model(batch)

    found = model.predict(output, batch)

    items = COUNTS.labels().items
    for tags, rows in zip(found, output.logits.tolist(), strict=True):
        assert list(tags) == [
            items[max(range(5), key=row.__getitem__)] for row in rows[: len(tags)]
        ]
    assert [len(tags) for tags in found] == [4, 1, 3]


def test_accuracy3_is_the_ratio_of_tags_in_the_top_three():
    model = tagger()
    batch = batch_of(model)
    with torch.no_grad():
        output = model(batch)

    found = model.scores(model.sums(output, batch))["accuracy3"]

    num_near = sum(
        sum(value > row[gold] for value in row) < 3
        for rows, golds, example in zip(
            output.logits.tolist(), batch.labels.tolist(), EXAMPLES, strict=True
        )
        for row, gold, _ in zip(rows, golds, example.words, strict=False)
    )
    assert 0 < num_near < 8
    assert found == num_near / 8


@pytest.mark.parametrize("decoder", ["softmax", "crf"])
@pytest.mark.parametrize("encoder", [None, LSTM])
def test_a_batch_equals_its_sentences_one_by_one(decoder, encoder):
    model = tagger(decoder=decoder, encoder=encoder).eval()
    batch = batch_of(model)
    together = model(batch)

    for row, example in enumerate(EXAMPLES):
        own = batch_of(model, [example])
        alone = model(own)
        torch.testing.assert_close(alone.loss, together.example_losses[row])
        assert model.predict(alone, own) == model.predict(together, batch)[row : row + 1]


def test_dropout_is_applied_once_without_an_encoder():
    model = tagger(dropout=0.5, embedder={"token_embedders": {"tokens": {**WORDS, **WIDE}}})
    seen = []
    model.projection.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    batch = batch_of(model)

    model(batch)

    share = float((seen[0][batch.text.mask] == 0).float().mean())
    assert share == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("decoder", ["softmax", "crf"])
def test_gradients_reach_every_parameter(decoder):
    model = tagger(decoder=decoder, encoder=LSTM, output_embedder=WORDS, output_encoder=LSTM)

    model(batch_of(model)).loss.backward()

    assert {name for name, value in model.named_parameters() if not value.grad.any()} == set()


def test_crf_predictions_follow_the_scheme():
    model = tagger(decoder="crf").eval()
    batch = batch_of(model)
    output = model(batch)
    wrong = torch.zeros_like(output.logits)
    wrong[:, :, COUNTS.labels().id("I-PER")] = 5.0
    output = type(output)(loss=None, logits=wrong)

    for tags in model.predict(output, batch):
        assert tags[0] != "I-PER"
    assert {tag for tags in tagger().predict(output, batch) for tag in tags} == {"I-PER"}


def test_crf_decoder_sums_the_losses():
    model = tagger(decoder="crf")

    output = model(batch_of(model))

    torch.testing.assert_close(output.loss, output.example_losses.sum())


def test_unlabeled_batch_has_predictions_without_loss():
    model = tagger().eval()
    batch = batch_of(model, [TaggedSentence(("Oslo", "and", "Turku"), None)])

    output = model(batch)

    assert output.loss is output.example_losses is None
    assert len(model.predict(output, batch)[0]) == 3


def test_training_data_without_tags_is_refused():
    lazy = parse(
        Model,
        {"type": "simple_tagger", "embedder": {"token_embedders": {"tokens": WORDS}}},
        source="a.jsonnet",
    )

    with pytest.raises(BuildError, match="SimpleTagger: the training data has no labels"):
        lazy.build(vocabularies=Vocabularies({}))


def test_crf_decoder_scores_transitions_only() -> None:
    """The first and the last tag have scores of their own in `crf_tagger` only, where asked."""
    names = {name for name, _ in tagger(decoder="crf").named_parameters() if "crf" in name}
    assert names == {"crf.transitions"}
