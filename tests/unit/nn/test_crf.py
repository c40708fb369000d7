from itertools import pairwise, product

import numpy as np
import pytest
import torch
from torch import Tensor

from elmo_framework.nn.crf import ConditionalRandomField, Constraints

NUM_TAGS, LENGTHS = 3, (4, 1, 0, 3)
MASK = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]


def random_crf(**options: object) -> ConditionalRandomField:
    torch.manual_seed(1)
    return ConditionalRandomField(NUM_TAGS, **options).double()


def random_inputs(seed: int = 2) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (len(LENGTHS), max(LENGTHS))
    emissions = torch.randn(*shape, NUM_TAGS, dtype=torch.float64, generator=generator)
    return emissions, torch.randint(NUM_TAGS, shape, generator=generator)


def score(crf: ConditionalRandomField, emissions: np.ndarray, tags: tuple[int, ...]) -> float:
    transitions = crf.transitions.detach().numpy()
    total = sum(emissions[position, tag] for position, tag in enumerate(tags))
    total += sum(transitions[before, after] for before, after in pairwise(tags))
    start, end = crf.start_transitions.detach(), crf.end_transitions.detach()
    return float(total + start[tags[0]] + end[tags[-1]])


def likelihood(crf: ConditionalRandomField, emissions: np.ndarray, tags: tuple[int, ...]) -> float:
    if not tags:
        return 0.0
    scores = [score(crf, emissions, each) for each in sequences(len(tags))]
    return score(crf, emissions, tags) - float(np.log(np.exp(scores).sum()))


def sequences(length: int) -> list[tuple[int, ...]]:
    return list(product(range(NUM_TAGS), repeat=length))


@pytest.mark.parametrize("has_bounds", [False, True])
def test_likelihood_equals_enumeration_of_sequences(has_bounds):
    crf = random_crf(include_start_end_transitions=has_bounds)
    emissions, tags = random_inputs()

    found = crf.log_likelihood(emissions, tags, MASK)

    expected = [
        likelihood(crf, emissions[row].numpy(), tuple(tags[row, :length].tolist()))
        for row, length in enumerate(LENGTHS)
    ]
    np.testing.assert_allclose(found.detach(), expected, atol=1e-12)


def test_the_likelihoods_of_all_sequences_add_up_to_one():
    crf = random_crf(include_start_end_transitions=True)
    every = torch.tensor(sequences(4))
    emissions = random_inputs()[0][:1].expand(len(every), -1, -1)

    found = crf.log_likelihood(emissions, every, torch.ones_like(every, dtype=torch.bool))

    assert float(found.detach().exp().sum()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("has_bounds", [False, True])
@pytest.mark.parametrize("is_constrained", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_best_tags_equal_enumeration_of_allowed_sequences(has_bounds, is_constrained, seed):
    constraints = Constraints(
        start=torch.tensor([True, False, True]),
        inner=torch.tensor([[True, True, False], [False, True, True], [True, False, True]]),
        end=torch.tensor([True, True, False]),
    )

    def is_allowed(tags: tuple[int, ...]) -> bool:
        inner = all(constraints.inner[before, after] for before, after in pairwise(tags))
        return bool(constraints.start[tags[0]] and inner and constraints.end[tags[-1]])

    crf = random_crf(
        include_start_end_transitions=has_bounds,
        constraints=constraints if is_constrained else None,
    )
    emissions, _ = random_inputs(seed)

    found = crf.best_tags(emissions, MASK)

    for row, length in enumerate(LENGTHS):
        candidates = [each for each in sequences(length) if each]
        if is_constrained:
            candidates = [each for each in candidates if is_allowed(each)]
        scores = {each: score(crf, emissions[row].numpy(), each) for each in candidates}
        best = max(scores, key=scores.__getitem__) if scores else ()
        assert found[row].tolist() == [*best, *[0] * (max(LENGTHS) - length)]


def test_constraints_do_not_change_the_likelihood():
    nothing = torch.zeros(NUM_TAGS, NUM_TAGS, dtype=torch.bool)
    constrained = random_crf(constraints=Constraints(nothing[0], nothing, nothing[0]))
    emissions, tags = random_inputs()

    found = constrained.log_likelihood(emissions, tags, MASK)

    assert torch.equal(found, random_crf().log_likelihood(emissions, tags, MASK))


def test_fewest_constraints_are_violated_if_none_can_hold():
    # The first tag must be 1, the last 0, and no tag may follow another.
    first = torch.tensor([False, True])
    crf = ConditionalRandomField(2, constraints=Constraints(first, torch.eye(2).bool(), ~first))
    emissions = torch.tensor([[[9.0, 0.0], [0.0, 1.0], [0.0, 9.0]]])

    found = crf.best_tags(emissions, torch.ones(1, 3, dtype=torch.bool))

    assert found.tolist() == [[1, 1, 1]]


def test_padding_changes_nothing():
    crf = random_crf(include_start_end_transitions=True)
    emissions, tags = random_inputs()
    junk = torch.full((len(LENGTHS), 2, NUM_TAGS), 50.0, dtype=torch.float64)
    longer = torch.cat([emissions.masked_fill(~MASK[:, :, None], -70.0), junk], dim=1)
    longer_tags = torch.cat([tags.masked_fill(~MASK, 2), tags[:, :2]], dim=1)
    longer_mask = torch.cat([MASK, torch.zeros(len(LENGTHS), 2, dtype=torch.bool)], dim=1)

    found = crf.log_likelihood(longer, longer_tags, longer_mask)
    best = crf.best_tags(longer, longer_mask)

    assert torch.equal(found, crf.log_likelihood(emissions, tags, MASK))
    assert torch.equal(best[:, : max(LENGTHS)], crf.best_tags(emissions, MASK))
    assert not best[:, max(LENGTHS) :].any()


def test_a_batch_equals_its_rows_one_by_one():
    crf = random_crf(include_start_end_transitions=True)
    emissions, tags = random_inputs()

    found = crf.log_likelihood(emissions, tags, MASK)
    best = crf.best_tags(emissions, MASK)

    for row, length in enumerate(LENGTHS):
        own = slice(row, row + 1), slice(0, max(1, length))
        single = crf.log_likelihood(emissions[own], tags[own], MASK[own])
        torch.testing.assert_close(single[0], found[row], rtol=0, atol=1e-12)
        assert crf.best_tags(emissions[own], MASK[own]).tolist() == [best[row, own[1]].tolist()]


def test_gradients_reach_every_parameter_and_no_padding():
    crf = random_crf(include_start_end_transitions=True)
    emissions, tags = random_inputs()
    emissions.requires_grad_()

    crf.log_likelihood(emissions, tags, MASK).sum().backward()

    assert {name for name, _ in crf.named_parameters()} == {
        "transitions",
        "start_transitions",
        "end_transitions",
    }
    assert all(parameter.grad.abs().min() > 0 for parameter in crf.parameters())
    assert torch.equal(emissions.grad.abs().sum(dim=2) > 0, MASK)


def test_gradients_are_the_expected_counts():
    crf = random_crf()
    emissions, tags = random_inputs()

    assert torch.autograd.gradcheck(
        lambda values: crf.log_likelihood(values, tags, MASK), emissions.requires_grad_()
    )


def test_likelihood_of_half_precision_is_computed_in_float32():
    crf = ConditionalRandomField(NUM_TAGS)
    emissions, tags = random_inputs()

    found = crf.log_likelihood(emissions.bfloat16(), tags, MASK)

    assert found.dtype == torch.float32


def test_nothing_but_learned_scores_is_saved():
    constraints = Constraints(torch.ones(2).bool(), torch.ones(2, 2).bool(), torch.ones(2).bool())

    assert set(ConditionalRandomField(2, constraints=constraints).state_dict()) == {"transitions"}


@pytest.mark.parametrize("has_bounds", [False, True])
def test_marginals_equal_enumeration_of_sequences(has_bounds):
    crf = random_crf(include_start_end_transitions=has_bounds)
    emissions, _ = random_inputs()

    marginals = crf.marginal_scores(emissions, MASK).softmax(dim=2).detach()

    for row, length in enumerate(LENGTHS):
        own = emissions[row].numpy()
        expected = np.zeros((length, NUM_TAGS))
        for tags in sequences(length) if length else ():
            expected[range(length), tags] += np.exp(likelihood(crf, own, tags))
        np.testing.assert_allclose(marginals[row, :length], expected, atol=1e-12)


def test_marginals_at_a_temperature_are_those_of_cooler_or_hotter_scores():
    crf = random_crf(include_start_end_transitions=True)
    emissions, _ = random_inputs()

    marginals = crf.marginal_scores(emissions, MASK, temperature=2.5).softmax(dim=2).detach()

    every = sequences(LENGTHS[0])
    weights = np.exp([score(crf, emissions[0].numpy(), each) / 2.5 for each in every])
    expected = np.zeros((LENGTHS[0], NUM_TAGS))
    for tags, weight in zip(every, weights / weights.sum(), strict=True):
        expected[range(LENGTHS[0]), tags] += weight
    np.testing.assert_allclose(marginals[0], expected, atol=1e-12)


def test_the_temperature_slope_equals_differences_of_likelihoods():
    crf = random_crf(include_start_end_transitions=True)
    emissions, tags = random_inputs()

    def loss(inverse: float) -> float:
        total = 0.0
        for row, length in enumerate(LENGTHS):
            own, every = emissions[row].numpy(), sequences(length) if length else []
            if every:
                total += np.log(sum(np.exp(inverse * score(crf, own, each)) for each in every))
                total -= inverse * score(crf, own, tuple(tags[row, :length].tolist()))
        return total

    step = 1e-5
    expected = (loss(1 / 1.6 + step) - loss(1 / 1.6 - step)) / (2 * step)
    slope = crf.temperature_slope(emissions, tags, MASK, temperature=1.6)
    assert slope == pytest.approx(expected, abs=1e-6)
