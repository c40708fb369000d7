"""`elmo predict` on files of data."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from elmo_framework import load
from elmo_framework.commands.main import main
from elmo_framework.errors import DataError
from elmo_framework.experiment.predict import PredictionJob
from elmo_framework.experiment.prediction_formats import PredictionWriter
from elmo_framework.io.resumable_output import Journal
from elmo_framework.tasks.tagging.task import TaggingTask
from tests.experiment.conftest import NER
from tests.experiment.jobs import DATA, ROOT, tagging_with, train
from tests.experiment.test_text_configs import TOPICS

CSV = ROOT / "tests/fixtures/text_classification/topics.csv"

FOLDER = {"type": "text_classification_folder"}


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a small classifier that was trained on a table."""
    folder = tmp_path_factory.mktemp("topics")
    config = {**TOPICS, "train_data_path": str(CSV), "trainer": {"num_epochs": 1, "callbacks": []}}
    (folder / "topics.json").write_text(json.dumps(config))
    assert main(["train", str(folder / "topics.json"), "-s", str(folder / "run")]) == 0
    return folder / "run"


def predicted(capsys: pytest.CaptureFixture[str], *words: object) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["predict", *map(str, words)]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_table_is_predicted_by_rows_with_its_other_columns(
    topics: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new.csv"
    path.write_text('id,text,label\n7,"Stir, bake.",\n8,Snow fell.,unseen\n')

    first, second = predicted(capsys, topics, path)

    assert [first["id"], first["words"]] == ["7", ["Stir", ",", "bake", "."]]
    assert [second["id"], second["words"]] == ["8", ["Snow", "fell", "."]]
    assert (first["input_label"], second["input_label"]) == ("", "unseen")
    assert {first["label"], second["label"]} <= {"cooking", "sport", "weather"}
    assert load(topics).predict_file(path) == [first, second]
    (alone,) = load(topics).predict([{"id": "7", "text": "Stir, bake.", "label": ""}])
    probabilities = pytest.approx(first["probabilities"], abs=1e-5)
    assert alone == {**first, "probabilities": probabilities}


def test_column_files_are_predicted_with_any_labels_or_none(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labeled, words = tmp_path / "a.txt", tmp_path / "b.conll"
    labeled.write_text("Anna NNP I-NP B-UNSEEN\nleft VBD I-VP O\n\nRain NN I-NP O\n")
    words.write_text("Anna\nleft\n\nRain\n")

    first, second = predicted(capsys, tagger, labeled)
    plain = predicted(capsys, tagger, words)

    assert [first["words"], second["words"]] == [["Anna", "left"], ["Rain"]]
    assert first["ner"] == ["B-UNSEEN", "O"]
    assert [each["tags"] for each in plain] == [first["tags"], second["tags"]]


def test_predictions_of_a_file_are_those_of_its_evaluation(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, run = DATA / "valid.txt", load(tagger)

    found = predicted(capsys, tagger, file)

    scored = [list(tags) for tags, _ in run.score(file).predictions]
    assert [each["tags"] for each in found][: len(scored)] == scored
    assert len(found) > len(scored)  # the reader was limited to `max_instances` for training


def test_a_reader_can_be_named(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new.csv"
    path.write_text("word,n\nAnna,1\nleft,2\n")
    reader = {"type": "tagging_table", "word_column": "word", "tag_column": "tag"}

    (found,) = predicted(capsys, tagger, path, "--reader", json.dumps(reader))

    assert (found["words"], found["n"]) == (["Anna", "left"], ["1", "2"])
    assert load(tagger).predict_file(path, reader=reader) == [found]


def test_texts_in_folders_of_labels_train_score_and_predict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"cook/a.txt": "Stir it.", "sport/a.txt": "She\nwon.", "sport/b": "Go!"}
    for name, text in texts.items():
        (tmp_path / "texts" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "texts" / name).write_text(text)
    (tmp_path / "new").mkdir()
    (tmp_path / "new/a.txt").write_text("Rain fell.\n")
    run, config = tmp_path / "run", tmp_path / "texts.json"
    data = {"train_data_path": str(tmp_path / "texts"), "dataset_reader": FOLDER}
    config.write_text(json.dumps({**TOPICS, **data}))

    assert main(["check", str(config)]) == 0
    assert main(["train", str(config), "-s", str(run)]) == 0
    assert load(run).evaluate(tmp_path / "texts")["accuracy"] == 1
    labeled = predicted(capsys, run, tmp_path / "texts")
    (plain,) = predicted(capsys, run, tmp_path / "new")

    assert [each["label"] for each in labeled] == ["cook", "sport", "sport"]
    assert [each["input_label"] for each in labeled] == ["cook", "sport", "sport"]
    assert labeled[1]["file"] == str(tmp_path / "texts/sport/a.txt")
    assert plain["words"] == ["Rain", "fell", "."]


def test_an_empty_text_has_a_prediction_as_well(
    topics: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new.csv"
    path.write_text("id,text\n1,\n2,Go.\n")

    assert [each["words"] for each in predicted(capsys, topics, path)] == [[], ["Go", "."]]


def test_a_file_without_inputs_is_reported(
    topics: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new.txt"
    path.write_text("\n")

    assert main(["predict", str(topics), str(path)]) == 0
    assert capsys.readouterr() == ("", "there are no inputs to predict for\n")


@pytest.mark.parametrize("flag", ["--sentences", "--use-dataset-reader"])
def test_how_a_file_is_read_can_be_forced(
    flag: str, tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "words.csv"
    path.write_text("Anna\nleft\n")

    found = predicted(capsys, tagger, path, flag)

    expected = [["Anna"], ["left"]] if flag == "--sentences" else [["Anna", "left"]]
    assert [each["words"] for each in found] == expected


def test_other_data_is_refused_with_both_ways(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new.csv"
    path.write_text("id,body\n7,Anna left.\n")

    assert main(["predict", str(tagger), str(path)]) == 2

    error = capsys.readouterr().err
    assert "this looks like a table" in error
    assert "--reader NAME" in error
    assert "--sentences" in error


def test_formats_of_scorers_take_files_without_labels(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "words.conll"
    path.write_text("Anna\nleft\n")

    assert main(["predict", str(tagger), str(path), "--predictions-format", "conll"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:1] for line in lines] == [["Anna"], ["left"], []]
    assert [len(line.split()) for line in lines] == [2, 2, 0]


def test_a_tokenizer_can_take_the_place_of_that_of_the_reader(
    topics: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new.csv"
    path.write_text("text\nSnow fell.\n")

    (found,) = predicted(capsys, topics, path, "--tokenizer", "whitespace")

    assert found["words"] == ["Snow", "fell."]


def test_a_tagger_splits_raw_text_as_the_text_of_its_bilm(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    german, run = tmp_path / "bilm", tmp_path / "run"
    shutil.copytree(bilm, german)
    metadata = json.loads((german / "metadata.json").read_text())
    metadata["tokenizer"] = {"type": "spacy", "language": "de"}
    (german / "metadata.json").write_text(json.dumps(metadata))
    assert train(NER, run, tagging_with(german, **{"trainer.num_epochs": 1})) == 0
    (german / "metadata.json").unlink()
    path = tmp_path / "new.txt"
    path.write_text("Am 3. Mai.\n")

    (found,) = predicted(capsys, run, path)
    (english,) = predicted(capsys, run, path, "--tokenizer", "spacy")

    assert found["words"] == ["Am", "3.", "Mai", "."]
    assert english["words"] == ["Am", "3", ".", "Mai", "."]


def test_a_config_names_the_tokenizer_of_raw_text(bilm: Path, tmp_path: Path) -> None:
    changes = {"trainer.num_epochs": 1, "tokenizer": {"type": "spacy", "language": "de"}}
    assert train(NER, tmp_path / "run", tagging_with(bilm, **changes)) == 0

    assert load(tmp_path / "run").predict(["Am 3. Mai."])[0]["words"][1] == "3."


LONG = 10
"""How many sentences the tests of interrupted jobs predict for, two at a time."""


@pytest.fixture
def long_text(tmp_path: Path) -> Path:
    path = tmp_path / "long.txt"
    path.write_text("".join(f"Anna Kovacs moved {'far ' * i}away .\n" for i in range(LONG)))
    return path


class Killed(BaseException):
    """Stands for a signal that no one can catch."""


def interrupt(monkeypatch: pytest.MonkeyPatch, after: int, how: object) -> None:
    """Raise an error, or send a signal, after so many batches are done."""
    mark_done, left = Journal.mark_done, [after]

    def interrupting(self: Journal, *lines: str) -> None:
        mark_done(self, *lines)
        left[0] -= 1
        if not left[0]:
            if isinstance(how, signal.Signals):
                os.kill(os.getpid(), how)
            raise Killed

    monkeypatch.setattr(Journal, "mark_done", interrupting)


def predict_long(tagger: Path, text: Path, output: Path, *flags: str) -> int:
    words = ["--output-file", str(output), "--batch-size", "2", "--tokenizer", "whitespace"]
    return main(["predict", str(tagger), str(text), *words, *flags])


def content(path: Path) -> object:
    """The bytes of a file, or of each file of a folder."""
    if path.is_file():
        return path.read_bytes()
    return {each.name: each.read_bytes() for each in path.iterdir()}


@pytest.mark.parametrize(
    ("after", "form"), [(1, "jsonl"), (4, "conll"), (1, "csv"), (4, "conllu"), (4, "brat")]
)
def test_a_killed_job_resumes_to_the_same_bytes(
    tagger: Path,
    long_text: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
    form: str,
) -> None:
    flags = ("--predictions-format", form)
    assert predict_long(tagger, long_text, tmp_path / "whole", *flags) == 0
    with monkeypatch.context() as patch:
        interrupt(patch, after, None)
        with pytest.raises(Killed):
            predict_long(tagger, long_text, tmp_path / "out", *flags)
    assert not (tmp_path / "out").exists()
    with (tmp_path / "out.partial/done.jsonl").open("a") as journal:
        journal.write('[["O", "B-')  # half a line
    predicted = list[int]()
    batches = PredictionJob.batches

    def spied(self: PredictionJob, inputs: Iterable[Any]) -> Iterator[list[Any]]:
        for batch in batches(self, inputs):
            predicted.append(len(batch))
            yield batch

    monkeypatch.setattr(PredictionJob, "batches", spied)
    assert predict_long(tagger, long_text, tmp_path / "out", "--resume", *flags) == 0
    assert sum(predicted) == LONG - 2 * after
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert not (tmp_path / "out.partial").exists()


@pytest.mark.parametrize(("form", "other"), [("tsv", "brat"), ("brat", "tsv")])
def test_a_job_killed_while_it_writes_resumes(
    tagger: Path,
    long_text: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    other: str,
) -> None:
    def files(*_: object) -> Iterator[tuple[str, str]]:
        yield "long.txt", "half"
        raise Killed

    def table(*_: object) -> Iterator[str]:
        yield "half"
        raise Killed

    assert predict_long(tagger, long_text, tmp_path / "whole", "--format", form) == 0
    with monkeypatch.context() as patch:
        patch.setattr(PredictionWriter, "files", files)
        patch.setattr(PredictionWriter, "_table", table)
        for name, flags in ((form, []), (other, ["--resume"]), (form, ["--resume"])):
            with pytest.raises(Killed):
                predict_long(tagger, long_text, tmp_path / "out", "--format", name, *flags)
    assert not (tmp_path / "out").exists()
    assert predict_long(tagger, long_text, tmp_path / "out", "--resume", "--format", form) == 0
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_the_suffix_is_the_format(
    tagger: Path, long_text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--top-k", "2")
    assert predict_long(tagger, long_text, tmp_path / "out.csv", *flags) == 0
    header = (tmp_path / "out.csv").read_text().partition("\n")[0]
    assert header.startswith("input,text,label,start,end")
    assert main(["predict", str(tagger), str(long_text), "--format", "brat"]) == 2
    assert "brat writes a folder of files; name it with --output-file" in capsys.readouterr().err


def test_json_has_a_probability_and_characters_of_each_span(tagger: Path) -> None:
    text = "  Anna Kovacs moved to Oslo ."
    found = load(tagger).predict([text] * 2, tokenizer="whitespace", top_k=2)

    for output in found:
        assert [text[start:end] for start, end in output["offsets"]] == text.split()
        for span in output["spans"]:
            assert text[span["start_char"] : span["end_char"]] == span["text"]
            assert 0 < span["probability"] <= 1
            assert span["top"][0] == {"label": span["label"], "probability": span["probability"]}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_predictions_for_any_format(
    tagger: Path,
    long_text: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
) -> None:
    with monkeypatch.context() as patch:
        interrupt(patch, 3, number)
        assert predict_long(tagger, long_text, tmp_path / "out") == 130
    assert capsys.readouterr().err.endswith("interrupted; resume with --resume\n")
    assert predict_long(tagger, long_text, tmp_path / "out") == 2
    assert "resume it with --resume, or start over with --force" in capsys.readouterr().err
    flags = ("--predictions-format", "conll")
    assert predict_long(tagger, long_text, tmp_path / "out", "--resume", *flags) == 0
    assert "6 of 10 inputs predicted before" in capsys.readouterr().err
    assert predict_long(tagger, long_text, tmp_path / "whole", *flags) == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_job_for_another_input_does_not_continue(
    tagger: Path,
    long_text: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with monkeypatch.context() as patch:
        interrupt(patch, 1, signal.SIGTERM)
        assert predict_long(tagger, long_text, tmp_path / "out") == 130
    before = (tmp_path / "out.partial/done.jsonl").read_bytes()
    long_text.write_text(long_text.read_text() + "One more .\n")
    assert predict_long(tagger, long_text, tmp_path / "out", "--resume") == 2
    assert "the interrupted job has other settings: input was " in capsys.readouterr().err
    assert (tmp_path / "out.partial/done.jsonl").read_bytes() == before


def test_a_wrong_last_line_is_found_before_the_work(
    tagger: Path, long_text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long_text.write_text(long_text.read_text() + '{"tokens": 3}\n')
    assert predict_long(tagger, long_text, tmp_path / "out") == 2
    assert f"{long_text}:{LONG + 1}: 'tokens' is 3" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["long.txt"]


def test_predictions_are_preserved_when_their_format_fails(
    tagger: Path,
    long_text: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refused(predictions: object) -> Iterator[str]:
        yield "half"
        raise DataError("two examples have one id")

    monkeypatch.setitem(TaggingTask.formats, "conll", refused)
    flags = ("--predictions-format", "conll")
    assert predict_long(tagger, long_text, tmp_path / "out", *flags) == 2
    assert "two examples have one id" in capsys.readouterr().err
    monkeypatch.setattr(PredictionJob, "batches", lambda *_: iter(()))
    assert predict_long(tagger, long_text, tmp_path / "out", "--resume") == 0
    assert len((tmp_path / "out").read_text().splitlines()) == LONG


def test_standard_input_is_resumed_too(
    tagger: Path, long_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def piped() -> None:
        stream = io.TextIOWrapper(io.BytesIO(long_text.read_bytes()))
        monkeypatch.setattr("sys.stdin", stream)

    assert predict_long(tagger, long_text, tmp_path / "whole") == 0
    with monkeypatch.context() as patch:
        interrupt(patch, 2, signal.SIGTERM)
        piped()
        assert predict_long(tagger, Path("-"), tmp_path / "out") == 130
    piped()
    assert predict_long(tagger, Path("-"), tmp_path / "out", "--resume") == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_pipe_is_predicted_once(
    tagger: Path, long_text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for flags in ((), ("--output-file", str(tmp_path / "out"))):
        writer = Thread(target=(tmp_path / "pipe").write_bytes, args=(long_text.read_bytes(),))
        writer.start()
        assert main(["predict", str(tagger), str(tmp_path / "pipe"), *flags]) == 0
        writer.join()
    assert len(capsys.readouterr().out.splitlines()) == LONG
    assert len((tmp_path / "out").read_text().splitlines()) == LONG


def test_resume_and_force_need_an_output_file(
    tagger: Path, long_text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for flag in ("--resume", "--force"):
        assert main(["predict", str(tagger), str(long_text), flag]) == 2
        assert f"{flag} needs --output-file" in capsys.readouterr().err
