"""The documentation site, as `make docs` builds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

SITE = ROOT / "docs/site"


def test_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    source, html = tmp_path / "source", tmp_path / "html"
    subprocess.run([sys.executable, str(SITE / "stage.py"), str(source)], check=True)
    options = ["-q", "-n", "-W", "--keep-going", "-c", str(SITE), "-d", str(tmp_path / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(html)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    shown = (html / "reference/api/elmo_framework.nn.html").read_text()
    assert "Scores sequences of tags (Lafferty et al. 2001)" in shown
    assert "batch" in shown
    assert "baseline.jsonnet.html" in (html / "experiments/ner/elmo.jsonnet.html").read_text()
    assert "How to embed text" in (html / "searchindex.js").read_text()
