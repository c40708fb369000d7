from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework.config.parse import parse
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import BuildError, DataError
from elmo_framework.model.model import Model
from elmo_framework.tasks.entailment.reader import SnliReader
from elmo_framework.tasks.entailment.task import EntailmentTask, SentencePair
from tests.numpy_bilm import NumpyBiLm
from tests.unit.tasks.carried import carrying_elmo, check_order_of_reading
from tests.unit.tasks.classifiers import (
    batch_of,
    check_a_batch_equals_its_rows,
    check_gradients,
    check_learning,
)

FIXTURE = Path(__file__).parents[3] / "fixtures/snli/pairs.jsonl"
EXAMPLES = list(SnliReader(WhitespaceTokenizer(), {}).read(FIXTURE))
COUNTS = Vocabularies(EntailmentTask().count(EXAMPLES))
WORDS = {"type": "embedding", "embedding_dim": 8}
LSTM = {"type": "lstm", "hidden_size": 6, "bidirectional": True}
LAYER = {"num_layers": 1, "hidden_dims": 7, "activations": "tanh"}
ESIM = {
    "type": "esim",
    "embedder": {"token_embedders": {"tokens": WORDS}},
    "encoder": LSTM,
    "projection_feedforward": LAYER,
    "inference_encoder": LSTM,
    "output_feedforward": LAYER,
    "dropout": 0.0,
}
AT_THE_OUTPUT = {**ESIM, "output_embedder": {**WORDS, "lowercase": True}}
EACH = pytest.mark.parametrize("config", [ESIM, AT_THE_OUTPUT], ids=["plain", "output_embedder"])


def esim(config: dict[str, Any] = ESIM, counts: Vocabularies = COUNTS, **changes: Any) -> Any:
    torch.manual_seed(1)
    return parse(Model, {**config, **changes}, source="a.jsonnet").build(vocabularies=counts)


@EACH
def test_a_batch_equals_its_pairs_one_by_one(config):
    check_a_batch_equals_its_rows(esim(config), COUNTS, EXAMPLES)


@EACH
def test_gradients_reach_every_parameter(config):
    check_gradients(esim(config), COUNTS, EXAMPLES)


@EACH
def test_model_fits_its_training_data(config):
    check_learning(esim(config), COUNTS, EXAMPLES)


def test_model_equals_its_equations():
    model = esim().double().eval()
    pair = EXAMPLES[3]
    batch = batch_of(model, COUNTS, [pair])
    mask = batch.text.mask
    encoded = model.encoder(model.embedder(batch.text), mask).detach().numpy()
    a, b = encoded[0, : len(pair.premise)], encoded[1, : len(pair.hypothesis)]

    scores = np.exp(a @ b.T)
    of_a = scores / scores.sum(axis=1, keepdims=True) @ b
    of_b = (scores / scores.sum(axis=0, keepdims=True)).T @ a
    pooled = []
    for own, aligned in ((a, of_a), (b, of_b)):
        m = np.concatenate([own, aligned, own - aligned, own * aligned], axis=1)
        projected = model.projection_feedforward(torch.from_numpy(m)[None])
        every = torch.ones(1, len(own), dtype=torch.bool)
        inferred = model.inference_encoder(projected, every)[0].detach().numpy()
        pooled += [inferred.mean(axis=0), inferred.max(axis=0)]
    hidden = model.output_feedforward(torch.from_numpy(np.concatenate(pooled))[None])
    expected = model.output_logit(hidden)

    torch.testing.assert_close(model(batch).logits, expected, rtol=0, atol=1e-12)


def test_premise_and_hypothesis_are_not_interchangeable():
    model = esim().eval()
    pair = EXAMPLES[0]
    turned = SentencePair(pair.hypothesis, pair.premise, pair.label)

    found = model(batch_of(model, COUNTS, [pair, turned])).logits

    assert not found[0].allclose(found[1])


def test_unlabeled_batch_has_predictions_without_loss():
    model = esim().eval()
    pairs = [SentencePair(("A", "man"), ("Nobody",), None), SentencePair((), ("Nobody",), None)]
    batch = batch_of(model, COUNTS, pairs)

    output = model(batch)

    assert output.loss is output.example_losses is None
    for found in model.predict(output, batch):
        assert found.label in COUNTS.labels()
        assert sum(found.probabilities.values()) == pytest.approx(1)


def test_output_embedder_is_appended_to_the_first_encoder():
    plain, wider = esim(), esim(AT_THE_OUTPUT)

    widths = [model.projection_feedforward.linear_layers[0].in_features for model in (plain, wider)]
    assert widths == [4 * 12, 4 * (12 + 8)]
    assert len(wider.indexers) == 2


def test_dropout_mask_is_shared_by_words_of_a_sentence():
    model = esim(dropout=0.5)
    seen = {}
    for name in ("encoder", "inference_encoder"):
        getattr(model, name).register_forward_hook(
            lambda _, inputs, __, name=name: seen.update({name: inputs[0]})
        )
    batch = batch_of(model, COUNTS, EXAMPLES)

    model(batch)

    for inputs in seen.values():
        for row, sentence in zip(inputs, batch.text.words, strict=True):
            dropped = row[: len(sentence)] == 0
            assert dropped.equal(dropped[:1].expand_as(dropped))
        assert 0.3 < float((inputs[batch.text.mask] == 0).float().mean()) < 0.7


def test_dropout_rates_of_comparison_and_output_layers():
    model = esim(dropout=0.5, attention_dropout=0.3)
    seen = {}
    for name in ("projection_feedforward", "output_feedforward"):
        getattr(model, name).register_forward_hook(
            lambda _, inputs, __, name=name: seen.update({name: inputs[0]})
        )
    batch = batch_of(model, COUNTS, EXAMPLES)

    model(batch)

    compared = (seen["projection_feedforward"] == 0).float().mean()
    pooled = (seen["output_feedforward"] == 0).float().mean()
    assert [float(compared), float(pooled)] == pytest.approx([0.3, 0.5], abs=0.1)


def test_training_data_without_labels_is_refused():
    with pytest.raises(BuildError, match="Esim: the training data has no labels"):
        esim(counts=Vocabularies({"words": {"a": 1}}))


def test_unseen_label_is_refused():
    with pytest.raises(DataError, match="'neutrl' is not among the labels of the training data"):
        batch_of(esim(), COUNTS, [SentencePair(("a",), ("b",), "neutrl")])


def test_model_can_be_built_without_memory_for_weights():
    with torch.device("meta"):
        assert all(parameter.is_meta for parameter in esim().parameters())


def test_batch_title_is_its_first_pair():
    batch = batch_of(esim(), COUNTS, EXAMPLES)

    assert batch.title == (
        "'Two boys kick a ball in the park. / Children play outside.' and 8 more"
    )
    assert batch.num_tokens == sum(len(held.premise) + len(held.hypothesis) for held in EXAMPLES)


def test_a_carried_state_continues_from_premise_to_hypothesis(tmp_path: Path) -> None:
    bilm, pairs = NumpyBiLm.random(), EXAMPLES[:4]
    model = esim(embedder=carrying_elmo(bilm, tmp_path))
    batches = [batch_of(model, COUNTS, each) for each in (pairs[:2], pairs[2:])]
    rows = [
        [text for pair in pairs[row::2] for text in (pair.premise, pair.hypothesis)]
        for row in (0, 1)
    ]
    check_order_of_reading(model, batches, rows, bilm)
