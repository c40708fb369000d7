"""Which files each command reads and writes, and that none replaces what it reads."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.commands.command import Command
from elmo_framework.commands.main import COMMANDS, main
from elmo_framework.config.arguments import add_arguments
from elmo_framework.io.outputs import BILM_PARTS
from elmo_framework.io.remote import as_path
from tests.redirection import standard_output_to

WRITING = [command for command in COMMANDS if command.outputs is not Command.outputs]


def parsed(command: type[Command]) -> tuple[Command, set[Path]]:
    """Return a command in which each path has a different value, and those paths."""
    parser = ArgumentParser(add_help=False)
    add_arguments(parser, command)
    paths, values = set[Path](), dict[str, Any]()
    for action in parser._actions:
        path = Path(f"place-of-{action.dest}")
        is_list = action.nargs in ("+", "*")
        if action.type is as_path:
            paths.add(path)
            values[action.dest] = [path] if is_list else path
        elif action.dest in ("run_or_bilm", "bilm"):
            values[action.dest] = str(path)
        else:
            values[action.dest] = action.default
    return command(**values), paths


def test_commands_have_paths() -> None:
    assert sum(bool(parsed(command)[1]) for command in COMMANDS) > len(WRITING)


def test_all_output_flags_are_declared_as_outputs() -> None:
    names = {command.name for command in WRITING}
    assert names == {
        command.name
        for command in COMMANDS
        if any(path.name.startswith("place-of-output") for path in parsed(command)[1])
    } | {"find-lr", "import", "train", "study"}


@pytest.mark.parametrize("command", WRITING, ids=lambda command: str(command.name))
def test_every_path_is_an_input_or_an_output(command: type[Command]) -> None:
    made, paths = parsed(command)
    read = {source.path for source in made.inputs()}
    written = {output.path for output in made.outputs()}
    parts = {*BILM_PARTS, "learning_rates.csv"}
    written |= {path.parent for path in written if path.name in parts}
    assert paths <= read | written
    assert not read & written


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run, a biLM, a corpus, texts, a config and a plugin."""
    monkeypatch.chdir(tmp_path)
    for path, content in {
        "run/filled_config.json": json.dumps(
            {
                "model": {"pretrained_file": str(tmp_path / "vectors.txt")},
                "plugins": ["plugin_of_the_run"],
            }
        ),
        "run/weights.safetensors": "weights",
        "run/metrics.json": "{}",
        "bilm/options.json": "{}",
        "bilm/weights.hdf5": "weights",
        "corpus/corpus.json": "{}",
        "corpus/words.txt": "words",
        "texts/a.txt": "text",
        "s.txt": "text",
        "vectors.txt": "vectors",
        "config.json": '{"model": {}}',
        "plugin_of_the_run.py": "",
        "my_plugin/heads.py": "",
    }.items():
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(content)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "evaluate run s.txt --predictions-file s.txt -f",
        "evaluate run s.txt --output-file run/metrics.json -f",
        "evaluate run s.txt --output-file vectors.txt -f",
        "evaluate run s.txt --output-file plugin_of_the_run.py -f",
        "evaluate run texts --output-file texts/a.txt -f",
        "evaluate run s.txt --output-file corpus/words.txt -f",
        "predict run s.txt --output-file s.txt -f",
        "predict run s.txt --output-file bilm/weights.hdf5 -f",
        "predict run s.txt --output-file my_plugin/heads.py --include-package my_plugin.heads -f",
        "report run --output-file run/weights.safetensors -f",
        "report run --before bilm --output-file bilm/options.json -f",
        "report run --corpus s.txt --query a --word a --output-file s.txt -f",
        "schema --output-file config.json",
        "schema --output-file my_plugin/heads.py --include-package my_plugin -f",
        "embed bilm s.txt --output-file bilm/weights.hdf5 -f",
        "embed bilm s.txt --output-file s.txt -f",
        "embed bilm texts/a.txt --output-file texts --format npy -f",
        "embed bilm s.txt --output-file run/weights.safetensors --layers mixed(run:x) -f",
        "export bilm --output-dir bilm -f",
        "export run --output-dir run/bilm -f",
        "prepare texts/a.txt --output-dir texts -f",
        "prepare s.txt --vocabulary corpus/words.txt --output-dir corpus -f",
        "train config.json -s . -f",
        "train config.json -s run/checkpoints/next",
    ],
)
def test_no_command_replaces_its_input(
    line: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert main(line.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: --")
    assert error.endswith("choose another path\n")
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "line",
    [
        "predict run s.txt",
        "evaluate run s.txt",
        "embed bilm s.txt",
        "neighbors bilm --corpus s.txt --query a --word a",
    ],
)
def test_no_command_appends_to_its_input(
    line: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with standard_output_to(place / "s.txt"):
        assert main(line.split()) == 2
    assert capsys.readouterr().err.startswith("error: standard output is also an input (")
    assert (place / "s.txt").read_text() == "text"


@pytest.mark.parametrize("command", ["evaluate run s.txt", "predict run s.txt", "report run"])
def test_a_file_that_exists_needs_force(
    command: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "out").write_text("mine")
    assert main([*command.split(), "--output-file", "out"]) == 2
    assert "--output-file out already exists; pass --force" in capsys.readouterr().err
    assert (place / "out").read_text() == "mine"


@pytest.mark.parametrize("name", ["ner.zip", "ner.ZIP", "ner.tar.xz"])
def test_an_archive_has_no_suffix_of_another_format(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    assert main(["archive", str(tmp_path / "run"), str(tmp_path / name)]) == 2
    assert f"{name}: an archive is a gzipped tar file" in capsys.readouterr().err


def test_export_without_an_output_names_the_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "mini"]) == 2
    assert "--format bilm: pass --output-dir DIR" in capsys.readouterr().err
