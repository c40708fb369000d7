"""What a user can do wrong ends with exit code 2 and a message that names the place."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_framework import load
from elmo_framework.commands.main import main
from elmo_framework.errors import DataError, RunError
from elmo_framework.training import checkpointer, process_group
from tests.experiment.jobs import DATA, PRETRAINING, ROOT, tagging_with, train

NER = "experiments/ner/elmo.jsonnet"
UNSCORED: dict[str, Any] = {"validation_data_path": None, "trainer.patience": None}
CONLL = "Anna NNP I-NP I-PER\nleft VBD I-VP O\n"


def message_of(capsys: pytest.CaptureFixture[str]) -> str:
    """The last error, without the progress before it."""
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    return errors[errors.rindex("error: ") :].removeprefix("error: ").strip()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "{path}: this file has no sentences"),
        (b"-DOCSTART- -X- -X- O\n\n", "{path}: this file has no sentences"),
        (CONLL.encode() + b"there RB\n", "{path}:3: "),
        (CONLL.encode() + b"caf\xe9 NN I-NP O\n", "{path}:3: "),
        (CONLL.replace("I-PER", "Q-PER").encode(), "{path}:1: "),
    ],
)
def test_bad_columns_name_file_and_line(
    content: bytes, expected: str, bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(content)
    assert train(NER, tmp_path / "run", tagging_with(bilm, train_data_path=str(path))) == 2
    assert message_of(capsys).startswith(expected.format(path=path))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "{path}: "),
        (b"It rained .\nCaf\xe9 .\n", "{path}:2: "),
        (b"It rained .\n", "the text has 3 words in 1 sentence"),
    ],
)
def test_bad_text_names_file_and_line(
    content: bytes, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    changes = {**PRETRAINING, "train_data_path": str(path)}
    assert train("experiments/pretrain/demo.jsonnet", tmp_path / "run", changes) == 2
    assert expected.format(path=path) in message_of(capsys)


def test_all_problems_of_a_config_come_at_once(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = tagging_with(
        bilm,
        train_data_path="data/nowhere.txt",
        **{
            "model.encoder.hidden_sise": 3,
            "model.dropout": 1.5,
            "trainer.optimizer.type": "adamm",
            "trainer.num_epochs": "many",
        },
    )
    assert train(NER, tmp_path / "run", changes) == 2
    message = message_of(capsys)
    assert "5 problems in the configuration" in message
    for part in (
        "model.encoder.hidden_sise",
        "Did you mean 'hidden_size'?",
        "model.dropout",
        "less than 1",
        "Did you mean 'adam'?",
        "trainer.num_epochs",
        "train_data_path",
    ):
        assert part in message
    assert not (tmp_path / "run").exists()


def test_a_reader_of_another_task_is_refused(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = tagging_with(bilm, dataset_reader="language_modeling")
    changes.pop("dataset_reader.max_instances")
    assert train(NER, tmp_path / "run", changes) == 2
    assert "'language_modeling' reads LanguageModelingExample, but the model 'crf_tagger'" in (
        message_of(capsys)
    )


def test_all_wrong_sizes_are_reported_before_data_is_read(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {"type": "lstm", "hidden_size": 8, "input_size": 5}
    encoder = {"type": "compose", "encoders": [wrong, {**wrong, "input_size": 9}]}
    data = tmp_path / "train.txt"
    data.write_text("ragged line\n\nhere\n")
    changes = tagging_with(bilm, train_data_path=str(data), **{"model.encoder": encoder})
    changes.pop("model.encoder.hidden_size")
    assert train(NER, tmp_path / "run", changes) == 2
    message = message_of(capsys)
    assert "model.encoder.encoders[0]" in message
    assert "model.encoder.encoders[1]" in message


def test_a_label_that_training_did_not_show_is_named(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.txt"
    path.write_text("Anna B-DRUG\nleft O\n")
    assert main(["evaluate", str(tagger), str(path)]) == 2
    message = message_of(capsys)
    assert message.startswith(f"{path}: ")
    assert "'U-DRUG' is not among the labels of the training data; choose from " in message
    assert "'Anna left'" in message


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["evaluate", "no/where", "data.txt"], "no/where: does not exist"),
        (["evaluate", "nowhere", "data.txt"], "'nowhere' is neither the folder of a run or a biLM"),
        (["predict", "nowhere"], "nowhere: does not exist"),
        (["check", "nowhere.jsonnet"], "nowhere.jsonnet: file not found"),
        (["describe", "encodr"], "Did you mean 'encoder'?"),
    ],
)
def test_unknown_runs_files_and_families_are_named(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert expected in message_of(capsys)


def test_a_missing_file_to_evaluate_is_named(
    tagger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(tagger), "nowhere.txt"]) == 2
    assert "nowhere.txt" in message_of(capsys)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"tokens": 3}', "'tokens' is 3; expected a string or a list of strings"),
        ('{"words": [1]}', "'words' is [1]; expected a string or a list of strings"),
        (
            '{"token": ["Anna"]}',
            "expected one key with a text, found 'token'; choose from sentence, tokens, "
            "words. Did you mean 'tokens'?",
        ),
        ('{"tokens": ', "not a JSON object: Expecting value, column 12"),
        (
            "{}",
            "expected one key with a text, found none; choose from sentence, tokens, words.",
        ),
    ],
)
def test_a_bad_line_to_predict_is_refused(
    line: str, expected: str, tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(line + "\n")
    assert main(["predict", str(tagger), str(path)]) == 2
    assert message_of(capsys).endswith(f": {expected}")


def test_predictions_that_fail_leave_the_old_file_alone(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"tokens": ["Anna"]}\n\n{"tokens": 3}\n')
    output.write_text("old")
    flags = ["--output-file", str(output), "--force"]
    assert main(["predict", str(tagger), str(source), *flags]) == 2
    assert output.read_text() == "old"
    expected = f"{source}:3: 'tokens' is 3; expected a string or a list of strings"
    assert message_of(capsys) == expected


def test_a_bilm_predicts_nothing(bilm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(bilm), str(ROOT / "README.md")]) == 2
    assert "predicts no labels" in message_of(capsys)


def test_a_bilm_writes_no_predictions(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "predictions.jsonl"
    data = str(DATA / "lm_valid.txt")
    assert main(["evaluate", str(bilm), data, "--predictions", str(output)]) == 2
    assert "predicts no labels" in message_of(capsys)
    assert not output.exists()


@pytest.mark.parametrize("option", ["--predictions", "--output-file"])
def test_an_absent_output_folder_is_refused_before_evaluation(
    option: str, tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "absent"
    data, output = str(DATA / "valid.txt"), str(folder / "x.json")
    assert main(["evaluate", str(tagger), data, option, output]) == 2
    errors = capsys.readouterr().err
    assert errors.endswith(f"error: {folder}: No such file or directory\n")
    assert "evaluating" not in errors


def test_predictions_and_scores_need_two_files(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--predictions", str(tmp_path / "x"), "--output-file", str(tmp_path / "." / "x")]
    assert main(["evaluate", str(tagger), str(DATA / "valid.txt"), *options]) == 2
    assert "are the same file; choose two paths" in message_of(capsys)


def test_invalid_utf_8_on_standard_input_names_the_line(
    tagger: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9 .\n")))
    assert main(["predict", str(tagger), "-"]) == 2
    assert message_of(capsys).startswith("standard input:1: not valid UTF-8 text")


@pytest.mark.parametrize("size", ["0", "-1", "many"])
def test_a_batch_size_is_a_number_above_0(
    size: str, tagger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(tagger), "-", f"--batch-size={size}"]) == 2
    assert f"{size!r} is not a whole number above 0" in message_of(capsys)


def test_predict_refuses_invalid_arguments(tagger: Path) -> None:
    run = load(tagger)
    with pytest.raises(TypeError, match=r"pass a list, \['Hi\.'\], not 'Hi\.' alone"):
        run.predict("Hi.")
    with pytest.raises(TypeError, match="pass a list"):
        run.predict({"tokens": ["Hi"]})
    with pytest.raises(DataError, match=r"^input 2: expected a sentence or an object, found 3$"):
        run.predict(["Hi.", 3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="batch_size is 0"):
        run.predict(["Hi."], batch_size=0)
    with pytest.raises(RunError, match="Did you mean 'whitespace'"):
        run.predict(["Hi."], tokenizer="whitespaces")


def test_a_device_that_is_not_here_is_refused(
    tagger: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RunError, match="choose from auto, cpu, cuda"):
        load(tagger, device="gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["evaluate", str(tagger), str(DATA / "valid.txt"), "--device", "cuda"]) == 2
    assert "'cuda'" in message_of(capsys)


def test_a_missing_bilm_is_reported_with_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bilm: Path
) -> None:
    own, run = tmp_path / "bilm", tmp_path / "run"
    shutil.copytree(bilm, own)
    assert train(NER, run, tagging_with(own, **{"trainer.num_epochs": 1})) == 0
    shutil.rmtree(own)
    assert main(["evaluate", str(run), str(DATA / "valid.txt")]) == 2
    message = message_of(capsys)
    assert message.startswith(f"{run}: cannot find the model (SHA-256 ")
    assert f"\n  {own}: does not exist\n" in message


def test_a_full_disk_ends_training_with_a_message(
    bilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpointer, "save_tensors", full)
    assert train(NER, tmp_path / "run", tagging_with(bilm)) == 2
    message = message_of(capsys)
    assert str(tmp_path / "run/checkpoints/step-") in message
    assert message.endswith(": No space left on device; fix this, then resume with --recover")


def test_a_folder_that_cannot_be_written_is_named(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert train(NER, tmp_path / "file/run", tagging_with(bilm)) == 2
    assert str(tmp_path / "file") in message_of(capsys)


def test_a_metric_that_does_not_exist_is_named(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = tagging_with(bilm, **{"trainer.validation_metric": "+f1-overall"})
    assert train(NER, tmp_path / "run", changes) == 2
    assert "Did you mean 'f1-measure-overall'?" in message_of(capsys)


def test_an_unavailable_metric_is_reported_before_precompute(
    bilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def compute(*arguments: Any) -> None:
        raise AssertionError("layers were computed")

    monkeypatch.setattr("elmo_framework.experiment.assembly.Assembly.precompute", compute)
    text = tmp_path / "pos.txt"
    text.write_text("Anna NNP B-NP O\nleft VBD B-VP O\n")
    data = {"train_data_path": str(text), "validation_data_path": str(text)}
    reader = {"dataset_reader.tag_label": "pos", "dataset_reader.coding_scheme": None}
    metric = {"trainer.validation_metric": "+f1-measure-overall"}
    assert train(NER, tmp_path / "run", tagging_with(bilm, **data, **reader, **metric)) == 2
    expected = "trainer.validation_metric: '+f1-measure-overall' is not a score of this model"
    assert expected in message_of(capsys)


def test_a_pattern_that_freezes_nothing_is_named(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = tagging_with(bilm, **{"trainer.no_grad": ["^enkoder"]})
    assert train(NER, tmp_path / "run", changes) == 2
    assert "'^enkoder' matches no parameter" in message_of(capsys)


def damage_weights(run: Path) -> None:
    (run / "weights.safetensors").write_bytes(b"damaged")


def damage_config(run: Path) -> None:
    (run / "filled_config.json").write_text("{")


def damage_vocabulary(run: Path) -> None:
    (run / "vocabulary/labels.jsonl").write_text("nonsense\n")


def remove_labels(run: Path) -> None:
    (run / "vocabulary/labels.jsonl").write_text('["O", 3]\n')


@pytest.mark.parametrize(
    ("damage", "file"),
    [
        (damage_weights, "weights.safetensors"),
        (damage_config, "filled_config.json"),
        (damage_vocabulary, "vocabulary/labels.jsonl"),
        (remove_labels, "weights.safetensors"),
    ],
)
def test_a_damaged_run_is_refused_with_the_file(
    damage: Callable[[Path], None],
    file: str,
    tagger: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = tmp_path / "run"
    shutil.copytree(tagger, run)
    damage(run)
    assert main(["evaluate", str(run), str(DATA / "valid.txt")]) == 2
    assert message_of(capsys).startswith(str(run / file))


def test_a_run_without_a_checkpoint_advises_recover(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(tagger, run)
    (run / "weights.safetensors").unlink()
    shutil.rmtree(run / "checkpoints")
    assert main(["evaluate", str(run), str(DATA / "valid.txt")]) == 2
    assert message_of(capsys) == f"{run}: this run has no weights yet; resume it with --recover"


def test_an_unseen_validation_label_is_named_before_training(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "valid.txt"
    path.write_text("Anna B-DRUG\nleft O\n")
    changes = tagging_with(bilm, validation_data_path=str(path))
    assert train(NER, tmp_path / "run", changes) == 2
    errors = capsys.readouterr().err
    assert "training:" not in errors
    assert f"{path}: 'U-DRUG' is not among the labels of the training data" in errors
    assert "datasets_for_vocab_creation" in errors


def test_a_run_is_not_written_over_the_bilm_that_it_reads(
    bilm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(NER, bilm, tagging_with(bilm), "--force") == 2
    assert "model.embedder.token_embedders.elmo.bilm" in message_of(capsys)
    assert (bilm / "weights.safetensors").exists()


def test_a_slow_path_warning_is_shown_once(
    tmp_path: Path,
    bilm: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(process_group, "slow_path_reason", lambda: "install a compiler")
    changes = tagging_with(bilm, **{"trainer.num_epochs": 1, "trainer.device": "cpu"})
    assert train(NER, tmp_path / "run", changes) == 0
    assert capsys.readouterr().err.count("which is slower: install a compiler\n") == 1


def test_training_can_restart_after_an_early_data_error(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.txt"
    path.write_text("ragged line here\nline\n")
    changes = tagging_with(bilm, train_data_path=str(path), **UNSCORED)
    assert train(NER, tmp_path / "run", changes) == 2
    path.write_text("Anna B-PER\nleft O\n")
    assert train(NER, tmp_path / "run", changes) == 0


def test_patience_needs_validation_data(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = tagging_with(bilm, validation_data_path=None, **{"trainer.patience": 1})
    assert train(NER, tmp_path / "run", changes) == 2
    assert "trainer.patience needs a validation_data_path" in message_of(capsys)


def test_an_unseen_test_label_is_named_before_training(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "test.txt"
    path.write_text("Anna B-DRUG\nleft O\n")
    changes = tagging_with(bilm, test_data_path=str(path), evaluate_on_test=True)
    assert train(NER, tmp_path / "run", changes) == 2
    errors = capsys.readouterr().err
    assert "training:" not in errors
    assert f"{path}: 'U-DRUG' is not among the labels of the training data" in errors


@pytest.mark.parametrize("left", [".filled_config.json.writing", ".lock"])
def test_recover_after_a_kill_at_startup(left: str, bilm: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / left).touch()
    changes = tagging_with(bilm, **{"trainer.num_epochs": 1})
    assert train(NER, tmp_path / "run", changes, "--recover") == 0
