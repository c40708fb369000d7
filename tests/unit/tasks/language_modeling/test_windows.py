from __future__ import annotations

import io
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework.data.batch import to_device
from elmo_framework.data.data_loader import BucketDataLoader, Rank, SourceContext
from elmo_framework.errors import BuildError, DataError, RunError
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.tasks.language_modeling.batch import (
    CharacterTable,
    Window,
    WindowBatch,
    WindowCollator,
)
from elmo_framework.tasks.language_modeling.windows import WindowLoader
from tests.unit.tasks.language_modeling.toy import BEGIN, END, Numbered, Toy, examples, novel

DIRECTIONS = ["forward", "backward"]


def rows_of(toy: Toy, batches: Sequence[WindowBatch], direction: str) -> list[list[str]]:
    """Return what each row reads over all batches."""
    windows = [toy.inputs(batch, getattr(batch, direction)) for batch in batches]
    return [[word for window in windows for word in window[row]] for row in range(len(windows[0]))]


def sentences_of(row: Sequence[str], boundary: str) -> list[str]:
    """Split what a row reads into sentences; the last may be unfinished."""
    return [part.strip() for part in " ".join(row).split(boundary)[1:]]


def test_evaluation_windows_equal_hand_made_ones() -> None:
    toy = Toy(["a b c d e", "f", "g h"])
    first, second = toy.source(2, 4, is_training=False).batches()
    full, half, none = [True] * 4, [True] * 2 + [False] * 2, [False] * 4
    assert toy.shown(first) == {
        "forward": [
            [[BEGIN, "a", "b", "c"], [BEGIN, "f", BEGIN, "g"]],
            [["a", "b", "c", "d"], ["f", END, "g", "h"]],
            [full, full],
        ],
        "backward": [
            [[END, "e", "d", "c"], [END, "f", END, "h"]],
            [["e", "d", "c", "b"], ["f", BEGIN, "h", "g"]],
            [full, full],
        ],
    }
    assert toy.shown(second) == {
        "forward": [[["d", "e"], ["h"]], [["e", END], [END]], [half, [True] + [False] * 3]],
        "backward": [[["b", "a"], ["g"]], [["a", BEGIN], [BEGIN]], [half, [True] + [False] * 3]],
    }
    assert (first.num_tokens, second.num_tokens) == (8, 3)
    assert none not in second.forward.mask.tolist()


@pytest.mark.parametrize("num_rows", [1, 2, 5, 60])
@pytest.mark.parametrize("num_steps", [1, 4, 30])
@pytest.mark.parametrize("world_size", [1, 3])
def test_in_evaluation_every_prediction_counts_once(
    num_rows: int, num_steps: int, world_size: int
) -> None:
    toy = novel()
    shares = [Rank(rank, world_size) for rank in range(world_size)]
    sources = [toy.source(num_rows, num_steps, is_training=False, rank=held) for held in shares]
    batches = [list(source.batches()) for source in sources]
    assert {len(own) for own in batches} == {source.num_batches for source in sources}
    framed = [[BEGIN, *sentence.split(), END] for sentence in toy.sentences]
    for direction, step in (("forward", 1), ("backward", -1)):
        counted: Counter[tuple[str, str]] = Counter()
        for batch in (batch for own in batches for batch in own):
            window = getattr(batch, direction)
            read, predicted = toy.inputs(batch, window), toy.targets(window)
            for row in range(num_rows):
                counted.update(zip(read[row], predicted[row], strict=True))
        assert counted == Counter(pair for words in framed for pair in pairwise(words[::step]))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_evaluation_rows_are_padded_at_the_end(direction: str) -> None:
    for batch in novel().source(5, 4, is_training=False).batches():
        mask = getattr(batch, direction).mask.long()
        assert (mask.diff(dim=1) <= 0).all()


def test_an_evaluation_always_begins_at_the_first_sentence() -> None:
    toy = novel()
    source = toy.source(3, 4, is_training=False)
    first = toy.shown(next(source.batches()))
    assert toy.shown(next(source.batches())) == first
    source.load_state_dict(source.state_dict())
    assert toy.shown(next(source.batches())) == first


@pytest.mark.parametrize(("direction", "near", "far"), [("forward", BEGIN, END)])
@pytest.mark.parametrize("turn", [1, -1])
def test_training_rows_read_consecutive_sentences(
    direction: str, near: str, far: str, turn: int
) -> None:
    if turn < 0:
        direction, near, far = "backward", far, near
    toy = novel()
    batches = list(islice(_endless(toy.source(4, 5)), 60))
    known = {" ".join(sentence.split()[::turn]) for sentence in toy.sentences}
    for row in rows_of(toy, batches, direction):
        assert len(row) == 60 * 5
        assert far not in row
        assert set(sentences_of(row, near)[:-1]) <= known


def _endless(source: Any) -> Any:
    while True:
        yield from source.batches()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_in_training_the_target_of_a_word_is_the_next_one(direction: str) -> None:
    toy = novel()
    near, far = (BEGIN, END) if direction == "forward" else (END, BEGIN)
    batches = list(islice(_endless(toy.source(3, 4)), 40))
    windows = [toy.targets(getattr(batch, direction)) for batch in batches]
    for row, read in enumerate(rows_of(toy, batches, direction)):
        predicted = [word for window in windows for word in window[row]]
        assert [far if word == near else word for word in read[1:]] == predicted[:-1]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_each_pass_over_the_text_takes_every_sentence_once(direction: str) -> None:
    toy = novel(10)
    near = BEGIN if direction == "forward" else END
    turn = 1 if direction == "forward" else -1
    read = rows_of(toy, list(islice(_endless(toy.source(1, 7)), 40)), direction)[0]
    sentences = sentences_of(read, near)[:-1]
    known = {" ".join(sentence.split()[::turn]) for sentence in toy.sentences}
    orders = [sentences[at : at + 10] for at in range(0, 30, 10)]
    assert all(set(order) == known for order in orders)
    assert orders[0] != orders[1] != orders[2]


def test_rows_are_filled_in_order_from_one_stream() -> None:
    toy = novel()

    def begun(num_rows: int, num_batches: int) -> list[str]:
        """Return the first words of sentences, batch by batch and row by row."""
        return [
            target
            for batch in islice(_endless(toy.source(num_rows, 7)), num_batches)
            for read, predicted in zip(
                toy.inputs(batch, batch.forward), toy.targets(batch.forward), strict=True
            )
            for word, target in zip(read, predicted, strict=True)
            if word == BEGIN
        ]

    stream, begun_by_rows = begun(1, 60), begun(3, 15)
    assert len(begun_by_rows) > 40
    assert begun_by_rows == stream[: len(begun_by_rows)]


def test_epoch_is_one_pass_and_the_stream_continues() -> None:
    toy = novel()
    source = toy.source(4, 5)
    num_predictions = sum(len(sentence.split()) + 1 for sentence in toy.sentences)
    assert source.num_batches == num_predictions // 20
    first, second = list(source.batches()), list(source.batches())
    assert len(first) == len(second) == source.num_batches
    row = rows_of(toy, first + second, "forward")[2]
    assert set(sentences_of(row, BEGIN)[:-1]) <= set(toy.sentences)


def test_directions_read_different_sentences_by_default() -> None:
    toy = novel()

    def words(aligned: bool) -> list[set[str]]:
        batch = next(toy.source(4, 5, aligned=aligned).batches())
        windows = (batch.forward, batch.backward)
        return [
            {word.partition("w")[0] for row in toy.inputs(batch, held) for word in row}
            - {BEGIN, END}
            for held in windows
        ]

    forward, backward = words(aligned=True)
    assert forward == backward
    forward, backward = words(aligned=False)
    assert forward != backward


def test_the_order_follows_the_seed() -> None:
    toy = novel()

    def first(seed: int) -> Any:
        return toy.shown(next(toy.source(4, 5, seed=seed).batches()))

    assert first(1) == first(1)
    assert first(1) != first(2)


@pytest.mark.parametrize("is_training", [True, False])
def test_processes_share_the_rows_of_one_stream(is_training: bool) -> None:
    toy = novel()
    joint = toy.source(6, 4, is_training=is_training)
    own = [toy.source(3, 4, is_training=is_training, rank=Rank(rank, 2)) for rank in (0, 1)]
    assert {source.num_batches for source in own} == {joint.num_batches}
    for whole, *parts in zip(joint.batches(), *(held.batches() for held in own), strict=True):
        shown, shown_parts = toy.shown(whole), [toy.shown(part) for part in parts]
        for direction in DIRECTIONS:
            for aspect, rows in enumerate(shown[direction]):
                assert rows == [row for held in shown_parts for row in held[direction][aspect]]


@pytest.mark.parametrize("num_before", [0, 1, 5, 11, 12, 25])
@pytest.mark.parametrize("aligned", [True, False])
def test_resumed_source_continues_with_the_same_batches(num_before: int, aligned: bool) -> None:
    toy = novel()
    source = toy.source(4, 5, aligned=aligned)
    assert source.num_batches == 11
    delivered = _endless(source)
    for _ in range(num_before):
        next(delivered)
    state = _through_a_file(source.state_dict())
    expected = [toy.shown(batch) for batch in islice(delivered, 25)]
    resumed = toy.source(4, 5, aligned=aligned)
    resumed.load_state_dict(state)
    assert [toy.shown(batch) for batch in islice(_endless(resumed), 25)] == expected


def _through_a_file(state: dict[str, Any]) -> Any:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def test_resumed_source_ends_its_epoch_at_the_same_batch() -> None:
    toy = novel()
    source = toy.source(4, 5)
    before = list(islice(source.batches(), 4))
    resumed = toy.source(4, 5)
    resumed.load_state_dict(source.state_dict())
    assert len(before) + len(list(resumed.batches())) == source.num_batches


def test_batch_is_counted_before_it_is_yielded() -> None:
    source = novel().source(4, 5)
    next(source.batches())
    assert source.state_dict()["delivered"] == 1


def test_a_position_in_other_windows_is_refused() -> None:
    state = novel().source(4, 5).state_dict()
    with pytest.raises(RunError) as caught:
        novel().source(2, 5).load_state_dict(state)
    assert str(caught.value) == (
        "the run was at a position in windows of "
        "{'rows': 4, 'steps': 5, 'sentences': 40, 'words': 195}, and now they are of "
        "{'rows': 2, 'steps': 5, 'sentences': 40, 'words': 195}: "
        "resume with the same text, data_loader and number of processes"
    )


def test_a_text_too_short_for_a_batch_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        Toy(["a b c", "d"]).source(2, 2, rank=Rank(0, 2))
    assert str(caught.value) == (
        "the text has 4 words in 2 sentences, so 6 words and sentence ends to predict; one batch "
        "of 4 rows and 2 steps needs 8: give more text, or a smaller data_loader.batch_size or "
        "unroll_steps"
    )


def test_an_evaluation_of_no_sentence_is_refused() -> None:
    with pytest.raises(DataError, match="the text has no sentences to make windows of"):
        Toy([]).source(2, 2, is_training=False)


def _context(collate: Callable[[Sequence[Any]], Any]) -> SourceContext:
    return SourceContext(collate=collate, num_tokens=len, seed=0, is_training=True)


def test_windows_refuse_the_model_of_another_task() -> None:
    loader = WindowLoader(batch_size=2, unroll_steps=2)
    with pytest.raises(BuildError, match="'windows' makes batches for language modeling only"):
        loader.source(examples(["a"]), _context(list))


def test_sentence_batches_are_refused_with_advice() -> None:
    collator = WindowCollator(Numbered(("a",), True), Numbered(("a",), False))
    context = SourceContext(
        collate=collator, num_tokens=lambda e: len(e.words), seed=0, is_training=True
    )
    source = BucketDataLoader().source(examples(["a"]), context)
    with pytest.raises(BuildError, match=r"set data_loader to \{type: 'windows'"):
        next(source.batches())


def test_words_that_occur_twice_in_a_batch_are_encoded_once() -> None:
    toy = Toy(["a b a", "b a"])
    batch = next(toy.source(1, 7, is_training=False).batches())
    assert batch.characters[:, 0].tolist() == [0, 1, 2, 3]


def test_batch_has_a_title_and_collator_is_picklable() -> None:
    toy = Toy(["a b a", "b a"])
    batch = next(toy.source(2, 4, is_training=False).batches())
    assert batch.title == "7 words, the first row is '<S> a b a'"
    collator = WindowCollator(Numbered(toy.words, True), Numbered(toy.words, False))
    assert isinstance(pickle.loads(pickle.dumps(collator)), WindowCollator)


def test_one_process_continues_the_streams_of_two() -> None:
    toy = novel()
    first, second = (toy.source(2, 5, rank=Rank(rank, 2)) for rank in (0, 1))
    begun: set[str] = set()
    for source in (first, second):
        for batch in islice(source.batches(), 4):
            begun |= sentences_in(toy, batch)
    alone = toy.source(2, 5)
    alone.load_state_of_others(first.state_dict(), num_processes=2)
    assert alone.state_dict()["delivered"] == 8
    rest = list(alone.batches())
    assert not begun & sentences_in(toy, rest[0])
    assert len(rest) == alone.num_batches - 8


@pytest.mark.parametrize("num_before", [1, 2, 3])
@pytest.mark.parametrize("num_now", [1, 2, 3])
def test_epoch_ended_by_other_processes_ends_once(num_before: int, num_now: int) -> None:
    toy = novel(41)
    before = toy.source(2, 5, rank=Rank(0, num_before))
    for _ in islice(before.batches(), before.num_batches):
        now = toy.source(2, 5, rank=Rank(0, num_now))
        now.load_state_of_others(before.state_dict(), num_before)
        assert now.is_at_epoch_end == before.is_at_epoch_end


def sentences_in(toy: Toy, batch: WindowBatch) -> set[str]:
    """The sentences that the forward direction reads, by what their words begin with."""
    words = {word for row in toy.inputs(batch, batch.forward) for word in row}
    return {word.partition("w")[0] for word in words if word.startswith("s")}


def test_epoch_reports_its_number_of_words() -> None:
    source = novel().source(2, 5, rank=Rank(0, 2))
    assert source.num_tokens == 2 * 2 * 5 * source.num_batches
    assert novel().source(2, 5, is_training=False).num_tokens is None


@pytest.mark.parametrize(
    ("said", "rank", "told"), [(7, 0, True), (8, 0, False), (None, 0, False), (7, 1, False)]
)
def test_wrong_num_train_tokens_is_reported_once(
    caplog: pytest.LogCaptureFixture, said: int | None, rank: int, told: bool
) -> None:
    toy = Toy(["a b c d e", "f", "g h"])
    toy.source(1, 4, num_train_tokens=said, rank=Rank(rank, 2))
    expected = "data_loader.num_train_tokens is 7, and the text has 8 words: an epoch is the words"
    assert (expected in caplog.text) == told
    assert bool(caplog.text) == told


def test_characters_are_gathered_on_the_device_of_words() -> None:
    table = CharacterTable(np.arange(12, dtype=np.uint16).reshape(4, 3))
    assert table.of(torch.tensor([2, 0])).tolist() == [[6, 7, 8], [0, 1, 2]]
    assert table.of(torch.tensor([1])).dtype == torch.int64
    assert table.of(torch.tensor([1], device="meta")).shape == (1, 3)


def test_the_mask_follows_from_the_lengths_of_the_rows() -> None:
    ids = torch.zeros(2, 3, dtype=torch.long)
    window = Window(ids, ids, ids == 0, np.array([1, 3]))
    assert window.mask.tolist() == [[True, False, False], [True, True, True]]


def test_an_accelerator_gets_a_batch_by_one_copy() -> None:
    batch = next(Toy(["a b c d e", "f", "g h"]).source(1, 4).batches())
    with accelerator_code():
        moved = to_device(batch, torch.device("cpu"))
    assert to_device(batch, torch.device("cpu")) is batch
    assert len(moved.distinct) == 256
    assert moved.num_distinct == batch.num_distinct == len(batch.distinct)
    assert torch.equal(moved.distinct[: batch.num_distinct], batch.distinct)
    assert set(moved.distinct.tolist()) == set(batch.distinct.tolist())
    for window, expected in ((moved.forward, batch.forward), (moved.backward, batch.backward)):
        assert torch.equal(window.words, expected.words)
        assert torch.equal(window.targets, expected.targets)
        assert torch.equal(window.is_word, expected.is_word)
        assert torch.equal(window.mask, expected.mask)
    storages = {tensor.untyped_storage().data_ptr() for tensor in (moved.distinct, window.words)}
    assert len(storages) == 1


def test_batches_of_another_text_have_another_form() -> None:
    """A recorded update reads the characters of its own text."""
    text = ["a b c d e", "f", "g h"]
    with accelerator_code():
        forms = [
            [to_device(batch, torch.device("cpu")).form for batch in islice(source.batches(), 2)]
            for source in (Toy(text).source(1, 2) for _ in range(2))
        ]
    assert forms[0][0] == forms[0][1] != forms[1][0] == forms[1][1]


def test_padding_of_an_evaluation_is_no_word_on_an_accelerator() -> None:
    *_, batch = Toy(["a b c d e", "f", "g h"]).source(2, 4, is_training=False).batches()
    with accelerator_code():
        moved = to_device(batch, torch.device("cpu"))
    assert not batch.forward.is_word.all()
    assert moved.forward.is_word.dtype == torch.bool
    assert torch.equal(moved.forward.is_word, batch.forward.mask)
