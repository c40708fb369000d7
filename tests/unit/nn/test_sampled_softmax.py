from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.nn import sampled_softmax
from elmo_framework.nn.sampled_softmax import (
    SampledSoftmax,
    draw_candidates,
    log_expected_count,
    log_uniform,
)

Array = NDArray[np.float64]
Candidates = tuple[Tensor, Tensor]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


@pytest.fixture(params=[nullcontext, accelerator_code], ids=["cpu", "accelerator"])
def each_code(request: pytest.FixtureRequest) -> Iterator[None]:
    with request.param():
        yield


def softmax_of(num_classes: int, num_samples: int | None, dim: int = 4) -> SampledSoftmax:
    softmax = SampledSoftmax(dim, num_classes, num_samples).double()
    torch.nn.init.normal_(softmax.bias)
    return softmax


def some_input(num_classes: int, positions: int = 6, dim: int = 4) -> tuple[Tensor, Tensor]:
    inputs = torch.randn(2, positions, dim, dtype=torch.float64)
    return inputs, torch.randint(num_classes, (2, positions))


def as_arrays(softmax: SampledSoftmax) -> tuple[Array, Array]:
    return softmax.weight.detach().numpy(), softmax.bias.detach().numpy()


def full_loss(softmax: SampledSoftmax, hidden: Array, target: int) -> float:
    weight, bias = as_arrays(softmax)
    logits = weight @ hidden + bias
    return float(np.log(np.exp(logits).sum()) - logits[target])


def use_candidates(monkeypatch: pytest.MonkeyPatch, *drawn: Candidates) -> None:
    remaining = iter(drawn)
    monkeypatch.setattr(sampled_softmax, "draw_candidates", lambda *_: next(remaining))


def test_the_proposal_is_zipf_s_law() -> None:
    expected = [math.log((k + 2) / (k + 1)) / math.log(51) for k in range(50)]
    torch.testing.assert_close(log_uniform(50), torch.tensor(expected))
    assert float(log_uniform(800_000).double().sum()) == pytest.approx(1, abs=1e-5)


def test_candidates_are_distinct() -> None:
    ids, num_draws = draw_candidates(log_uniform(50), 25)
    assert len(set(ids.tolist())) == 25
    assert float(num_draws) >= 25


def test_draws_are_distributed_as_sequential_draws() -> None:
    num_classes, num_samples, trials = 50, 25, 4000
    drawn = [draw_candidates(log_uniform(num_classes), num_samples) for _ in range(trials)]
    chosen = torch.stack([ids for ids, _ in drawn])
    ours = np.bincount(chosen.flatten().numpy(), minlength=num_classes) / trials
    counts, theirs = _drawn_one_by_one(num_classes, num_samples, trials)
    noise = np.sqrt(ours * (1 - ours) * 2 / trials) + 1e-3
    assert (np.abs(ours - theirs) < 4.5 * noise).all()
    our_counts = np.array([float(num_draws) for _, num_draws in drawn])
    spread = counts.std() * math.sqrt(2 / trials)
    assert abs(our_counts.mean() - counts.mean()) < 4.5 * spread
    assert our_counts.std() == pytest.approx(counts.std(), rel=0.1)


def _drawn_one_by_one(num_classes: int, num_samples: int, trials: int) -> tuple[Array, Array]:
    """Draw by the inverse of the distribution, with rejection; return draws and frequencies."""
    generator = np.random.default_rng(5)
    num_draws, frequencies = np.zeros(trials), np.zeros(num_classes)
    for trial in range(trials):
        uniform = generator.random(40 * num_samples)
        ids = (np.exp(uniform * math.log(num_classes + 1)) - 1).astype(int)
        _, first = np.unique(ids, return_index=True)
        last = np.sort(first)[num_samples - 1]
        num_draws[trial] = last + 1
        frequencies[np.unique(ids[: last + 1])] += 1
    return num_draws, frequencies / trials


def test_classes_are_drawn_as_often_as_expected() -> None:
    probabilities, num_samples, trials = log_uniform(50), 25, 4000
    chosen, expected = torch.zeros(50), torch.zeros(50)
    for _ in range(trials):
        ids, num_draws = draw_candidates(probabilities, num_samples)
        chosen[ids] += 1
        expected += log_expected_count(probabilities, num_draws, num_samples).exp()
    # Q takes the number of draws as fixed, though it depends on them: drawing one by one with
    # NumPy shows the same differences, 0.016 for a class and 0.28 for the sum.
    assert float((chosen - expected).abs().max()) / trials < 0.03
    assert float(expected.sum()) / trials == pytest.approx(num_samples - 0.28, rel=0.005)


def test_the_expected_count_is_that_of_independent_draws() -> None:
    found = log_expected_count(log_uniform(50), torch.tensor(60.0), 25)
    expected = [
        math.log(1 - (1 - math.log((k + 2) / (k + 1)) / math.log(51)) ** 60) for k in range(50)
    ]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_expected_count_without_repeats_is_p_times_t() -> None:
    found = log_expected_count(log_uniform(50), torch.tensor(25.0), 25)
    torch.testing.assert_close(found, (25 * log_uniform(50)).log())


def test_candidates_follow_the_seed() -> None:
    torch.manual_seed(11)
    first_ids, first_draws = draw_candidates(log_uniform(100), 20)
    torch.manual_seed(11)
    again_ids, again_draws = draw_candidates(log_uniform(100), 20)
    assert first_ids.tolist() == again_ids.tolist()
    assert first_draws == again_draws


def test_vocabulary_barely_larger_than_the_sample_works() -> None:
    ids, num_draws = draw_candidates(log_uniform(2000), 1999)
    assert len(set(ids.tolist())) == 1999
    assert torch.isfinite(log_expected_count(log_uniform(2000), num_draws, 1999)).all()


@pytest.mark.usefixtures("each_code")
def test_the_sampled_loss_equals_its_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    softmax = softmax_of(9, 3)
    inputs, targets = some_input(9)
    drawn = [
        (torch.tensor([4, 0, 7]), torch.tensor(5.0)),
        (torch.tensor([8, 1, 2]), torch.tensor(3.0)),
    ]
    use_candidates(monkeypatch, *drawn)
    found = softmax(inputs, targets).detach().numpy()
    for group, candidates in enumerate(drawn):
        for position, hidden in enumerate(inputs[group].numpy()):
            target = int(targets[group, position])
            expected = _sampled_loss(softmax, hidden, target, candidates)
            assert found[group, position] == pytest.approx(expected, rel=1e-6)


def _sampled_loss(
    softmax: SampledSoftmax, hidden: Array, target: int, candidates: Candidates
) -> float:
    weight, bias = as_arrays(softmax)
    ids, num_draws = candidates[0].tolist(), int(candidates[1])

    def logit(k: int) -> float:
        probability = math.log((k + 2) / (k + 1)) / math.log(softmax.num_classes + 1)
        has_repeats = num_draws > len(ids)
        count = 1 - (1 - probability) ** num_draws if has_repeats else probability * num_draws
        return float(weight[k] @ hidden + bias[k] - math.log(count))

    others = [logit(k) for k in ids if k != target]
    return float(np.log(np.exp([logit(target), *others]).sum()) - logit(target))


@pytest.mark.usefixtures("each_code")
def test_all_classes_as_candidates_give_the_full_softmax(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    softmax = softmax_of(7, 6)
    everything = torch.arange(7), torch.tensor(1.0)
    use_candidates(monkeypatch, everything, everything)
    monkeypatch.setattr(
        sampled_softmax, "log_expected_count", lambda chosen, *_: torch.zeros_like(chosen)
    )
    inputs, targets = some_input(7)
    sampled = softmax(inputs, targets)
    torch.testing.assert_close(sampled, softmax.eval()(inputs, targets))


@pytest.mark.usefixtures("each_code")
def test_loss_is_zero_if_all_candidates_are_the_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    softmax = softmax_of(7, 1)
    hit = torch.tensor([2]), torch.tensor(1.0)
    use_candidates(monkeypatch, hit, hit)
    inputs, _ = some_input(7)
    loss = softmax(inputs, torch.full((2, 6), 2))
    loss.sum().backward()
    assert float(loss.detach().abs().max()) == 0
    assert softmax.weight.grad is not None
    assert torch.isfinite(softmax.weight.grad).all()


def test_each_group_draws_its_own_candidates() -> None:
    softmax = softmax_of(500, 5)
    inputs, _ = some_input(500, positions=1)
    same = inputs[:1].expand(2, 1, 4)
    losses = softmax(same, torch.zeros(2, 1, dtype=torch.long)).detach()
    assert float(losses[0, 0]) != float(losses[1, 0])


@pytest.mark.usefixtures("each_code")
def test_in_evaluation_the_loss_is_the_full_softmax() -> None:
    softmax = softmax_of(11, 3).eval()
    inputs, targets = some_input(11)
    expected = [
        [full_loss(softmax, hidden, int(target)) for hidden, target in zip(rows, own, strict=True)]
        for rows, own in zip(inputs.numpy(), targets, strict=True)
    ]
    torch.testing.assert_close(
        softmax(inputs, targets), torch.tensor(expected, dtype=torch.float64)
    )


def test_chunked_softmax_equals_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    softmax = softmax_of(11, None)
    inputs, targets = some_input(11)
    whole = softmax(inputs, targets)
    whole_gradient = torch.autograd.grad(whole.sum(), softmax.weight)[0]
    monkeypatch.setattr(sampled_softmax, "_MAX_LOGITS", 5 * 11)
    in_parts = softmax(inputs, targets)
    gradient = torch.autograd.grad(in_parts.sum(), softmax.weight)[0]
    torch.testing.assert_close(in_parts, whole)
    torch.testing.assert_close(gradient, whole_gradient)


@pytest.mark.parametrize("num_samples", [None, 11, 8192])
def test_training_uses_the_full_softmax_if_nothing_is_sampled(
    num_samples: int | None,
) -> None:
    softmax = softmax_of(11, num_samples)
    assert not softmax.is_sampling
    inputs, targets = some_input(11)
    trained = softmax(inputs, targets)
    torch.testing.assert_close(trained, softmax.eval()(inputs, targets))


@pytest.mark.usefixtures("each_code")
def test_a_batch_equals_its_positions_one_by_one() -> None:
    softmax = softmax_of(11, 3).eval()
    inputs, targets = some_input(11)
    alone = [softmax(inputs[:, [i]], targets[:, [i]]) for i in range(inputs.shape[1])]
    torch.testing.assert_close(softmax(inputs, targets), torch.cat(alone, dim=1))


@pytest.mark.usefixtures("each_code")
@pytest.mark.parametrize("num_samples", [3, None])
def test_gradients_reach_every_parameter_and_the_input(num_samples: int | None) -> None:
    softmax = softmax_of(11, num_samples)
    inputs, targets = some_input(11)
    softmax(inputs.requires_grad_(), targets).sum().backward()
    for held in (inputs, softmax.weight, softmax.bias):
        assert held.grad is not None
        assert held.grad.abs().sum() > 0


@pytest.mark.usefixtures("each_code")
def test_the_gradient_of_the_sampled_loss_is_numerically_right() -> None:
    softmax = softmax_of(6, 3)
    inputs, targets = some_input(6, positions=3)

    def loss(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        torch.manual_seed(1)
        parameters = {"weight": weight, "bias": bias}
        found: Tensor = torch.func.functional_call(softmax, parameters, (hidden, targets))
        return found

    assert torch.autograd.gradcheck(loss, (inputs.requires_grad_(), softmax.weight, softmax.bias))


def test_loss_of_half_precision_products_is_float32() -> None:
    softmax = SampledSoftmax(4, 50, 10)
    inputs, targets = some_input(50)
    with torch.autocast("cpu", torch.bfloat16):
        assert softmax(inputs.float(), targets).dtype == torch.float32
        assert softmax.eval()(inputs.float(), targets).dtype == torch.float32


def test_initial_parameters_follow_the_published_training() -> None:
    softmax = SampledSoftmax(64, 5000, 10)
    assert float(softmax.weight.detach().std()) == pytest.approx(1 / 8, rel=0.02)
    assert not softmax.bias.any()
    assert list(softmax.state_dict()) == ["weight", "bias"]
