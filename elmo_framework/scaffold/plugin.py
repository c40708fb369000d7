"""Write the package of a plugin that trains as it is."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from elmo_framework import components
from elmo_framework.config.plugins import load_plugins
from elmo_framework.config.registry import registered
from elmo_framework.errors import RunError
from elmo_framework.io.files import replacing
from elmo_framework.scaffold.rendering import template

_FILES: Mapping[str, str] = {
    "pyproject.toml": "pyproject.toml.jinja",
    "README.md": "README.md.jinja",
    "config.jsonnet": "config.jsonnet.jinja",
    "data/train.txt": "train.txt",
    "data/valid.txt": "valid.txt",
    "src/{name}/__init__.py": "__init__.py.jinja",
    "src/{name}/reader.py": "reader.py.jinja",
    "src/{name}/head.py": "head.py.jinja",
    "tests/test_{name}.py": "test_plugin.py.jinja",
}
"""The files of a plugin, and their templates."""


def plugin_name(text: str) -> str:
    """Return a name as that of a Python package.

    Raises:
        RunError: it is not one, or a module has it already, or the names of the components of the
            plugin are registered already.
    """
    name = text.replace("-", "_")
    if not name.isidentifier() or name != name.lower() or keyword.iskeyword(name):
        raise RunError(
            f"--plugin: {text!r} is not a name of a package; use lower-case letters, digits and "
            "underscores, such as my_plugin"
        )
    if name in sys.stdlib_module_names or find_spec(name) is not None:
        raise RunError(f"--plugin: there is a module {name!r} already; choose another name")
    components.load()
    load_plugins(())  # those of installed packages
    for component in (f"{name}_classifier", f"{name}_lines"):  # see the templates
        if registered(component):
            raise RunError(
                f"--plugin: {component!r}, which the plugin {name!r} would register, is the name "
                "of a component already; choose another name"
            )
    return name


def write_plugin(name: str, folder: Path) -> list[Path]:
    """Write a package with a reader, a head, a config and a test; return its files.

    Args:
        name: of the package; see `plugin_name`.
        folder: replaced if it exists.
    """
    values = {"name": name, "distribution": name.replace("_", "-")}
    paths = [Path(path.format(name=name)) for path in _FILES]
    with replacing(folder) as aside:
        for path, source in zip(paths, _FILES.values(), strict=True):
            target = aside / path
            target.parent.mkdir(parents=True, exist_ok=True)
            text = template(f"plugin/{source}").render(values)
            target.write_text(text, encoding="utf-8")
    return [folder / path for path in paths]
