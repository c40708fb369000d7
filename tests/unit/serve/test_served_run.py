"""Predictions of a run, for several requests at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.encoders.lstm import LstmEncoder
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.layers.encoder_files import open_encoder
from elmo_framework.serve.answers import ExplanationRequest, WordRequest
from elmo_framework.serve.explanation import ExplanationService
from elmo_framework.serve.neighbors import NeighborService, check_corpus
from elmo_framework.serve.served_run import (
    InputError,
    ServedRun,
    TooLongError,
    model_name,
    require_distinct,
)
from elmo_framework.serve.worker import Worker
from tests.numpy_bilm import NumpyBiLm
from tests.unit.experiment.test_assembly import tagging


@pytest.fixture
def run(tmp_path: Path) -> Assembly:
    lines = [{"tokens": ["Anna", "left"], "tags": ["B-PER", "O"]}]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, lines)))
    experiment = tagging(tmp_path / "train.jsonl", tokenizer="whitespace")
    built = Assembly.build(experiment, device=torch.device("cpu"))
    built.model.eval()
    return built


@pytest.fixture
def served(run: Assembly) -> ServedRun:
    return ServedRun("ner", run, max_words=6, batch_size=2)


def rounded(value: Any) -> Any:
    """Another batch may change the last bits."""
    return json.loads(json.dumps(value), parse_float=lambda text: round(float(text), 4))


def test_a_served_run_predicts_with_frozen_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.jsonl").write_text('{"tokens": ["Anna", "left"], "tags": ["B-PER", "O"]}')
    embedder = {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 2}}}
    encoder = {"type": "lstm", "hidden_size": 3, "bidirectional": True}
    model = {"type": "crf_tagger", "embedder": embedder, "encoder": encoder}
    experiment = tagging(tmp_path / "train.jsonl", tokenizer="whitespace", model=model)
    run = Assembly.build(experiment, device=torch.device("cpu"))
    run.model.eval()
    expected, frozen = run.predict(["Anna left x"]), list[object]()
    served = ServedRun("ner", run, max_words=6, batch_size=2)
    with monkeypatch.context() as patch:
        patch.setattr(LstmEncoder, "freeze", lambda *arguments: frozen.extend(arguments))
        served.warm_up()
    assert frozen == [run.head().encoder, "float32"]
    served.warm_up()
    assert rounded(served.compute(served.read(["Anna left x"]))) == rounded(expected)


def test_predictions_together_equal_those_alone(served: ServedRun, run: Assembly) -> None:
    texts = [" ".join(["Anna", "left", "x"][: 1 + n % 3]) for n in range(9)]
    worker = Worker(batch_size=4, max_waiting=100)
    futures = [worker.submit(served, [text, {"tokens": ["left"], "id": 7}]) for text in texts]
    for text, future in zip(texts, futures, strict=True):
        alone = run.predict([text, {"tokens": ["left"], "id": 7}])
        assert rounded(future.result(60)) == rounded(alone)
    worker.close()


def test_bad_inputs_are_named(served: ServedRun) -> None:
    with pytest.raises(InputError, match="choose from sentence, tokens, words") as caught:
        served.read(["Anna", {"premise": "a"}])
    assert caught.value.index == 1
    with pytest.raises(TooLongError, match="7 words; at most 6"):
        served.read(["a " * 7])


def test_a_broken_file_of_the_server_is_no_error_of_the_client(
    served: ServedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, text: str) -> list[str]:
        raise DataError("broken", path=Path("/secret"))

    monkeypatch.setattr(WhitespaceTokenizer, "words", fail)
    with pytest.raises(DataError):
        served.read(["Anna"])


def test_the_keys_of_inputs_are_those_of_the_data_first(served: ServedRun) -> None:
    assert served.description()["inputs"] == ["tokens", "sentence", "words"]


def test_a_tag_is_explained(served: ServedRun) -> None:
    service = ExplanationService(served)
    requests = [ExplanationRequest(input="Anna left", word=word) for word in (1, "left")]
    result, same = service.compute(service.read(requests))
    assert result["word"] == 1
    assert same == result
    assert [len(each["scores"]) for each in result["sentences"]] == [2]
    with pytest.raises(InputError, match="a tagger labels each word"):
        service.compute(service.read([ExplanationRequest(input="Anna left")]))


def test_neighbors_are_those_of_the_command(numpy_bilm: NumpyBiLm, tmp_path: Path) -> None:
    folder, corpus = numpy_bilm.save(tmp_path / "bilm"), tmp_path / "corpus.txt"
    corpus.write_text("a bank of sand\nthe bank is closed\n\nno such word\n")
    check_corpus(corpus)
    service = NeighborService(open_encoder(folder), corpus, "cpu", max_words=5)
    words = ["a", "bank", "and", "a", "bank"]
    first, last = service.compute(
        service.read([WordRequest(words=words, position=each) for each in (1, 4)])
    )
    assert (first["num_compared"], len(first["layers"])) == (2, 2)
    assert first["layers"] != last["layers"]
    near = first["layers"][0]["neighbors"]
    assert {each["parts"][1] for each in near} == {"bank"}
    unknown = WordRequest(words=["zebra"], position=0)
    assert service.compute([unknown])[0]["num_compared"] == 0
    for position, request_words in ((1, ["a"]), (0, ["a b"])):
        with pytest.raises(InputError):
            service.read([WordRequest(words=request_words, position=position)])
    with pytest.raises(TooLongError, match="6 words; at most 5"):
        service.read([WordRequest(words=[*words, "."], position=1)])
    corpus.unlink()
    with pytest.raises(DataError, match=r"corpus\.txt"):
        service.compute([unknown])
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(DataError, match="no sentences"):
        check_corpus(tmp_path / "empty.txt")


def test_names_are_those_of_folders_and_archives(tmp_path: Path) -> None:
    names = [model_name(each) for each in ("runs/ner", "a/ner.v2.tar.gz", "runs/ner/")]
    assert names == ["ner", "ner.v2", "ner"]
    revisions = [model_name(each) for each in ("hf://me/ner@1", "hf://me/ner", "runs/ner@1")]
    assert revisions == ["ner", "ner", "ner@1"]
    with pytest.raises(RunError, match="two models are named 'ner'"):
        require_distinct([str(tmp_path / "a/ner"), str(tmp_path / "b/ner.tar.gz")])
