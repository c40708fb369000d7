from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[3] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_fits_the_package_that_it_measures(path: Path) -> None:
    assert import_module(path.stem).__doc__
