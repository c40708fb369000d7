"""Write the source of the documentation site: pages of the repository, configs, reference.

The pages are plain Markdown with links to files of the repository. This script copies them to the
same relative paths, so that links between them hold, and adds a page for each other file that is
linked, for each config, command and component, and for each package with public names.

    python docs/site/stage.py build/site/source
"""

from __future__ import annotations

import inspect
import io
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[2]
PAGES = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/*/*.md"),
    *("experiments/README.md", "experiments/demo/README.md", "experiments/results/*/table.md"),
    *("plugins/README.md", "plugins/*/README.md", "elmo_framework/bilm/mini/README.md"),
)
CONFIGS = ("experiments/*/*.*sonnet", "plugins/*/*.*sonnet")
REFERENCE = "reference"

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_TITLED = re.compile(r'^```(\w+) title="([^"]+)"$', re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()<?(?![a-z]+:|#)([^)#\s<>]+)(#[^)\s>]*)?>?(?=\))")
_CODE = re.compile(r"(?<![\[`])`([\w./-]+\.(?:jsonnet|libsonnet))`(?!\])")
_IMPORT = re.compile(r"import(?:str)? '([^']+)'")
_NAME = re.compile(r"^from \S+ import \w+ as (\w+)$", re.MULTILINE)
_INDEX = {"README.md": "index.md"}
_COPIED = {".html", ".ipynb", ".json", ".png", ".svg"}
_LANGUAGES = {".jsonnet": "jsonnet", ".libsonnet": "jsonnet", ".py": "python"}
_PARTS = {"docs/tasks.md": "docs/tasks", "docs/decisions/README.md": "docs/decisions"}


def found(patterns: Iterable[str]) -> list[Path]:
    """Return the files of the repository that match patterns, relative to its root."""
    return [path.relative_to(ROOT) for pattern in patterns for path in sorted(ROOT.glob(pattern))]


class Site:
    """The files of a site, as far as they are written.

    Args:
        folder: an empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages = found(PAGES)
        self.literal = set(found(CONFIGS))
        self.children: dict[str, list[str]] = {}

    def write(self) -> None:
        """Write all files."""
        texts = {page: self.linked(page, (ROOT / page).read_text("utf-8")) for page in self.pages}
        for path in sorted(self.literal):
            self.add(f"{path}.md", self.literal_page(path))
        self.nest_pages()
        self.children[REFERENCE] = [self.commands(), self.components(), self.packages()]
        for page, text in texts.items():
            name = str(page)
            self.add(_INDEX.get(name, name), text + self.table_of_contents(name))

    def add(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def linked(self, page: Path, text: str) -> str:
        """Return a page whose links to other files lead to pages about these."""

        def convert(part: str) -> str:
            part = _CODE.sub(lambda match: self.named_config(page, match), part)
            return _LINK.sub(lambda match: self.target(page, match), part)

        fences = iter([*_FENCE.findall(text), ""])
        parts = (f"{convert(part)}{next(fences)}" for part in _FENCE.split(text))
        return _TITLED.sub(r"```{code-block} \1\n:caption: \2", "".join(parts))

    def named_config(self, page: Path, match: re.Match[str]) -> str:
        """Return a config that a page names in its text, as a link."""
        for folder in (Path(), page.parent, Path("experiments")):
            if (path := Path(os.path.normpath(folder / match[1]))) in self.literal:
                return f"[{match[0]}]({os.path.relpath(path, page.parent)})"
        return match[0]

    def target(self, page: Path, match: re.Match[str]) -> str:
        path = Path(os.path.normpath(page.parent / unquote(match[1])))
        if (ROOT / path).is_dir() and (ROOT / path / "README.md").exists():
            path /= "README.md"
        shown = os.path.relpath(_INDEX.get(str(path), path), page.parent)
        if path in self.pages or not (ROOT / path).exists():  # Sphinx reports the latter
            return f"{shown}{match[2] or ''}"
        if path.suffix in _COPIED:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, self.folder / path)
            return shown
        self.literal.add(path)
        return f"{shown}.md"

    def literal_page(self, path: Path) -> str:
        """Return a page with the content of a file, or with the names of a folder."""
        place = ROOT / path
        if place.is_dir():
            names = (inner.name for inner in sorted(place.iterdir()))
            return f"# {path}\n\n" + "".join(f"* `{name}`\n" for name in names)
        text = place.read_text("utf-8")
        imports = dict.fromkeys(_IMPORT.findall(text)) if path in self.literal else ()
        known = [
            name for name in imports if Path(os.path.normpath(path.parent / name)) in self.literal
        ]
        links = ", ".join(f"[`{name}`]({name}.md)" for name in known)
        start = f"Imports {links}.\n\n" if known else ""
        language = _LANGUAGES.get(path.suffix, "text")
        return f"# {path}\n\n{start}````{language}\n{text}````\n"

    def nest_pages(self) -> None:
        """Decide below which page each page is listed; the main ones are in README's order."""
        nested = {str(path): self.parent(path) for path in [*self.pages, *sorted(self.literal)]}
        for name, parent in nested.items():
            if parent:
                self.children.setdefault(parent, []).append(name)
        table = (ROOT / "README.md").read_text("utf-8").partition("## Documentation")[2]
        rows = [match[1] for match in _LINK.finditer(table)]
        main = [name for name, parent in nested.items() if parent is None and name != "README.md"]
        self.children["README.md"] = sorted(
            main, key=lambda name: rows.index(name) if name in rows else len(rows)
        )

    @staticmethod
    def parent(path: Path) -> str | None:
        name, top = str(path), path.parts[0]
        for page, folder in _PARTS.items():
            if str(path.parent) == folder and name != page:
                return page
        if name == "elmo_framework/bilm/mini/README.md":
            return "docs/models.md"
        overview = f"{top}/README.md"
        is_below = top in {"experiments", "plugins"} and name != overview
        if is_below and path.name != "README.md" and (ROOT / path.parent / "README.md").exists():
            return f"{path.parent}/README.md"
        return overview if is_below else None

    def table_of_contents(self, name: str) -> str:
        """Return the hidden list of the pages below a page, which Sphinx shows at the side."""
        texts = toctree(self.entry(child, Path(name)) for child in self.children.get(name, []))
        if name != "README.md":
            return texts
        return texts + toctree(self.children[REFERENCE], caption="Reference")

    def entry(self, name: str, parent: Path) -> str:
        """Return the line of a page in the list of a parent; files are named by their paths."""
        place = os.path.relpath(name, parent.parent)
        return place.removesuffix(".md") if Path(name) in self.pages else f"{place} <{place}>"

    def commands(self) -> str:
        """Write the help of every command; return the name of the page."""
        from elmo_framework.commands.main import COMMANDS

        sections = (
            f"## elmo {command.name}\n\n```text\n{printed(command.name, '--help')}\n```\n"
            for command in COMMANDS
        )
        return self.reference("commands", "Commands", sections)

    def components(self) -> str:
        """Write a page for each family of components; return the name of their list."""
        import elmo_framework.experiment.experiment
        import elmo_framework.study.study  # noqa: F401
        from elmo_framework.config.docstrings import summary
        from elmo_framework.config.registry import families, members

        pages = []
        for family, base in sorted(families().items()):
            described = {name: printed("describe", family, name) for name in sorted(members(base))}
            described = described or {family: printed("describe", family)}
            sections = [f"{summary(base)}\n"]
            sections += [f"## {name}\n\n```text\n{text}\n```\n" for name, text in described.items()]
            pages.append(self.reference(f"components/{family}", family, sections))
        text = "The `type` of each part of a config. `elmo describe` prints the same.\n"
        return self.reference("components", "Components", [text], pages)

    def packages(self) -> str:
        """Write a page for each package with public names; return the name of their list."""
        documented: dict[int, str] = {}
        stubs = sorted((ROOT / "elmo_framework").rglob("__init__.pyi"), key=lambda s: len(s.parts))
        pages = []
        for stub in stubs:
            package = ".".join(stub.parent.relative_to(ROOT).parts)
            names = sorted(_NAME.findall(stub.read_text("utf-8")))
            sections = package_sections(package, names, documented)
            pages.append(self.reference(f"api/{package}", package, sections))
        text = "The public names of each package. Other modules and names may change.\n"
        return self.reference("api", "Python", [text], pages)

    def reference(
        self, name: str, title: str, sections: Iterable[str], below: Iterable[str] = ()
    ) -> str:
        inner = toctree(Path(page).relative_to(REFERENCE) for page in below).replace(
            ":hidden:\n", ""
        )
        self.add(f"{REFERENCE}/{name}.md", "\n".join([f"# {title}\n", *sections]) + inner)
        return f"{REFERENCE}/{name}"


def toctree(names: Iterable[object], *, caption: str = "") -> str:
    """Return a hidden list of pages for the side of the site; nothing without pages."""
    entries = "\n".join(map(str, names))
    options = ":hidden:\n:titlesonly:" + f"\n:caption: {caption}" * bool(caption)
    return f"\n```{{toctree}}\n{options}\n\n{entries}\n```\n" if entries else ""


def printed(*arguments: str) -> str:
    """Return what a command prints."""
    from elmo_framework.commands.main import main

    os.environ["COLUMNS"] = "100"
    output = io.StringIO()
    with redirect_stdout(output), suppress(SystemExit):  # of `--help`
        main(list(arguments))
    return output.getvalue().rstrip()


def package_sections(
    package: str, names: Iterable[str], documented: dict[int, str]
) -> Iterator[str]:
    """Yield the documentation of public names; one that another page has is a link to that."""
    module = import_module(package)
    yield f"```{{eval-rst}}\n.. py:module:: {package}\n```\n\n{inspect.getdoc(module)}\n"
    for name in names:
        value = getattr(module, name)
        full = f"{package}.{name}"
        yield f"## {name}\n"
        before = documented.setdefault(id(value), full)
        if before != full:
            yield f"See {{py:obj}}`{before}`.\n"
            continue
        yield f"```{{eval-rst}}\n.. auto{kind(value)}:: {full}\n```\n"


def kind(value: object) -> str:
    """Return the directive of autodoc for a public name, with its options."""
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if inspect.isroutine(value) else "data"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    Site(target).write()
