import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.commands.check import Check
from elmo_framework.commands.main import main
from elmo_framework.experiment.model_report import ASSUMED_LABELS, ASSUMED_WORDS


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The config of a tagger and its data, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    Path("train.txt").write_text("Anna B-PER\nleft O\n")
    path = Path("ner.jsonnet")
    path.write_text(
        """{
          dataset_reader: 'conll2003',
          train_data_path: 'train.txt',
          model: {
            type: 'crf_tagger',
            embedder: { token_embedders: { tokens: { type: 'embedding', embedding_dim: 50 } } },
            encoder: { type: 'lstm', hidden_size: std.parseInt(std.extVar('SIZE')) },
          },
        }"""
    )
    return path


def checked(*arguments: str) -> int:
    return main(["check", "ner.jsonnet", "--ext-var", "SIZE=20", *arguments])


HEAVY_MODULES = """
import sys
import elmo_framework
from elmo_framework.commands.main import main

heavy = ("h5py", "jinja2", "matplotlib", "pandas", "pyarrow", "scipy", "sklearn", "spacy", "sympy",
    "tensorboard", "torch._dynamo", "torch._inductor", "torch.onnx", "transformers")
assert main(["check", "ner.jsonnet", "--ext-var", "SIZE=20"]) == 0
elmo_framework.load  # what evaluates and predicts needs no more
translation = "elmo_framework.compat.allennlp."
light = {translation + name for name in ("arguments", "load", "recognize")}
imported = [name for name in sys.modules if name.startswith(translation) and name not in light]
print(*(name for name in heavy if name in sys.modules), *imported, file=sys.stderr)
"""


def test_check_imports_only_what_it_needs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAVY_MODULES], capture_output=True, text=True, check=True
    )
    assert done.stderr.split() == []


def test_check_leaves_garbage_collection_as_it_was() -> None:
    assert checked() == 0
    assert gc.isenabled()


def test_dry_run_of_train_is_a_check_of_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked("--data") == 0
    expected = capsys.readouterr().out
    command = ["train", "ner.jsonnet", "--ext-var", "SIZE=20", "-s", "run", "--dry-run"]
    assert main(command) == 0
    assert capsys.readouterr().out == expected
    assert main([*command, "-o", "model.encoder.hidden_size=0"]) == 2
    assert not Path("run").exists()
    assert main([*command, "--force"]) == 2


def test_a_sound_config_is_answered_with_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ner.jsonnet: no problems"
    assert any(line.split() == ["encoder", "LstmEncoder", "50", "20"] for line in lines)
    assert any(line.split() == ["embedder", "500,100", "500,100"] for line in lines)
    assert any(line.split() == ["words", "10,000"] for line in lines)
    assert "pass --data to count the vocabularies of the data" in lines
    assert any(line.startswith("total  ") for line in lines)


def test_with_data_the_vocabularies_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked("--data", "--format", "json") == 0
    written: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (written["source"], written["problems"]) == ("ner.jsonnet", [])
    assert written["vocabularies"] == {"beginnings": 1, "labels": 3, "words": 2}
    assert written["assumed_vocabularies"] == {}
    assert written["parts"][0] == {"name": "embedder", "parameters": 200, "trainable": 200}
    assert written["parameters"] == sum(part["parameters"] for part in written["parts"])
    assert written["frozen_bilm"] == {}
    assert written["components"][-1] == {
        "name": "encoder",
        "class": "LstmEncoder",
        "input_dim": 50,
        "output_dim": 20,
    }


def test_json_names_the_assumed_vocabularies(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked("--format", "json") == 0
    written = json.loads(capsys.readouterr().out)
    assert written["vocabularies"] == {}
    assert written["assumed_vocabularies"] == {"beginnings": 21, "labels": 21, "words": 10_000}
    assert written["parts"][0]["parameters"] == 500_100


def test_help_names_the_assumed_sizes() -> None:
    assert f"a vocabulary of {ASSUMED_WORDS:,}\nwords and {ASSUMED_LABELS} labels" in Check.epilog


def test_all_problems_are_reported_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked("-o", "model.encoder.hiden=3", "-o", "train_data_path=tain.txt") == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert said.splitlines() == [
        "error: ner.jsonnet: 2 problems in the configuration",
        "  model.encoder.hiden: unknown key of LstmEncoder; choose from bidirectional, dropout, "
        "hidden_size, input_size, num_layers. Did you mean 'hidden_size'?",
        f"  train_data_path: 'tain.txt' does not exist (looked for in {Path.cwd()}). "
        "Did you mean 'train.txt'?",
    ]


def test_a_wrong_size_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked("-o", "model.encoder.input_size=3") == 2
    assert "model.encoder.input_size: is 3 but the input has dimension" in capsys.readouterr().err


def test_plugins_of_the_config_are_imported_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked("-o", 'plugins=["no_such_plugin"]') == 2
    assert "error: ner.jsonnet: plugins: no module named" in capsys.readouterr().err


def test_plugins_of_the_command_line_are_imported_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("failing_plugin_of_check.py").write_text("1 / 0\n")
    assert checked("--include-package", "failing_plugin_of_check") == 2
    said = capsys.readouterr().err
    assert said.startswith("error: --include-package: the plugin 'failing_plugin_of_check' fails\n")
    assert said.endswith("ZeroDivisionError: division by zero\n")


def test_a_plugin_may_have_keys_of_allennlp() -> None:
    Path("cyclic_plugin_of_check.py").write_text(
        """
from dataclasses import dataclass
from typing import final

from elmo_framework.training.schedule import Schedule, ScheduleState

@final
@Schedule.register("cyclic_of_check")
@dataclass(frozen=True)
class CyclicSchedule(Schedule):
    '''Goes up and down.'''

    mode: str
    num_epochs: int

    def multiplier(self, state: ScheduleState) -> float:
        return 1.0
"""
    )
    schedule = '{"type": "cyclic_of_check", "mode": "up", "num_epochs": 2}'
    changes = ["-o", f'trainer={{"learning_rate_scheduler": {schedule}}}']
    assert checked("--include-package", "cyclic_plugin_of_check", *changes) == 0


def test_folder_of_runs_is_for_studies_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked("-s", "runs") == 2
    message = "--serialization-dir is for studies; ner.jsonnet is a single experiment"
    assert message in capsys.readouterr().err


def test_misspelled_configs_of_a_study_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    Path("study.jsonnet").write_text("{ configss: {}, seeds: [1] }\n")
    assert main(["check", "study.jsonnet"]) == 2
    said = capsys.readouterr().err
    assert "configss: unknown key of Study" in said
    assert "Did you mean 'configs'?" in said


def test_problems_are_reported_without_heavy_imports(tmp_path: Path) -> None:
    script = (
        "import sys; from elmo_framework.commands.main import main\n"
        "code = main(['check', 'ner.jsonnet', '--ext-var', 'SIZE=0'])\n"
        "print(code, sorted({'spacy', 'tensorboard', 'torch._dynamo'} & sys.modules.keys()))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.stdout == "2 []\n"
    assert "model.encoder.hidden_size: Input should be greater than 0, not 0" in ended.stderr


@pytest.mark.parametrize(
    ("file", "content", "source", "said"),
    [
        ("ner.jsonnet", "{ model: ", "ner.jsonnet", "ner.jsonnet:1:"),
        ("ner.jsonnet", '{ plugins: ["no_such_plugin"] }', "ner.jsonnet", "no module named"),
        ("train.txt", "ragged\nline here\n", "ner.jsonnet", "train.txt:"),
    ],
)
def test_an_error_that_ends_the_check_is_a_problem_in_json(
    file: str, content: str, source: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(file).write_text(content)
    assert checked("--data", "--format", "json") == 2
    assert_one_problem(capsys.readouterr(), source, said)


@pytest.mark.parametrize(
    ("arguments", "source", "said"),
    [
        (["nowhere.jsonnet"], "nowhere.jsonnet", "file not found"),
        (["ner.jsonnet", "-o", "{ model: "], "ner.jsonnet with --overrides", "--overrides:1:10: "),
    ],
)
def test_an_unreadable_config_is_a_problem_in_json(
    arguments: list[str], source: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *arguments, "--ext-var", "SIZE=20", "--format", "json"]) == 2
    assert_one_problem(capsys.readouterr(), source, said)


def assert_one_problem(printed: tuple[str, str], source: str, said: str) -> None:
    """Nothing but a JSON object with one problem was printed."""
    out, err = printed
    written = json.loads(out)
    assert (written.keys(), err) == ({"source", "problems"}, "")
    assert written["source"] == source
    (problem,) = written["problems"]
    assert problem.keys() == {"path", "message"}
    assert said in problem["message"]
