import pickle

import pytest
import torch

from elmo_framework.data.characters import ByteIndexer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.srl.example import (
    UNCOUNTED,
    SrlExample,
)
from elmo_framework.tasks.srl.task import SrlTask

TASK = SrlTask()
CATS = ("Cats", "hunt", "and", "sleep")
HUNT = Proposition(1, ("B-A0", "B-V", "O", "O"))
SLEEP = Proposition(3, ("B-A0", "O", "O", "B-V"))
RAIN = SrlExample(("Rain",), (Proposition(None, ("O",)),))
EXAMPLES = [SrlExample(CATS, (HUNT,)), RAIN, SrlExample(CATS, (SLEEP,))]
COUNTS = Vocabularies(TASK.count(EXAMPLES))
COLLATE = TASK.collator(COUNTS, [ByteIndexer(6)])


def test_sentence_with_two_predicates_is_in_the_batch_once():
    batch = pickle.loads(pickle.dumps(COLLATE))(EXAMPLES)

    assert batch.text.words == (CATS, ("Rain",))
    assert {len(ids) for ids in batch.text.ids.values()} == {2}
    assert batch.sentence_ids.tolist() == [0, 1, 0]
    assert batch.example_ids.tolist() == [0, 1, 2]
    assert batch.mask.tolist() == [[True] * 4, [True, False, False, False], [True] * 4]
    assert batch.is_predicate.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert batch.predicates == ((1,), (None,), (3,))
    assert (batch.num_tokens, batch.title) == (9, "'Cats hunt and sleep' and 2 more")


def test_tags_are_ids_and_padding_has_no_loss():
    batch = COLLATE(EXAMPLES[:2])

    ids = COUNTS.labels().ids(HUNT.tags).tolist()
    outside = COUNTS.labels().id("O")
    assert batch.tags.tolist() == [ids, [outside, UNCOUNTED, UNCOUNTED, UNCOUNTED]]


def test_unseen_tag_has_no_loss():
    batch = COLLATE([SrlExample(("Rain",), (Proposition(0, ("B-AX",)),))])

    assert batch.tags.tolist() == [[UNCOUNTED]]


def test_an_example_can_have_several_predicates():
    batch = COLLATE([RAIN, SrlExample(CATS, (HUNT, SLEEP))])

    assert batch.sentence_ids.tolist() == [0, 1, 1]
    assert batch.example_ids.tolist() == [0, 1, 1]
    assert batch.predicates == ((None,), (1, 3))
    assert batch.tags.shape == (3, 4)


@pytest.mark.parametrize(
    ("words", "predicates", "expected"),
    [
        (("cats", "SLEEP", "and", "Hunt"), None, (1, 3)),  # as in training, whatever the case
        (("dogs", "bark"), None, (None,)),  # none of the words was a predicate
        (("dogs", "bark"), (1,), (1,)),
        (("dogs", "bark"), (), (None,)),
    ],
)
def test_predicates_are_requested_or_from_training(words, predicates, expected):
    batch = COLLATE([SrlExample(words, None, predicates)])

    assert batch.predicates == (expected,)
    assert batch.tags is None
    assert torch.equal(
        batch.is_predicate.sum(1), torch.tensor([int(p is not None) for p in expected])
    )


def test_labeled_sentence_without_predicates_is_outside():
    batch = COLLATE([*EXAMPLES, SrlExample(("Rain",), ())])

    assert batch.tags is not None
    assert batch.predicates[-1] == (None,)
    row = [COUNTS.labels().id("O")] + [UNCOUNTED] * (batch.tags.shape[1] - 1)
    assert batch.tags[-1].tolist() == row


def test_batch_with_an_unlabeled_example_has_no_tags():
    assert COLLATE([*EXAMPLES, SrlExample(("Rain",), None)]).tags is None


@pytest.mark.parametrize(
    ("propositions", "predicates", "message"),
    [
        ((Proposition(0, ("O", "O")),), None, "1 word with 2 tags"),
        ((Proposition(1, ("O",)),), None, "predicate 1 is out of range for 1 word"),
        (None, (-1,), "predicate -1 is out of range for 1 word"),
    ],
)
def test_an_impossible_example_is_refused(propositions, predicates, message):
    with pytest.raises(ValueError, match=message):
        SrlExample(("Rain",), propositions, predicates)
