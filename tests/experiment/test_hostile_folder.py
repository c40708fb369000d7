"""Files in the current folder that have the names of what is imported."""

from __future__ import annotations

import json
import sys
import sysconfig
from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.experiment.jobs import PRETRAINING, arguments, run_python

pytestmark = pytest.mark.slow

SCRIPTS = Path(sysconfig.get_path("scripts"))
ELMO, TORCHRUN = (str(SCRIPTS / name) for name in ("elmo", "torchrun"))
# It imports all components, and cuts the text of a pipe in processes of its own.
PREPARE = ["prepare", "-", "--output-dir", "corpus", "--held-out", "4", "--processes", "2"]
SENTENCES = "Anna moved to Lisbon .\nIt rained all day .\n" * 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: for every module that could be imported, a file that notes its import."""
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    monkeypatch.chdir(hostile)
    for name in (sys.stdlib_module_names | packages_distributions().keys()) - loaded_by_python():
        if name.isidentifier() and name != "elmo_framework":
            Path(f"{name}.py").write_text("open('imported', 'a').write(__name__ + '\\n')\n")
    return hostile


def loaded_by_python() -> set[str]:
    """The modules that `python -m` needs to find any module at all, ours or not."""
    Path("empty_module.py").write_text("import sys; print(*sys.modules)")
    return set(run_python("-m", "empty_module").stdout.split())


def imported() -> list[str]:
    """The names of the files that were imported."""
    return Path("imported").read_text().split() if Path("imported").exists() else []


@pytest.mark.parametrize("elmo", [[ELMO], ["-m", "elmo_framework"]], ids=["elmo", "module"])
def test_no_file_of_the_folder_is_imported(folder: Path, elmo: list[str]) -> None:
    done = run_python(*elmo, *PREPARE, text=SENTENCES)
    assert (imported(), done.returncode) == ([], 0), done.stderr


def test_no_process_of_torchrun_imports_a_file_of_the_folder(folder: Path) -> None:
    changes = {**PRETRAINING, "trainer.num_epochs": 1, "trainer.evaluate_every": {"epochs": 1}}
    words = arguments("experiments/pretrain/demo.jsonnet", Path("run"), changes)
    launch = [TORCHRUN, "--standalone", "--nproc-per-node", "2"]
    done = run_python(*launch, "-m", "elmo_framework", *words)
    assert (imported(), done.returncode) == ([], 0), done.stderr
    assert json.loads(Path("run/metrics.json").read_text())["training_steps"] > 0


def test_a_plugin_of_the_folder_is_imported_and_nothing_else(folder: Path) -> None:
    # Without the folder that setuptools adds once any test has imported it.
    places = [place for place in sys.path if Path(place).name != "_vendor"]
    for path in folder.glob("*.py"):
        spec = PathFinder.find_spec(path.stem, places)
        # Not installed here, or a namespace package, for which Python looks last.
        if spec is None or spec.origin is None:
            path.unlink()
    Path("own_plugin.py").write_text("import own_part\n")
    Path("own_part.py").write_text("open('imported', 'a').write(__name__ + '\\n')\n")
    plugin = ["--include-package", "own_plugin"]
    done = run_python("-m", "elmo_framework", *PREPARE, *plugin, text=SENTENCES)
    assert done.returncode == 0, done.stderr
    assert set(imported()) == {"own_part"}
    assert len(imported()) > 1, "the processes that cut the text import it too"
