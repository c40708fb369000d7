"""The parser, from its shipped configs to predictions."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch

from elmo_framework.commands.main import main
from elmo_framework.config.introspect import schema
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import ElmoFrameworkError
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.layers.bilm_source import FrozenBiLm
from elmo_framework.model.head import Head
from tests.experiment.jobs import train
from tests.experiment.task_check import check_recovery, check_task
from tests.plugins.ud_parser.conftest import ROOT, SENTENCES

SCORES = {"loss", "UPOS", "UFeats", "Lemmas", "UAS", "LAS", "CLAS", "MLAS", "BLEX"}
CONFIGS = "plugins/ud_parser"
WORDS = "model.embedder.token_embedders.tokens"
CHARACTERS = "model.embedder.token_embedders.token_characters"
SMALL: dict[str, Any] = {
    "train_data_path": str(SENTENCES),
    "validation_data_path": str(SENTENCES),
    f"{WORDS}.embedding_dim": 16,
    f"{CHARACTERS}.embedding.embedding_dim": 8,
    f"{CHARACTERS}.encoder.num_filters": 8,
    "model.encoder.hidden_size": 24,
    "model.encoder.num_layers": 1,
    "model.encoder.dropout": 0.0,
    "model.arc_representation_dim": 24,
    "model.tag_representation_dim": 12,
    "model.dropout": 0.0,
    "model.input_dropout": 0.0,
    "data_loader.batch_size": 4,
    "trainer.num_epochs": 25,
    "trainer.patience": None,
    "trainer.optimizer.lr": 0.03,
}
SHORT = {**SMALL, "trainer.num_epochs": 3}
INPUTS = ["The dogs barked loudly .", {"tokens": ["Ann", "reads", "books"]}]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parser") / "run"


@pytest.fixture(scope="module")
def run(directory: Path) -> Assembly:
    """A run of the baseline, which has passed the checks of every task."""
    return check_task(f"{CONFIGS}/baseline.jsonnet", directory, SMALL, inputs=INPUTS)


def test_training_data_is_learned_and_every_score_reported(run: Assembly) -> None:
    scores = run.evaluate(SENTENCES)
    assert scores.keys() == SCORES
    assert {name for name, score in scores.items() if name != "loss" and score < 1} == set()


def test_prediction_has_the_columns_of_conllu(run: Assembly) -> None:
    prediction, _ = run.predict(INPUTS)
    assert prediction == {
        "words": ["The", "dogs", "barked", "loudly", "."],
        "lemma": ["the", "dog", "bark", "loudly", "."],
        "upos": ["DET", "NOUN", "VERB", "ADV", "PUNCT"],
        "feats": [
            "Definite=Def|PronType=Art",
            "Number=Plur",
            "Mood=Ind|Tense=Past|VerbForm=Fin",
            "_",
            "_",
        ],
        "head": [2, 3, 0, 3, 3],
        "deprel": ["det", "nsubj", "root", "advmod", "punct"],
    }


def test_predicted_conllu_is_the_file_it_was_trained_on(
    run: Assembly, directory: Path, tmp_path: Path
) -> None:
    output = tmp_path / "predicted.conllu"
    flags = ["--predictions-format", "conllu", "--output-file", str(output), "--device", "cpu"]
    assert main(["predict", str(directory), str(SENTENCES), *flags]) == 0
    lines = SENTENCES.read_text().splitlines(keepends=True)
    assert output.read_text() == "".join(line for line in lines if not line.startswith("5.1"))


def test_padding_changes_nothing(run: Assembly) -> None:
    sentences = list(run.experiment.dataset_reader.read(SENTENCES))
    model = run.head().eval()
    collate = model.collator(run.vocabularies)
    together = model(collate(sentences))
    for index, sentence in enumerate(sentences):
        alone, length = model(collate([sentence])), len(sentence.words)
        for name, size in {"arcs": length + 1, "upos": None, "feats": None, "lemmas": None}.items():
            expected = getattr(together, name)[index, :length, :size]
            assert getattr(alone, name)[0].allclose(expected, atol=1e-5)
        assert alone.example_losses[0].allclose(together.example_losses[index], atol=1e-5)


def test_labels_unseen_in_training_count_for_scores_only(run: Assembly) -> None:
    sentence = next(iter(run.experiment.dataset_reader.read(SENTENCES)))
    unseen = replace(sentence.parse, feats=("New=Yes",) * 5, lemmas=("unheard",) * 5)
    model = run.head().eval()
    collate = model.collator(run.vocabularies)
    batch = collate([replace(sentence, parse=unseen)])
    assert (batch.targets.feats == -100).all()
    assert (batch.targets.lemmas == -100).all()
    output = model(batch)
    assert output.loss.item() < model(collate([sentence])).loss.item()
    (sums,) = model.terms(model.predict(output, batch), output, batch)
    assert sums["conll2018/Lemmas"] == 0
    assert sums["conll2018/LAS"] == 5


def test_only_the_root_has_the_relation_root(run: Assembly) -> None:
    words = ["zzz", "qqq", "Dogs", "the", "of"] * 6
    for prediction in run.predict([{"tokens": words[:length]} for length in (1, 2, 7, 30)]):
        roots = [head == 0 for head in prediction["head"]]
        assert roots == [relation == "root" for relation in prediction["deprel"]]
        assert sum(roots) == 1


def test_elmo_trains_with_a_mix_for_each_task_and_one_pass(
    bilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = ["embedder.token_embedders.elmo"]
    places += [f"output_embedders.{task}" for task in ("tree", "upos", "feats", "lemmas")]
    changes = {**SHORT, **{f"model.{place}.cache": "none" for place in places}}
    run = check_task(f"{CONFIGS}/elmo.jsonnet", tmp_path / "run", changes, inputs=INPUTS, bilm=bilm)
    model = run.head()
    assert len({id(model.get_submodule(f"{place}.mix")) for place in places}) == 5
    passes, compute = [], FrozenBiLm.compute

    def counted(self: FrozenBiLm, *arguments: Any) -> Any:
        passes.append(arguments)
        return compute(self, *arguments)

    monkeypatch.setattr(FrozenBiLm, "compute", counted)
    model(model.collator(run.vocabularies)(list(run.experiment.dataset_reader.read(SENTENCES))))
    assert len(passes) == 1


def test_training_resumes_after_an_interruption(tmp_path: Path) -> None:
    changes = {**SHORT, "trainer.num_epochs": 2, "data_loader.batch_size": 2}
    check_recovery(f"{CONFIGS}/baseline.jsonnet", tmp_path, changes)


def test_training_in_bfloat16_scores_predictions(tmp_path: Path) -> None:
    changes = {**SHORT, "trainer.num_epochs": 1, "trainer.precision": "bfloat16"}
    assert train(f"{CONFIGS}/baseline.jsonnet", tmp_path / "run", changes) == 0
    assert "best_validation_LAS" in json.loads((tmp_path / "run/metrics.json").read_text())


def test_runs_can_be_compared(
    run: Assembly, directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = [part for key, value in SHORT.items() for part in ("-o", f"{key}={json.dumps(value)}")]
    train = ["train", f"{CONFIGS}/baseline.jsonnet", "-s", str(tmp_path / "short"), *short]
    assert main([*train, "-o", "trainer.device=cpu", "-o", "trainer.num_epochs=1"]) == 0
    capsys.readouterr()
    runs = [str(directory), "--to", str(tmp_path / "short"), "--metric", "LAS", "--metric", "MLAS"]
    assert main(["compare", *runs, "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {"LAS", "MLAS"} <= {line.split()[0] for line in lines if line}


def test_unknown_task_of_an_output_embedder_is_an_error() -> None:
    raw = Config.load(f"{CONFIGS}/baseline.jsonnet").raw["model"]
    raw["output_embedders"] = {"lemma": {"type": "embedding", "embedding_dim": 4}}
    lazy = parse(Head, raw, source="test")
    with pytest.raises(ElmoFrameworkError, match="unknown task 'lemma'; choose from tree, upos"):
        lazy.build(vocabularies=Vocabularies({"words": {}, "upos": {"X": 1}}))


@pytest.mark.parametrize("name", ["baseline.jsonnet", "elmo.jsonnet"])
def test_its_configs_fit_the_schema(name: str) -> None:
    validator = jsonschema.Draft202012Validator(schema(Experiment))
    raw = Config.load(f"{CONFIGS}/{name}").raw
    assert [error.message for error in validator.iter_errors(raw)] == []


def test_scores_of_arcs_and_labels_equal_loops() -> None:
    from plugins.ud_parser.biaffine import ArcScorer, LabelScorer

    generator = torch.Generator().manual_seed(0)
    words, heads = (
        torch.randn(2, 3, 4, generator=generator),
        torch.randn(2, 5, 4, generator=generator),
    )
    arcs, labels = ArcScorer(4), LabelScorer(4, 6)
    for module in (arcs, labels):
        torch.nn.init.normal_(module.weight, generator=generator)
    scores, label_scores = arcs(words, heads), labels(words, heads[:, :3])
    matrix, bias = arcs.weight[:4], arcs.weight[4]
    by_label = labels.weight.view(5, 6, 5)
    for row in range(2):
        for word in range(3):
            x = words[row, word]
            for head in range(5):
                y = heads[row, head]
                assert scores[row, word, head].allclose(x @ matrix @ y + bias @ y, atol=1e-5)
            y = heads[row, word]
            for label in range(6):
                u = by_label[:, label]
                own = x @ u[:4, :4] @ y + x @ u[:4, 4] + u[4, :4] @ y + u[4, 4]
                assert label_scores[row, word, label].allclose(own, atol=1e-5)


def test_project_file_names_the_module_as_entry_point() -> None:
    project = tomllib.loads((ROOT / CONFIGS / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["elmo_framework.plugins"] == {"ud_parser": "ud_parser"}
    assert {"elmo-framework", "jaxtyping", "numpy", "torch"} == set(project["dependencies"])
