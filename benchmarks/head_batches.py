"""The heads that AllenNLP has too, and the batches that both are timed on.

A head has the sizes of its configuration, and frozen random vectors where that reads a file of word
vectors. Its batches are examples of the training data, as many as the configuration puts together;
where the data is not at hand they are made of random words.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.data.reader import DatasetReader
from elmo_framework.experiment.check import check_config
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.model.model import Model
from elmo_framework.tasks.classification.task import ClassifiedText
from elmo_framework.tasks.coreference.example import Document, Mention
from elmo_framework.tasks.entailment.task import SentencePair
from elmo_framework.tasks.question_answering.example import PassageQuestion, Span, TokenizedText
from elmo_framework.tasks.srl.example import Proposition, SrlExample
from elmo_framework.tasks.tagging.task import TaggedSentence

_ROOT = Path(__file__).parents[1]
_SEED = 13
_NUM_WORDS = 5_000
_SENTENCE = 20


@dataclass(frozen=True)
class Head:
    """A head that AllenNLP has too.

    Attributes:
        config: whose sizes it has.
        lengths: how many words the examples of each batch have at most where they are random.
        invent: makes a random example of so many words.
        places: where in the data the batches begin, as shares of it.
        data: stands in for the training data of the configuration.
        changes: of the model, to what AllenNLP has.
        surplus: how many parameters AllenNLP has nevertheless more.
    """

    config: str
    lengths: Sequence[int]
    invent: Callable[[random.Random, int], Any]
    places: Sequence[float] = (0.25, 0.5, 0.7, 0.9)
    data: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    surplus: int = 0


@dataclass(frozen=True)
class Batches:
    """What a file of batches holds.

    Attributes:
        config: of the head.
        counts: of words and labels, by the name of the vocabulary.
        examples: those of each batch.
    """

    config: dict[str, Any]
    counts: dict[str, dict[str, int]]
    examples: list[list[Any]]

    @classmethod
    def read(cls, path: Path) -> Batches:
        """Read what `write_batches` wrote."""
        held = json.loads(path.read_text(encoding="utf-8"))
        factory = parse(Model, held["config"]["model"], source=str(path)).factory
        adapter: TypeAdapter[Any] = TypeAdapter(factory.task.example_type)
        examples = [[adapter.validate_python(each) for each in batch] for batch in held["examples"]]
        return cls(held["config"], held["counts"], examples)

    def experiment(self, path: Path) -> Experiment:
        """Return the experiment, whose data would be the file itself."""
        paths = dict.fromkeys(("train_data_path", "validation_data_path"), str(path))
        config = Config({**self.config, **paths}, str(path), "")
        _, experiment = check_config(config).unwrap()
        return experiment


def write_batches(head: Head, path: Path) -> None:
    """Write the batches of a head.

    Args:
        head: one of `HEADS`.
        path: of the file: an object with `config`, `counts` and `examples`.
    """
    raw = _config(head)
    task = parse(Model, raw["model"], source=head.config).factory.task
    examples, batches = _read(head, raw, task.num_tokens) or _invented(head, raw)
    adapter: TypeAdapter[Any] = TypeAdapter(task.example_type)
    counts = dict(task.count(examples))
    # Of the words only those of the batches: none of them is trained.
    counts["words"] = task.count(example for batch in batches for example in batch)["words"]
    held = {
        "config": raw,
        "counts": counts,
        "examples": [
            [adapter.dump_python(each, mode="json") for each in batch] for batch in batches
        ],
    }
    path.write_text(json.dumps(held, ensure_ascii=False), encoding="utf-8")


def _config(head: Head) -> dict[str, Any]:
    """Return the configuration with the changes of the head and with random word vectors."""
    raw = Config.load(_ROOT / head.config).raw
    raw["model"] |= head.changes
    embedders = raw["model"]["embedder"]["token_embedders"]
    for name, options in embedders.items():
        if options["type"] == "embedding":
            kept = {key: options[key] for key in ("type", "embedding_dim")}
            embedders[name] = {**kept, "trainable": False}
    return raw


def _read(
    head: Head, raw: Mapping[str, Any], num_tokens: Callable[[Any], int]
) -> tuple[list[Any], list[list[Any]]] | None:
    """Return all examples and the batches; None where the data is not at hand."""
    data = head.data or raw["train_data_path"]
    if not any(_ROOT.glob(data)):
        return None
    reader = parse(DatasetReader, raw["dataset_reader"], source=head.config).build()
    examples = list(reader.read(_ROOT / data))
    random.Random(_SEED).shuffle(examples)
    size = raw["data_loader"]["batch_size"]
    if size == 1 or raw["data_loader"].get("bucketing"):
        examples.sort(key=num_tokens)
    starts = [int(place * len(examples)) // size * size for place in head.places]
    return examples, [examples[start : start + size] for start in starts]


def _invented(head: Head, raw: Mapping[str, Any]) -> tuple[list[Any], list[list[Any]]]:
    chance, size = random.Random(_SEED), raw["data_loader"]["batch_size"]
    batches = [[head.invent(chance, longest) for _ in range(size)] for longest in head.lengths]
    return list(chain.from_iterable(batches)), batches


def _words(chance: random.Random, number: int) -> tuple[str, ...]:
    return tuple(f"w{chance.randrange(_NUM_WORDS)}" for _ in range(number))


def _tags(chance: random.Random, number: int, tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(chance.choice(tags) for _ in range(number))


def _tagged(chance: random.Random, number: int) -> TaggedSentence:
    tags = ("O", "O", "U-PER", "U-LOC", "U-ORG", "U-MISC")
    return TaggedSentence(_words(chance, number), _tags(chance, number, tags))


def _proposition(chance: random.Random, number: int) -> SrlExample:
    tags = _tags(chance, number, ("O", *(f"B-ARG{kind}" for kind in range(59))))
    return SrlExample(_words(chance, number), (Proposition(chance.randrange(number), tags),))


def _pair(chance: random.Random, number: int) -> SentencePair:
    label = chance.choice(("entailment", "neutral", "contradiction"))
    return SentencePair(_words(chance, number), _words(chance, number), label)


def _text(chance: random.Random, number: int) -> ClassifiedText:
    return ClassifiedText(_words(chance, number), chance.choice("01234"))


def _document(chance: random.Random, number: int) -> Document:
    words = _words(chance, number)
    places: dict[str, list[Mention]] = {}
    for place in range(0, number, 3):
        places.setdefault(f"cluster {chance.randrange(number // 9)}", []).append(
            Mention(place, place)
        )
    sentences = tuple(words[at : at + _SENTENCE] for at in range(0, number, _SENTENCE))
    return Document(sentences, tuple(map(tuple, places.values())))


def _question(chance: random.Random, number: int) -> PassageQuestion:
    passage, question = (
        TokenizedText("", _words(chance, length), ()) for length in (number, _SENTENCE)
    )
    first = chance.randrange(number - 1)
    return PassageQuestion("", passage, question, None, Span(first, first + 1))


HEADS = {
    "ner": Head("experiments/ner/baseline.jsonnet", (45, 45, 45, 45), _tagged),
    "srl": Head("experiments/srl/baseline.jsonnet", (14, 22, 29, 43), _proposition),
    "snli": Head(
        "experiments/snli/baseline.jsonnet",
        (14, 18, 22, 28),
        _pair,
        data="data/snli/snli_1.0_train_subset.jsonl",
    ),
    # AllenNLP's self-attentive pooling has a bias, which a softmax does not notice.
    "sst": Head("experiments/sst/baseline.jsonnet", (7, 10, 15, 25), _text, surplus=1),
    "coreference": Head(
        "experiments/coreference/baseline.jsonnet",
        (750, 1100),
        _document,
        places=(0.2, 0.6),
        data="data/gum/conll2012_ontogum/train.conll",
        changes={
            "encoder_reads": "document",
            "use_speakers": False,
            "use_genre": False,
            "max_training_sentences": None,
        },
        # It weighs the words of a span by their 500 inputs; ours by the encoder's 400 outputs.
        surplus=100,
    ),
    # The biases of its similarity and of its scores of both ends, which a softmax does not notice.
    "squad": Head(
        "experiments/squad/bidaf.jsonnet",
        (125, 170),
        _question,
        places=(0.5, 0.8),
        surplus=3,
    ),
}
