"""Measure the structure and the language of the package, and compare it with an earlier state.

    python benchmarks/structure.py --json before.json
    python benchmarks/structure.py --compare before.json

Nothing is imported: the source is parsed, so that `--root` can name any checkout.
"""

from __future__ import annotations

import ast
import configparser
import io
import json
import re
import sys
import tokenize
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from measuring import say

PACKAGE = "elmo_framework"
LONGEST_PROSE = 100
VAGUE_NAMES = ("held", "found", "kept", "given", "known", "named", "chosen", "told")
"""Names of local variables that do not say what is in them."""

CLAUSES = ("What", "How", "Where", "Who", "When")
"""First words of docstrings that are clauses, and define nothing."""

PHRASES: Mapping[str, str] = {
    "goes on": r"\b(?:go|goes|going|went|gone) on\b",
    "stands": r"\b(?:stand|stands|standing|stood)\b",
    "a sentence a line": r"\ba (?:sentence|line|file|task|number|class) a \w+|\ba line each\b",
    "unless told": r"\bunless (?:told|given|stated|\w+ says)\b",
    "is no": r"\b(?:is|are|was|were) no\b",
    "begin anew": r"\banew\b",
    "cut into words": r"\b(?:cut|cuts|cutting) (?:into|text|lines?|a line|a raw line)\b",
    "a processor": r"\bprocessors?\b",
    "room": r"\broom\b",
    "passed over": r"\b(?:pass|passes|passed|passing) over\b",
    "say": r"\b(?:say|says|said|saying)\b",
    "tell": r"\b(?:tell|tells|told|telling)\b",
    "figures": r"\bfigures?\b",
    "by chance": r"\bby chance\b",
    "of its own": r"\bof (?:its|their|your|our|his|one's) own\b",
    "at hand": r"\bat hand\b",
    "in the end": r"\bin the end\b",
    "beside": r"\bbeside\b",
    "in other company": r"\bcompany\b",
    "the limit of training": r"\blimit of training\b",
    "no better score": r"\bno better score\b",
}
"""Phrases that a reader has to translate, as regular expressions."""

_PROTOCOL_MARK = "runtime_checkable"
_LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
_DOCS = ("*.md", "docs/**/*.md", "experiments/**/*.md", "plugins/**/*.md", f"{PACKAGE}/**/*.md")

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Graph: TypeAlias = Mapping[str, set[str]]


@dataclass(frozen=True)
class Measurement:
    """What was measured.

    Attributes:
        numbers: by the name of what is counted.
        details: where some of them come from.
    """

    numbers: Mapping[str, float]
    details: Mapping[str, Any]


@dataclass(frozen=True)
class Module:
    """A module of the package.

    Attributes:
        name: its dotted name.
        is_package: whether its file is an `__init__.py`.
        text: its source.
    """

    name: str
    is_package: bool
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed source."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree."""
        return list(ast.walk(self.tree))

    @property
    def functions(self) -> list[Function]:
        """All functions, methods and inner functions."""
        return [node for node in self.nodes if isinstance(node, Function)]

    @property
    def num_lines(self) -> int:
        """The number of lines."""
        return len(self.text.splitlines())

    def code_lines(self) -> set[int]:
        """Return the lines that are neither blank, nor a comment, nor a docstring."""
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in _LAYOUT:
                lines.update(range(token.start[0], token.end[0] + 1))
        for node in self.nodes:
            if _is_docstring(node):
                lines.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
        return lines

    def imports(self, modules: Set[str]) -> set[str]:
        """Return which of some modules it imports, inside functions too."""
        imported: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                imported.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                origin = self._origin(node)
                inner = {f"{origin}.{alias.name}" for alias in node.names}
                imported.update(inner & modules or {origin})
        return (imported & modules) - {self.name}

    def _origin(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parents = self.name.split(".")[: None if self.is_package else -1]
        return ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [node.module])])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the numbers or compare them."""
    parser = ArgumentParser(description="Measure the structure and the language of the package.")
    root = Path(__file__).parents[1]
    parser.add_argument("--root", type=Path, default=root, help="a checkout; by default this one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the measurement there")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="an earlier measurement")
    parser.add_argument("--details", action="store_true", help="print where the numbers come from")
    chosen = parser.parse_args(arguments)
    measured = measure(chosen.root)
    before = None if chosen.compare is None else json.loads(chosen.compare.read_text())["numbers"]
    say(table(measured.numbers, before))
    if chosen.details:
        say(json.dumps(measured.details, indent=2, ensure_ascii=False))
    if chosen.json is not None:
        content = {"numbers": measured.numbers, "details": measured.details}
        chosen.json.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return 0


def measure(root: Path) -> Measurement:
    """Measure a checkout.

    Args:
        root: the folder with the package, the documentation and `setup.cfg`.
    """
    modules = read_package(root)
    docs = {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for pattern in _DOCS
        for path in sorted(root.glob(pattern))
    }
    stubs = [path.read_text(encoding="utf-8") for path in (root / PACKAGE).rglob("*.pyi")]
    parts = (
        _sizes(modules, stubs),
        _classes(modules),
        _functions(modules),
        imports(modules, root / "setup.cfg"),
        _language(modules, docs),
        _indirection(modules),
    )
    numbers = {name: number for part in parts for name, number in part.numbers.items()}
    details = {name: detail for part in parts for name, detail in part.details.items()}
    return Measurement(numbers, details)


def read_package(root: Path) -> list[Module]:
    """Return all modules of the package in a checkout."""
    modules = []
    for path in sorted((root / PACKAGE).rglob("*.py")):
        *parents, stem = path.relative_to(root).with_suffix("").parts
        is_package = stem == "__init__"
        name = ".".join(parents if is_package else [*parents, stem])
        modules.append(Module(name, is_package, path.read_text(encoding="utf-8")))
    return modules


def table(numbers: Mapping[str, float], before: Mapping[str, float] | None) -> str:
    """Return numbers as a table, with those of before and the change in percent."""
    width = max(map(len, {*numbers, *(before or {})}))
    if before is None:
        return "\n".join(f"{name:{width}}  {number:>8,g}" for name, number in numbers.items())
    rows = [f"{'':{width}}  {'before':>8}  {'after':>8}   change"]
    for name in dict.fromkeys([*numbers, *before]):
        old, new = before.get(name), numbers.get(name)
        cells = ["-" if number is None else f"{number:,g}" for number in (old, new)]
        change = f"{new / old - 1:+8.1%}" if old and new is not None else ""
        rows.append(f"{name:{width}}  {cells[0]:>8}  {cells[1]:>8} {change}".rstrip())
    return "\n".join(rows)


def _sizes(modules: Sequence[Module], stubs: Sequence[str]) -> Measurement:
    longest = max(modules, key=lambda module: module.num_lines)
    stub_lines = sum(len(text.splitlines()) for text in stubs)
    numbers = {
        "files": len(modules),
        "lines": sum(module.num_lines for module in modules) + stub_lines,
        "lines of code": sum(len(module.code_lines()) for module in modules),
        "lines of stubs": stub_lines,
        "files under 30 lines": sum(0 < module.num_lines < 30 for module in modules),
        "longest file": longest.num_lines,
    }
    return Measurement(numbers, {"longest file": longest.name})


def _classes(modules: Sequence[Module]) -> Measurement:
    places: dict[str, list[str]] = {}
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module.name)
    twice = {name: names for name, names in sorted(places.items()) if len(names) > 1}
    numbers = {"class names": len(places), "class names defined twice": len(twice)}
    return Measurement(numbers, {"class names defined twice": twice})


def _functions(modules: Sequence[Module]) -> Measurement:
    lengths = {
        f"{module.name}:{function.lineno} {function.name}": body_length(function)
        for module in modules
        for function in module.functions
    }
    longest = max(lengths, key=lambda name: lengths[name])
    numbers = {
        "functions": len(lengths),
        "median function (body)": median(lengths.values()),
        "longest function (body)": lengths[longest],
        "longest function (body and signature as a line)": lengths[longest] + 1,
    }
    return Measurement(numbers, {"longest function": longest})


def body_length(function: Function) -> int:
    """Return the number of lines of a body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def imports(modules: Sequence[Module], contract: Path) -> Measurement:
    """Count the imports between modules, and those that should not be.

    Args:
        modules: of the package.
        contract: the `setup.cfg` with the layers contract.
    """
    names = {module.name for module in modules}
    graph = {module.name: module.imports(names) for module in modules}
    circles = list(circles_of(graph))
    packages = [module.name for module in modules if module.is_package]
    siblings = [circle for package in packages for circle in circles_of(_siblings(package, graph))]
    upward = sorted(arrows_up(graph, read_layers(contract)))
    numbers = {
        "imports inside the package": sum(map(len, graph.values())),
        "import circles of modules": len(circles),
        "import circles of sibling packages": len(siblings),
        "imports against the layers": len(upward),
    }
    details = {"circles": [*circles, *sorted(siblings)], "imports against the layers": upward}
    return Measurement(numbers, details)


def circles_of(graph: Graph) -> Iterator[list[str]]:
    """Yield the groups of nodes that reach each other, each sorted."""
    reached = {node: _reachable(node, graph) for node in graph}
    seen: set[str] = set()
    for node in sorted(graph):
        if node in reached[node] and node not in seen:
            circle = {other for other in reached[node] if node in reached.get(other, ())}
            seen |= circle
            yield sorted(circle)


def _reachable(start: str, graph: Graph) -> set[str]:
    reached: set[str] = set()
    pending = [start]
    while pending:
        for node in graph.get(pending.pop(), ()):
            if node not in reached:
                reached.add(node)
                pending.append(node)
    return reached


def _siblings(package: str, graph: Graph) -> dict[str, set[str]]:
    """Return the imports between the direct members of a package."""
    prefix = f"{package}."
    depth = package.count(".") + 2
    members: dict[str, set[str]] = {}
    for module, imported in graph.items():
        if module.startswith(prefix):
            member = ".".join(module.split(".")[:depth])
            others = {
                ".".join(name.split(".")[:depth]) for name in imported if name.startswith(prefix)
            }
            members.setdefault(member, set()).update(others - {member})
    return members


def read_layers(contract: Path) -> list[set[str]]:
    """Read the layers contract of import-linter, the highest layer first."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(contract, encoding="utf-8")
    layers = parser["importlinter:contract:layers"]["layers"].split("\n")
    return [set(re.split(r"\s*[|:]\s*", layer.strip())) for layer in layers if layer.strip()]


def arrows_up(graph: Graph, layers: Sequence[set[str]]) -> Iterator[str]:
    """Yield the imports of a higher layer, or of another member of the same layer."""
    height = {name: -number for number, layer in enumerate(layers) for name in layer}
    for module, imported in graph.items():
        for other in imported:
            lower, upper = (name.partition(".")[2].partition(".")[0] for name in (module, other))
            is_compared = lower != upper and {lower, upper} <= height.keys()
            if is_compared and height[upper] >= height[lower]:
                yield f"{module} -> {other}"


def _language(modules: Sequence[Module], docs: Mapping[str, str]) -> Measurement:
    docstrings = {module.name: ast.get_docstring(module.tree) or "" for module in modules}
    clauses = [name for name, text in docstrings.items() if text.split(" ")[0] in CLAUSES]
    vague = Counter(
        name for module in modules for function in module.functions for name in _vague(function)
    )
    long = [f"{path}:{line}" for path, text in docs.items() for line in long_prose(text)]
    in_package = phrases_in(module.text for module in modules)
    in_docs = phrases_in(docs.values())
    numbers = {
        "module docstrings": sum(map(bool, docstrings.values())),
        "module docstrings that are clauses": len(clauses),
        "vague local names": vague.total(),
        **{f"  {name}": vague[name] for name in VAGUE_NAMES},
        "comment lines": sum(map(_num_comments, modules)),
        f"prose lines over {LONGEST_PROSE} in Markdown": len(long),
        "phrases in the package": in_package.total(),
        **{f"  {phrase}": in_package[phrase] for phrase in PHRASES},
        "phrases in Markdown": in_docs.total(),
        **{f"  {phrase} (Markdown)": in_docs[phrase] for phrase in PHRASES},
    }
    return Measurement(numbers, {"clauses": clauses, "long prose": long})


def phrases_in(texts: Iterable[str]) -> Counter[str]:
    """Count the phrases of some texts, also those that a line break divides."""
    counts: Counter[str] = Counter()
    for text in texts:
        joined = re.sub(r"\s+(?:#\s*)?", " ", text)
        for phrase, pattern in PHRASES.items():
            counts[phrase] += len(re.findall(pattern, joined, re.IGNORECASE))
    return counts


def long_prose(text: str) -> Iterator[int]:
    """Yield the numbers of the long lines of a Markdown page that are not code or a table."""
    is_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.lstrip().startswith("|") and len(line) > LONGEST_PROSE:
            yield number


def _vague(function: Function) -> set[str]:
    """Return which of the vague names a function gives to a local variable or a parameter."""
    names = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    pending: list[ast.AST] = [*function.body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
        # The variables of an inner function are counted there.
        if not isinstance(node, Function | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(node))
    return names & set(VAGUE_NAMES)


def _num_comments(module: Module) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    return sum(token.type == tokenize.COMMENT for token in tokens)


def _indirection(modules: Sequence[Module]) -> Measurement:
    """Count what finds out at run time which methods an object has."""
    protocols = {
        node.name
        for module in modules
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
        and any(_last_name(mark) == _PROTOCOL_MARK for mark in node.decorator_list)
    }
    calls = [
        (module.name, node)
        for module in modules
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    sites = [
        f"{name}:{call.lineno} {ast.unparse(call)}"
        for name, call in calls
        if _last_name(call.func) == "isinstance"
        and protocols & {_last_name(node) for node in ast.walk(call.args[1])}
    ]
    numbers = {
        "runtime-checkable protocols": len(protocols),
        "isinstance against such a protocol": len(sites),
        "getattr calls": sum(_last_name(call.func) == "getattr" for _, call in calls),
    }
    return Measurement(numbers, {"isinstance against such a protocol": sites})


def _last_name(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return str(name)
    return None


def _is_docstring(node: ast.AST) -> bool:
    """Tell whether a node is a string that stands alone, as docstrings of attributes do too."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


if __name__ == "__main__":
    sys.exit(main())
