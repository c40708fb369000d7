"""Sphinx: how `make docs` makes the pages of `stage.py` a site."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from docstrings import to_restructured_text

import elmo_framework.components  # noqa: F401
from elmo_framework.version import VERSION

project = "elmo_framework"
version = release = VERSION
html_title = f"elmo_framework {VERSION}"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

html_theme = "furo"
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False

myst_heading_anchors = 4

# Docstrings have names in single backticks: a link where the name is public.
default_role = "py:obj"
nitpicky = True
# Signatures also name classes that are not public, and classes of other packages.
nitpick_ignore_regex = [("py:.*", ".*")]
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries = False
# Parts of configs are no whole programs, and sessions have lines that no lexer knows.
suppress_warnings = ["misc.highlighting_failure"]


def setup(app):
    """Connect the conversion of docstrings, before that of `Args:` and the like."""
    app.connect("autodoc-process-docstring", _convert, priority=100)


def _convert(app, what, name, value, options, lines):
    # A `forward` without a docstring inherits that of torch, which says nothing about it.
    is_inherited = bool(lines) and lines[0].startswith("Define the computation performed")
    # A constant has the docstring of its type, such as that of `dict`.
    of_type = (inspect.getdoc(type(value)) or "").splitlines()
    is_inherited |= what == "data" and lines[:1] == of_type[:1]
    lines[:] = [] if is_inherited else to_restructured_text(lines)
