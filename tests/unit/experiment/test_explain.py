from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.data.batch import to_device
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import RunError
from elmo_framework.experiment.explain import Explainer, Explanation
from elmo_framework.model.model import Model

components.load()

WORDS = {"type": "embedding", "embedding_dim": 5}
EMBEDDER = {"token_embedders": {"tokens": WORDS}}
LSTM = {"type": "lstm", "hidden_size": 6, "bidirectional": True}
LAYER = {"num_layers": 1, "hidden_dims": 7, "activations": "tanh"}
SUM = {
    "type": "basic_classifier",
    "embedder": EMBEDDER,
    "pooler": {"type": "bag_of_embeddings", "averaged": False},
}
ENCODED = {**SUM, "encoder": LSTM, "pooler": "max", "output_embedder": WORDS}
BCN = {
    "type": "bcn",
    "embedder": EMBEDDER,
    "encoder": LSTM,
    "integrator": LSTM,
    "output_layer": {"type": "feedforward", **LAYER},
}
ESIM = {
    "type": "esim",
    "embedder": EMBEDDER,
    "encoder": LSTM,
    "projection_feedforward": LAYER,
    "inference_encoder": {**LSTM, "hidden_size": 4},
    "output_feedforward": LAYER,
}
TAGGER = {"type": "simple_tagger", "embedder": EMBEDDER, "encoder": LSTM}
CRF = {**TAGGER, "type": "crf_tagger"}

TEXT = {"sentence": "not a good film"}
PAIR = {"premise": "a good film is long", "hypothesis": "not a film"}
COUNTS = Vocabularies(
    {
        "words": dict.fromkeys(["not", "a", "good", "film", "is", "long"], 1),
        "labels": {"B-X": 2, "O": 3, "I-X": 1},
        "beginnings": {"B-X": 1},
    }
)


def head(config: dict[str, Any], counts: Vocabularies = COUNTS) -> Any:
    torch.manual_seed(3)
    built = parse(Model, config, source="a.jsonnet").build(vocabularies=counts).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.7)
    return built


def explainer(model: Any, **options: Any) -> Explainer:
    return Explainer(model, model.collator(COUNTS), torch.device("cpu"), **options)


def explain(model: Any, inputs: dict[str, str], **options: Any) -> Explanation:
    return explainer(model, **options)(model.task.example(inputs, WhitespaceTokenizer()))


def probability(model: Any, inputs: dict[str, str], label: str) -> float:
    example = model.task.example(inputs, WhitespaceTokenizer())
    batch = to_device(model.collator(COUNTS)([example]), torch.device("cpu"))
    with torch.no_grad():
        return model.predict(model(batch), batch)[0].probabilities[label]


def test_gradients_of_a_linear_model_have_their_closed_form():
    model = head(SUM, Vocabularies({"words": COUNTS.counted("words"), "labels": {"y": 2, "n": 1}}))
    explanation = explain(model, TEXT, label="y")

    weight, bias = (value.detach().double().numpy() for value in model.projection.parameters())
    vectors = model.embedder(
        model.collator(COUNTS)([model.task.example(TEXT, WhitespaceTokenizer())]).text
    )
    # The odds of two labels depend on the difference of their logits only.
    slopes = vectors[0].detach().double().numpy() @ (weight[0] - weight[1])
    whole, empty = (1 / (1 + np.exp(-(bias[0] - bias[1] + x))) for x in (slopes.sum(), 0.0))

    expected = slopes / slopes.sum() * (whole - empty)
    np.testing.assert_allclose(explanation.scores[0], expected, atol=1e-6)
    np.testing.assert_allclose([explanation.probability, explanation.baseline], [whole, empty])


@pytest.mark.parametrize(
    ("config", "inputs", "options"),
    [
        (ENCODED, TEXT, {"label": "I-X"}),
        (BCN, TEXT, {}),
        (ESIM, PAIR, {"label": "O"}),
        (TAGGER, TEXT, {"word": "good"}),
        (CRF, TEXT, {"word": 1, "label": "B-X"}),
    ],
    ids=["basic", "bcn", "esim", "tagger", "crf"],
)
def test_integrated_gradients_add_up_to_the_change(config, inputs, options):
    explanation = explain(head(config), inputs, steps=200, **options)

    assert tuple(map(len, explanation.scores)) == tuple(map(len, explanation.sentences))
    assert abs(explanation.probability - explanation.baseline) > 1e-3
    total = sum(map(sum, explanation.scores))
    assert total == pytest.approx(explanation.probability - explanation.baseline, abs=1e-3)


@pytest.mark.parametrize(("config", "inputs"), [(ENCODED, TEXT), (ESIM, PAIR)])
def test_occlusion_is_what_a_word_without_vector_changes(config, inputs):
    model = head(config)
    explanation = explain(model, inputs, method="occlusion", label="O")

    whole = probability(model, inputs, "O")
    assert explanation.probability == pytest.approx(whole, abs=1e-6)
    tables = [value for name, value in model.named_parameters() if "embedder" in name]
    for words, scores in zip(explanation.sentences, explanation.scores, strict=True):
        for word, score in zip(words, scores, strict=True):
            if sum(sentence.count(word) for sentence in explanation.sentences) > 1:
                continue
            number, saved = COUNTS.words().id(word), [table.clone() for table in tables]
            with torch.no_grad():
                for table in tables:
                    table[number] = 0
                assert score == pytest.approx(whole - probability(model, inputs, "O"), abs=1e-6)
                for table, values in zip(tables, saved, strict=True):
                    table.copy_(values)


def test_explaining_leaves_the_model_as_it_is():
    model = head(ENCODED)
    before = (repr(model), probability(model, TEXT, "O"))
    explain(model, TEXT)

    assert (repr(model), probability(model, TEXT, "O")) == before
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_explained_label_is_the_predicted_one_by_default():
    explanation = explain(head(ENCODED), TEXT)

    probabilities = [probability(head(ENCODED), TEXT, label) for label in COUNTS.labels().items]
    assert explanation.is_predicted
    assert explanation.probability == pytest.approx(max(probabilities))
    assert not explain(head(ENCODED), TEXT, label=_worst(probabilities)).is_predicted


def _worst(probabilities: list[float]) -> str:
    return COUNTS.labels().items[int(np.argmin(probabilities))]


@pytest.mark.parametrize(
    ("config", "options", "message"),
    [
        (SUM, {"label": "BX"}, "unknown label 'BX'; choose from .* Did you mean 'B-X'"),
        (SUM, {"word": "good"}, "labels whole texts"),
        (TAGGER, {}, "pass the word to explain, .*: not, a, good, film$"),
        (TAGGER, {"word": "god"}, "'god' is not in the sentence; .* Did you mean 'good'"),
        (TAGGER, {"word": 4}, "the word 4 is not in the sentence; allowed: 0 to 3"),
    ],
)
def test_what_cannot_be_explained_is_named(config, options, message):
    with pytest.raises(RunError, match=message):
        explain(head(config), TEXT, **options)


def test_a_word_that_occurs_twice_is_named_by_its_index():
    model, inputs = head(TAGGER), {"sentence": "a good good film"}
    with pytest.raises(RunError, match="its index: 1 or 2"):
        explain(model, inputs, word="good")
    assert explain(model, inputs, word="2").word == 2
