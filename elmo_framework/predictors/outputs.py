"""Outputs of heads with the keys of AllenNLP's models, without their padding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from elmo_framework.config.registry import registered_name
from elmo_framework.data.labels import Classification
from elmo_framework.metrics.coreference import Resolution
from elmo_framework.metrics.squad import Answer
from elmo_framework.model.head import Head
from elmo_framework.model.task import HeadTask
from elmo_framework.tasks.classification.task import TextClassificationTask
from elmo_framework.tasks.coreference.task import CoreferenceTask
from elmo_framework.tasks.entailment.task import EntailmentTask
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask
from elmo_framework.tasks.srl.task import SrlTask
from elmo_framework.tasks.tagging.task import TaggingTask

JsonObject: TypeAlias = dict[str, Any]
Rows: TypeAlias = Callable[[Head[Any], Any, Any, Sequence[Any]], Iterator[JsonObject]]
"""Yields the output for each example, of a head, its output, the batch and the predictions."""


def _tags(
    head: Head[Any], output: Any, batch: Any, predictions: Sequence[Any]
) -> Iterator[JsonObject]:
    has_probabilities = getattr(head, "crf", None) is None
    probabilities = head.probabilities(output, batch) if has_probabilities else output.logits
    for tags, example, logits, own in zip(
        predictions, batch.examples, output.logits, probabilities, strict=True
    ):
        length = len(example.words)
        of_classes = {"class_probabilities": own[:length].tolist()} if has_probabilities else {}
        yield {
            "logits": logits[:length].tolist(),
            **of_classes,
            **({} if has_probabilities else {"mask": [True] * length}),
            "tags": list(tags),
            "words": list(example.words),
        }


def _verbs(
    head: Head[Any], output: Any, batch: Any, predictions: Sequence[Any]
) -> Iterator[JsonObject]:
    for propositions, example in zip(predictions, batch.examples, strict=True):
        own = head.task.to_json(propositions, example)
        keys = ("verb", "description", "tags")
        verbs = [{key: verb[key] for key in keys} for verb in own["verbs"]]
        yield {"verbs": verbs, "words": own["words"]}


def _text_label(
    head: Head[Any], output: Any, batch: Any, predictions: Sequence[Classification]
) -> Iterator[JsonObject]:
    is_bcn = registered_name(head) == "bcn"
    for prediction, example, logits in zip(predictions, batch.examples, output.logits, strict=True):
        yield {
            "logits": logits.tolist(),
            "class_probabilities" if is_bcn else "probs": [*prediction.probabilities.values()],
            "label": prediction.label,
            **({} if is_bcn else {"tokens": list(example.words)}),
        }


def _pair_label(
    head: Head[Any], output: Any, batch: Any, predictions: Sequence[Classification]
) -> Iterator[JsonObject]:
    for prediction, example, logits in zip(predictions, batch.examples, output.logits, strict=True):
        yield {
            "label_logits": logits.tolist(),
            "label_probs": [*prediction.probabilities.values()],
            "label": prediction.label,
            "premise_tokens": list(example.premise),
            "hypothesis_tokens": list(example.hypothesis),
        }


def _answer(
    head: Head[Any], output: Any, batch: Any, predictions: Sequence[Answer]
) -> Iterator[JsonObject]:
    for prediction, example, start, end in zip(
        predictions, batch.examples, output.start_logits, output.end_logits, strict=True
    ):
        passage = example.passage
        length = len(passage.words)
        span = passage.span(prediction.start, prediction.end)
        # Without an answer, the span has no words.
        best = [-1, -1] if prediction.is_no_answer or span is None else [span.first, span.last]
        yield {
            "span_start_logits": start[:length].tolist(),
            "span_start_probs": start[:length].softmax(dim=0).tolist(),
            "span_end_logits": end[:length].tolist(),
            "span_end_probs": end[:length].softmax(dim=0).tolist(),
            "best_span": best,
            "best_span_str": prediction.text,
            "question_tokens": list(example.question.words),
            "passage_tokens": list(passage.words),
            "token_offsets": [list(pair) for pair in passage.offsets],
        }


def _clusters(
    head: Head[Any], output: Any, batch: Any, predictions: Sequence[Resolution]
) -> Iterator[JsonObject]:
    for resolution, example, ranking in zip(
        predictions, batch.examples, output.rankings, strict=True
    ):
        num_spans = len(resolution.spans)
        back = range(1, min(ranking.choices.shape[1], num_spans + 1))
        yield {
            "top_spans": [list(span) for span in resolution.spans],
            "antecedent_indices": [
                [max(number - each, 0) for each in back] for number in range(num_spans)
            ],
            # -1 is no antecedent, 0 the span before.
            "predicted_antecedents": (ranking.choices.argmax(dim=1) - 1).tolist(),
            "document": list(example.words),
            "clusters": [[list(span) for span in cluster] for cluster in resolution.clusters],
        }


def _of_task(
    head: Head[Any], output: Any, batch: Any, predictions: Sequence[Any]
) -> Iterator[JsonObject]:
    for prediction, example in zip(predictions, batch.examples, strict=True):
        yield head.task.to_json(prediction, example)


@final
@dataclass(frozen=True)
class Form:
    """The inputs and the outputs of a predictor of AllenNLP.

    Attributes:
        name: of the predictor; empty if AllenNLP has none for the task.
        keys: the arguments of `predict`.
        tokens: the key of tokenized input; None if AllenNLP's predictor has none.
        rows: makes the outputs.
    """

    name: str
    keys: Sequence[str]
    tokens: str | None = None
    rows: Rows = _of_task

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the predictor, and those in other versions of AllenNLP."""
        older = {"reading_comprehension": ("machine-comprehension",)}
        return self.name, self.name.replace("_", "-"), *older.get(self.name, ())


_SENTENCE = ("sentence",)
_FORMS: Mapping[type[HeadTask[Any, Any]], Form] = {
    TaggingTask: Form("sentence_tagger", _SENTENCE, "tokens", _tags),
    SrlTask: Form("semantic_role_labeling", _SENTENCE, "tokens", _verbs),
    TextClassificationTask: Form("text_classifier", _SENTENCE, "tokens", _text_label),
    EntailmentTask: Form("textual_entailment", ("premise", "hypothesis"), None, _pair_label),
    QuestionAnsweringTask: Form("reading_comprehension", ("question", "passage"), None, _answer),
    CoreferenceTask: Form("coreference_resolution", ("document",), "sentences", _clusters),
}


def form_of(task: HeadTask[Any, Any]) -> Form:
    """Return the form of a task; without a counterpart, the outputs are those of `elmo predict`."""
    return _FORMS.get(type(task)) or Form("", task.input_keys[:1])
