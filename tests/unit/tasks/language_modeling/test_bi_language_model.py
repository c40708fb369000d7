from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor

from elmo_framework.bilm.context_layers import Direction
from elmo_framework.bilm.files.load import bilm_files, read_bilm
from elmo_framework.config.parse import parse
from elmo_framework.data.data_loader import BatchSource, SourceContext
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError, RunError
from elmo_framework.model.model import Model
from elmo_framework.model.weights import save_tensors
from elmo_framework.tasks.language_modeling.batch import Window, WindowBatch
from elmo_framework.tasks.language_modeling.bi_language_model import BiLanguageModel
from elmo_framework.tasks.language_modeling.windows import WindowLoader
from tests.unit.tasks.language_modeling.toy import BEGIN, END, examples

Array = NDArray[np.float64]

TEXT = ["the cat sat on the mat", "a dog ran", "the dog sat", "rain fell on a roof all night"]
DIRECTIONS: list[Direction] = ["forward", "backward"]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def model_of(*, weights_follow: bool | None = None, **keys: Any) -> BiLanguageModel:
    raw = {
        "type": "bilm",
        "token_encoder": {"embedding_dim": 4, "filters": [[1, 8], [2, 8]], "num_highway": 1}
        | {"type": "char_cnn", "projection_dim": 6, "max_characters_per_token": 10},
        "context_layers": {"type": "elmo_lstm", "cell_size": 8, "projection_dim": 6},
        "dropout": 0.0,
        "num_samples": None,
    }
    lazy = parse(Model, {**raw, **keys}, source="test.jsonnet")
    given = {} if weights_follow is None else {"weights_follow": weights_follow}
    built = lazy.build(vocabularies=vocabularies(), **given)
    assert isinstance(built, BiLanguageModel)
    return built.double()


def vocabularies() -> Vocabularies:
    return Vocabularies(BiLanguageModel.task.count(examples(TEXT)))


def source_of(
    model: BiLanguageModel,
    batch_size: int,
    unroll_steps: int,
    *,
    is_training: bool = True,
    text: Sequence[str] = TEXT,
) -> BatchSource[WindowBatch]:
    context = SourceContext(
        collate=model.task.collator(vocabularies(), model.indexers),
        num_tokens=model.task.num_tokens,
        seed=1,
        is_training=is_training,
    )
    loader = WindowLoader(batch_size=batch_size, unroll_steps=unroll_steps)
    return loader.source(examples(text), context)


def endless(source: BatchSource[WindowBatch]) -> Iterator[WindowBatch]:
    while True:
        yield from source.batches()


def scores_of(model: BiLanguageModel, batch_size: int, unroll_steps: int) -> dict[str, float]:
    sums: Counter[str] = Counter()
    source = source_of(model, batch_size, unroll_steps, is_training=False)
    model.eval()
    with torch.no_grad(), model.fresh_state():
        for batch in source.batches():
            sums.update(model.sums(model(batch), batch))
    return model.scores(sums)


def one_long_row(direction: Direction) -> list[str]:
    """Return what a single row reads: the whole text, near boundaries only, and the last far."""
    step, near = (1, BEGIN) if direction == "forward" else (-1, END)
    return [word for sentence in TEXT for word in [near, *sentence.split()[::step]]]


def negative_log_likelihoods(model: BiLanguageModel, direction: Direction) -> Array:
    """Return those of the whole text as one row, read at once, by NumPy's softmax."""
    characters, targets = model.indexers
    words = one_long_row(direction)
    near, far = (BEGIN, END) if direction == "forward" else (END, BEGIN)
    predicted = [far if word == near else word for word in [*words[1:], near]]
    with torch.no_grad():
        vectors = model.bilm.token_encoder(torch.from_numpy(characters.ids(words)))
        mask = torch.ones(1, len(words), dtype=torch.bool)
        reading = model.bilm.context_layers.read(vectors[None], mask, direction=direction)
    weight, bias = (p.detach().numpy() for p in model.softmax.parameters())
    logits = reading.layers[-1, 0].numpy() @ weight.T + bias
    own = logits[np.arange(len(words)), targets.ids(predicted)]
    losses: Array = np.log(np.exp(logits).sum(axis=1)) - own
    return losses


def unknown_word_rate(model: BiLanguageModel) -> float:
    _, targets = model.indexers
    words = [word for sentence in TEXT for word in sentence.split()]
    return float(np.mean(targets.ids(words) == targets.ids(["<UNK>"])))


@pytest.mark.parametrize("unroll_steps", [1, 3, 7, 100])
def test_perplexity_equals_brute_force_over_the_text(unroll_steps: int) -> None:
    model = model_of()
    forward, backward = (negative_log_likelihoods(model, held).mean() for held in DIRECTIONS)
    assert scores_of(model, 1, unroll_steps) == pytest.approx(
        {
            "loss": (forward + backward) / 2,
            "perplexity": np.sqrt(np.exp(forward) * np.exp(backward)),
            "forward_perplexity": np.exp(forward),
            "backward_perplexity": np.exp(backward),
            "num_predictions": sum(len(sentence.split()) + 1 for sentence in TEXT),
            "unknown_word_rate": unknown_word_rate(model),
        }
    )


def test_loss_is_mean_over_positions_times_steps() -> None:
    model = model_of().train()
    batch = next(source_of(model, 1, 5).batches())
    output = model(batch)
    means = output.sums / 5
    assert float(output.loss.detach()) == pytest.approx(5 * float(means.mean()))
    assert output.loss.requires_grad
    assert not output.sums.requires_grad


def test_padding_changes_nothing() -> None:
    model = model_of().eval()
    batches = list(source_of(model, 2, 8, is_training=False).batches())
    assert not batches[-1].forward.mask.all()
    plain = [model(batch).sums for batch in batches]
    model.load_carried_state({})
    disturbed = [model(_disturbed(batch)).sums for batch in batches]
    torch.testing.assert_close(torch.stack(disturbed), torch.stack(plain))


def _disturbed(batch: WindowBatch) -> WindowBatch:
    """Write other words and targets where the mask is false."""

    def disturbed(window: Window) -> Window:
        words = torch.where(window.mask, window.words, len(batch.distinct) - 1)
        targets = torch.where(window.mask, window.targets, 3)
        return replace(window, words=words, targets=targets)

    return replace(batch, forward=disturbed(batch.forward), backward=disturbed(batch.backward))


def test_a_batch_equals_its_rows_one_by_one() -> None:
    model = model_of().eval()
    batches = list(source_of(model, 3, 4, is_training=False).batches())
    joint = torch.stack([model(batch).sums for batch in batches]).sum(0)
    alone = torch.zeros(2, dtype=torch.float64)
    for row in range(3):
        model.load_carried_state({})
        for batch in batches:
            alone += model(_only_row(batch, row)).sums
    torch.testing.assert_close(alone, joint)


def _only_row(batch: WindowBatch, row: int) -> WindowBatch:
    def only(window: Window) -> Window:
        return Window(
            *(tensor[[row]] for tensor in (window.words, window.targets, window.is_word)),
            lengths=window.lengths[[row]],
        )

    return replace(batch, forward=only(batch.forward), backward=only(batch.backward))


@pytest.mark.parametrize("num_samples", [None, 5])
def test_gradients_reach_every_parameter(num_samples: int | None) -> None:
    model = model_of(num_samples=num_samples).train()
    batch = next(source_of(model, 2, 8).batches())
    model(batch).loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_parameters_are_the_bilm_and_one_softmax() -> None:
    names = [name for name, _ in model_of().named_parameters()]
    assert {name.partition(".")[0] for name in names} == {"bilm", "softmax"}
    assert [name for name in names if name.startswith("softmax")] == [
        "softmax.weight",
        "softmax.bias",
    ]


def test_encoder_layers_are_all_but_the_softmax() -> None:
    model = model_of()
    (layers,) = model.encoder_layers()
    assert len(layers) == model.bilm.num_layers
    assert layers[0] == list(model.bilm.token_encoder.parameters())
    assert {id(parameter) for layer in layers for parameter in layer} == {
        id(parameter) for parameter in model.bilm.parameters()
    }


def test_state_is_carried_between_batches_without_gradient() -> None:
    model = model_of().train()
    first, second = list(endless_slice(model, 2))
    alone = model(second).sums
    model.load_carried_state({})
    model(first)
    carried = model.carried_state()
    assert not any(tensor.requires_grad for tensor in carried.values())
    assert sorted(carried)[:2] == ["backward.0", "backward.1"]
    assert not torch.equal(model(second).sums, alone)


def endless_slice(model: BiLanguageModel, count: int) -> Iterator[WindowBatch]:
    batches = endless(source_of(model, 2, 4))
    return (next(batches) for _ in range(count))


def test_a_resumed_model_computes_the_same_bits() -> None:
    model = model_of().train()
    first, second = list(endless_slice(model, 2))
    model(first)
    state = {name: tensor.clone() for name, tensor in reversed(model.carried_state().items())}
    resumed = model_of().train()
    resumed.load_state_dict(model.state_dict())
    resumed.load_carried_state(state)
    assert torch.equal(resumed(second).sums, model(second).sums)


def test_evaluation_restores_the_carried_state() -> None:
    model = model_of().train()
    model(next(source_of(model, 2, 4).batches()))
    before = model.carried_state()
    first = scores_of(model, 3, 4)
    assert scores_of(model, 3, 4) == first
    after = model.carried_state()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_sampled_loss_is_not_called_perplexity() -> None:
    model = model_of(num_samples=5).train()
    batch = next(source_of(model, 2, 4).batches())
    output = model(batch)
    found = model.scores(model.sums(output, batch))
    assert found == {"sampled_loss": pytest.approx(float(output.loss.detach()) / 4)}
    model.eval()
    assert "perplexity" in model.scores(model.sums(model(batch), batch))


def test_softmax_too_small_to_sample_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model_of(num_samples=15)
    assert not caplog.text
    model_of(num_samples=16, weights_follow=True)
    assert not caplog.text
    model_of(num_samples=16)
    assert "num_samples is 16, and there are 16 words: training takes the full soft" in caplog.text


def test_dropout_precedes_the_softmax_in_training_only() -> None:
    model = model_of(dropout=0.5)
    batch = next(source_of(model, 2, 4).batches())

    def sums() -> Tensor:
        model.load_carried_state({})
        found: Tensor = model(batch).sums
        return found

    model.train()
    assert not torch.equal(sums(), sums())
    model.eval()
    assert torch.equal(sums(), sums())


def test_vocabulary_options_limit_the_softmax() -> None:
    assert model_of().softmax.num_classes == 3 + 13
    assert model_of(min_count=2).softmax.num_classes == 3 + 5
    assert model_of(max_vocabulary_size=4).softmax.num_classes == 3 + 4


def test_sampled_softmax_memorizes_a_sentence() -> None:
    model = model_of(num_samples=12).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    batches = endless(source_of(model, 2, 4, text=TEXT[-1:]))
    for _ in range(120):
        optimizer.zero_grad()
        model(next(batches)).loss.backward()
        optimizer.step()
    # With the state that training has reached: it never sees the zero state again after its
    # first batch, so an evaluation from zeros would judge what was not learned.
    batch = next(batches)
    scores = model.scores(model.sums(model.eval()(batch), batch))
    assert scores["forward_perplexity"] < 1.1
    assert scores["backward_perplexity"] < 1.1


def test_a_finished_run_leaves_the_bilm_and_its_softmax(tmp_path: Path) -> None:
    model = model_of().float()
    model.save_extras(tmp_path)
    loaded = read_bilm(bilm_files(tmp_path)).state_dict()
    for name, tensor in model.bilm.state_dict().items():
        assert torch.equal(loaded[name], tensor), name
    lines = (tmp_path / "bilm" / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    assert lines[:5] == ["<S>", "</S>", "<UNK>", "the", "a"]
    assert len(lines) == model.softmax.num_classes + 1
    weights = load_file(tmp_path / "bilm" / "softmax.safetensors")
    assert torch.equal(weights["weight"], model.softmax.weight)
    assert torch.equal(weights["bias"], model.softmax.bias)


def test_the_softmax_has_the_width_of_one_direction() -> None:
    assert model_of().softmax.weight.shape == (16, 6)


def test_rows_reset_at_the_configured_rate() -> None:
    never, always = (model_of(state_reset_rate=rate) for rate in (0.0, 1.0))
    always.load_state_dict(never.state_dict())
    first, second = list(source_of(never, 2, 4).batches())[:2]
    fresh = always(second).loss.item()
    always(first)
    assert always(second).loss.item() == fresh
    never(first)
    assert never(second).loss.item() != fresh


def test_state_reset_rate_zeroes_some_rows() -> None:
    model = model_of(state_reset_rate=0.25)
    model.load_carried_state({f"forward.{n}": torch.ones(4000, 6 + n % 2 * 2) for n in range(4)})
    state = model._start("forward")
    assert state is not None
    is_kept = state[0].any(dim=1)
    assert 0.72 < is_kept.double().mean() < 0.78
    assert all(tensor.any(dim=1).equal(is_kept) for tensor in state)
    model.eval()
    assert model._start("forward") is model._states["forward"]


def test_clip_rates_are_those_of_both_directions() -> None:
    model = model_of()
    assert "clip_rate.cell_1" not in model.monitored_values()
    model(next(iter(source_of(model, 2, 4).batches())))
    for name, state in model.carried_state().items():
        value = 3.0 if name.startswith("forward") else 0.0
        state.fill_(value)
    rates = {
        name: rate
        for name, rate in model.monitored_values().items()
        if name.startswith("clip_rate.")
    }
    assert rates
    assert set(rates.values()) == {0.5}


def test_mixed_precision_changes_the_losses_a_little() -> None:
    model = model_of(num_samples=None).float()
    batch = next(source_of(model, 2, 8).batches())
    for is_training in (True, False):
        model.train(is_training).load_carried_state({})
        with torch.set_grad_enabled(is_training):
            exact = model(batch).sums
            model.load_carried_state({})
            with torch.autocast("cpu", torch.bfloat16):
                mixed = model(batch)
        assert mixed.loss.dtype == torch.float32
        torch.testing.assert_close(mixed.sums, exact, rtol=0.02, atol=0.0)


def test_model_continues_from_files_of_another(tmp_path: Path) -> None:
    model = model_of().float()
    model.save_extras(tmp_path)
    other = model_of(dropout=0.3).float()
    other.load_files(bilm_files(tmp_path))
    assert all(held.equal(model.state_dict()[name]) for name, held in other.state_dict().items())


def test_missing_softmax_file_is_reinitialized(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = model_of().float()
    model.save_extras(tmp_path)
    (tmp_path / "bilm/softmax.safetensors").unlink()
    other = model_of().float()
    own = other.softmax.weight.detach().clone()
    other.load_files(bilm_files(tmp_path))
    assert other.softmax.weight.equal(own)
    assert "no softmax.safetensors next to it: the softmax is initialized" in caplog.text


def test_files_of_another_model_are_refused(tmp_path: Path) -> None:
    model_of().float().save_extras(tmp_path)
    layers = {"type": "elmo_lstm", "cell_size": 9, "projection_dim": 6, "cell_clip": None}
    with pytest.raises(RunError) as caught:
        model_of(context_layers=layers).load_files(bilm_files(tmp_path))
    assert str(caught.value).endswith(
        "options.json: this is another biLM: context_layers.cell_clip is 3.0 there, and None here; "
        "context_layers.cell_size is 8 there, and 9 here"
    )
    with pytest.raises(RunError) as caught:
        model_of(max_vocabulary_size=4).load_files(bilm_files(tmp_path))
    assert str(caught.value) == (
        f"{tmp_path / 'bilm/softmax.safetensors'}: its 16 words, listed in vocabulary.txt next to "
        "it, are not the 7 of this model, which model.max_vocabulary_size has cut; set it to null"
    )


def test_softmax_over_other_words_is_refused(tmp_path: Path) -> None:
    model_of().float().save_extras(tmp_path)
    listed = tmp_path / "bilm/vocabulary.txt"
    lines = listed.read_text().splitlines()
    listed.write_text("\n".join([*lines[:3], lines[4], lines[3], *lines[5:]]) + "\n")
    with pytest.raises(RunError, match=r"its 16 words, .* are not the 16 of this model"):
        model_of().load_files(bilm_files(tmp_path))


def test_softmax_without_a_vocabulary_is_refused(tmp_path: Path) -> None:
    model_of().float().save_extras(tmp_path)
    (tmp_path / "bilm/vocabulary.txt").unlink()
    with pytest.raises(DataError, match=r"vocabulary\.txt"):
        model_of().load_files(bilm_files(tmp_path))


@pytest.mark.parametrize("shape", [(16, 6), (15, 6)])
def test_a_damaged_softmax_is_refused(shape: tuple[int, int], tmp_path: Path) -> None:
    model = model_of().float()
    model.save_extras(tmp_path)
    save_tensors({"weight": torch.zeros(shape)}, tmp_path / "bilm/softmax.safetensors")
    with pytest.raises(RunError, match=r"softmax\.safetensors: no softmax of this model: "):
        model.load_files(bilm_files(tmp_path))
    (tmp_path / "bilm/softmax.safetensors").write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"softmax\.safetensors: no tensors can be read"):
        model.load_files(bilm_files(tmp_path))
