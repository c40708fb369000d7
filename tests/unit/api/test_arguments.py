import re
from pathlib import Path

import pytest
import torch

from elmo_framework import Elmo, batch_to_ids, load_bilm
from elmo_framework.api.encoder import torch_device

A_STRING = "sentence 1 is a list of words, not the string 'The dog'; pass ['The', 'dog']"
ALONE = "expected a list of sentences, not the string 'The dog' alone"
A_NUMBER = "word 2 of sentence 1 is 7; expected a string"


def make(folder: Path, **keys) -> Elmo:
    return Elmo(folder / "options.json", folder / "weights.hdf5", 1, **keys).eval()


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (["The dog"], A_STRING),
        ("The dog", ALONE),
        ([["The", 7]], A_NUMBER),
        ([["a"], b"The dog"], "word 1 of sentence 2 is 84; expected a string"),
    ],
)
def test_batch_to_ids_refuses_letters(sentences, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        batch_to_ids(sentences)


def test_words_of_any_sequence_are_taken() -> None:
    expected = batch_to_ids([["The", "dog"]])
    assert torch.equal(batch_to_ids((("The", "dog"),)), expected)


@pytest.mark.parametrize(
    ("method", "state"),
    [
        ("embed", "reset"),
        ("embed", "carry"),
        ("embed_iter", "reset"),
        ("embed_iter", "carry"),
        ("hub", "reset"),
        ("warm_up", "carry"),
    ],
)
def test_load_bilm_refuses_one_string(folder: Path, method: str, state: str) -> None:
    with pytest.raises(TypeError, match=re.escape(ALONE)):
        list(getattr(load_bilm(folder, state=state), method)("The dog"))


@pytest.mark.parametrize("state", ["reset", "carry"])
@pytest.mark.parametrize("method", ["embed", "embed_iter"])
def test_load_bilm_refuses_sentences_that_are_strings(folder, method: str, state: str) -> None:
    message = "a sentence is a list of words, not the string 'The dog'; pass ['The', 'dog']"
    with pytest.raises(TypeError, match=re.escape(message)):
        list(getattr(load_bilm(folder, state=state), method)(["The dog"]))


def test_elmo_refuses_letters(folder: Path) -> None:
    with pytest.raises(TypeError, match=re.escape(A_STRING)):
        make(folder, state="carry").warm_up(["The dog"])
    with pytest.raises(TypeError, match="vocab_to_cache is a list of words, not the string 'a b'"):
        make(folder, vocab_to_cache="a b")


def test_elmo_refuses_invalid_batches_of_ids(folder: Path) -> None:
    elmo, ids = make(folder, vocab_to_cache=["", "a"]), batch_to_ids([["a", "b"]])
    with pytest.raises(TypeError, match="inputs is of type list; expected the integers of"):
        elmo([["a", "b"]])
    with pytest.raises(TypeError, match=r"inputs is of type torch.float32"):
        elmo(ids.float())
    with pytest.raises(ValueError, match=r"inputs has the shape \(2, 50\); expected \(batch, "):
        elmo(ids[0])
    with pytest.raises(ValueError, match=r"word_inputs has the shape \(2,\); .* \(1, 2\)"):
        elmo(ids, torch.tensor([1, 1]))


def test_iterators_are_refused_before_they_are_used_up(folder: Path) -> None:
    bilm = load_bilm(folder)
    with pytest.raises(TypeError, match=r"a sentence is .*generator.*; expected a list of words"):
        bilm.embed([(word for word in ["a"])])
    with pytest.raises(TypeError, match=r"expected a list of sentences, not .*generator"):
        batch_to_ids(words for words in [["a"]])
    with pytest.raises(TypeError, match=r"expected a list of sentences, not .*generator"):
        bilm.score(words for words in [["a"]])


def test_a_tokenizer_may_return_an_iterator(folder: Path) -> None:
    bilm = load_bilm(folder)
    vectors = bilm.sentences(["A WORD"], tokenizer=lambda text: map(str.lower, text.split()))
    assert (vectors == bilm.sentences([["a", "word"]])).all()
    with pytest.raises(TypeError, match="text 1 is a list of words, not the string 'a word'"):
        bilm.sentences(["A WORD"], tokenizer=str.lower)


def test_max_tokens_is_above_0(folder: Path) -> None:
    for state in ("reset", "carry"):
        with pytest.raises(ValueError, match="max_tokens is 0; it must be above 0"):
            load_bilm(folder, state=state).embed([["a"]], max_tokens=0)


def test_a_device_is_that_of_its_tensors() -> None:
    assert torch_device("cpu:0") == torch.zeros(1, device="cpu:0").device
