"""Pages in a browser without a window."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
from matplotlib.image import imread

from elmo_framework.commands.main import main
from tests.extras.conftest import require_program


def screenshot(page: Path, *, width: int = 800, height: int = 1000) -> np.ndarray:
    """Return the picture of a page: "height width channels", from 0 to 1."""
    browser = require_program("chromium", "chromium-browser", "google-chrome")
    picture = page.with_suffix(".png")
    subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={page.parent / 'user'}"),
            *(f"--screenshot={picture}", f"--window-size={width},{height}", page.as_uri()),
        ],
        check=True,
        capture_output=True,
    )
    return imread(picture)[:, :, :3]


def test_browser_draws_the_curves_of_a_report(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "filled_config.json").write_text(json.dumps({"model": {"type": "crf_tagger"}}))
    lines = [json.dumps({"step": 5 * n, "seconds": n, "accuracy": n / 9}) for n in range(1, 9)]
    (run / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    page = tmp_path / "page.html"
    assert main(["report", str(run), "--output-file", str(page)]) == 0
    drawn = screenshot(page)
    page.write_text(page.read_text().replace("<polyline", "<none").replace("<circle", "<none"))
    without_curves = screenshot(page)
    is_changed = np.abs(drawn - without_curves).max(axis=2) > 0.1
    assert is_changed.sum() > 300  # a line of several hundred pixels
    rows, columns = np.nonzero(is_changed)
    assert np.corrcoef(rows, columns)[0, 1] < -0.9  # it rises to the right
