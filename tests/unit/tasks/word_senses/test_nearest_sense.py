"""Word senses by the nearest mean vector, and whole runs that learn without gradients."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from elmo_framework import components
from elmo_framework.commands.main import main
from elmo_framework.config.parse import parse
from elmo_framework.data.data_loader import Rank
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment import load
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.train import build_trainer
from elmo_framework.metrics.word_senses import GoldSense, WordSenseScores
from elmo_framework.model.ensemble import Ensemble
from elmo_framework.model.model import Model
from elmo_framework.tasks.word_senses import (
    SemcorReader,
    SenseSentence,
    SenseTarget,
    WordSenseTask,
)
from elmo_framework.tasks.word_senses.nearest_sense import span_means
from elmo_framework.training.process_group import ProcessGroup
from tests.experiment import jobs  # noqa: F401  registers `signal_once`
from tests.unit.tasks.word_senses.data import (
    BANK,
    FIRST_OF_BANK,
    FIRST_OF_DUCK,
    HAPPEN,
    SHORE,
    TAKE,
    write_index,
    write_semcor,
    write_test_set,
)

components.load()
CPU = torch.device("cpu")
EMBEDDER = {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 4}}}


@pytest.fixture
def examples(tmp_path: Path) -> list[SenseSentence]:
    return list(SemcorReader().read(write_semcor(tmp_path)))


def trained(examples: list[SenseSentence], **changes: Any) -> tuple[Any, Any]:
    """Return a model that has read examples in batches of two, and its collator."""
    torch.manual_seed(3)
    task = WordSenseTask()
    vocabularies = Vocabularies(task.count(examples))
    raw = {"type": "nearest_sense", "embedder": EMBEDDER, **changes}
    model: Any = parse(Model, raw, source="test").build(vocabularies=vocabularies)
    collate = task.collator(vocabularies, model.indexers)
    model.train()
    for start in range(0, len(examples), 2):
        model(collate(examples[start : start + 2]))
    return model.eval(), collate


def predicted(model: Any, collate: Any, *targets: SenseTarget) -> list[str | None]:
    batch = collate([SenseSentence(("the", "bank", "took", "place"), targets)])
    (senses,) = model.predict(model(batch), batch)
    return list(senses)


def test_sense_vectors_are_means_over_the_training_data(examples: list[SenseSentence]) -> None:
    model, collate = trained(examples)
    vectors: dict[str, list[Any]] = {}
    for example in examples:
        words = model.embedder(collate([example]).text)[0].detach().numpy()
        for target in example.targets:
            for sense in target.senses or ():
                vector = words[target.start : target.end].mean(axis=0)
                vectors.setdefault(sense, []).append(vector)
    means = model.totals / model.counts[:, None]
    for sense, seen in vectors.items():
        row = means[senses_of(examples).index(sense)]
        np.testing.assert_allclose(row, np.mean(seen, axis=0), rtol=1e-5)
    assert len(vectors[SHORE]) == 2
    assert len(vectors[HAPPEN]) == 2  # alone, and next to another right sense


def senses_of(examples: list[SenseSentence]) -> list[str]:
    return list(Vocabularies(WordSenseTask().count(examples)).labels().items)


def test_nearest_sense_of_the_lemma_has_the_highest_cosine() -> None:
    words = ("w0", "w1", "w2", "w3", "w4", "w5")
    keys = [f"go%2:0{number}:00::" for number in range(5)]
    examples = [
        SenseSentence((word,), (SenseTarget(0, 1, "go", "VERB", (key,)),))
        for word, key in zip(words, keys, strict=False)
    ] + [SenseSentence(("w5",), (SenseTarget(0, 1, "run", "VERB", ("run%2:01:00::",)),))]
    model, collate = trained(examples)
    vectors = model.embedder(collate([SenseSentence(words, ())]).text)[0].numpy()
    lengths = np.linalg.norm(vectors, axis=1)
    cosines = vectors @ vectors.T / np.outer(lengths, lengths)
    for row in range(6):
        batch = collate([SenseSentence(words, (SenseTarget(row, row + 1, "go", "VERB"),))])
        ((sense,),) = model.predict(model(batch), batch)
        assert sense == keys[cosines[row, :5].argmax()]


def test_unseen_lemma_gets_the_first_sense_or_none(examples: list[SenseSentence]) -> None:
    model, collate = trained(examples)
    senses = predicted(
        model,
        collate,
        SenseTarget(1, 2, "duck", "NOUN", first_sense=FIRST_OF_DUCK),
        SenseTarget(1, 2, "duck", "NOUN"),
        SenseTarget(1, 2, "bank", "VERB", first_sense="bank%2:40:00::"),  # seen as a noun only
    )
    assert senses == [FIRST_OF_DUCK, None, "bank%2:40:00::"]


def test_baselines_do_not_look_at_the_sentence(examples: list[SenseSentence]) -> None:
    bank = SenseTarget(1, 2, "bank", "NOUN", first_sense=FIRST_OF_BANK)
    duck = SenseTarget(1, 2, "duck", "NOUN", first_sense=FIRST_OF_DUCK)
    assert predicted(*trained(examples, method="most_frequent"), bank, duck) == [
        SHORE,
        FIRST_OF_DUCK,
    ]
    assert predicted(*trained(examples, method="first"), bank, duck) == [
        FIRST_OF_BANK,
        FIRST_OF_DUCK,
    ]


def test_most_frequent_sense_wins_a_vote(examples: list[SenseSentence]) -> None:
    first, second = (trained(examples, method=method)[0] for method in ("first", "most_frequent"))
    vocabularies = Vocabularies(WordSenseTask().count(examples))
    heads = [first, second, second]
    ensemble = Ensemble(heads, [vocabularies] * 3, combination="vote", agreement="")
    targets = (
        SenseTarget(0, 1, "bank", "NOUN", first_sense=FIRST_OF_BANK),
        SenseTarget(1, 2, "duck", "NOUN"),
    )
    batch = ensemble.collator(vocabularies)([SenseSentence(("bank", "duck"), targets)])
    assert ensemble.predict(ensemble(batch), batch) == [(SHORE, None)]


@pytest.mark.parametrize("pos", ["noun", "n", "DET"])
def test_unknown_part_of_speech_is_refused(pos: str) -> None:
    target = {"start": 0, "end": 1, "lemma": "bank", "pos": pos}
    message = f"'pos' is '{pos}'; choose from ADJ, ADV, NOUN, VERB"
    with pytest.raises(DataError, match=message):
        WordSenseTask().example({"words": ["bank"], "targets": [target]}, WhitespaceTokenizer())


def test_lemma_of_several_words_has_underscores() -> None:
    target = {"start": 0, "end": 2, "lemma": "Take  place", "pos": "VERB"}
    inputs = {"words": ["took", "place"], "targets": [target]}
    (read,) = WordSenseTask().example(inputs, WhitespaceTokenizer()).targets
    assert read.lemma == "take_place"


def test_embedder_has_no_dropout_while_counting(examples: list[SenseSentence]) -> None:
    model, _ = trained(examples)
    model.train()
    assert model.training
    assert not any(module.training for module in model.embedder.modules())


def test_span_means_equal_a_loop() -> None:
    vectors = torch.randn(2, 5, 3)
    spans = torch.tensor([[0, 1, 4], [1, 0, 1], [1, 2, 5]])
    expected = torch.stack([vectors[row, start:end].mean(dim=0) for row, start, end in spans])
    torch.testing.assert_close(span_means(vectors, spans), expected)


def test_scores_follow_the_rules_of_the_framework() -> None:
    metric = WordSenseScores()
    gold = [
        GoldSense("NOUN", (BANK, SHORE)),  # one of several right senses
        GoldSense("NOUN", (BANK,)),  # wrong
        GoldSense("VERB", (TAKE,)),  # no answer
        GoldSense("VERB", (HAPPEN,)),
    ]
    scores = metric.score(metric.count([SHORE, SHORE, None, HAPPEN], gold))
    assert scores["precision-overall"] == pytest.approx(2 / 3)
    assert scores["recall-overall"] == pytest.approx(2 / 4)
    assert scores["f1-measure-overall"] == pytest.approx(2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2))
    assert scores["f1-measure-NOUN"] == pytest.approx(1 / 2)
    assert (scores["precision-VERB"], scores["recall-VERB"]) == (1.0, 0.5)
    assert metric.score({})["f1-measure-overall"] == 0.0


def config(folder: Path, **trainer: Any) -> dict[str, Any]:
    index = str(write_index(folder))
    return {
        "dataset_reader": {"type": "semcor", "sense_index": index},
        "validation_dataset_reader": {"type": "wsd", "sense_index": index},
        "train_data_path": str(write_semcor(folder)),
        "validation_data_path": str(write_test_set(folder)),
        "model": {"type": "nearest_sense", "embedder": EMBEDDER},
        "data_loader": {"batch_size": 1},
        "trainer": {
            "num_epochs": 1,
            "validation_metric": "+f1-measure-overall",
            "callbacks": [],
            **trainer,
        },
    }


def train(folder: Path, run: str, *flags: str, **trainer: Any) -> int:
    (folder / "config.json").write_text(json.dumps(config(folder, **trainer)))
    return main(["train", str(folder / "config.json"), "-s", str(folder / run), *flags])


def test_interrupted_counting_resumes_exactly(tmp_path: Path) -> None:
    assert train(tmp_path, "whole") == 0
    signal_once = {"type": "signal_once", "step": 2, "name": "SIGTERM"}
    assert train(tmp_path, "stopped", callbacks=[signal_once]) == 130
    assert train(tmp_path, "stopped", "--recover", callbacks=[signal_once]) == 0
    whole, stopped = (
        load_file(tmp_path / run / "weights.safetensors") for run in ("whole", "stopped")
    )
    assert whole.keys() == stopped.keys()
    assert all(torch.equal(whole[name], stopped[name]) for name in whole)
    assert whole["counts"].sum() == 6
    metrics = json.loads((tmp_path / "stopped/metrics.json").read_text())
    assert (metrics["training_steps"], metrics["num_trainable_parameters"]) == (5, 0)


def test_run_predicts_and_writes_sense_keys(tmp_path: Path) -> None:
    assert train(tmp_path, "run") == 0
    run, out = tmp_path / "run", tmp_path / "out.key.txt"
    flags = ["--predictions-file", str(out), "--predictions-format", "wsd"]
    assert main(["evaluate", str(run), str(tmp_path / "small.data.xml"), *flags]) == 0
    lines = out.read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["d0.s0.t0", "d0.s0.t1", "d0.s0.t2"]
    assert lines[1:] == [f"d0.s0.t1 {HAPPEN}", f"d0.s0.t2 {FIRST_OF_DUCK}"]
    target = {"start": 1, "end": 2, "lemma": "Take", "pos": "VERB"}
    (output,) = load(run).predict([{"words": ["they", "took"], "targets": [target]}])
    assert output["targets"][0]["sense"] in (TAKE, HAPPEN)


def test_a_second_epoch_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path, "run", num_epochs=2) == 2
    assert "trainer.num_epochs: a NearestSense reads the training data once" in (
        capsys.readouterr().err
    )


def test_counting_in_several_processes_is_refused(tmp_path: Path) -> None:
    experiment = parse(Experiment, config(tmp_path), source="test").build()
    assembly = Assembly.build(experiment, device=CPU, group=ProcessGroup(Rank(0, 2)))
    with pytest.raises(RunError, match="in one process"):
        build_trainer(assembly, evaluator=None)
