from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from elmo_framework.config.parse import parse
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import TextEmbedder
from elmo_framework.errors import BuildError
from elmo_framework.metrics.srl import Proposition
from elmo_framework.model.head import LogitsOutput
from elmo_framework.model.model import Model
from elmo_framework.tasks.srl.example import (
    SrlBatch,
    SrlExample,
    tagged_predicates,
)
from elmo_framework.tasks.srl.reader import SrlReader
from elmo_framework.tasks.srl.semantic_role_labeler import SemanticRoleLabeler
from elmo_framework.tasks.srl.task import SrlTask
from tests.numpy_bilm import NumpyBiLm
from tests.unit.tasks.carried import carrying_elmo, check_order_of_reading
from tests.unit.tasks.learning import fit

FILE = Path(__file__).parents[3] / "fixtures/srl/sentences.gold_conll"
WORDS = {"type": "embedding", "embedding_dim": 8}
LSTM = {"type": "alternating_lstm", "hidden_size": 12, "num_layers": 2}
CONFIG = {
    "type": "srl",
    "embedder": {"token_embedders": {"tokens": WORDS}},
    "encoder": {**LSTM, "recurrent_dropout_probability": 0.1},
    "binary_feature_dim": 4,
}
EXAMPLES = list(SrlReader().read(FILE))
COUNTS = Vocabularies(SrlTask().count(EXAMPLES))


def labeler(vocabularies: Vocabularies = COUNTS, **options: Any) -> SemanticRoleLabeler:
    torch.manual_seed(1)
    lazy = parse(Model, {**CONFIG, **options}, source="a.jsonnet")
    built = lazy.build(vocabularies=vocabularies)
    assert isinstance(built, SemanticRoleLabeler)
    return built


def batch_of(
    model: SemanticRoleLabeler,
    examples: Sequence[SrlExample] = EXAMPLES,
    vocabularies: Vocabularies = COUNTS,
) -> SrlBatch:
    batch = model.task.collator(vocabularies, model.indexers)(examples)
    assert isinstance(batch, SrlBatch)
    return batch


def trained(model: SemanticRoleLabeler, num_steps: int = 60) -> SemanticRoleLabeler:
    fit(model, batch_of(model), lr=0.03, num_steps=num_steps)
    return model.eval()


@torch.no_grad()
def predictions(model: SemanticRoleLabeler, examples: Sequence[SrlExample]) -> list[Any]:
    batch = batch_of(model, examples)
    return model.predict(model(batch), batch)


def test_model_fits_its_training_data():
    model = trained(labeler())
    batch = batch_of(model)

    with torch.no_grad():
        scores = model.scores(model.sums(model(batch), batch))

    assert scores["f1-measure-overall"] == 1
    assert predictions(model, EXAMPLES) == [example.propositions for example in EXAMPLES]


def test_loss_is_mean_over_predicates_of_word_sums():
    model = labeler().eval()
    batch = batch_of(model)

    output = model(batch)

    logits = output.logits.detach().double().numpy()
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    labels = COUNTS.labels()
    expected = [
        -sum(np.log(row[place, labels.id(tag)]) for place, tag in enumerate(proposition.tags))
        for row, example in zip(probabilities, EXAMPLES, strict=True)
        for proposition in example.propositions or ()
    ]
    np.testing.assert_allclose(output.example_losses.detach(), expected, rtol=1e-5)
    assert output.loss.item() == pytest.approx(np.mean(expected), rel=1e-5)


def test_losses_of_predicates_are_summed_per_example():
    model = labeler().eval()
    pair, one, other = (SrlExample(EXAMPLES[1].words, propositions) for propositions in _pair())

    together = model(batch_of(model, [pair]))
    alone = model(batch_of(model, [one, other]))

    torch.testing.assert_close(together.example_losses[0], alone.example_losses.sum())
    torch.testing.assert_close(together.loss, alone.loss)
    assert predictions(model, [pair])[0] == tuple(
        held[0] for held in predictions(model, [one, other])
    )


def _pair() -> list[tuple[Proposition, ...]]:
    first, second = EXAMPLES[1].propositions, EXAMPLES[2].propositions
    assert first
    assert second
    return [first + second, first, second]


@pytest.mark.parametrize("output_embedder", [None, WORDS])
def test_a_batch_equals_its_examples_one_by_one(output_embedder: dict[str, Any] | None):
    model = labeler(output_embedder=output_embedder).eval().double()
    together = model(batch_of(model))

    for number, example in enumerate(EXAMPLES):
        alone = model(batch_of(model, [example]))
        length = len(example.words)
        torch.testing.assert_close(together.logits[number, :length], alone.logits[0])
        torch.testing.assert_close(together.example_losses[number], alone.example_losses[0])


def test_gradients_reach_every_parameter():
    model = labeler(output_embedder=WORDS, embedding_dropout=0.1)
    model(batch_of(model)).loss.backward()

    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def test_dropout_affects_words_but_not_indicators():
    model = labeler(embedding_dropout=0.5)
    seen: list[Tensor] = []
    model.encoder.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    batch = batch_of(model)

    model(batch)

    (read,) = seen
    words, marks = read[batch.mask].split([8, 4], dim=1)
    assert 0.35 < float((words == 0).float().mean()) < 0.65
    assert marks.all()


def test_last_layer_is_initialized_orthogonally():
    weight = labeler().projection.weight.detach()
    rows, columns = weight.shape
    product = weight @ weight.T if rows <= columns else weight.T @ weight

    torch.testing.assert_close(product, torch.eye(min(rows, columns)), atol=1e-5, rtol=0)


def test_a_sentence_is_embedded_once(monkeypatch):
    seen = []
    forward = TextEmbedder.forward

    def watched(self, text):
        seen.append(text.words)
        return forward(self, text)

    monkeypatch.setattr(TextEmbedder, "forward", watched)
    model = labeler()
    model(batch_of(model))

    assert len(seen) == 1
    assert len(seen[0]) == len(set(seen[0])) == 6


def test_predictions_depend_on_the_predicate():
    model = trained(labeler())
    words = EXAMPLES[1].words
    hunt, like = predictions(model, [SrlExample(words, None, (1,)), SrlExample(words, None, (4,))])

    assert (hunt, like) == (EXAMPLES[1].propositions, EXAMPLES[2].propositions)


def test_predicates_are_found_where_they_are_not_stated():
    model = trained(labeler())

    (found,) = predictions(model, [SrlExample(EXAMPLES[1].words, None)])

    assert [proposition.predicate for proposition in found] == [1, 4]


def test_prediction_is_the_best_valid_bio_sequence():
    model = labeler().eval()
    tags = COUNTS.labels().items
    words = ("a", "b", "c")
    batch = batch_of(model, [SrlExample(words, None, (1,))])
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        logits = torch.randn(1, len(words), len(tags), generator=generator) * 3
        output = LogitsOutput(loss=None, logits=logits)

        ((found,),) = model.predict(output, batch)

        scored = {
            chosen: float(sum(logits[0, place, tag] for place, tag in enumerate(chosen)))
            for chosen in product(range(len(tags)), repeat=len(words))
            if _is_allowed([tags[tag] for tag in chosen])
        }
        best = max(scored, key=scored.__getitem__)
        assert found == Proposition(1, tuple(tags[tag] for tag in best))


def test_probabilities_may_be_added_in_place_of_their_logarithms():
    """Of three words, each with its own probabilities: brute force over all sequences."""
    example = SrlExample(("a", "b", "c"), (Proposition(1, ("O", "B-V", "O")),))
    adding, multiplying = labeler(decoding="probabilities").eval(), labeler().eval()
    batch, items = batch_of(adding, [example]), COUNTS.labels().items
    sequences = [tags for tags in product(items, repeat=3) if _is_allowed(list(tags))]
    differ = 0
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        logits = 3 * torch.randn(1, 3, len(items), generator=generator)
        output = LogitsOutput(loss=None, logits=logits)
        rows = logits[0].double().softmax(-1).numpy()
        sums = [rows[range(3), list(map(items.index, tags))].sum() for tags in sequences]
        ((added,),) = adding.predict(output, batch)
        ((multiplied,),) = multiplying.predict(output, batch)
        # The sums are rounded to 1/128: see `summed_decoding`.
        assert max(sums) - sums[sequences.index(added.tags)] < 3 / 128
        differ += added.tags != multiplied.tags
    assert differ


def test_all_words_that_are_tagged_as_the_predicate_may_be_marked():
    words = ("She", "came", "up", "late")
    tags = ("B-ARG0", "B-V", "I-V", "O")
    labeled = SrlExample(words, (Proposition(1, tags), Proposition(None, ("O",) * 4)))
    others = (SrlExample(words, None, (1, 2)), SrlExample(words, ()))
    model = labeler(predicate_words="tagged")
    marked = [tagged_predicates(batch_of(model, [each])).tolist() for each in (labeled, *others)]
    assert marked == [[[0, 1, 1, 0], [0] * 4], [[0, 1, 0, 0], [0, 0, 1, 0]], [[0] * 4]]
    batch, first = batch_of(model, [labeled]), labeler()
    first.load_state_dict(model.state_dict())
    with torch.no_grad():
        logits = [each.eval()(batch).logits for each in (model, first)]
    assert not torch.allclose(logits[0][0], logits[1][0])
    torch.testing.assert_close(logits[0][1], logits[1][1])


def test_loss_of_a_predicate_may_be_the_mean_over_its_words() -> None:
    """As in AllenNLP: each predicate counts as much as the others, however long its sentence is."""
    short, long = EXAMPLES[0], max(EXAMPLES, key=lambda each: len(each.words))
    assert len(short.words) != len(long.words)
    summed, averaged = labeler().eval(), labeler(loss_reduction="mean").eval()
    for examples in ([short], [short, long]):
        batch = batch_of(summed, examples)
        with torch.no_grad():
            total, mean = summed(batch), averaged(batch)
        logits = total.logits.double().log_softmax(dim=2).numpy()
        assert batch.tags is not None
        by_word = [
            [-logits[row, place, tag] for place, tag in enumerate(tags) if tag >= 0]
            for row, tags in enumerate(batch.tags.tolist())
        ]
        expected = [np.mean([reduce(row) for row in by_word]) for reduce in (np.sum, np.mean)]
        assert [float(total.loss), float(mean.loss)] == pytest.approx(expected)


def _is_allowed(tags: list[str]) -> bool:
    pairs = zip(["O", *tags], tags, strict=False)
    return all(tag[0] != "I" or before[2:] == tag[2:] for before, tag in pairs)


def test_training_data_without_tags_is_refused():
    with pytest.raises(BuildError, match="the training data has no labels"):
        labeler(Vocabularies({}))


def test_a_carried_state_continues_from_predicate_to_predicate(tmp_path: Path) -> None:
    bilm = NumpyBiLm.random()
    model = labeler(embedder=carrying_elmo(bilm, tmp_path))
    examples = EXAMPLES[:4]
    assert len({example.words for example in examples}) < len(examples)
    batches = [batch_of(model, each) for each in (examples[:2], examples[2:])]
    rows = [[example.words for example in examples[row::2]] for row in (0, 1)]
    check_order_of_reading(model, batches, rows, bilm)
