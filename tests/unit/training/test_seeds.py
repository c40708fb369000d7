from typing import Any

import pytest
import torch

from elmo_framework.training.seeds import generator_states, load_generator_states


def _creates_a_context() -> Any:
    pytest.fail("reading the state of a GPU's generator creates a CUDA context")


def test_states_of_a_cpu_run_leave_the_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_rng_state", _creates_a_context)
    assert generator_states()["cuda"] is None


def test_states_of_a_gpu_run_include_its_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    state = torch.arange(16, dtype=torch.uint8)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda: state)
    assert torch.equal(generator_states()["cuda"], state)


def test_a_cpu_run_resumes_from_states_of_a_gpu_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda _: _creates_a_context())
    load_generator_states({**generator_states(), "cuda": torch.arange(16, dtype=torch.uint8)})


def test_a_gpu_run_resumes_with_the_state_of_its_generator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = {**generator_states(), "cuda": torch.arange(16, dtype=torch.uint8)}
    loaded = list[torch.Tensor]()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_rng_state", loaded.append)
    load_generator_states(states)
    assert loaded == [states["cuda"]]
