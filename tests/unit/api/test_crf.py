from itertools import pairwise, product

import pytest
import torch

from elmo_framework import CRF

EMISSIONS = torch.randn(3, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
TAGS = torch.tensor([[0, 2, 1, 1], [2, 2, 0, 0], [1, 0, 0, 0]])
LENGTHS = [4, 2, 1]
MASK = torch.arange(4) < torch.tensor(LENGTHS)[:, None]


@pytest.fixture
def crf() -> CRF:
    torch.manual_seed(1)
    crf = CRF(3, batch_first=True).double()
    torch.nn.init.normal_(crf.transitions)
    return crf


def score(crf: CRF, emissions, tags) -> torch.Tensor:
    total = crf.start_transitions[tags[0]] + crf.end_transitions[tags[-1]]
    total = total + sum(emissions[step, tag] for step, tag in enumerate(tags))
    return total + sum(crf.transitions[pair] for pair in pairwise(tags))


def sequences(length: int) -> list[tuple[int, ...]]:
    return list(product(range(3), repeat=length))


def expected(crf: CRF) -> torch.Tensor:
    found = []
    for row, length in enumerate(LENGTHS):
        scores = [score(crf, EMISSIONS[row], tags) for tags in sequences(length)]
        truth = score(crf, EMISSIONS[row], TAGS[row, :length].tolist())
        found.append(truth - torch.stack(scores).logsumexp(dim=0))
    return torch.stack(found)


def test_the_likelihood_is_that_of_all_sequences_counted_out(crf: CRF) -> None:
    rows = expected(crf)
    torch.testing.assert_close(crf(EMISSIONS, TAGS, mask=MASK, reduction="none"), rows)
    torch.testing.assert_close(crf(EMISSIONS, TAGS, mask=MASK), rows.sum())
    torch.testing.assert_close(crf(EMISSIONS, TAGS, mask=MASK, reduction="mean"), rows.mean())
    by_token = crf(EMISSIONS, TAGS, mask=MASK.byte(), reduction="token_mean")
    torch.testing.assert_close(by_token, rows.sum() / 7)


def test_decoding_finds_the_best_of_all_sequences(crf: CRF) -> None:
    best = [
        max(sequences(length), key=lambda tags, row=row: score(crf, EMISSIONS[row], tags).item())
        for row, length in enumerate(LENGTHS)
    ]
    assert crf.decode(EMISSIONS, mask=MASK) == [list(tags) for tags in best]


def test_tokens_come_first_unless_the_batch_does(crf: CRF) -> None:
    other = CRF(3).double()
    other.load_state_dict(crf.state_dict())
    found = other(EMISSIONS.transpose(0, 1), TAGS.T, mask=MASK.T)
    torch.testing.assert_close(found, crf(EMISSIONS, TAGS, mask=MASK))
    decoded = other.decode(EMISSIONS.transpose(0, 1), mask=MASK.T)
    assert decoded == crf.decode(EMISSIONS, mask=MASK)


def test_without_a_mask_every_token_counts(crf: CRF) -> None:
    everywhere = torch.ones(3, 4, dtype=torch.bool)
    torch.testing.assert_close(crf(EMISSIONS, TAGS), crf(EMISSIONS, TAGS, mask=everywhere))
    assert [len(tags) for tags in crf.decode(EMISSIONS)] == [4, 4, 4]


def test_the_names_of_the_weights_are_those_of_pytorch_crf(crf: CRF) -> None:
    assert set(crf.state_dict()) == {"start_transitions", "transitions", "end_transitions"}
    assert all(parameter.abs().max() <= 0.1 for parameter in CRF(5).parameters())
    crf(EMISSIONS, TAGS, mask=MASK).backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in crf.parameters())


def test_wrong_arguments_are_named(crf: CRF) -> None:
    with pytest.raises(ValueError, match="num_tags is 0; allowed: 1 or more"):
        CRF(0)
    with pytest.raises(ValueError, match="reduction is 'meen'; choose from mean, none"):
        crf(EMISSIONS, TAGS, reduction="meen")


@pytest.mark.parametrize(
    ("emissions", "tags", "mask", "message"),
    [
        (EMISSIONS, TAGS[:1], MASK, "tags is of 1 x 4 .*; expected 3 x 4, as emissions"),
        (EMISSIONS, TAGS, MASK[:1], "mask is of 1 x 4 .*; expected 3 x 4, as emissions"),
        (EMISSIONS, TAGS, MASK.flip(1), "mask has padding before a token"),
        (EMISSIONS[0], TAGS, MASK, r"emissions has the shape \(4, 3\); expected three dimensions"),
    ],
)
def test_other_shapes_are_refused(crf: CRF, emissions, tags, mask, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        crf(emissions, tags, mask=mask)
    if tags is TAGS:
        with pytest.raises(ValueError, match=message):
            crf.decode(emissions, mask=mask)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "token_mean"])
def test_sentences_without_tokens_count_for_nothing(crf: CRF, reduction) -> None:
    for num_tokens in (0, 4):
        mask = torch.zeros(3, num_tokens, dtype=torch.bool)
        likelihoods = crf(EMISSIONS[:, :num_tokens], TAGS[:, :num_tokens], mask, reduction)
        assert not likelihoods.any()
        assert crf.decode(EMISSIONS[:, :num_tokens], mask) == [[], [], []]
