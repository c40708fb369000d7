"""`elmo describe`: list component families, their members and config keys."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, final

from elmo_framework.commands.command import Command, ResultFormat, register_components
from elmo_framework.config.arguments import Argument, Plugins
from elmo_framework.console import render_table

if TYPE_CHECKING:
    from elmo_framework.config.types import Component, Factory


@final
@dataclass(frozen=True, kw_only=True)
class Describe(Command):
    """List the registered components and their config keys.

    Attributes:
        family: such as token_embedder, or the name of a member that only one family has.
        member: the `type` of a member.
    """

    name = "describe"
    epilog = """examples:
  elmo describe                              all families and their members
  elmo describe token_embedder               the members of one family
  elmo describe encoder lstm                 the keys of one member
  elmo describe crf_tagger                   the same, where only one family has it
  elmo describe experiment                   the keys at the top of a config
  elmo describe study                        the keys at the top of a study
  elmo describe encoder lstm --format json
"""

    family: Annotated[str | None, Argument("FAMILY", is_positional=True)] = None
    member: Annotated[str | None, Argument("NAME", is_positional=True)] = None
    packages: Plugins = ()
    format: ResultFormat = "text"

    def run(self) -> int:
        register_components(self.packages)
        described = _described(self.family, self.member)
        if self.format == "json":
            print(json.dumps(described, indent=2, ensure_ascii=False))
        else:
            print(_as_text(described))
        return 0


def _described(family: str | None, name: str | None) -> dict[str, Any]:
    import elmo_framework.experiment.experiment
    import elmo_framework.study.study  # noqa: F401
    from elmo_framework.config.introspect import families_with, find_family, find_member
    from elmo_framework.config.registry import families, members

    if family is None:
        return {"families": {key: _family(cls) for key, cls in families().items()}}
    if name is None and family not in families() and len(homes := families_with(family)) == 1:
        family, name = homes[0], family
    base = find_family(family)
    if name is not None:
        return _component(find_member(base, name), name)
    return _family(base) if members(base) else _component(base, None)


def _family(family: type[Component]) -> dict[str, Any]:
    from elmo_framework.config.docstrings import summary
    from elmo_framework.config.registry import default_member, members

    default = default_member(family)
    return {
        "summary": summary(family),
        "default": default[0] if default else None,
        "members": {name: summary(member) for name, member in sorted(members(family).items())},
    }


def _component(component: Factory, name: str | None) -> dict[str, Any]:
    from dataclasses import asdict

    from elmo_framework.config.docstrings import explanation
    from elmo_framework.config.introspect import describe, supplied

    return {
        "type": name,
        "class"
        if isinstance(component, type)
        else "function": f"{component.__module__}.{component.__qualname__}",
        "explanation": explanation(component),
        "keys": [asdict(row) for row in describe(component)],
        "supplied": supplied(component),
        **_examples(component),
    }


def _examples(component: Factory) -> dict[str, str]:
    """Return the class of the examples of a reader or a head, under the name to import."""
    task = getattr(component, "task", component)
    if not isinstance(cls := getattr(task, "example_type", None), type):
        return {}
    is_ours = cls.__module__.startswith("elmo_framework.")
    package = cls.__module__.rpartition(".")[0] if is_ours else cls.__module__
    return {"examples": f"{package}.{cls.__qualname__}"}


def _as_text(described: dict[str, Any]) -> str:
    if "families" in described:
        return "\n\n".join(
            f"{name}: {_family_as_text(family)}" for name, family in described["families"].items()
        )
    return _family_as_text(described) if "members" in described else _component_as_text(described)


def _family_as_text(family: dict[str, Any]) -> str:
    default, summaries = family["default"], family["members"]
    width = max(map(len, summaries), default=0)
    lines = [
        f"  {name.ljust(width)}  {text}{' (default)' if name == default else ''}"
        for name, text in summaries.items()
    ]
    return "\n".join([family["summary"], *lines])


def _component_as_text(component: dict[str, Any]) -> str:
    kind = "class" if "class" in component else "function"
    paragraphs = [component["explanation"], f"{kind}: {component[kind]}"]
    if "examples" in component:
        package, _, name = component["examples"].rpartition(".")
        paragraphs.append(f"examples: {name} ({package})")
    if component["keys"]:
        rows = [(row["key"], row["type"], row["default"], row["text"]) for row in component["keys"]]
        headers = ("key", "type", "default", "meaning")
        paragraphs.append(render_table(headers, rows, width=shutil.get_terminal_size().columns))
    if component["supplied"]:
        lines = [f"  {name}: {text}" for name, text in component["supplied"].items()]
        paragraphs.append("\n".join(["supplied by the framework, never by a config:", *lines]))
    return "\n\n".join(paragraphs)
