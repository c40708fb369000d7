"""Rules of the code base that a reader relies on, and that no other tool checks."""

from __future__ import annotations

import ast
import configparser
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_framework import components
from elmo_framework.config.docstrings import documented
from elmo_framework.config.registry import families, members
from elmo_framework.config.signature import component_class, parameters
from elmo_framework.config.types import Factory
from elmo_framework.model.head import Head
from elmo_framework.model.model import Model

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "elmo_framework"
FILES = sorted(PACKAGE.rglob("*.py"))


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text())
    return [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def num_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def registered() -> list[Factory]:
    return [
        member
        for family in families().values()
        for member in members(family).values()
        if member.__module__.startswith("elmo_framework")
    ]


def test_a_file_has_at_most_400_lines() -> None:
    assert [path for path in FILES if len(path.read_text().splitlines()) > 400] == []


def test_a_function_has_at_most_40_lines() -> None:
    long = [
        f"{path}: {held.name}" for path in FILES for held in functions(path) if num_lines(held) > 40
    ]
    assert long == []


def test_no_file_is_a_drawer_of_everything() -> None:
    drawers = {"utils", "util", "helpers", "misc", "base", "common"}
    assert [path for path in FILES if path.stem in drawers] == []


def test_every_parameter_of_a_component_is_documented() -> None:
    missing = [
        f"{member.__qualname__}.{name}"
        for member in registered()
        for name in parameters(member)
        if not documented(member).get(name)
    ]
    assert missing == []


def test_a_registered_class_is_final() -> None:
    open_classes = [
        member.__qualname__
        for member in registered()
        if isinstance(member, type)
        and (not getattr(member, "__final__", False) or inspect.isabstract(member))
    ]
    assert open_classes == []


def test_registered_functions_return_abstract_or_final_classes() -> None:
    functions = [member for member in registered() if not isinstance(member, type)]
    assert len(functions) >= 30
    for function in functions:
        returned = component_class(function)
        assert inspect.isabstract(returned) or getattr(returned, "__final__", False), function


def test_every_model_takes_the_keys_of_its_family() -> None:
    components.load()
    models = [model for model in members(Model).values() if model in registered()]
    assert len(models) >= 10
    for model in models:
        keys = {"initializer", "regularizer"} | ({"metrics"} if issubclass(model, Head) else set())
        assert keys <= parameters(model).keys()


def test_no_pickle_is_loaded() -> None:
    text = "\n".join(path.read_text() for path in FILES)
    assert re.findall(r"pickle\.loads?\(|weights_only=False|allow_pickle=True", text) == []
    assert len(re.findall(r"torch\.load\(", text)) == len(re.findall(r"weights_only=True\)", text))


def test_transformers_is_imported_in_one_file() -> None:
    users = [path.name for path in FILES if 'import_extra("transformers"' in path.read_text()]
    assert users == ["transformer_files.py"]


@pytest.mark.slow
def test_every_module_is_imported_without_extras() -> None:
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg")
    extras = setup["options.extras_require"]
    optional = {
        re.split("[><=;]", line)[0].strip().replace("-", "_")
        for extra in set(extras) - {"dev"}
        for line in extras[extra].split()
    }
    optional.add("sklearn")  # the module of scikit-learn
    assert {"transformers", "tokenizers", "optuna"} <= optional
    modules = [
        str(path.relative_to(ROOT).with_suffix("")).replace("/", ".")
        for path in FILES
        # Triton is part of PyTorch's builds for CUDA, and `kernels.operators` knows if it is there.
        if path.name != "__main__.py" and not path.name.startswith("triton_")
    ]
    code = (
        "import importlib, sys\n"
        f"sys.modules.update(dict.fromkeys({sorted(optional)}))\n"
        f"for module in {modules}: importlib.import_module(module)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_folder_with_the_name_of_the_package_does_not_hide_it(tmp_path: Path) -> None:
    (tmp_path / "elmo_framework").mkdir()  # as of a clone, from where it lies
    code = "from elmo_framework import load"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_the_architecture_page_shows_the_tree_as_it_is() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    tree = re.search(r"```\nelmo_framework/\n(.*?)```", page, re.DOTALL)
    assert tree is not None
    shown = set(re.findall(r"^ *(\w+)/", tree[1], re.MULTILINE))
    folders = {
        path.name for path in PACKAGE.rglob("*/") if path.is_dir() and path.name != "__pycache__"
    }
    assert folders <= shown
    for name in shown - folders:
        assert (ROOT / name).is_dir(), f"docs/architecture.md shows {name}/, which is not there"


def test_the_architecture_page_has_the_layers_of_the_contract() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    contract = configparser.ConfigParser(interpolation=None)
    contract.read(ROOT / "setup.cfg")
    layers = contract["importlinter:contract:layers"]["layers"].split("\n")
    assert f"\n{' > '.join(filter(None, layers))}\n" in page


def test_the_pages_about_the_code_name_files_that_exist() -> None:
    pages = [ROOT / "docs/architecture.md", *(ROOT / "docs/decisions").glob("*.md")]
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in pages
        for name in re.findall(r"`([\w/]+\.(?:py|c))`", page.read_text())
        if "/" in name and not (PACKAGE / name).exists() and not (ROOT / name).exists()
    ]
    assert missing == []


def test_each_step_of_the_walks_is_in_the_file_it_names() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    walks = re.search(r"^## Four walks\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    assert walks is not None
    steps = re.findall(r"^(\d+)\. (.*?)\((`[^()]*`)\)\.$", walks[1], re.MULTILINE | re.DOTALL)
    assert len(steps) == len(re.findall(r"^\d+\. ", walks[1], re.MULTILINE))
    assert max(int(number) for number, _, _ in steps) <= 15
    for number, sentence, places in steps:
        files = re.findall(r"`([\w/]+\.py)`", f"{sentence} {places}")
        code = "".join((PACKAGE / file).read_text() for file in files)
        call = re.search(r"`([\w.]+)`", sentence)
        for name in call[1].split(".") if call and not call[1].endswith(".py") else ():
            defined = rf"(?:def|class) {name}\b|^from \S+ import .*\b{name}\b"
            assert name == "plain" or re.search(defined, code, re.MULTILINE), (number, sentence)


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs/decisions"
    listed = set(re.findall(r"\((\w+\.md)\)", (folder / "README.md").read_text()))
    assert listed == {path.name for path in folder.glob("*.md")} - {"README.md"}


def test_changelog_entries_are_whole() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = re.split(r"^(?:- |#+ )", text, flags=re.MULTILINE)[1:]
    titles = [title[1] for entry in entries if (title := re.match(r"\*\*(.+?)\*\*", entry))]
    assert len(titles) > 20
    assert [title for title in titles if titles.count(title) > 1] == []
    torn = [
        entry[:40]
        for entry in entries
        if entry.count("`") % 2 or entry.count("(") != entry.count(")")
    ]
    assert torn == []
