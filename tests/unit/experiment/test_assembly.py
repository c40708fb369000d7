from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.corpus.job import PreparationJob
from elmo_framework.corpus.prepare import prepare
from elmo_framework.data.data_loader import Rank
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.tasks.tagging.line_readers import JsonTaggingReader
from elmo_framework.training.process_group import ProcessGroup

components.load()


def tagging(path: Path, **options: Any) -> Experiment:
    config = {
        "dataset_reader": "tagging_json",
        "train_data_path": str(path),
        "model": {
            "type": "simple_tagger",
            "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 2}}},
        },
        **options,
    }
    return parse(Experiment, config, source="test").build()


def test_train_fraction_keeps_the_prepared_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("".join(f"common word{i} .\n" for i in range(40)))
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nzebra\ncommon\nword7\n")
    text, vocabulary = tmp_path / "text.txt", tmp_path / "vocab.txt"
    prepare(PreparationJob([text], tmp_path / "corpus", held_out=0.0, vocabulary=vocabulary))
    shares = [
        parse(
            Experiment,
            {
                "dataset_reader": reader,
                "train_data_path": str(path),
                "model": {"type": "bilm", "context_layers": "elmo_lstm"},
                "train_fraction": 0.1,
            },
            source="test",
        ).build()
        for reader, path in (
            ("prepared_corpus", tmp_path / "corpus/training"),
            ("language_modeling", text),
        )
    ]
    of_corpus, of_text = (sorted(held.words for held in s.examples("train")) for s in shares)
    assert of_corpus == of_text
    assert len(of_corpus) == 4
    counted = shares[0].count_vocabularies().counted("words")
    assert list(counted) == ["zebra", "common", "word7"]


def test_train_fraction_reads_the_data_only_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text.jsonl"
    path.write_text("".join(f'{{"tokens": ["w{i}"], "tags": ["O"]}}\n' for i in range(40)))
    experiment = tagging(path, train_fraction=0.1)
    files: list[Path] = []
    read = JsonTaggingReader.examples

    def noted(reader: JsonTaggingReader, file: Path) -> Any:
        files.append(file)
        return read(reader, file)

    monkeypatch.setattr(JsonTaggingReader, "examples", noted)
    counted = experiment.count_vocabularies().counted("words")
    chosen = [word for example in experiment.examples("train") for word in example.words]
    assert sorted(counted) == sorted(chosen)
    assert len(chosen) == 4
    assert files == [path, path]


def test_processes_divide_the_data_among_them(tmp_path: Path) -> None:
    path = tmp_path / "text.jsonl"
    path.write_text("".join(f'{{"tokens": ["w{i}"], "tags": ["O"]}}\n' for i in range(12)))
    experiment = tagging(path, data_loader={"batch_size": 2})
    examples = list(experiment.examples("train"))
    device = torch.device("cpu")
    assemblies = [
        Assembly.build(experiment, device=device, group=ProcessGroup(Rank(rank, 3)))
        for rank in range(3)
    ]
    for sources in (
        [assembly.training_source() for assembly in assemblies],
        [assembly.evaluation_source(examples) for assembly in assemblies],
    ):
        words = [
            word
            for held in sources
            for batch in held.batches()
            for sentence in batch.text.words
            for word in sentence
        ]
        assert sorted(words) == sorted(f"w{i}" for i in range(12))
        assert [held.num_batches for held in sources] == [2, 2, 2]


def test_evaluator_scores_a_split_that_the_config_names(tmp_path: Path) -> None:
    path = tmp_path / "text.jsonl"
    path.write_text('{"tokens": ["a", "b"], "tags": ["O", "X"]}\n')
    experiment = tagging(
        path, validation_data_path=str(path), trainer={"validation_metric": "-loss"}
    )
    assembly = Assembly.build(experiment, device=torch.device("cpu"))
    evaluator = assembly.evaluator("validation")
    assert evaluator is not None
    assert evaluator.scores(assembly.model) == assembly.evaluate(path)
    assert assembly.evaluator("test") is None


def test_evaluator_refuses_an_unseen_label_with_its_file(tmp_path: Path) -> None:
    path, other = tmp_path / "text.jsonl", tmp_path / "other.jsonl"
    path.write_text('{"tokens": ["a"], "tags": ["O"]}\n')
    other.write_text('{"tokens": ["a"], "tags": ["Y"]}\n')
    assembly = Assembly.build(
        tagging(path, validation_data_path=str(other)), device=torch.device("cpu")
    )
    with pytest.raises(DataError, match=f"^{other}.*'Y' is not among the labels of the training"):
        assembly.evaluator("validation")


def test_a_model_without_a_bilm_is_not_exported(tmp_path: Path) -> None:
    path = tmp_path / "text.jsonl"
    path.write_text('{"tokens": ["a"], "tags": ["O"]}\n')
    assembly = Assembly.build(tagging(path), device=torch.device("cpu"))
    with pytest.raises(RunError, match="this model: this run trained no biLM"):
        assembly.export(tmp_path / "out")
    assert not (tmp_path / "out").exists()
