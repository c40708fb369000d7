"""Small faults to put into a source file, so that its tests can be tried on them.

In Python they are found in the syntax tree, in C by patterns in the text without its comments.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_ARITHMETIC: Mapping[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "+"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
_COMPARISONS: Mapping[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_MESSAGES = re.compile(r"(say|_LOG\.\w+|warnings\.warn|super\(\).__init__|TypeVar|NewType)\(")
"""Calls that only report something, or without which nothing runs."""

_C_PATTERNS: Sequence[tuple[str, str, str]] = (
    ("comparison", r"(?<=\s)<(?=\s)", "<="),
    ("comparison", r"(?<=\s)>(?=\s)", ">="),
    ("comparison", r">=", ">"),
    ("comparison", r"==", "!="),
    ("arithmetic", r"(?<=\s)\+(?=\s)", "-"),
    ("arithmetic", r"(?<=\s)-(?=\s)", "+"),
    ("arithmetic", r"(?<=[\w)\]] )\*(?=\s)", "/"),
    ("arithmetic", r"(?<=\s)/(?=\s)", "*"),
    ("arithmetic", r"\+=", "-="),
    ("arithmetic", r"\*=", "="),
    ("constant", r"\b0\.0f", "1.0f"),
    ("constant", r"\b[1-9]\d*\.\d+f", "0.5f"),
    ("condition", r"(?<=if \()[^()]+(?=\))", "!(\\g<0>)"),
    ("call dropped", r"\b(fabsf|copysignf|sigmoid_of|tanh_of|clipped)(?=\()", ""),
    ("statement dropped", r"(?<=    )[a-z]\w*(\[[^]]+\])? [+*]?= [^;{]+;$", ";"),
)


@dataclass(frozen=True)
class Mutant:
    """A file with one fault.

    Attributes:
        path: of the file, from the root of the project.
        kind: what was done to it.
        line: where, from 1.
        start: the first byte that is replaced.
        end: the byte behind the last one.
        replacement: what takes their place.
        identity: its name, which stays the same when other lines of the file change.
    """

    path: str
    kind: str
    line: int
    start: int
    end: int
    replacement: bytes
    identity: str

    def apply(self, source: bytes) -> bytes:
        """Return the source with the fault in it."""
        return source[: self.start] + self.replacement + source[self.end :]

    def difference(self, source: bytes) -> str:
        """Return the lines that change, before and after."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = (source + b"\n").index(b"\n", self.end)
        before, after = source[first:last], self.apply(source)[first:]
        after = after[: last - first + len(self.replacement) - (self.end - self.start)]
        return "\n".join(
            f"{sign} {line}"
            for sign, lines in (("-", before), ("+", after))
            for line in lines.decode().splitlines()
        )


@dataclass(frozen=True)
class Edit:
    """What a mutant replaces, before it has a name: see `Mutant`."""

    kind: str
    start: int
    end: int
    replacement: bytes


def mutants_of(root: Path, path: str) -> list[Mutant]:
    """Return all mutants of a file, in their order in it."""
    source = (root / path).read_bytes()
    edits = c_edits(source) if path.endswith((".c", ".h")) else python_edits(source)
    return named(path, source, edits)


def named(path: str, source: bytes, edits: Iterable[Edit]) -> list[Mutant]:
    """Give edits of a file their names."""
    seen: dict[str, int] = {}
    mutants = []
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end, edit.replacement)):
        first = source.rfind(b"\n", 0, edit.start) + 1
        line = source[first:].partition(b"\n")[0].strip()
        key = f"{path}|{edit.kind}|{line!r}|{source[edit.start : edit.end]!r}|{edit.replacement!r}"
        seen[key] = seen.get(key, 0) + 1
        identity = hashlib.sha256(f"{key}|{seen[key]}".encode()).hexdigest()[:10]
        number = source.count(b"\n", 0, edit.start) + 1
        place = edit.start, edit.end, edit.replacement
        mutants.append(Mutant(path, edit.kind, number, *place, identity))
    return mutants


def chosen(mutants: Iterable[Sequence[Mutant]], number: int, *, seed: int) -> list[Mutant]:
    """Return some of the mutants of several files: one of each file first, then in proportion.

    Which ones follows from the seed and their names alone, so that a change of the code changes
    few of them.
    """

    def chance(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed}|{mutant.identity}".encode()).hexdigest()

    ranked = [
        (rank / len(of_file), chance(mutant), mutant)
        for of_file in mutants
        for rank, mutant in enumerate(sorted(of_file, key=chance))
    ]
    first = sorted(ranked, key=lambda item: item[:2])[:number]
    return sorted((mutant for *_, mutant in first), key=lambda m: (m.path, m.start, m.identity))


def python_edits(source: bytes) -> list[Edit]:
    """Return what can be changed in a Python file, but for types, messages and errors."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return finder.edits


def c_edits(source: bytes) -> list[Edit]:
    """Return what can be changed in a C file, but for comments and lines of the preprocessor."""
    text = re.sub(
        r"/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match[0]), source.decode(), flags=re.S
    )
    edits, start = [], 0
    for line in text.splitlines(keepends=True):
        if not re.match(r"\s*(#|typedef|static|__builtin|{)", line):
            edits += _c_edits_of_line(line.rstrip("\n"), start)
        start += len(line)
    return edits


def _c_edits_of_line(line: str, start: int) -> Iterator[Edit]:
    for kind, pattern, replacement in _C_PATTERNS:
        for match in re.finditer(pattern, line):
            place = start + match.start(), start + match.end()
            yield Edit(kind, *place, match.expand(replacement).encode())


class _Finder(ast.NodeVisitor):
    """Walks through what a program does, and past what only describes it."""

    def __init__(self, source: bytes) -> None:
        self.edits: list[Edit] = []
        self._source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and "TypeAlias" not in ast.unparse(node.annotation):
            self._visit_value(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Assign(self, node: ast.Assign) -> None:
        self._visit_value(node.value)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self._visit_value(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            if _MESSAGES.match(self._text(node.value)):
                return
            self._add("call dropped", node.value, "None")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in _ARITHMETIC:
            before, after = _ARITHMETIC[type(node.op)]
            self._between("arithmetic", node.target, node.value, f"{before}=", f"{after}=")
        self.visit(node.value)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in _ARITHMETIC:
            self._between("arithmetic", node.left, node.right, *_ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = pairwise([node.left, *node.comparators])
        for operator, (left, right) in zip(node.ops, operands, strict=True):
            self._between("comparison", left, right, *_COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        if len(node.values) == 2:
            self._between("and/or", node.values[0], node.values[1], *words)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            kind = "condition" if isinstance(node.op, ast.Not) else "sign"
            self._add(kind, node, self._text(node.operand))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        match node.value:
            case bool(value):
                self._add("constant", node, str(not value))
            case int(value):
                self._add("constant", node, str(value + 1))
            case float(value):
                self._add("constant", node, repr(2 * value or 1.0))

    def visit_If(self, node: ast.If) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._negate(condition)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if _MESSAGES.match(self._text(node)):
            return
        # `strict` is an assertion.
        node.keywords = [keyword for keyword in node.keywords if keyword.arg != "strict"]
        for keyword in node.keywords:
            if keyword.arg is not None and isinstance(keyword.value, ast.Constant):
                self._drop_keyword(keyword)
        self.generic_visit(node)

    def _visit_value(self, value: ast.expr) -> None:
        """Let a call that is assigned or returned give what it was given."""
        if isinstance(value, ast.Call) and not _MESSAGES.match(self._text(value)):
            function, arguments = value.func, value.args
            if isinstance(function, ast.Attribute) and not isinstance(function.value, ast.Name):
                self._add("call dropped", value, self._text(function.value))
            elif arguments and not isinstance(arguments[0], ast.Starred):
                is_class = isinstance(function, ast.Name) and function.id.lstrip("_")[0].isupper()
                if not is_class:
                    self._add("call dropped", value, self._text(arguments[0]))
        self.visit(value)

    def _negate(self, condition: ast.expr) -> None:
        if not isinstance(condition, ast.UnaryOp | ast.Constant):
            self._add("condition", condition, f"(not ({self._text(condition)}))")

    def _drop_keyword(self, keyword: ast.keyword) -> None:
        start, end = self._place(keyword)
        comma = re.match(rb"\s*,", self._source[end:])
        end += comma.end() if comma else 0
        self.edits.append(Edit("argument dropped", start, end, b""))

    def _between(self, kind: str, left: ast.expr, right: ast.expr, before: str, after: str) -> None:
        """Replace the operator that is between two operands, maybe with brackets around it."""
        start, end = self._place(left)[1], self._place(right)[0]
        pattern = rf"(?<![\w*/<>=]){re.escape(before)}(?![\w*/=])".encode()
        for match in re.finditer(pattern.replace(b"\\ ", rb"\s+"), self._source[start:end]):
            place = start + match.start(), start + match.end()
            self.edits.append(Edit(kind, *place, after.encode()))

    def _add(self, kind: str, node: ast.expr, replacement: str) -> None:
        self.edits.append(Edit(kind, *self._place(node), replacement.encode()))

    def _text(self, node: ast.expr) -> str:
        start, end = self._place(node)
        return self._source[start:end].decode()

    def _place(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[node.end_lineno - 1] + node.end_col_offset
