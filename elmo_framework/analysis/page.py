"""Render the templates of this package: the page of a report and its charts."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(template: str, **values: Any) -> str:
    """Fill in a template of `analysis/templates`; text is escaped."""
    return _templates().get_template(template).render(values)


def standalone(picture: str) -> str:
    """Return an SVG of this package with its style, as a file of its own."""
    style = render("report.css").replace("<", "&lt;")
    return picture.replace(">", f">\n<style>\n{style}\n</style>", 1)


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("elmo_framework.analysis"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"number": show_number, "coordinate": "{:.1f}".format}
    return templates


def show_number(value: float) -> str:
    """Format a number with four significant digits."""
    return f"{value:,.0f}" if 10_000 <= abs(value) < 1e7 else f"{value:.4g}"
