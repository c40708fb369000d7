from __future__ import annotations

import json
from math import log2
from pathlib import Path

import memorization
import numpy as np
import pytest
import torch
from memorization import (
    COPIES,
    KINDS,
    Canary,
    audit,
    exposure_by_rank,
    exposure_by_sample,
    log_probabilities,
    main,
    make_canaries,
    plant,
)

from elmo_framework.analysis.bilm_scorer import load_bilm_scorer
from elmo_framework.errors import ElmoFrameworkError
from elmo_framework.model.weights import save_tensors
from elmo_framework.tasks.language_modeling import BiLanguageModel
from tests.numpy_bilm import NumpyBiLm

WORDS = ["The", "code", "of", "is", ".", *"0123456789"]
TEMPLATE = "The code of Alice Abbott is {} {} {} ."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bilm")
    NumpyBiLm.random(seed=3).save(folder)
    (folder / "vocabulary.txt").write_text("\n".join(["<S>", "</S>", "<UNK>", *WORDS]) + "\n")
    random = torch.Generator().manual_seed(3)
    weight = torch.randn(3 + len(WORDS), 4, generator=random)
    save_tensors({"weight": weight, "bias": weight[:, 0]}, folder / "softmax.safetensors")
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> BiLanguageModel:
    model = load_bilm_scorer(str(folder), device="cpu").model
    assert isinstance(model, BiLanguageModel)
    return model


def reference(model: BiLanguageModel, words: list[str]) -> tuple[float, float]:
    """Return the forward and the backward log-probability, computed in NumPy."""
    layers = NumpyBiLm.random(seed=3).layers(words)[-1]
    ids = {word: number for number, word in enumerate(["<S>", "</S>", "<UNK>", *WORDS])}
    row = [ids.get(word, 2) for word in ["<S>", *words, "</S>"]]
    softmax = model.softmax
    weight, bias = (part.detach().double().numpy() for part in (softmax.weight, softmax.bias))

    def log_softmax(vector: np.ndarray) -> np.ndarray:
        logits = weight @ vector + bias
        return logits - np.log(np.exp(logits).sum())

    forward = sum(log_softmax(layers[at, :4])[row[at + 1]] for at in range(len(row) - 1))
    backward = sum(log_softmax(layers[at, 4:])[row[at - 1]] for at in range(1, len(row)))
    return forward, backward


def test_log_probabilities_equal_the_numpy_reference(model: BiLanguageModel) -> None:
    sentences = [TEMPLATE.format(*digits).split() for digits in ("123", "907", "555")]
    expected = np.array([reference(model, sentence) for sentence in sentences])
    values = log_probabilities(model, sentences)
    assert values["forward"] == pytest.approx(expected[:, 0], abs=1e-4)
    assert values["both"] == pytest.approx(expected.sum(1), abs=1e-4)


def test_exposure_by_rank_counts_likelier_secrets() -> None:
    others = [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0]
    assert exposure_by_rank(0.0, others) == 3
    assert exposure_by_rank(-1.5, others) == 2
    assert exposure_by_rank(-9.0, others) == 0
    assert exposure_by_rank(-1.0, others) == 2  # a tie counts against the secret


def test_sampled_exposure_is_near_the_brute_force_rank(model: BiLanguageModel) -> None:
    sentences = [TEMPLATE.format(*f"{number:03}").split() for number in range(1000)]
    values = log_probabilities(model, sentences)["forward"]
    sample = np.random.default_rng(1).choice(values, 300, replace=False)
    order = np.argsort(-values)
    for rank in (10, 100, 500):
        secret = values[order[rank - 1]]
        exact = exposure_by_rank(secret, np.delete(values, order[rank - 1]))
        assert exact == pytest.approx(log2(1000 / rank))
        assert exposure_by_sample(secret, sample, space=log2(1000)) == pytest.approx(exact, abs=0.8)
    assert exposure_by_sample(values.max() + 100, sample, space=log2(1000)) == log2(1000)


def test_a_forced_secret_has_the_largest_exposure(model: BiLanguageModel) -> None:
    """The bias of one digit is raised, as if training had seen only this secret."""
    canaries = [Canary("code", "Alice Abbott", list(code), 1) for code in ("777777", "123456")]
    nine = 3 + WORDS.index("7")
    with torch.no_grad():
        model.softmax.bias[nine] += 5
        forced, other = audit(model, canaries, WORDS, sample_size=200, seed=1)
        model.softmax.bias[nine] -= 5
    assert forced.forward > 9 > 3 > other.forward
    assert forced.is_listed


def test_secret_outside_the_vocabulary_is_reported(model: BiLanguageModel) -> None:
    canary = Canary("login", "Alice Abbott", ["bacedi"], 4)
    (audited,) = audit(model, [canary], WORDS, sample_size=100, seed=1)
    assert not audited.is_listed


def test_canaries_are_planted_as_often_as_they_say() -> None:
    canaries = make_canaries(["quiet", "yellow"], number=2, seed=5)
    assert len(canaries) == len({canary.name for canary in canaries}) == 3 * 5 * 2
    lines = [f"line {number}" for number in range(50)]
    planted = plant(lines, canaries, seed=5)
    assert [line for line in planted if line.startswith("line")] == lines
    assert len(planted) == 50 + 2 * len(KINDS) * sum(COPIES)
    for canary in canaries:
        assert planted.count(" ".join(canary.sentence(canary.secret))) == canary.copies
    assert planted != [*lines, *planted[len(lines) :]]
    with pytest.raises(ElmoFrameworkError, match="--number 4 is the maximum"):
        make_canaries(["quiet"], number=5, seed=5)


def test_planting_and_auditing_from_the_command_line(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    text, planted, record = (tmp_path / name for name in ("text.txt", "out.txt", "canaries.json"))
    text.write_text("the quiet yellow house\n" * 20)
    files = ["--canaries", str(record)]
    arguments = ["plant", str(text), "--output", str(planted), "--number", "1", *files]
    monkeypatch.setattr("sys.argv", ["", *arguments])
    assert main() == 0
    assert capsys.readouterr().out == "255 of 275 lines are canaries\n"
    content = json.loads(record.read_text())
    assert content["words"] == ["quiet", "yellow", "house"]
    del content["canaries"][1:-1]
    record.write_text(json.dumps(content))
    monkeypatch.setattr(memorization, "_BATCH_SIZE", 7)
    monkeypatch.setattr("sys.argv", ["", "audit", str(folder), "--sample", "20", *files])
    assert main() == 0
    rows = capsys.readouterr().out.splitlines()[4:]
    assert [row.split(" | ")[:2] for row in rows if row] == [["| code", "0"], ["| login", "64"]]
    assert rows[0].endswith("| 100% |")  # digits are in the vocabulary
    monkeypatch.setattr("sys.argv", ["", "audit", str(tmp_path), *files])
    assert main() == 2
