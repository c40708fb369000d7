from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.data.labels import LabeledBatch
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import RunError
from elmo_framework.model.classifier import Classifier
from elmo_framework.model.ensemble import Ensemble
from elmo_framework.model.head import Head
from elmo_framework.model.model import Model, ModelOutput
from elmo_framework.model.task import HeadTask
from elmo_framework.tasks.classification.task import (
    ClassifiedText,
    MultiLabelTextTask,
    TextClassificationTask,
)
from elmo_framework.tasks.coreference.task import CoreferenceTask
from elmo_framework.tasks.question_answering.answer_head import AnswerHead, AnswerOutput
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask
from elmo_framework.tasks.srl.task import SrlTask
from elmo_framework.tasks.tagging.tagger import Tagger
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask
from elmo_framework.tasks.word_senses.task import WordSenseTask

components.load()
TEXTS = [ClassifiedText(("a",), "x"), ClassifiedText(("b", "c"), "y")]


def vocabularies(labels: str) -> Vocabularies:
    """Return vocabularies with these labels, in this order."""
    counts = Counter({label: len(labels) - place for place, label in enumerate(labels)})
    return Vocabularies({"words": Counter("abc"), "labels": counts})


class Fixed(Classifier):
    """Has the same logits for the first, and the same for the second of two texts."""

    task = TextClassificationTask()

    def __init__(self, labels: str, rows: Sequence[Sequence[float]]) -> None:
        super().__init__(vocabularies(labels))
        self.rows, self.labels_in_order = rows, labels

    def logits(self, batch: LabeledBatch) -> Tensor:
        return torch.tensor(self.rows)[: len(batch.examples)]


def ensemble_of(*heads: Fixed, **options: Any) -> Ensemble:
    own = [vocabularies(head.labels_in_order) for head in heads]
    return Ensemble(heads, own, **options)


def predictions(model: Head[Any]) -> list[Any]:
    batch = model.collator(vocabularies("xy"))(TEXTS)
    return model.predict(model(batch), batch)


def labels(*rows: Sequence[float], **options: Any) -> str:
    """Return the label of the first text, by heads of the given logits of x and y."""
    heads = [Fixed("xy", [row, row]) for row in rows]
    return str(predictions(ensemble_of(*heads, **options))[0].label)


def test_mean_matches_labels_by_their_names():
    first, second = Fixed("xy", [[2.0, 0.0], [1.0, 0.0]]), Fixed("yx", [[3.0, 0.0], [0.0, 4.0]])
    mean = predictions(ensemble_of(first, second))

    assert [each.label for each in mean] == ["y", "x"]
    expected = torch.tensor([1.0, 1.5]).softmax(0).tolist()
    assert dict(mean[0].probabilities) == pytest.approx(dict(zip("xy", expected, strict=True)))


@pytest.mark.parametrize("combination", ["mean", "vote"])
@pytest.mark.parametrize("size", [1, 3])
def test_equal_heads_predict_as_one(combination: str, size: int):
    head = Fixed("xy", [[0.1, 0.7], [0.3, 0.2]])
    ensemble = ensemble_of(*[head] * size, combination=combination, agreement="accuracy")

    assert predictions(ensemble) == predictions(head)


def test_most_votes_win_and_a_tie_goes_to_the_first():
    sure, other = [9.0, 0.0], [0.0, 0.1]
    vote = {"combination": "vote", "agreement": "accuracy"}

    assert labels(sure, other, other, **vote) == "y"
    assert labels(sure, other, other) == "x"
    assert labels(sure, other, **vote) == "x"
    assert labels(other, sure, **vote) == "y"


class Given(Head[Any]):
    """Predicts given tags for a sentence."""

    task = TaggingTask()

    def __init__(self, tags: str) -> None:
        super().__init__()
        self.tags = tuple(tags.split())

    def forward(self, batch: Any) -> ModelOutput:
        return ModelOutput(loss=None)

    def predict(self, output: Any, batch: Any) -> list[Any]:
        return [self.tags]


def voted(*tags: str, agreement: str = "f1-measure-overall") -> str:
    heads = [Given(each) for each in tags]
    counts = Vocabularies(TaggingTask().count([]))
    ensemble = Ensemble(heads, [counts] * len(heads), combination="vote", agreement=agreement)
    batch = ensemble.collator(counts)([TaggedSentence(("a", "b", "c"), None)])
    return " ".join(ensemble.predict(ensemble(batch), batch)[0])


def test_the_tags_that_agree_best_with_the_others_win():
    assert voted("B-X O O", "B-X B-Y O", "O B-Y O") == "B-X B-Y O"
    assert voted("B-Z O O", "B-X B-Y O", "B-X O B-Y") == "B-X B-Y O"


def test_without_a_score_the_tags_agree_by_that_of_the_task():
    assert voted("B-Z O O", "B-X B-Y O", "B-X O B-Y", agreement="") == "B-X B-Y O"


def test_a_score_that_needs_logits_compares_no_predictions():
    counts = Vocabularies(TaggingTask().count([TaggedSentence(("a",), ("N",))]))
    with_spans = Vocabularies(TaggingTask().count([TaggedSentence(("a",), ("B-X",))]))

    def score(own: Vocabularies, agreement: str) -> str:
        heads = [tagger(own, seed) for seed in (1, 2)]
        ensemble = Ensemble(heads, [own, own], combination="vote", agreement=agreement)
        return ensemble._agreement_score

    assert [score(each, "accuracy3") for each in (counts, with_spans)] == [
        "accuracy",
        "f1-measure-overall",
    ]
    assert score(with_spans, "f1-measure-X") == "f1-measure-X"


@pytest.mark.parametrize(
    "task",
    [
        CoreferenceTask(),
        MultiLabelTextTask(),
        QuestionAnsweringTask(),
        SrlTask(),
        TaggingTask(),
        WordSenseTask(),
    ],
)
def test_tasks_of_structures_have_a_score_to_compare_by(task: HeadTask[Any, Any]):
    class OfTask(Given):
        pass

    OfTask.task = task
    counts = Vocabularies(task.count([]))
    ensemble = Ensemble([OfTask("O")], [counts], combination="vote")

    assert ensemble._agreement_score == task.agreement_scores[0]


def test_sentences_without_spans_agree():
    assert voted("B-X O O", "O O O", "O O O") == "O O O"


def tagger(counts: Vocabularies, seed: int, decoder: str = "crf") -> Tagger:
    torch.manual_seed(seed)
    config = {
        "type": "crf_tagger" if decoder == "crf" else "simple_tagger",
        "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 3}}},
        "encoder": {"type": "lstm", "hidden_size": 2},
    }
    if decoder == "crf":
        config |= {"include_start_end_transitions": True, "constrain_transitions": False}
    built = parse(Model, config, source="test").build(vocabularies=counts)
    assert isinstance(built, Tagger)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.mul_(3)
    return built.double().eval()


def log_likelihood(head: Tagger, output: Any, tags: Sequence[str]) -> float:
    assert head.labels is not None
    assert head.crf is not None
    ids = torch.tensor([[head.labels.id(tag) for tag in tags]])
    mask = torch.ones(1, len(tags), dtype=torch.bool)
    return head.crf.log_likelihood(output.logits, ids, mask).item()


@torch.no_grad()
def test_mean_of_crfs_decodes_the_mean_score_of_sequences():
    orders = ("NVD", "DNV")
    counts = [vocabularies(order) for order in orders]
    heads = [tagger(own, seed + 4) for seed, own in enumerate(counts)]
    ensemble = Ensemble(heads, counts)
    batch = ensemble.collator(counts[0])([TaggedSentence(("a", "b", "c"), None)])
    output = ensemble(batch)
    pairs = list(zip(heads, output.outputs, strict=True))

    means = {
        tags: sum(log_likelihood(head, own, tags) for head, own in pairs)
        for tags in product(orders[0], repeat=3)
    }
    (predicted,) = ensemble.predict(output, batch)
    assert predicted == max(means, key=lambda tags: means[tags])
    alone = [head.predict(own, batch.members[n])[0] for n, (head, own) in enumerate(pairs)]
    assert predicted not in alone


def test_mean_of_answers_is_of_both_ends():
    outputs = [
        AnswerOutput(loss=None, start_logits=torch.tensor([s]), end_logits=torch.tensor([e]))
        for s, e in (([1.0, 0.0], [0.0, 2.0]), ([2.0, 4.0], [1.0, -float("inf")]))
    ]
    mean = AnswerHead.mean_output(None, outputs, [])  # type: ignore[arg-type]

    assert mean.start_logits.tolist() == [[1.5, 2.0]]
    assert mean.end_logits.tolist() == [[0.5, -float("inf")]]


def test_heads_that_do_not_fit_together_are_refused():
    counts = Vocabularies({"words": Counter("ab"), "labels": Counter("NV")})
    with pytest.raises(RunError, match="different labels: only some have 'y'"):
        ensemble_of(Fixed("xy", []), Fixed("xz", []))
    with pytest.raises(RunError, match="different tasks: Fixed and Given"):
        Ensemble([Fixed("xy", []), Given("O")], [counts] * 2)
    with pytest.raises(RunError, match=r"a Given has no scores to average; combine .* by vote"):
        Ensemble([Given("O")], [counts])
    with pytest.raises(RunError, match="taggers with and without a CRF"):
        Ensemble([tagger(counts, 1), tagger(counts, 1, decoder="softmax")], [counts] * 2)


def test_an_unknown_combination_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'men'; choose from mean, vote. Did you mean 'mean'\?"):
        Ensemble([], [], combination="men")
