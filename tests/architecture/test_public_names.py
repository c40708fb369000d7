"""The names in `__all__` of the packages are the contract; users and the docs need no others."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "elmo_framework"
STUBS = sorted(PACKAGE.rglob("__init__.pyi"))
USERS = [
    *(path for folder in ("plugins", "experiments") for path in (ROOT / folder).rglob("*.py")),
    *(
        path
        for folder in ("docs", "plugins", "experiments")
        for path in (ROOT / folder).rglob("*.md")
    ),
    *ROOT.glob("*.md"),
]


def dotted(path: Path) -> str:
    """The name under which a file is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the module and the name of each import of ours, also in blocks of a page."""
    for offset, code in blocks(path):
        for node in ast.walk(ast.parse(code)):
            match node:
                case ast.Import(names=names):
                    origins = [(alias.name, "") for alias in names]
                case ast.ImportFrom(module=str(module), names=names, level=0):
                    origins = [(module, alias.name) for alias in names]
                case _:
                    continue
            for module, name in origins:
                if module.split(".")[0] == PACKAGE.name:
                    yield offset + node.lineno, module, name


def blocks(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the Python code of a file and the number of lines before it."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield 0, text
        return
    for match in re.finditer(r"^```python\b[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, match.start(1)), match[1]


@cache
def public_names() -> dict[str, set[str]]:
    """The names in the stub of each package."""
    return {dotted(stub): {name for _, _, name in lines(stub)} for stub in STUBS}


def lines(stub: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the module and the name of each import of a stub."""
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            (alias,) = node.names
            assert node.level == 1, f"{stub}:{node.lineno}: import from a module of the package"
            assert alias.asname == alias.name, f"{stub}:{node.lineno}: write 'import Name as Name'"
            yield node.lineno, f"{dotted(stub)}.{node.module}", alias.name


@cache
def definitions() -> dict[str, set[str]]:
    """The names that each module of the package defines."""
    return {dotted(path): set(top_level(path)) for path in PACKAGE.rglob("*.py")}


def top_level(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def test_each_public_name_is_where_its_stub_imports_it_from() -> None:
    wrong = []
    for stub in STUBS:
        package = dotted(stub)
        for line, module, name in lines(stub):
            if name in definitions().get(module, ()):
                continue
            modules = [other for other in definitions() if name in definitions()[other]]
            inside = [other for other in modules if other.startswith(f"{package}.")]
            fix = " or ".join(
                f"'from {other.removeprefix(package)} import {name} as {name}'" for other in inside
            )
            advice = f"write {fix}" if fix else f"remove the line; it is now in {modules}"
            wrong.append(f"{stub.relative_to(ROOT)}:{line}: no {name} in {module}; {advice}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", [dotted(stub) for stub in STUBS])
def test_all_has_the_names_of_the_stub_and_they_resolve(package: str) -> None:
    module = import_module(package)
    assert set(module.__all__) == set(dir(module)) == public_names()[package]
    assert all(getattr(module, name).__class__ for name in module.__all__)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


def test_no_public_name_is_that_of_a_module_of_its_package() -> None:
    """Importing the module would replace the name in the package."""
    clashes = [
        f"{package}.{name}"
        for package, names in public_names().items()
        for name in names
        if f"{package}.{name}" in definitions()
    ]
    assert clashes == []


def test_plugins_pages_and_experiments_import_public_names_only() -> None:
    wrong = []
    num_imports = 0
    for path in USERS:
        for line, module, name in imports(path):
            num_imports += 1
            if name not in public_names().get(module, ()):
                packages = [package for package, names in public_names().items() if name in names]
                advice = f"import it from {' or '.join(packages)}" if packages else "not public"
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {module}: {name}: {advice}")
    assert num_imports > 20
    assert not wrong, "\n".join(wrong)


def test_the_package_itself_imports_from_modules() -> None:
    """So import-linter sees which module needs which."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: import {name} from its module, not from {module}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, module, name in imports(path)
        if name in public_names().get(module, ())
    ]
    assert not wrong, "\n".join(wrong)


def test_importing_the_packages_imports_no_torch() -> None:
    code = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]; "
    code += "print(*{'torch', 'numpy', 'spacy', 'h5py', 'pydantic'} & set(sys.modules))"
    command = [sys.executable, "-c", code, *map(dotted, STUBS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == []
