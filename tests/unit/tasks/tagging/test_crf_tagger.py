from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.data.labels import LabeledBatch
from elmo_framework.data.tagging import tag_annotations
from elmo_framework.data.vocabulary import Vocabularies, counts_of_namespaces
from elmo_framework.errors import BuildError, RunError
from elmo_framework.experiment.model_report import AssumedVocabularies
from elmo_framework.metrics.calibration import fit_temperature
from elmo_framework.model.head import LogitsOutput
from elmo_framework.model.model import Model
from elmo_framework.tasks.tagging.reader import Conll2003Reader
from elmo_framework.tasks.tagging.tagger import CrfTagger
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask
from elmo_framework.training.evaluator import require_score
from tests.unit.tasks.learning import fit

components.load()
FIXTURES = Path(__file__).parents[3] / "fixtures" / "ner"
WORDS = {"type": "embedding", "embedding_dim": 8}
CONFIG = {
    "type": "crf_tagger",
    "embedder": {"token_embedders": {"tokens": WORDS}},
    "encoder": {"type": "lstm", "hidden_size": 6, "bidirectional": True},
}
EXAMPLES = list(Conll2003Reader(coding_scheme="BIOUL").read(FIXTURES / "train.txt"))
COUNTS = Vocabularies(TaggingTask().count(EXAMPLES))


def tagger(vocabularies: Vocabularies = COUNTS, **options: Any) -> CrfTagger:
    torch.manual_seed(1)
    lazy = parse(Model, {**CONFIG, **options}, source="a.jsonnet")
    built = lazy.build(vocabularies=vocabularies)
    assert isinstance(built, CrfTagger)
    return built


def batch_of(model: CrfTagger, examples: Sequence[TaggedSentence] = EXAMPLES) -> LabeledBatch:
    batch = model.task.collator(COUNTS, model.indexers)(examples)
    assert isinstance(batch, LabeledBatch)
    return batch


def trained(model: CrfTagger, num_steps: int = 60) -> CrfTagger:
    fit(model, batch_of(model), lr=0.03, num_steps=num_steps)
    return model.eval()


@torch.no_grad()
def scores(model: CrfTagger, examples: Sequence[TaggedSentence] = EXAMPLES) -> dict[str, float]:
    batch = batch_of(model, examples)
    return model.scores(model.sums(model(batch), batch))


def test_feedforward_is_between_encoder_and_scores():
    layers = {"num_layers": 2, "hidden_dims": [5, 4], "activations": "relu", "dropout": 0.0}
    model = tagger(feedforward=layers).eval()
    text = batch_of(model).text
    encoded = model.encoder(model.embedder(text), text.mask)
    for layer in model.feedforward.linear_layers:
        encoded = torch.relu(encoded @ layer.weight.T + layer.bias)
    expected = encoded @ model.projection.weight.T + model.projection.bias
    torch.testing.assert_close(model(batch_of(model)).logits, expected)


def test_model_fits_its_training_data():
    found = scores(trained(tagger(dropout=0.1)))

    assert found["f1-measure-overall"] == found["accuracy"] == 1.0
    assert found["precision-PER"] == 1.0
    assert found["loss"] < 1.0


def test_the_loss_is_the_sum_over_the_sentences():
    model = tagger().eval()

    output = model(batch_of(model))

    assert output.example_losses.shape == (len(EXAMPLES),)
    torch.testing.assert_close(output.loss, output.example_losses.sum())
    assert (output.example_losses > 0).all()


def test_a_batch_equals_its_sentences_one_by_one():
    model = tagger().eval()
    batch = batch_of(model)
    together = model(batch)

    for row, example in enumerate(EXAMPLES):
        own = batch_of(model, [example])
        alone = model(own)
        torch.testing.assert_close(alone.loss, together.example_losses[row])
        assert model.predict(alone, own) == model.predict(together, batch)[row : row + 1]


def test_unlabeled_batch_has_predictions_without_loss():
    model = tagger().eval()
    batch = batch_of(
        model, [TaggedSentence(("Oslo", "and", "Turku"), None), TaggedSentence((), None)]
    )

    output = model(batch)

    assert output.loss is output.example_losses is None
    assert [len(tags) for tags in model.predict(output, batch)] == [3, 0]


def test_predictions_follow_the_scheme_of_the_tags():
    constrained, free = tagger().eval(), tagger(constrain_transitions=False).eval()
    batch = batch_of(constrained)
    bad = torch.zeros(*batch.text.mask.shape, len(COUNTS.labels()))
    bad[:, :, COUNTS.labels().id("L-PER")] = 5.0  # which may not come first
    output = constrained(batch)
    output = type(output)(loss=None, logits=bad)

    for tags in constrained.predict(output, batch):
        assert tags[0][0] in "OBU"
        assert "L-PER" not in tags or tags[tags.index("L-PER") - 1] in ("B-PER", "I-PER")
    assert {tag for tags in free.predict(output, batch) for tag in tags} == {"L-PER"}


def test_the_scheme_of_the_tags_can_be_stated():
    with pytest.raises(BuildError, match="'U-LOC' is not a tag of the scheme BIO") as raised:
        tagger(label_encoding="BIO")

    assert str(raised.value).startswith("a.jsonnet: (top level): CrfTagger: ")
    assert tagger(label_encoding="BIOUL").crf.inner_constraint.any()


def counted(*tags: str) -> Vocabularies:
    words = tuple(f"w{number}" for number in range(len(tags)))
    return Vocabularies(TaggingTask().count([TaggedSentence(words, tags)]))


@pytest.mark.parametrize(
    ("label_encoding", "tags", "scheme"),
    [
        ("BIOUL", ("B-LOC", "I-LOC", "O"), "BIO"),
        ("BIOES", ("I-LOC", "I-LOC", "O", "I-PER"), "IOB1"),
    ],
)
def test_label_encoding_of_another_scheme_is_refused(label_encoding, tags, scheme):
    message = (
        f"label_encoding is {label_encoding}, but the tags are {scheme}; set coding_scheme: "
        f"'{label_encoding}' in the dataset reader, or remove label_encoding"
    )
    with pytest.raises(BuildError, match=message):
        tagger(counted(*tags), label_encoding=label_encoding)
    assert tagger(counted(*tags), label_encoding=label_encoding, constrain_transitions=False)


@pytest.mark.parametrize(
    ("label_encoding", "vocabularies"),
    [
        ("BIOUL", AssumedVocabularies()),
        ("BIOUL", counted("O", "O")),
        ("BIOUL", Vocabularies(counts_of_namespaces({"labels": ["O", "U-LOC"]}))),
        ("IOB1", Vocabularies(counts_of_namespaces({"labels": ["O", "I-LOC", "B-LOC"]}))),
        ("BIO", Vocabularies(counts_of_namespaces({"labels": ["O", "I-LOC", "B-LOC"]}))),
    ],
)
def test_label_encoding_that_may_be_right_is_accepted(label_encoding, vocabularies):
    assert tagger(vocabularies, label_encoding=label_encoding).scheme == label_encoding


def best_of(examples: Sequence[TaggedSentence], wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the tags of a sentence each of whose words scores best with one of those wanted."""
    vocabularies = Vocabularies(TaggingTask().count(examples))
    model, labels = tagger(vocabularies).eval(), vocabularies.labels()
    batch = model.task.collator(vocabularies, model.indexers)(
        [TaggedSentence(("w",) * len(wanted), None)]
    )
    logits = torch.zeros(1, len(wanted), len(labels))
    logits[0, range(len(wanted)), labels.ids(wanted).tolist()] = 5.0
    model.crf.transitions.data.zero_()
    return model.predict(LogitsOutput(None, logits), batch)[0]


@pytest.mark.parametrize("begun", [["I-LOC", "B-LOC"], ["I-LOC", "O"]])
def test_tags_of_iob1_may_begin_a_span_with_i(begun: list[str]):
    examples = [TaggedSentence(("Anna", "Lund", "in"), ("I-PER", "I-PER", "O"))]
    examples += [TaggedSentence(("Oslo", "Turku"), tuple(begun))]

    assert best_of(examples, ["I-PER", "O", "I-LOC"]) == ("I-PER", "O", "I-LOC")


@pytest.mark.parametrize("mistyped", ["I-LCO", "I-LOC"])
def test_mistyped_tag_does_not_turn_bio_into_iob1(mistyped: str):
    words = ("Anna", "saw", "New", "Oslo")
    examples = [
        TaggedSentence(words, ("B-PER", "O", "B-LOC", "I-LOC")),
        TaggedSentence(words, ("B-PER", "O", "O", mistyped)),
    ]

    assert best_of(examples, ["B-LOC", "I-LOC"]) == ("B-LOC", "I-LOC")
    assert best_of(examples, ["O", "I-LOC"]) != ("O", "I-LOC")


@pytest.mark.parametrize("prefixes", ["SE", "UL"])
def test_bioul_predictions_follow_the_scheme(prefixes: str):
    only, last = prefixes
    tags = (f"{only}-PER", "O", "B-LOC", f"{last}-LOC")
    examples = [TaggedSentence(("Anna", "in", "New", "York"), tags)]

    assert best_of(examples, tags) == tags
    assert best_of(examples, ["B-LOC", "O"]) != ("B-LOC", "O")
    assert set(TaggingTask().count(examples)["labels"]) == {
        "O",
        *(f"{prefix}-{label}" for prefix in f"BI{prefixes}" for label in ("PER", "LOC")),
    }


def test_tags_without_a_scheme_are_not_constrained():
    counts = Vocabularies({"words": Counter(["Rain"]), "labels": Counter(["NN", "VB"])})

    assert not tagger(counts).crf.inner_constraint.any()


def test_start_and_end_can_have_scores():
    names = set(tagger(include_start_end_transitions=True).state_dict())

    assert names - set(tagger().state_dict()) == {"crf.start_transitions", "crf.end_transitions"}


def test_gradients_reach_every_parameter():
    model = tagger(include_start_end_transitions=True, output_embedder=WORDS)

    loss = model(batch_of(model)).loss
    loss.backward()

    assert {name for name, value in model.named_parameters() if not value.grad.any()} == set()


def test_output_embedder_is_appended_to_the_encoder():
    plain, wider = tagger(), tagger(output_embedder={**WORDS, "lowercase": True})

    assert wider.projection.in_features == plain.projection.in_features + 8
    assert len(wider.indexers) == 2
    assert len(tagger(output_embedder=WORDS).indexers) == 1
    assert wider.eval()(batch_of(wider)).logits.shape == (5, 8, len(COUNTS.labels()))


def test_dropout_acts_before_and_after_each_encoder():
    lstm = {"type": "lstm", "hidden_size": 50}
    model = tagger(dropout=0.5, output_encoder=lstm)
    seen = {}
    model.encoder.register_forward_hook(lambda _, inputs, __: seen.update(before=inputs[0]))
    model.output_encoder.register_forward_hook(lambda _, x, __: seen.update(after=x[0]))
    model.projection.register_forward_hook(lambda _, inputs, __: seen.update(last=inputs[0]))
    batch = batch_of(model)

    model(batch)

    shares = {name: float((x[batch.text.mask] == 0).float().mean()) for name, x in seen.items()}
    assert all(0.35 < share < 0.65 for share in shares.values()), shares


@torch.no_grad()
def test_tags_without_spans_have_no_overall_score():
    examples = [TaggedSentence(("It", "rains"), ("PRP", "VBZ"))]
    vocabularies = Vocabularies(TaggingTask().count(examples))
    model = tagger(vocabularies).eval()
    batch = model.task.collator(vocabularies, model.indexers)(examples)

    found = model.scores(model.sums(model(batch), batch))

    assert {"accuracy", "accuracy3"} <= found.keys()
    assert "f1-measure-overall" in scores(tagger().eval())
    with pytest.raises(RunError, match=r"'\+f1-measure-overall' is not a score of this model"):
        require_score("+f1-measure-overall", found)


@torch.no_grad()
@pytest.mark.parametrize("options", [{"constrain_transitions": False}, {"label_encoding": "BIO"}])
def test_spans_count_if_tags_violate_every_scheme(options: dict[str, Any]):
    tags = ("B-A", "I-A", "I-Y", "O", "B-X")
    examples = [TaggedSentence(("We", "all", "saw", "it", "rain"), tags)]
    vocabularies = Vocabularies(TaggingTask().count(examples))
    model = tagger(vocabularies, **options).eval()
    batch = model.task.collator(vocabularies, model.indexers)(examples)

    assert "f1-measure-overall" in model.scores(model.sums(model(batch), batch))


def test_training_data_without_tags_is_refused():
    with pytest.raises(BuildError, match="CrfTagger: the training data has no labels"):
        tagger(Vocabularies({"words": Counter(["Rain"]), "labels": Counter()}))


def test_model_can_be_built_without_memory_for_weights():
    with torch.device("meta"):
        model = tagger()

    assert all(parameter.is_meta for parameter in model.parameters())


def test_a_saved_model_predicts_the_same():
    model, again = trained(tagger(), 5), tagger().eval()
    again.load_state_dict(model.state_dict())
    batch = batch_of(model)

    assert again.predict(again(batch), batch) == model.predict(model(batch), batch)


def test_second_encoder_reads_encoder_and_output_embedder():
    lstm = {"type": "lstm", "hidden_size": 5}
    model = tagger(output_embedder=WORDS, output_encoder=lstm, dropout=0.5)

    assert model.output_encoder.input_dim == 12 + 8
    assert model.projection.in_features == 5
    model(batch_of(model)).loss.backward()
    assert {name for name, value in model.named_parameters() if not value.grad.any()} == set()


def test_a_second_encoder_changes_nothing_else():
    passing = tagger(output_embedder=WORDS, output_encoder="pass_through").eval()
    plain = tagger(output_embedder=WORDS).eval()

    torch.testing.assert_close(
        passing(batch_of(passing)).logits, plain(batch_of(plain)).logits, rtol=0, atol=0
    )


def paths_of(model: CrfTagger, logits: np.ndarray) -> dict[tuple[str, ...], float]:
    """The scores of all allowed sequences of tags of a sentence."""
    start, moves, end = (each.detach().double().numpy() for each in model.crf.decoding_scores())
    tags, found = model.labels.items, {}
    for path in product(range(len(tags)), repeat=len(logits)):
        total = start[path[0]] + end[path[-1]]
        total += sum(logits[word, tag] for word, tag in enumerate(path))
        total += sum(moves[pair] for pair in pairwise(path))
        if total > -5000:  # no constraint is violated
            found[tuple(tags[tag] for tag in path)] = total
    return found


@pytest.mark.parametrize("temperature", [2.0, 4.0])
def test_spans_have_the_probability_at_the_temperature(temperature: float):
    sentence = TaggedSentence(EXAMPLES[0].words[:3], None)
    example, model = [sentence], trained(tagger())
    batch = batch_of(model, example)
    with torch.no_grad():
        output = model(batch)
    tags = model.predict(output, batch)
    model.temperature = temperature
    assert model.predict(output, batch) == tags
    (ranked,) = model.annotation_probabilities(output, batch, tags)

    paths = paths_of(model, output.logits[0].double().numpy())
    total = sum(np.exp(score / temperature) for score in paths.values())
    first = tag_annotations(tags[0])[0]
    with_span = (
        np.exp(score / temperature)
        for path, score in paths.items()
        if first in tag_annotations(path)
    )
    assert ranked[0][first.label] == pytest.approx(sum(with_span) / total)
    assert ranked[0][first.label] < 0.999


def test_the_fitted_temperature_has_the_best_likelihood_of_sequences():
    first, second, *others = EXAMPLES
    wrong = TaggedSentence(first.words, first.tags[:1] * len(first.words))
    model, examples = trained(tagger()), [wrong, second, *others]
    batch = batch_of(model, examples)
    with torch.no_grad():
        output = model(batch)
    best = fit_temperature(model.scored_labels(output, batch).slope)

    @torch.no_grad()
    def loss(temperature: float) -> float:
        cooled = deepcopy(model.crf).double()
        for parameter in cooled.parameters():
            parameter /= temperature
        logits = output.logits.double() / temperature
        return -float(cooled.log_likelihood(logits, batch.labels, batch.text.mask).sum())

    assert loss(best) < min(loss(0.98 * best), loss(1.02 * best), loss(1.0))


def test_the_probabilities_of_words_are_those_at_the_temperature():
    model = trained(tagger())
    batch = batch_of(model)
    with torch.no_grad():
        output = model(batch)
        model.temperature = 3.0
        warm = model.probabilities(output, batch)[batch.text.mask].numpy()
    scores = model.scored_labels(output, batch).scores(3.0)
    assert len(scores) == batch.text.mask.sum()
    np.testing.assert_allclose(warm, np.exp(scores) / np.exp(scores).sum(1, keepdims=True), 1e-4)
