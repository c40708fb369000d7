"""The senses of nearest neighbors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework.commands.main import main
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment import load
from elmo_framework.metrics.word_senses import NeighborPurity
from elmo_framework.tasks.word_senses import LemmaReader
from elmo_framework.tasks.word_senses.neighbors import NeighborTask, neighborhoods


def write_corpus(folder: Path) -> Path:
    """Write a corpus with three senses of `bank` and two of `go`, and rare or ambiguous words."""
    counts = {"bank%1:14:00::": 4, "bank%1:17:00::": 3, "bank%1:17:01::": 2}
    counts |= {"go%2:38:00::": 3, "go%2:30:00::": 3, "duck%1:05:00::": 9, "go%1:01:00::": 3}
    lines = [
        {"tokens": [f"w{number}", sense.split("%")[0]], "senses": {"1": [sense]}}
        for sense, count in counts.items()
        for number in range(count)
    ]
    lines.append({"tokens": ["both", "bank"], "senses": {"1": ["bank%1:14:00::"] * 2}})
    path = folder / "semcor.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_lemmas_have_two_frequent_senses(tmp_path: Path) -> None:
    path = write_corpus(tmp_path)
    read = {each.lemma: each for each in LemmaReader(min_occurrences=3).read(path)}
    assert list(read) == ["bank NOUN", "go VERB"]
    senses = [sentence.targets[0].senses for sentence in read["bank NOUN"].sentences]
    assert senses == [("bank%1:14:00::",)] * 4 + [("bank%1:17:00::",)] * 3
    with pytest.raises(DataError, match="no lemma has two senses with 5 occurrences"):
        list(LemmaReader(min_occurrences=5).read(path))


def test_draw_of_lemmas_depends_on_the_seed_only(tmp_path: Path) -> None:
    path = write_corpus(tmp_path)

    def draw(seed: int) -> Any:
        reader = LemmaReader(num_lemmas=1, min_occurrences=3, max_occurrences=4, seed=seed)
        return list(reader.read(path))

    assert all(draw(seed) == draw(seed) for seed in range(4))
    assert {each.lemma for seed in range(9) for each in draw(seed)} == {"bank NOUN", "go VERB"}
    assert {len(each.sentences) for seed in range(9) for each in draw(seed)} == {4}


def test_neighborhoods_are_the_highest_cosines() -> None:
    generator = np.random.default_rng(1)
    vectors = generator.normal(size=(12, 5))
    lengths = np.linalg.norm(vectors, axis=1)
    cosines = vectors @ vectors.T / np.outer(lengths, lengths)
    for row, near in enumerate(neighborhoods(torch.tensor(vectors), 4)):
        others = sorted(set(range(12)) - {row}, key=lambda other: -cosines[row, other])
        assert set(near) == set(others[:4])
        assert list(near.values()) == pytest.approx([1 / 4] * 4)


def test_ties_share_the_places_that_are_left() -> None:
    vectors = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
    near = neighborhoods(vectors, 2)[0]
    assert near == pytest.approx({1: 1 / 2, 2: 1 / 6, 3: 1 / 6, 4: 1 / 6})
    assert neighborhoods(vectors, 10)[0] == pytest.approx(dict.fromkeys(range(1, 5), 1 / 4))


def test_vectors_without_context_have_the_purity_of_the_prior() -> None:
    metric, gold = NeighborPurity(), ["a", "a", "a", "b"]
    scores = metric.score(metric.count(neighborhoods(torch.ones(4, 3), 2), gold))
    prior = (3 * (2 / 3) + 0) / 4
    assert scores == pytest.approx({"purity": prior, "prior": prior})


def test_purity_is_a_mean_over_words() -> None:
    metric = NeighborPurity()
    pure = metric.count([{1: 1.0}, {0: 1.0}], ["a", "a"])
    mixed = metric.count([{1: 0.5, 2: 0.5}, {0: 1.0}, {0: 1.0}], ["a", "a", "b"])
    sums = {name: pure[name] + mixed[name] for name in pure}
    assert metric.score(sums)["purity"] == pytest.approx((1 + (0.5 + 1 + 0) / 3) / 2)
    assert metric.score(sums)["prior"] == pytest.approx((1 + (0.5 + 0.5 + 0) / 3) / 2)
    assert metric.score({}) == {"purity": 0.0, "prior": 0.0}


def test_span_out_of_range_is_an_error_of_its_occurrence() -> None:
    occurrences = [{"sentence": "the bank", "start": start, "end": start + 1} for start in (1, 2)]
    message = r"occurrences\[1\]: words 2 to 3 are out of range for 2 words"
    with pytest.raises(DataError, match=message):
        NeighborTask().example({"lemma": "bank", "occurrences": occurrences}, WhitespaceTokenizer())


def test_run_scores_and_predicts_neighbors(tmp_path: Path) -> None:
    path = str(write_corpus(tmp_path))
    config = {
        "dataset_reader": {"type": "semcor_lemmas", "min_occurrences": 3},
        "train_data_path": path,
        "validation_data_path": path,
        "model": {
            "type": "sense_neighbors",
            "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 3}}},
        },
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 1, "validation_metric": "+purity", "callbacks": []},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    run = tmp_path / "run"
    assert main(["train", str(tmp_path / "config.json"), "-s", str(run)]) == 0
    metrics = json.loads((run / "metrics.json").read_text())
    # The vector of a word does not depend on its sentence.
    assert metrics["best_validation_purity"] == pytest.approx(metrics["best_validation_prior"])
    assembly = load(run)
    assert assembly.score(path).terms.num_groups == 2  # lemmas
    for combination in ("mean", "vote"):
        with pytest.raises(RunError, match="several runs cannot be combined; leave out --ensemble"):
            load([run, run], combine=combination)
    occurrences = [
        {"sentence": "the bank", "start": 1, "end": 2},
        {"sentence": "a bank", "start": 1, "end": 2},
        {"sentence": "bank of bank", "start": 0, "end": 3},
    ]
    (output,) = assembly.predict([{"lemma": "bank", "occurrences": occurrences}])
    assert output["lemma"] == "bank"
    assert output["neighbors"][0][0] == 1
    with pytest.raises(DataError, match="two or more sentences"):
        assembly.predict([{"lemma": "bank", "occurrences": occurrences[:1]}])
