"""The source of the documentation site; `tests/extras/extra_site.py` builds the site."""

from __future__ import annotations

import os
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.conftest import ROOT

STAGE = runpy.run_path(str(ROOT / "docs/site/stage.py"))
DOCSTRINGS = runpy.run_path(str(ROOT / "docs/site/docstrings.py"))
PAGES = STAGE["found"](STAGE["PAGES"])
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(<?(?![a-z]+:)([^)#\s<>]*)(#[^)\s>]*)?>?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def prose(page: Path) -> str:
    return FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of headings, as code hosts and the site name them."""
    headings = (
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text) for text in HEADING.findall(prose(page))
    )
    return {"#" + re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def broken_links(page: Path) -> Iterator[str]:
    for target, anchor in LINK.findall(prose(page)):
        path = Path(os.path.normpath(page.parent / unquote(target))) if target else page
        if not (ROOT / path).exists() or (anchor and anchor not in anchors(path)):
            yield f"{page}: {target}{anchor}"


def test_links_and_anchors_of_pages_exist() -> None:
    assert [broken for page in PAGES for broken in broken_links(page)] == []


def test_links_to_other_files_lead_to_pages_about_them(tmp_path: Path) -> None:
    site = STAGE["Site"](tmp_path)
    text = """\
[a](../experiments/lib/elmo.libsonnet), [b](../README.md#install), [c](../LICENSE), [d](decisions/)
![e](demo.svg) `experiments/ner/elmo.jsonnet` [f](tasks.md) [g](../experiments/results/table1/)
```text title="x.txt"
[c](../LICENSE)
```
"""
    assert (
        site.linked(Path("docs/page.md"), text)
        == """\
[a](../experiments/lib/elmo.libsonnet.md), [b](../index.md#install), [c](../LICENSE.md), \
[d](decisions/README.md)
![e](demo.svg) [`experiments/ner/elmo.jsonnet`](../experiments/ner/elmo.jsonnet.md) \
[f](tasks.md) [g](../experiments/results/table1.md)
```{code-block} text
:caption: x.txt
[c](../LICENSE)
```
"""
    )
    assert (tmp_path / "docs/demo.svg").read_bytes() == (ROOT / "docs/demo.svg").read_bytes()
    page = site.literal_page(Path("experiments/ner/elmo.jsonnet"))
    assert "Imports [`../lib/elmo.libsonnet`](../lib/elmo.libsonnet.md), " in page
    assert (ROOT / "experiments/ner/elmo.jsonnet").read_text() in page
    assert "* `table.md`\n" in site.literal_page(Path("experiments/results/table1"))


def test_every_page_is_in_one_list(tmp_path: Path) -> None:
    site = STAGE["Site"](tmp_path)
    site.nest_pages()
    listed = sorted(name for names in site.children.values() for name in names)
    assert listed == sorted(map(str, {*PAGES, *site.literal} - {Path("README.md")}))
    assert site.children["README.md"][0] == "docs/first_model.md"
    assert "docs/tasks/srl.md" in site.children["docs/tasks.md"]


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("The sum |K| * `name` of `f(x)` a_", r"The sum \|K\| \* `name` of ``f(x)`` a\_"),
        ("With\n\n    y = a * b\n\nend", "With\n\n::\n\n        y = a * b\n\n\nend"),
        ("* one\n  more\n\n  and\n* two", "* one\n  more\n\n  and\n* two"),
        ("Args:\n    x: of *.\n\n        More.", "Args:\n    x: of \\*.\n\n        More."),
        ("| a | b |", "::\n\n    | a | b |\n"),
    ],
)
def test_docstrings_become_restructured_text(docstring: str, expected: str) -> None:
    assert "\n".join(DOCSTRINGS["to_restructured_text"](docstring.split("\n"))) == expected
