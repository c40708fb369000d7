import json
import pickle
import random
from collections import Counter

import pytest
import torch

from elmo_framework.data.tagging import scheme_of
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask, conll_columns
from tests.unit.metrics.conlleval import conlleval

TASK = TaggingTask()
EXAMPLES = [
    TaggedSentence(("Anna", "left", "Oslo"), ("B-PER", "O", "B-LOC")),
    TaggedSentence(("Rain",), ("O",)),
]
LABELS = Vocabularies(TASK.count(EXAMPLES))


def test_words_and_tags_are_counted():
    untagged = TaggedSentence(("Rain",), None)

    assert TASK.count([*EXAMPLES, untagged]) == {
        "words": Counter({"Rain": 2, "Anna": 1, "left": 1, "Oslo": 1}),
        "labels": Counter({"O": 2, "B-PER": 1, "B-LOC": 1}),
        "beginnings": Counter({"B-PER": 1, "B-LOC": 1}),
    }


def test_a_batch_holds_the_ids_of_the_tags():
    batch = TASK.collator(LABELS, [])(EXAMPLES)

    ids = {label: index for index, label in enumerate(LABELS.labels().items)}
    expected = [[ids["B-PER"], ids["O"], ids["B-LOC"]], [ids["O"], 0, 0]]
    assert torch.equal(batch.labels, torch.tensor(expected))
    assert batch.text.mask.tolist() == [[True] * 3, [True, False, False]]
    assert batch.examples == tuple(EXAMPLES)
    assert (batch.num_tokens, batch.title) == (4, "'Anna left Oslo' and 1 more")


def test_a_batch_with_an_untagged_sentence_has_no_tags():
    batch = TASK.collator(LABELS, [])([*EXAMPLES, TaggedSentence(("Rain",), None)])

    assert batch.labels is None


def test_unseen_tag_is_refused_with_its_sentence():
    collate = pickle.loads(pickle.dumps(TASK.collator(LABELS, [])))

    with pytest.raises(DataError) as raised:
        collate([*EXAMPLES, TaggedSentence(("Norvik", "fell"), ("B-LOV", "O"))])

    assert str(raised.value) == (
        "'B-LOV' is not among the labels of the training data; "
        "choose from B-LOC, B-PER, I-LOC, I-PER, O. "
        "Did you mean 'B-LOC'? It occurs in: 'Norvik fell'. "
        "Labels are counted before training, in the data of datasets_for_vocab_creation."
    )


def test_the_length_of_an_example_is_its_number_of_words():
    assert [TASK.num_tokens(example) for example in EXAMPLES] == [3, 1]


def test_a_prediction_is_compared_with_the_tags():
    assert TASK.gold(EXAMPLES[0]) == ("B-PER", "O", "B-LOC")
    with pytest.raises(DataError, match="a sentence without tags cannot be scored: 'Rain fell'"):
        TASK.gold(TaggedSentence(("Rain", "fell"), None))


@pytest.mark.parametrize(
    "inputs",
    [
        {"sentence": " Rain  fell "},
        {"tokens": ["Rain", "fell"]},
        {"words": ["Rain", "fell"]},
    ],
)
def test_an_example_is_made_of_json(inputs):
    found = TASK.example(inputs, WhitespaceTokenizer())

    assert found == TaggedSentence(("Rain", "fell"), None)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            {"sentense": "Rain"},
            "expected one key with a text, found 'sentense'; "
            "choose from sentence, tokens, words. Did you mean 'sentence'?",
        ),
        (
            {},
            "expected one key with a text, found none; choose from sentence, tokens, words.",
        ),
        (
            {"words": [], "sentence": ""},
            "expected one key with a text, found 'sentence', 'words'; "
            "choose from sentence, tokens, words. Did you mean 'words'?",
        ),
        (
            {"id": 3, "token": ["Rain"]},
            "expected one key with a text, found 'id', 'token'; "
            "choose from sentence, tokens, words. Did you mean 'tokens'?",
        ),
        ({"sentence": 3}, "'sentence' is 3; expected a string or a list of strings"),
        ({"words": ["Rain", 3]}, "'words' is ['Rain', 3]; expected a string or a list of strings"),
    ],
)
def test_json_without_a_sentence_is_refused(inputs, message):
    with pytest.raises(DataError) as raised:
        TASK.example(inputs, WhitespaceTokenizer())

    assert str(raised.value) == message


def test_a_prediction_is_written_with_its_spans():
    example = TaggedSentence(("Anna", "Lund", "left", "Oslo"), None)

    written = TASK.to_json(("B-PER", "L-PER", "O", "U-LOC"), example)

    assert json.loads(json.dumps(written)) == {
        "words": ["Anna", "Lund", "left", "Oslo"],
        "tags": ["B-PER", "L-PER", "O", "U-LOC"],
        "spans": [
            {"start": 0, "end": 2, "label": "PER", "text": "Anna Lund"},
            {"start": 3, "end": 4, "label": "LOC", "text": "Oslo"},
        ],
    }


def test_unseen_tags_of_a_seen_label_are_counted_as_zero():
    seen = [TaggedSentence(("Anna", "left"), ("U-PER", "O"))]

    assert TASK.count(seen)["labels"] == {"O": 1, "U-PER": 1, "B-PER": 0, "I-PER": 0, "L-PER": 0}


def test_parts_of_speech_are_counted_as_they_are():
    seen = [TaggedSentence(("Anna", "left"), ("NNP", "VBD"))]

    assert TASK.count(seen)["labels"] == {"NNP": 1, "VBD": 1}


@pytest.mark.parametrize("mistyped", ["I-LCO", "I-LOC"])
def test_tags_that_violate_the_scheme_are_reported(mistyped, caplog):
    words = ("Anna", "saw", "New", "Oslo")
    seen = [
        TaggedSentence(words, ("B-PER", "O", "B-LOC", "I-LOC")),
        TaggedSentence(words, ("B-PER", "O", "O", mistyped)),
    ]

    counts = TASK.count(seen)

    assert caplog.messages == [
        f"the tags are of the scheme BIO, which begins no span with {mistyped} (seen 1x)"
    ]
    assert scheme_of(counts["labels"], counts["beginnings"]) == "BIO"
    assert f"B-{mistyped[2:]}" in counts["labels"]


def test_valid_tags_cause_no_warning(caplog):
    TASK.count(EXAMPLES)
    TASK.count([TaggedSentence(("Anna", "left"), ("NNP", "VBD"))])

    assert caplog.messages == []


def written(*predictions: tuple[str, str, str | None]) -> str:
    return "".join(
        conll_columns(
            (
                predicted.split(),
                TaggedSentence(tuple(words.split()), None if gold is None else tuple(gold.split())),
            )
            for words, predicted, gold in predictions
        )
    )


def test_line_has_word_gold_tag_and_predicted_tag():
    found = written(("Oslo is wet", "B-PER O O", "B-LOC O O"), ("Rain", "O", "O"))

    assert found == "Oslo B-LOC B-PER\nis O O\nwet O O\n\nRain O O\n\n"


def test_bioul_is_written_in_bio():
    found = written(("Ann Lee of Oslo", "B-PER L-PER O U-LOC", "U-PER U-PER O O"))

    assert found == "Ann B-PER B-PER\nLee B-PER I-PER\nof O O\nOslo O B-LOC\n\n"


def test_bioes_is_written_in_bio():
    found = written(("Ann Lee of Oslo", "B-PER E-PER O S-LOC", "S-PER S-PER O O"))

    assert found == "Ann B-PER B-PER\nLee B-PER I-PER\nof O O\nOslo O B-LOC\n\n"


def test_invalid_bio_tags_are_unchanged():
    assert written(("a b c", "I-X I-Y B-Y", "O O O")) == "a O I-X\nb O I-Y\nc O B-Y\n\n"


def test_without_gold_tags_there_are_two_columns():
    assert written(("Rain fell", "NN VBD", None)) == "Rain NN\nfell VBD\n\n"


def test_a_word_or_a_tag_with_spaces_is_one_column():
    examples = [(("B-a b", "X"), TaggedSentence(("10 000", "\u3000"), ("U-a b", "X")))]

    assert "".join(conll_columns(examples)) == "10_000 U-a_b B-a_b\n_ X X\n\n"


def test_written_clusters_score_as_the_predictions():
    dice = random.Random(3)
    tags = ["O", *(f"{prefix}-{label}" for prefix in "BIUL" for label in ("PER", "LOC"))]
    metric, sums, predictions = TaggingTask.metrics["span_f1"], Counter[str](), []
    for _ in range(80):
        gold = dice.choices(tags, k=dice.randint(1, 9))
        guess = [dice.choice(tags) if dice.random() < 0.3 else tag for tag in gold]
        sums.update(metric.count(guess, gold))
        predictions.append((guess, TaggedSentence(("w",) * len(gold), tuple(gold))))

    sentences = []
    for block in "".join(conll_columns(predictions)).strip().split("\n\n"):
        _, gold, guess = zip(*(line.split() for line in block.split("\n")), strict=True)
        sentences.append((gold, guess))

    expected = conlleval(sentences)
    scores = metric.score(sums)
    assert {name: f"{100 * scores[name]:.2f}" for name in expected} == {
        name: f"{score:.2f}" for name, score in expected.items()
    }


@pytest.mark.parametrize(
    ("gold", "guess", "correct"),
    [
        ("B-PER L-PER O U-LOC", "B-PER L-PER O U-LOC", 4),
        ("B-PER L-PER O O", "B-PER I-PER L-PER O", 3),  # L-PER is I-PER to conlleval
        ("B-PER L-PER O O", "U-PER O O O", 3),  # and U-PER is B-PER
        ("S-PER O B-LOC E-LOC", "B-PER E-PER B-LOC E-LOC", 3),
        ("NN VBZ L NN", "NN VBD L NN", 3),
    ],
)
def test_accuracy_compares_tags_as_conlleval(gold, guess, correct):
    metric = TaggingTask.metrics["span_f1"]

    sums = metric.count(guess.split(), gold.split())

    assert metric.score(sums)["accuracy"] == correct / 4
