"""The page of a report: one HTML file that asks for nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from elmo_framework.analysis.chart import line_chart, show_number
from elmo_framework.analysis.curves import Panel
from elmo_framework.analysis.neighbors import Neighbor, Neighbors, Occurrence

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --soft: #66708a; --line: #dde2ec;
  --paper: #f5f7fa; --card: #fff; --c0: #2563c9; --c1: #d1551b; --c2: #2a8a4b; --c3: #9333b5;
  --c4: #b58900; --c5: #5c6b80; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8f0; --soft: #97a1b8; --line: #333c4e;
  --paper: #151a23; --card: #1d2430; --c0: #6fa3f5; --c1: #f59566; --c2: #67c58a; --c3: #c98be0;
  --c4: #dfb83f; --c5: #a3afc4; } }
body { margin: 0; padding: 2rem max(1rem, calc(50% - 36rem)); background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 1rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .75rem; }
h3 { font-size: .95rem; margin: 0; }
.grid-of-cards { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(24rem,
  100%), 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; margin: 0;
  padding: .9rem 1rem; min-width: 0; }
.legend { color: var(--soft); font-size: .82rem; margin: .2rem 0 .4rem; padding: 0; }
.legend li { display: inline-block; margin-right: 1rem; }
.legend li::before { content: ""; display: inline-block; width: .9em; height: 3px;
  margin-right: .4em; vertical-align: middle; background: var(--own); }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { fill: var(--soft); font-size: 11px; }
/* A chart shrinks with its card; its text does not. */
.card { container-type: inline-size; }
@container (max-width: 26rem) { svg text { font-size: 15px; } }
.tick, .grid { stroke: var(--line); stroke-width: 1; }
.curve { fill: none; stroke: var(--own); stroke-width: 1.8; stroke-linejoin: round; }
.dot { fill: var(--own); }
.curve-0 { --own: var(--c0); } .curve-1 { --own: var(--c1); } .curve-2 { --own: var(--c2); }
.curve-3 { --own: var(--c3); } .curve-4 { --own: var(--c4); } .curve-5 { --own: var(--c5); }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
td { border-top: 1px solid var(--line); padding: .3rem .6rem .3rem 0; vertical-align: top;
  overflow-wrap: anywhere; }
tr:first-child td { border-top: 0; }
td:first-child { color: var(--soft); white-space: nowrap; }
mark { background: none; color: var(--c1); font-weight: 600; }
details { margin-top: .75rem; } summary { cursor: pointer; }
pre { overflow-x: auto; font-size: .8rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; padding: 1rem; }
@media (max-width: 34rem) { body { padding: 1rem .75rem; } }
/* In a narrow card a value is below its name. */
@container (max-width: 28rem) {
  .facts td { display: block; padding: 0 0 .35rem; }
  .facts td:first-child { padding: .35rem 0 0; white-space: normal; }
  .facts td + td { border-top: 0; }
}
"""


@dataclass(frozen=True)
class Report:
    """The content of a page.

    Attributes:
        title: of the page.
        facts: model, data, versions and command of the run, by name.
        metrics: of the finished run, by name; empty before it is finished.
        panels: its curves.
        neighbors: the neighbours of a word, by the name of each biLM.
        documents: long texts by their titles.
    """

    title: str
    facts: Mapping[str, str]
    metrics: Mapping[str, str]
    panels: Sequence[Panel]
    neighbors: Mapping[str, Neighbors]
    documents: Mapping[str, str]


def render(report: Report) -> str:
    """Return the HTML of a page."""
    title = escape(report.title)
    tables = [_card(_table(rows)) for rows in (report.facts, report.metrics) if rows]
    charts = [_chart(panel) for panel in report.panels]
    sections = [
        f"<h1>{title}</h1>",
        _grid(tables),
        "<h2>Curves</h2>" if charts else "<p>Nothing has been logged yet.</p>",
        _grid(charts),
        *_neighbor_sections(report.neighbors),
        "<h2>Configuration and origin</h2>",
        *(_document(name, text) for name, text in report.documents.items()),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(sections)
        + "\n</body></html>\n"
    )


def _grid(cards: Sequence[str]) -> str:
    return f'<div class="grid-of-cards">{"".join(cards)}</div>' if cards else ""


def _card(content: str) -> str:
    return f'<section class="card">{content}</section>'


def _table(rows: Mapping[str, str]) -> str:
    cells = (f"<tr><td>{escape(key)}</td><td>{escape(rows[key])}</td></tr>" for key in rows)
    return f'<table class="facts">{"".join(cells)}</table>'


def _chart(panel: Panel) -> str:
    legend = (
        f'<li class="curve-{number}">{escape(curve.name)} {show_number(curve.points[-1][1])}</li>'
        for number, curve in enumerate(panel.curves)
    )
    heading = f"<h3>{escape(panel.title)}</h3>"
    return _card(f'{heading}<ul class="legend">{"".join(legend)}</ul>{line_chart(panel)}')


def _neighbor_sections(by_bilm: Mapping[str, Neighbors]) -> Iterable[str]:
    if not by_bilm:
        return
    query = next(iter(by_bilm.values())).query
    yield f"<h2>Nearest neighbours in context</h2><p>{_marked(query)}</p>"
    layers = sorted({layer for neighbors in by_bilm.values() for layer in neighbors.by_layer})
    for layer in layers:
        cards = [
            _card(f"<h3>Layer {layer}, {escape(name)}</h3>{_neighbors(neighbors.by_layer[layer])}")
            for name, neighbors in by_bilm.items()
            if layer in neighbors.by_layer
        ]
        yield f"{_grid(cards)}<br>"


def _neighbors(neighbors: Sequence[Neighbor]) -> str:
    rows = (
        f'<tr><td title="{escape(each.place, quote=True)}">{each.similarity:.3f}</td>'
        f"<td>{_marked(each.occurrence)}</td></tr>"
        for each in neighbors
    )
    return f"<table>{''.join(rows)}</table>"


def _marked(occurrence: Occurrence) -> str:
    before, word, after = map(escape, occurrence.parts)
    return f"{before} <mark>{word}</mark> {after}"


def _document(name: str, text: str) -> str:
    return f"<details><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>"
