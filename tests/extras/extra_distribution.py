"""Wheel and sdist, installed into empty environments by pip and uv, outside of the checkout."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

from elmo_framework.commands.main import COMMANDS
from tests.conftest import ROOT
from tests.extras.conftest import require_program

COMMAND_LINES = """
new texts.csv
describe encoder lstm
schema
completion bash
check texts.jsonnet
convert old.json --output-file new.jsonnet
find-lr texts.jsonnet -s rates --num-batches 12
train texts.jsonnet -s run -o trainer.num_epochs=2
evaluate run texts.csv --format json
predict run texts.csv --output-file predictions.jsonl
explain run --sentence 'this number is good' --output-file explained.html
report run --output-file report.html
archive run model.tar.gz
predict model.tar.gz texts.csv --output-file again.jsonl
import crf_tagger.tar.gz -s imported
print-results .
diff run model.tar.gz
embed mini sentences.txt --output-file vectors
score mini sentences.txt --output-file scores.tsv
neighbors mini --corpus sentences.txt --query "the cat sat" --word cat
prepare sentences.txt --output-dir corpus
new --task language_modeling --output-file bilm.jsonnet sentences.txt
export mini --output-dir exported
check-weights exported
cache
"""
"""What works without an extra; the files that a command writes are those of the next ones."""

NEED_EXTRAS = {
    "statistics": ["compare run --to run", "study study.jsonnet -s study"],
    "hub": ["push run hf://me/run"],
    "serve": ["serve run"],
    "onnx": ["export run --format onnx --output-dir onnx"],
}


OF_ALLENNLP = {
    "dataset_reader": {"type": "conll2003", "token_indexers": {"tokens": {"type": "single_id"}}},
    "train_data_path": "tags.txt",
    "validation_data_path": "tags.txt",
    "model": {
        "type": "crf_tagger",
        "text_field_embedder": {
            "token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 5}}
        },
        "encoder": {"type": "lstm", "input_size": 5, "hidden_size": 4},
    },
    "iterator": {"type": "basic", "batch_size": 2},
    "trainer": {"optimizer": "adam", "num_epochs": 1},
}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, as `make dist` builds them."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    build(folder)
    return folder


def build(folder: Path) -> None:
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run(command, check=True, capture_output=True, env=environment)


def wheel_of(folder: Path) -> Path:
    (wheel,) = folder.glob("*.whl")
    return wheel


def sdist_of(folder: Path) -> Path:
    (sdist,) = folder.glob("*.tar.gz")
    return sdist


def test_wheel_has_the_package_and_nothing_else(distributions: Path) -> None:
    wheel = wheel_of(distributions)
    assert wheel.name.endswith("-py3-none-any.whl")
    names = set(ZipFile(wheel).namelist())
    assert {name.split("/")[0].split("-")[0] for name in names} == {"elmo_framework"}
    assert not [name for name in names if re.search(r"\.pyc$|\.so$|/tests?/|/results/", name)]
    tracked = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "elmo_framework"], capture_output=True, text=True
    )
    configs = {f"elmo_framework/scaffold/{name}" for name in shipped_configs()}
    assert names >= {*tracked.stdout.split(), *configs}


def shipped_configs() -> list[str]:
    return [str(path.relative_to(ROOT)) for path in ROOT.glob("experiments/ner/*sonnet")]


def test_metadata_has_a_description_without_dead_links(distributions: Path) -> None:
    wheel = ZipFile(wheel_of(distributions))
    (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    metadata = message_from_bytes(wheel.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    description = str(metadata.get_payload())
    assert description.startswith("# elmo_framework")
    assert re.findall(r"\]\((?!https?:)[^)]*\)", description) == []


def test_sdist_has_what_the_tests_need(distributions: Path) -> None:
    with tarfile.open(sdist_of(distributions)) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {
        *("Makefile", "constraints.txt", "tests/conftest.py", "docs/site/conf.py"),
        *("benchmarks/faults.py", "plugins/ud_parser/task.py", "experiments/demo/run.py"),
    } <= names
    assert not [
        name for name in names if name.endswith(".pyc") or name.startswith((".venv", "data"))
    ]


def test_equal_files_give_equal_bytes(distributions: Path, tmp_path: Path) -> None:
    build(tmp_path)
    for file in distributions.iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


def environment(python: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return {**kept, "PATH": f"{python.parent}:{kept['PATH']}", "OMP_NUM_THREADS": "1"}


def elmo(python: Path, folder: Path, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python.parent / "elmo"), *words],
        cwd=folder,
        env={**environment(python), "ELMO_CACHE_ROOT": str(folder / "cache")},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_every_command_works_in_an_empty_environment(
    installer: str, distributions: Path, tmp_path: Path
) -> None:
    place = tmp_path / "environment"
    python = place / "bin/python"
    if installer == "uv":
        pip = [require_program(str(Path(sys.executable).parent / "uv"), "uv"), "pip"]
    else:
        pip = [str(python), "-m", "pip"]
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    subprocess.run(
        [*pip, "install", "-c", str(ROOT / "constraints.txt"), str(wheel_of(distributions))],
        check=True,
        env={**environment(python), "VIRTUAL_ENV": str(place)},
    )
    work = tmp_path / "work"
    work.mkdir()
    smoke(python, work)


def test_a_native_wheel_needs_no_compiler(distributions: Path, tmp_path: Path) -> None:
    require_program("cc", "a C compiler")
    script = [sys.executable, str(ROOT / "tools/native_wheel.py"), str(wheel_of(distributions))]
    subprocess.run([*script, "--output-dir", str(tmp_path)], check=True)
    wheel = wheel_of(tmp_path)
    assert wheel.name.endswith("-py3-none-linux_x86_64.whl")
    python = tmp_path / "environment/bin/python"
    subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
    install = [str(python), "-m", "pip", "install", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*install, str(wheel)], check=True, env=environment(python))
    code = """
from elmo_framework import load_bilm
from elmo_framework.kernels.compiler import slow_path_reason
for precision in ("float32", "bfloat16", "int8"):
    print(load_bilm("mini", precision=precision).embed([["a", "dog"]])[0].shape)
assert slow_path_reason() is None, slow_path_reason()
"""
    ended = subprocess.run(
        [str(python), "-c", code],
        cwd=tmp_path,
        env={**environment(python), "CC": "missing", "ELMO_CACHE_ROOT": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["(3, 2, 256)"] * 3
    assert not list(tmp_path.glob("cache/compiled-*/*.so"))


def smoke(python: Path, folder: Path) -> None:
    """Run every command in a folder, and look at what it writes."""
    rows = [
        f"{noun} number {n} is {word},{label}"
        for n in range(12)
        for noun in ("this", "that")
        for word, label in (("good", "yes"), ("bad", "no"))
    ]
    (folder / "texts.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    (folder / "sentences.txt").write_text("the cat sat on the mat\nthe dog saw the cat\n" * 20)
    (folder / "study.jsonnet").write_text(
        "{ configs: { a: { config: import 'texts.jsonnet' } }, seeds: [1] }"
    )
    (folder / "old.json").write_text(json.dumps(OF_ALLENNLP))
    shutil.copy(ROOT / "tests/fixtures/allennlp/crf_tagger.tar.gz", folder)
    used = set()
    for line in COMMAND_LINES.strip().splitlines():
        ended = elmo(python, folder, shlex.split(line))
        assert ended.returncode == 0, f"{line}\n{ended.stdout}{ended.stderr}"
        used.add(line.split()[0])
    for extra, lines in NEED_EXTRAS.items():
        for line in lines:
            ended = elmo(python, folder, line.split())
            assert ended.returncode == 2, f"{line}\n{ended.stdout}{ended.stderr}"
            assert f"pip install 'elmo-framework[{extra}]'" in ended.stderr
            assert "Traceback" not in ended.stderr
            used.add(line.split()[0])
    assert used == {command.name for command in COMMANDS}
    predictions = (folder / "predictions.jsonl").read_bytes()
    assert len(predictions.splitlines()) == 48
    assert (folder / "again.jsonl").read_bytes() == predictions
    for name in (
        "report.html",
        "vectors",
        "scores.tsv",
        "exported/weights.hdf5",
        "run/weights.safetensors",
        "bilm.jsonnet",
    ):
        assert (folder / name).stat().st_size > 0, name
    shutil.rmtree(folder)
