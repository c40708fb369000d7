"""Parts from outside the package, from pretraining to prediction."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from elmo_framework.commands.main import main
from elmo_framework.config import plugins
from elmo_framework.experiment.load_run import load
from elmo_framework.io.files import digest
from tests.plugin_scope import without_plugins

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "tests/fixtures/plugins/replacement_parts.py"
TEXT = ROOT / "experiments/demo/lm_train.txt"
TAGGED = ROOT / "tests/fixtures/ner"
SENTENCES = [{"tokens": ["Anna", "moved", "to", "Lisbon", "."]}, {"tokens": ["It", "rained"]}]

TRAINER = {"optimizer": {"type": "adam", "lr": 0.01}, "num_epochs": 2, "callbacks": []}
BILM: dict[str, Any] = {
    "plugins": ["replacement_parts"],
    "dataset_reader": {"type": "language_modeling", "max_instances": 60},
    "train_data_path": str(TEXT),
    "validation_data_path": str(TEXT),
    "model": {
        "type": "bilm",
        "token_encoder": {"type": "average_character", "embedding_dim": 12},
        "context_layers": {"type": "gru_cells", "num_layers": 2},
        "num_samples": None,
    },
    "data_loader": {"type": "windows", "batch_size": 8, "unroll_steps": 10},
    "trainer": TRAINER,
}
TAGGER: dict[str, Any] = {
    "dataset_reader": {"type": "conll2003", "coding_scheme": "BIO"},
    "train_data_path": str(TAGGED / "train.txt"),
    "validation_data_path": str(TAGGED / "valid.txt"),
    "model": {
        "type": "crf_tagger",
        "embedder": {
            "token_embedders": {
                "elmo": {"type": "elmo_token_embedder", "bilm": "bilm", "mix": "maximum"}
            }
        },
        "encoder": {"type": "lstm", "hidden_size": 8, "bidirectional": True},
    },
    "trainer": TRAINER,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the plugin, a biLM of its parts, and a tagger on that."""
    here = tmp_path_factory.mktemp("work")
    shutil.copy(PLUGIN, here)
    with without_plugins("replacement_parts"), pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        _train(BILM, "bilm")
        _train(TAGGER, "tagger", "--include-package", "replacement_parts")
        yield here


@pytest.fixture(autouse=True)
def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


@pytest.fixture
def own_plugins() -> Iterator[None]:
    """What a test imports is forgotten afterwards."""
    with without_plugins("failing_plugin", "installed_plugin"):
        yield


def _train(config: dict[str, Any], run: str, *arguments: str) -> None:
    Path(f"{run}.json").write_text(json.dumps(config))
    assert main(["train", f"{run}.json", "-s", run, *arguments]) == 0


def _read(path: str) -> Any:
    return json.loads(Path(path).read_text())


def test_parts_of_a_plugin_learn_to_predict_words() -> None:
    scores = [json.loads(line) for line in Path("bilm/metrics.jsonl").read_text().splitlines()]
    assert scores[1]["perplexity"] < scores[0]["perplexity"]


def test_a_bilm_with_plugin_parts_is_saved_with_their_config() -> None:
    assert sorted(path.name for path in Path("bilm/bilm").iterdir()) == [
        "bilm.json",
        "softmax.safetensors",
        "vocabulary.txt",
        "weights.safetensors",
    ]
    assert _read("bilm/bilm/bilm.json") == {
        "format": 1,
        "plugins": ["replacement_parts"],
        "token_encoder": {"type": "average_character", "embedding_dim": 12},
        "context_layers": {"type": "gru_cells", "num_layers": 2},
    }


def test_the_plugins_bilm_stays_frozen_below_a_head() -> None:
    weights = Path("bilm/bilm/weights.safetensors").absolute()
    files = [weights.with_name("bilm.json"), weights]
    assert _read("tagger/metadata.json")["digests"]["bilm"] == {
        "embedder.token_embedders.elmo": digest(files)
    }
    assert not [name for name in load_file("tagger/weights.safetensors") if "cell" in name]


def test_the_plugins_mix_is_trained_with_the_head() -> None:
    gamma = load_file("tagger/weights.safetensors")["embedder.token_embedders.elmo.mix.gamma"]
    assert gamma.item() != 1


@pytest.mark.parametrize("run", ["bilm", "tagger"])
def test_a_run_records_plugins_of_config_and_command_line(run: str) -> None:
    assert _read(f"{run}/filled_config.json")["plugins"] == ["replacement_parts"]


def test_runs_with_plugins_are_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    text, tagged = str(TEXT), str(TAGGED / "valid.txt")
    assert main(["evaluate", "bilm", text, "--format", "json"]) == 0
    scores = json.loads(capsys.readouterr().out)[text]
    assert scores["perplexity"] == _read("bilm/metrics.json")["validation_perplexity"]
    assert main(["evaluate", "tagger", tagged, "--format", "json"]) == 0
    scores = json.loads(capsys.readouterr().out)[tagged]
    best = _read("tagger/metrics.json")["best_validation_loss"]
    assert scores["loss"] == pytest.approx(best)


def test_runs_with_plugins_predict(capsys: pytest.CaptureFixture[str]) -> None:
    Path("input.jsonl").write_text("".join(f"{json.dumps(held)}\n" for held in SENTENCES))
    assert main(["predict", "tagger", "input.jsonl"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(held["words"], len(held["tags"])) for held in printed] == [
        (SENTENCES[0]["tokens"], 5),
        (SENTENCES[1]["tokens"], 2),
    ]


def test_a_process_without_the_plugins_of_a_run_finds_them() -> None:
    expected = load("tagger").predict(SENTENCES)
    with without_plugins("replacement_parts"):
        assert load("tagger").predict(SENTENCES) == expected


def test_a_run_whose_plugin_is_gone_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    here = Path.cwd()
    Path("replacement_parts.py").rename("elsewhere")
    try:
        with without_plugins("replacement_parts"):
            assert main(["evaluate", "tagger", str(TAGGED / "valid.txt")]) == 2
    finally:
        Path("elsewhere").rename("replacement_parts.py")
    assert capsys.readouterr().err == (
        "error: the run tagger: no module named 'replacement_parts' for the plugin "
        f"'replacement_parts', neither installed nor in {here}. "
        "Install it, or run the command in its folder or with that folder in PYTHONPATH\n"
    )


def test_a_plugin_component_is_unknown_without_the_plugin(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with without_plugins("replacement_parts"):
        assert main(["check", "tagger.json"]) == 2
    assert capsys.readouterr().err == (
        "error: tagger.json: 1 problem in the configuration\n"
        "  model.embedder.token_embedders.elmo.mix.type: unknown LayerMix 'maximum'; "
        "choose from average, layer, scalar_mix. "
        "For a plugin, add it to `plugins` or pass --include-package\n"
    )


def test_include_package_registers_the_components_of_a_plugin(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with without_plugins("replacement_parts"):
        assert main(["describe", "layer_mix", "--include-package", "replacement_parts"]) == 0
    assert "maximum" in capsys.readouterr().out


@pytest.mark.usefixtures("own_plugins")
def test_an_error_inside_a_plugin_shows_the_plugins_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = Path("failing_plugin.py").absolute()
    module.write_text("def ready():\n    return 1 / 0\n\nready()\n")
    assert main(["describe", "--include-package", "failing_plugin"]) == 2
    message = capsys.readouterr().err
    assert message.startswith(
        "error: --include-package: the plugin 'failing_plugin' fails\n"
        "Traceback (most recent call last):\n"
        f'  File "{module}", line 4, in <module>\n'
    )
    assert message.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.usefixtures("own_plugins")
def test_a_plugin_of_an_installed_package_is_always_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("installed_plugin.py").write_text(
        "from elmo_framework.data.tokenizer import Tokenizer\n"
        "@Tokenizer.register('commas')\n"
        "class CommaTokenizer(Tokenizer):\n"
        "    '''Words stand between commas.'''\n"
        "    def sentences(self, text): return text.splitlines()\n"
        "    def words(self, sentence): return sentence.split(',')\n"
    )
    monkeypatch.syspath_prepend(Path.cwd())
    entry = EntryPoint("commas", "installed_plugin", "elmo_framework.plugins")
    monkeypatch.setattr(plugins, "installed_entries", lambda: [entry])
    assert main(["describe", "tokenizer"]) == 0
    assert "commas" in capsys.readouterr().out
