import numpy as np
import pytest
import torch

from elmo_framework.nn.soft_alignment import masked_softmax, self_alignment, soft_alignment

FIRST_LENGTHS, SECOND_LENGTHS, DIM = (3, 4, 0, 2), (2, 3, 3, 0), 5


def mask(lengths):
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def sequences(lengths, seed):
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths), DIM)
    drawn = torch.randn(shape, dtype=torch.float64, generator=generator)
    return drawn * mask(lengths)[:, :, None]


def average(queries, keys):
    """A plain NumPy reference, one word after the other."""
    if not len(keys):
        return np.zeros_like(queries)
    rows = []
    for query in queries:
        weights = np.exp(keys @ query)
        rows.append((weights[:, None] * keys).sum(axis=0) / weights.sum())
    return np.array(rows).reshape(queries.shape)


@pytest.mark.parametrize("row", range(4))
def test_alignment_is_an_average_of_the_other_sequence(row):
    first, second = sequences(FIRST_LENGTHS, 1), sequences(SECOND_LENGTHS, 2)

    found = soft_alignment(first, mask(FIRST_LENGTHS), second, mask(SECOND_LENGTHS))

    own = first[row, : FIRST_LENGTHS[row]].numpy()
    other = second[row, : SECOND_LENGTHS[row]].numpy()
    np.testing.assert_allclose(found.first[row, : len(own)], average(own, other), atol=1e-12)
    np.testing.assert_allclose(found.second[row, : len(other)], average(other, own), atol=1e-12)


def test_padding_has_no_share():
    first, second = sequences(FIRST_LENGTHS, 1), sequences(SECOND_LENGTHS, 2)
    longer = torch.cat([second, second.new_zeros(4, 3, DIM)], dim=1)
    longer_mask = torch.cat([mask(SECOND_LENGTHS), torch.zeros(4, 3, dtype=torch.bool)], dim=1)

    found = soft_alignment(first, mask(FIRST_LENGTHS), second, mask(SECOND_LENGTHS))
    again = soft_alignment(first, mask(FIRST_LENGTHS), longer, longer_mask)

    torch.testing.assert_close(again.first, found.first, rtol=0, atol=1e-12)
    torch.testing.assert_close(again.second[:, :3], found.second, rtol=0, atol=1e-12)


def test_an_empty_sequence_gives_zeros():
    first, second = sequences(FIRST_LENGTHS, 1), sequences(SECOND_LENGTHS, 2)

    found = soft_alignment(first, mask(FIRST_LENGTHS), second, mask(SECOND_LENGTHS))

    assert not found.first[3].any()
    assert not found.second[2].any()


def test_self_alignment_equals_alignment_with_a_copy():
    inputs = sequences(FIRST_LENGTHS, 1)

    found = self_alignment(inputs, mask(FIRST_LENGTHS))

    copied = soft_alignment(inputs, mask(FIRST_LENGTHS), inputs, mask(FIRST_LENGTHS))
    torch.testing.assert_close(found, copied.first, rtol=0, atol=0)


def test_gradients_reach_every_word_and_no_padding():
    first = sequences(FIRST_LENGTHS, 1).requires_grad_()
    second = sequences(SECOND_LENGTHS, 2).requires_grad_()

    found = soft_alignment(first, mask(FIRST_LENGTHS), second, mask(SECOND_LENGTHS))
    pairs = ((found.first, FIRST_LENGTHS), (found.second, SECOND_LENGTHS))
    sum((held * mask(lengths)[:, :, None]).square().sum() for held, lengths in pairs).backward()

    assert (first.grad[:2].abs().sum(dim=2) > 0).equal(mask(FIRST_LENGTHS)[:2])
    assert (second.grad[:2].abs().sum(dim=2) > 0).equal(mask(SECOND_LENGTHS)[:2])


def test_masked_softmax_sums_to_one_or_is_zero():
    scores = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    allowed = torch.tensor([[True, False, True], [False, False, False]])

    shares = masked_softmax(scores, allowed)

    expected = torch.tensor([[1.0, 3.0]]).softmax(dim=1)
    torch.testing.assert_close(shares[:1, ::2], expected)
    assert not shares[~allowed].any()
