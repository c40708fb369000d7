import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from elmo_framework.config.plugins import (
    load_plugins,
    named_plugins,
    naming_packages,
    packages_of,
    plugin_packages,
    plugin_paths,
)
from elmo_framework.errors import PluginError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder for plugins; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refusal(name: str) -> str:
    with pytest.raises(PluginError) as caught:
        load_plugins([name], asked_by="--include-package")
    return str(caught.value)


def test_a_module_of_the_current_folder_is_imported_once(here: Path) -> None:
    (here / "counting_plugin.py").write_text("import sys\nsys.counted = [*sys.counted, 1]\n")
    sys.counted = []  # type: ignore[attr-defined]
    load_plugins(["counting_plugin"])
    load_plugins(["counting_plugin"])
    assert sys.counted == [1]  # type: ignore[attr-defined]


def test_the_current_folder_is_the_last_to_be_searched(here: Path) -> None:
    (here / "own_plugin.py").write_text("")
    load_plugins(["own_plugin"])
    load_plugins(["own_plugin"])
    assert sys.path.index(str(here)) == len(sys.path) - 1


def test_the_current_folder_is_left_out_without_plugins(here: Path) -> None:
    before = [*sys.path]
    load_plugins([])
    assert sys.path == before


def installed(folder: Path, name: str) -> Path:
    """A file that stands for one of an installed package."""
    folder.mkdir()
    (folder / name).write_text("")
    sys.path.insert(0, str(folder))
    return folder / name


def test_a_name_of_two_modules_is_refused_with_both(
    here: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = installed(tmp_path_factory.mktemp("site") / "packages", "twofold_plugin.py")
    (here / "twofold_plugin.py").write_text("raise AssertionError('imported')")
    assert refusal("twofold_plugin") == (
        f"--include-package: 'twofold_plugin' is two modules: {elsewhere}, which is installed, and "
        f"{here}/twofold_plugin.py, in the current folder; rename the latter, or run from another "
        "folder"
    )


def test_a_part_of_a_package_of_two_places_is_refused(here: Path) -> None:
    (here / "numpy").mkdir()
    (here / "numpy" / "plugin.py").write_text("")
    said = refusal("numpy.plugin")
    assert "'numpy' is two modules: " in said
    assert f"{here}/numpy/plugin.py, in the current folder" in said


def test_a_module_of_python_itself_is_not_taken_for_a_plugin(here: Path) -> None:
    (here / "time.py").write_text("")
    assert f"'time' is two modules: built-in, which is installed, and {here}/time.py" in refusal(
        "time"
    )


def test_an_installed_module_from_the_current_folder_is_one(here: Path) -> None:
    """As after `pip install --editable .` of a plugin."""
    (here / "linked_plugin.py").write_text("")
    sys.path.insert(0, str(here))
    load_plugins(["linked_plugin"])
    assert "linked_plugin" in sys.modules


def test_folder_without_python_is_not_a_second_module(here: Path) -> None:
    (here / "numpy").mkdir()
    load_plugins(["numpy"])


def test_packages_in_the_current_folder_are_not_entry_points(here: Path) -> None:
    (here / "wanted_plugin.py").write_text("")
    (here / "unwanted_plugin.py").write_text("")
    about = here / "unwanted-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: unwanted\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[elmo_framework.plugins]\nx = unwanted_plugin\n")
    load_plugins(["wanted_plugin"])
    load_plugins(["wanted_plugin"])
    assert "unwanted_plugin" not in sys.modules


def test_a_module_inside_a_package_is_imported(here: Path) -> None:
    (here / "outer").mkdir()
    (here / "outer" / "inner.py").write_text("")
    load_plugins(["outer.inner"])
    assert "outer.inner" in sys.modules


def test_a_plugin_is_located_without_being_imported(here: Path) -> None:
    for name in ("plain.py", "outer/inner.py", "package/__init__.py"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text("raise AssertionError")
    assert plugin_paths("plain") == [here / "plain.py"]
    assert plugin_paths("outer.inner") == [here / "outer/inner.py"]
    assert plugin_paths("package") == [here / "package"]
    assert plugin_paths("absent") == plugin_paths("plain.absent") == []
    assert not {"plain", "outer", "package"} & sys.modules.keys()


def test_missing_module_error_names_origin_and_nearest(here: Path) -> None:
    (here / "my_plugin.py").write_text("")
    assert refusal("my_plugins") == (
        "--include-package: no module named 'my_plugins' for the plugin 'my_plugins', neither "
        f"installed nor in {here}. Did you mean 'my_plugin'? Install it, or run the command in "
        "its folder or with that folder in PYTHONPATH"
    )


def test_missing_part_of_a_dotted_name_is_named(here: Path) -> None:
    (here / "outer").mkdir()
    assert "no module named 'outer.inner' for the plugin 'outer.inner.last'" in refusal(
        "outer.inner.last"
    )


@pytest.mark.parametrize("name", ["", "my-plugin", ".relative", "plugin.py/x"])
def test_invalid_module_name_is_refused(here: Path, name: str) -> None:
    said = f"--include-package: {name!r} is not a module name such as my_plugin.heads"
    assert refusal(name) == said


def test_a_plugin_that_fails_shows_its_own_traceback_only(here: Path) -> None:
    (here / "failing_plugin.py").write_text("def fail():\n    1 / 0\n\nfail()\n")
    lines = refusal("failing_plugin").splitlines()
    assert lines[:3] == [
        "--include-package: the plugin 'failing_plugin' fails",
        "Traceback (most recent call last):",
        f'  File "{here}/failing_plugin.py", line 4, in <module>',
    ]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert not any("importlib" in line or "plugins.py" in line for line in lines)


def test_plugin_with_missing_import_shows_its_traceback(here: Path) -> None:
    (here / "needy_plugin.py").write_text("import no_such_module_anywhere\n")
    said = refusal("needy_plugin")
    assert "the plugin 'needy_plugin' fails" in said
    assert f'File "{here}/needy_plugin.py", line 1' in said


def test_plugin_with_syntax_error_shows_its_traceback(here: Path) -> None:
    (here / "broken_plugin.py").write_text("def f(:\n")
    assert f'File "{here}/broken_plugin.py", line 1' in refusal("broken_plugin")


def installed_entry(folder: Path, module: str) -> None:
    """Stand for an installed package, `its_name`, whose plugin is a module."""
    about = folder / "its_name-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: its_name\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[elmo_framework.plugins]\nx = {module}\n")
    sys.path.insert(0, str(folder))


def test_plugins_of_installed_packages_are_imported(
    here: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    site = tmp_path_factory.mktemp("site")
    (site / "installed_plugin.py").write_text("")
    installed_entry(site, "installed_plugin")
    load_plugins([])
    assert "installed_plugin" in sys.modules


def test_an_installed_plugin_that_fails_is_named_by_its_package(
    here: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    installed_entry(tmp_path_factory.mktemp("site"), "no_such_plugin:thing")
    with pytest.raises(PluginError, match=r"^the installed package 'its_name': no module named"):
        load_plugins([])


def test_a_folder_of_a_model_brings_no_code_along(here: Path) -> None:
    model = here / "model" / "bilm.json"
    model.parent.mkdir()
    (model.parent / "evil_plugin.py").write_text("raise AssertionError('imported')")
    (here / "own_plugin.py").write_text("")
    with pytest.raises(PluginError, match=r"pass --include-package model\.evil_plugin if"):
        named_plugins(["model.evil_plugin"], source=model)
    assert named_plugins(["own_plugin"], source=model) == ["own_plugin"]


def test_a_plugin_in_the_folder_of_a_model_can_be_trusted(here: Path) -> None:
    (here / "trusted_plugin.py").write_text("")
    load_plugins(["trusted_plugin"], asked_by="--include-package")
    assert named_plugins(["trusted_plugin"], source=here / "bilm.json") == ["trusted_plugin"]


@pytest.mark.parametrize("written", [None, 3, "name", [3], {}])
def test_plugins_other_than_a_list_of_names_are_refused(here: Path, written: object) -> None:
    with pytest.raises(PluginError, match=r"bilm.json: plugins is .*; expected a list of strings"):
        named_plugins(written, source=here / "bilm.json")


@pytest.fixture
def installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages: one with an entry point, one without."""
    for name, module, entry_points in (
        ("shiny-heads", "shiny", "[elmo_framework.plugins]\nshiny = shiny.heads\n"),
        ("dull-heads", "dull", ""),
    ):
        folder = tmp_path / f"{name.replace('-', '_')}-1.5.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
        (folder / "top_level.txt").write_text(f"{module}\n")
        (folder / "entry_points.txt").write_text(entry_points)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


SHINY = {"shiny-heads": {"version": "1.5", "modules": ["shiny.heads"]}}
DULL = {"dull-heads": {"version": "1.5", "modules": ["dull.a", "dull.b"]}}


@pytest.mark.usefixtures("installed_package")
def test_plugins_are_recorded_with_their_packages() -> None:
    assert plugin_packages([]).items() >= SHINY.items()
    assert "dull-heads" not in plugin_packages([])
    assert packages_of(["dull.b", "dull.a", "no_package"]) == DULL
    assert plugin_packages(["dull.b", "dull.a"]).items() >= {**SHINY, **DULL}.items()


@pytest.mark.usefixtures("installed_package")
def test_a_missing_package_is_named() -> None:
    recorded = {**SHINY, "gone-heads": {"version": "2", "modules": ["gone", "gone.more"]}}
    with pytest.raises(PluginError) as caught, naming_packages(recorded, needed_by="the run r"):
        raise PluginError("no module named 'gone'")
    assert str(caught.value) == (
        "no module named 'gone'\nthe run r was made with plugins of packages that are not "
        "installed here: gone-heads==2 (modules: gone, gone.more); install them: "
        "pip install gone-heads==2"
    )


@pytest.mark.usefixtures("installed_package")
@pytest.mark.parametrize("recorded", [SHINY, {}, None, [], {"shiny-heads": None}, {"": None}])
def test_an_error_stays_as_it_is_where_no_package_is_missing(recorded: object) -> None:
    error = PluginError("another reason")
    with pytest.raises(PluginError) as caught, naming_packages(recorded, needed_by="the run r"):
        raise error
    assert caught.value is error
