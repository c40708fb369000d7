"""The heads that label texts: `bcn` and `basic_classifier`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework.config.parse import parse
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import BuildError, DataError
from elmo_framework.model.model import Model
from elmo_framework.tasks.classification.sst_reader import SstReader
from elmo_framework.tasks.classification.task import ClassifiedText, TextClassificationTask
from tests.unit.tasks.classifiers import (
    batch_of,
    check_a_batch_equals_its_rows,
    check_gradients,
    check_learning,
)

EXAMPLES = list(SstReader().read(Path(__file__).parents[3] / "fixtures/sst/trees.txt"))
COUNTS = Vocabularies(TextClassificationTask().count(EXAMPLES))
WORDS = {"type": "embedding", "embedding_dim": 8}
LSTM = {"type": "lstm", "hidden_size": 6, "bidirectional": True}
LAYER = {"num_layers": 1, "hidden_dims": 7, "activations": "tanh"}
BCN = {
    "type": "bcn",
    "embedder": {"token_embedders": {"tokens": WORDS}},
    "pre_encode_feedforward": LAYER,
    "encoder": LSTM,
    "integrator": LSTM,
    "output_layer": {"type": "feedforward", **LAYER},
}
MAXOUT = {**BCN, "output_layer": {"type": "maxout", "output_dims": [8, 6], "pool_sizes": 2}}
BASIC = {
    "type": "basic_classifier",
    "embedder": {"token_embedders": {"tokens": WORDS}},
    "pooler": {"type": "bag_of_embeddings", "averaged": True},
}
ALL = [
    BCN,
    MAXOUT,
    {**BCN, "pre_encode_feedforward": None, "output_embedder": {**WORDS, "lowercase": True}},
    BASIC,
    {**BASIC, "encoder": LSTM, "pooler": "max", "feedforward": LAYER, "output_embedder": WORDS},
]
EACH = pytest.mark.parametrize("config", ALL, ids=["bcn", "maxout", "bcn_elmo", "basic", "encoded"])


def head(config: dict[str, Any], counts: Vocabularies = COUNTS, **changes: Any) -> Any:
    torch.manual_seed(1)
    lazy = parse(Model, {**config, **changes}, source="a.jsonnet")
    return lazy.build(vocabularies=counts)


@EACH
def test_a_batch_equals_its_texts_one_by_one(config):
    check_a_batch_equals_its_rows(head(config), COUNTS, EXAMPLES)


@EACH
def test_gradients_reach_every_parameter(config):
    check_gradients(head(config), COUNTS, EXAMPLES)


@EACH
def test_model_fits_its_training_data(config):
    check_learning(head(config), COUNTS, EXAMPLES)


@EACH
def test_unlabeled_batch_has_predictions_without_loss(config):
    model = head(config).eval()
    batch = batch_of(model, COUNTS, [ClassifiedText(("Fine",), None), ClassifiedText((), None)])

    output = model(batch)

    assert output.loss is output.example_losses is None
    for found in model.predict(output, batch):
        assert found.label in COUNTS.labels()
        assert sum(found.probabilities.values()) == pytest.approx(1)


@EACH
def test_training_data_without_labels_is_refused(config):
    with pytest.raises(BuildError, match="the training data has no labels"):
        head(config, Vocabularies({"words": {"a": 1}}))


@EACH
def test_model_can_be_built_without_memory_for_weights(config):
    with torch.device("meta"):
        assert all(parameter.is_meta for parameter in head(config).parameters())


def test_bcn_equals_its_equations():
    model = head(BCN).double().eval()
    batch = batch_of(model, COUNTS, EXAMPLES[3:4])
    words = model.pre_encode_feedforward(model.embedder(batch.text))
    x = model.encoder(words, batch.text.mask)[0].detach().numpy()

    scores = np.exp(x @ x.T)
    c = scores / scores.sum(axis=1, keepdims=True) @ x
    compared = torch.from_numpy(np.concatenate([x, x - c, x * c], axis=1))[None]
    z = model.integrator(compared, batch.text.mask)[0].detach().numpy()
    beta = np.exp(z @ model.self_attentive.projection.weight[0].detach().numpy())
    pools = [z.max(axis=0), z.mean(axis=0), z.min(axis=0), beta @ z / beta.sum()]
    expected = model.output_layer(torch.from_numpy(np.concatenate(pools))[None])

    torch.testing.assert_close(model(batch).logits, expected, rtol=0, atol=1e-12)


def test_output_embedder_of_bcn_follows_the_integrator():
    plain, wider = head(BCN), head(BCN, output_embedder={**WORDS, "lowercase": True})

    assert wider.integrator.input_dim == plain.integrator.input_dim
    assert wider.self_attentive.output_dim == plain.self_attentive.output_dim + 8
    assert len(wider.indexers) == 2


def test_bcn_applies_dropout_at_the_documented_places():
    model = head(BCN, embedding_dropout=0.5, integrator_dropout=0.3)
    seen = {}
    model.pre_encode_feedforward.register_forward_hook(lambda _, x, __: seen.update(words=x[0]))
    model.self_attentive.register_forward_hook(lambda _, x, __: seen.update(integrated=x[0]))
    model.output_layer.register_forward_hook(lambda _, x, __: seen.update(pooled=x[0]))
    batch = batch_of(model, COUNTS, EXAMPLES)

    model(batch)

    for name in ("words", "integrated"):
        seen[name] = seen[name][batch.text.mask]
    shares = {name: float((x == 0).float().mean()) for name, x in seen.items()}
    assert shares == pytest.approx({"words": 0.5, "integrated": 0.0, "pooled": 0.3}, abs=0.1)


def test_basic_classifier_drops_the_pooled_vector():
    model = head(BASIC, dropout=0.4, feedforward={**LAYER, "hidden_dims": 40})
    seen = {}
    model.feedforward.register_forward_hook(lambda _, x, __: seen.update(pooled=x[0]))
    batch = batch_of(model, COUNTS, EXAMPLES * 5)

    model(batch)

    assert float((seen["pooled"] == 0).float().mean()) == pytest.approx(0.4, abs=0.1)


def test_last_maxout_layer_has_the_width_of_the_labels():
    layers = head(MAXOUT).output_layer.maxout.layers

    assert [(layer.dim, layer.pool_size, layer.dropout) for layer in layers] == [
        (8, 2, 0.0),
        (6, 2, 0.0),
        (5, 2, 0.0),
    ]


def test_dropout_needs_one_rate_per_maxout_layer():
    output = {"type": "maxout", "output_dims": [8, 6], "dropout": [0.1]}

    with pytest.raises(BuildError, match="dropout has 1 item, output_dims 2"):
        head(BCN, output_layer=output)


def test_maxout_width_equal_to_the_labels_is_refused():
    output = {"type": "maxout", "output_dims": [8, len(COUNTS.labels())]}

    with pytest.raises(BuildError) as raised:
        head(BCN, output_layer=output)

    assert str(raised.value).endswith(
        "output_dims ends with 5, the number of labels; a last layer of that width is added: "
        "leave it out"
    )
    head(BCN, output_layer={**output, "output_dims": [len(COUNTS.labels())]})


def test_basic_classifier_equals_its_equations():
    model = head(ALL[-1]).eval()
    batch = batch_of(model, COUNTS, EXAMPLES)
    encoded = model.encoder(model.embedder(batch.text), batch.text.mask)
    together = torch.cat([encoded, model.output_embedder(batch.text)], dim=2)
    pooled = together.masked_fill(~batch.text.mask[:, :, None], float("-inf")).amax(dim=1)

    expected = model.projection(model.feedforward(pooled))

    torch.testing.assert_close(model(batch).logits, expected)


def test_unseen_label_is_refused():
    with pytest.raises(DataError, match="'9' is not among the labels of the training data"):
        batch_of(head(BASIC), COUNTS, [ClassifiedText(("Fine",), "9")])


def test_batch_title_is_its_first_text():
    batch = batch_of(head(BASIC), COUNTS, EXAMPLES)

    assert batch.title == '"It \'s good fun ." and 9 more'
    assert batch.num_tokens == sum(len(example.words) for example in EXAMPLES)
