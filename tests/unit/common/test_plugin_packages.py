"""Packages of plugins, installed and gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from elmo_framework.common.errors import PluginError
from elmo_framework.common.plugin_packages import naming_packages, packages_of, plugin_packages


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


@pytest.mark.usefixtures("installed")
def test_plugins_are_recorded_with_their_packages() -> None:
    assert plugin_packages([]).items() >= SHINY.items()
    assert "dull-heads" not in plugin_packages([])
    assert packages_of(["dull.b", "dull.a", "no_package"]) == DULL
    assert plugin_packages(["dull.b", "dull.a"]).items() >= {**SHINY, **DULL}.items()


@pytest.mark.usefixtures("installed")
def test_a_missing_package_is_named() -> None:
    recorded = {**SHINY, "gone-heads": {"version": "2", "modules": ["gone", "gone.more"]}}
    with pytest.raises(PluginError) as caught, naming_packages(recorded, needed_by="the run r"):
        raise PluginError("there is no module 'gone'")
    assert str(caught.value) == (
        "there is no module 'gone'\nthe run r was made with plugins of packages that are not "
        "installed here: gone-heads==2 (modules: gone, gone.more); install them: "
        "pip install gone-heads==2"
    )


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("recorded", [SHINY, {}, None, [], {"shiny-heads": None}, {"": None}])
def test_an_error_stays_as_it_is_where_no_package_is_missing(recorded: object) -> None:
    error = PluginError("another reason")
    with pytest.raises(PluginError) as caught, naming_packages(recorded, needed_by="the run r"):
        raise error
    assert caught.value is error
