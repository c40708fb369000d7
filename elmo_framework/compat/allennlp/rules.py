"""Rules of translation: what becomes of one key of a config of AllenNLP.

A block of a config has a table of rules, by key. Each key is translated, dropped for a stated
reason, or a problem; a key without a rule is a problem too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from elmo_framework.errors import Problem, allowed, dotted, shown, truncated

Kind: TypeAlias = Literal["becomes", "dropped", "differs", "added"]


@dataclass(frozen=True)
class Note:
    """What became of a key.

    Attributes:
        path: of the key, dotted.
        kind: `becomes` another key, `dropped` because it follows from something else, `differs` in
            effect, or `added` to keep a default of AllenNLP.
        text: the new key, or the reason.
    """

    path: str
    kind: Kind
    text: str


@dataclass(frozen=True)
class Indexer:
    """A token indexer of AllenNLP.

    Attributes:
        kind: its type.
        lowercase: whether its words are lowercased.
        characters: what its characters are, as of the embedder `character_encoding` here.
    """

    kind: str
    lowercase: bool = False
    characters: str | None = None


@dataclass(frozen=True)
class Context:
    """A config of AllenNLP, and what its translation has found so far.

    Attributes:
        raw: the config.
        notes: what became of its keys.
        missing: types without a counterpart.
        problems: everything else that cannot be translated.
        indexers: the token indexers by name.
        has_weights: whether it is that of a trained model.
    """

    raw: Mapping[str, Any]
    notes: list[Note] = field(default_factory=list)
    missing: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    indexers: dict[str, Indexer] = field(default_factory=dict)
    has_weights: bool = False

    def value(self, *keys: str) -> Any:
        """Return a value by its keys; None where there is none."""
        value: Any = self.raw
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value


@dataclass(frozen=True)
class Place:
    """A key of the config."""

    context: Context
    path: str = ""
    key: str = ""

    def at(self, key: str | int) -> Place:
        return Place(self.context, dotted(self.path, key), str(key))

    def note(self, kind: Kind, text: str) -> None:
        note = Note(self.path, kind, text)
        if note not in self.context.notes:
            self.context.notes.append(note)

    def problem(self, message: str) -> None:
        self.context.problems.append(Problem(self.path, message))

    def missing(self, message: str) -> None:
        self.context.missing.append(Problem(self.path, message))


Rule: TypeAlias = Callable[[Place, Any], Mapping[str, Any]]
Rules: TypeAlias = Mapping[str, Rule]
Translate: TypeAlias = Callable[[Place, Any], Any]


def kept(here: Place, value: Any) -> Mapping[str, Any]:
    """Keep a key: it has the same name and meaning here."""
    return {here.key: value}


def renamed(name: str) -> Rule:
    """Return a rule for a key with another name here."""
    return into(name, lambda here, value: value)


def into(name: str, translate: Translate) -> Rule:
    """Return a rule for a key whose value is translated."""

    def rule(here: Place, value: Any) -> Mapping[str, Any]:
        if name != here.key:
            here.note("becomes", name)
        return {name: translate(here, value)}

    return rule


def dropped(reason: str) -> Rule:
    """Return a rule for a key that has no effect, or follows from something else."""

    def rule(here: Place, value: Any) -> Mapping[str, Any]:
        here.note("dropped", reason)
        return {}

    return rule


_ONLY = "the only behavior here"


def only(*values: Any, reason: str = _ONLY) -> Rule:
    """Return a rule for a key of which only these values have a counterpart."""
    written = [json.dumps(value) for value in values]
    why = "" if reason == _ONLY else f": {reason}"

    def rule(here: Place, value: Any) -> Mapping[str, Any]:
        if json.dumps(value) in written:
            here.note("dropped", reason)
        else:
            text = truncated(json.dumps(value))
            here.problem(f"{text} has no counterpart here; only {', '.join(written)} has{why}")
        return {}

    return rule


def unsupported(advice: str = "") -> Rule:
    """Return a rule for a key without a counterpart."""

    def rule(here: Place, value: Any) -> Mapping[str, Any]:
        here.problem(f"has no counterpart here{advice and '; '}{advice}")
        return {}

    return rule


def of_training(translate: Translate) -> Translate:
    """Translate an object that a trained model does not need.

    For such a model, its keys without a counterpart are left out, with a note.
    """

    def translated(here: Place, value: Any) -> Any:
        context = here.context
        notes, missing, problems = context.notes, context.missing, context.problems
        before = len(notes), len(missing), len(problems)
        ours = translate(here, value)
        found = [*missing[before[1] :], *problems[before[2] :]]
        if not (context.has_weights and found):
            return ours
        del notes[before[0] :], missing[before[1] :], problems[before[2] :]
        for problem in found:
            text = f"{problem.message}; predictions do not depend on it"
            notes.append(Note(problem.path, "dropped", text))
        keys = value if isinstance(value, dict) else {}
        wrong = {key for key in keys if any(_is_in(here.at(key), each.path) for each in found)}
        rest = {key: each for key, each in keys.items() if key not in wrong}
        return translated(here, rest) if wrong else {}

    return translated


def _is_in(place: Place, path: str) -> bool:
    return f"{path}.".startswith(f"{place.path}.")


_NULL_IS_A_CHOICE = {"num_serialized_models_to_keep", "keep_most_recent_by_count"}
"""Keys whose null means no limit, and is not the default."""


def block(here: Place, values: Any, rules: Rules, owner: str) -> dict[str, Any]:
    """Translate the keys of an object.

    Args:
        here: its place.
        values: the object.
        rules: by key.
        owner: whose keys these are, for messages.
    """
    if not isinstance(values, dict):
        here.problem(f"expected an object, not {shown(values)}")
        return {}
    ours: dict[str, Any] = {}
    for key, value in values.items():
        place, rule = here.at(key), rules.get(key)
        if rule is None:
            place.problem(f"not a key of AllenNLP's {owner}; {allowed(key, rules)}")
        elif value is None and key not in _NULL_IS_A_CHOICE:
            place.note("dropped", "null is the default")
        else:
            _add(place, ours, rule(place, value))
    return ours


def _add(here: Place, ours: dict[str, Any], added: Mapping[str, Any]) -> None:
    """Add what a key became; two keys may fill one object, but not set one value."""
    for key, value in added.items():
        before = ours.get(key)
        if (
            isinstance(before, dict)
            and isinstance(value, dict)
            and not before.keys() & value.keys()
        ):
            value = {**before, **value}
        elif key in ours:
            here.problem(f"another key becomes {key!r} too; remove one of them")
        ours[key] = value


@dataclass(frozen=True)
class Member:
    """The counterpart of a class of AllenNLP.

    Attributes:
        name: registered here.
        rules: for its keys.
        defaults: AllenNLP's, where ours are different.
        implied: what else the class is here.
        differs: what has another effect here, whatever the keys.
    """

    name: str
    rules: Rules = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    implied: Mapping[str, Any] = field(default_factory=dict)
    differs: tuple[str, ...] = ()


_ADVICE = {
    "cnn-highway": "use 'cnn', which leaves padding out",
    "ptb_trees": "it needs a plugin; pip install ./plugins/allennlp_heads",
    "semantic_role_labeler_bert": "use 'srl' with pretrained_transformer_mismatched",
    "srl_bert": "use 'srl' with pretrained_transformer_mismatched",
    **dict.fromkeys(
        ("pretrained_transformer", "bert-pretrained"),
        "use pretrained_transformer_mismatched, with words",
    ),
    **dict.fromkeys(
        ("biaffine_parser", "universal_dependencies"),
        "the plugin plugins/ud_parser has a parser and a reader, in a config of ours",
    ),
}
"""What to use in place of a type, where a list of types is no help."""


def component(
    here: Place,
    value: Any,
    members: Mapping[str, Member],
    family: str,
    *,
    default: str | None = None,
) -> Any:
    """Translate an object with a `type`, or a bare name.

    Args:
        here: its place.
        value: the object or the name.
        members: the classes with a counterpart, by AllenNLP's name.
        family: the base class of AllenNLP, for messages.
        default: the type of an object without one.
    """
    values = {"type": value} if isinstance(value, str) else value
    if not isinstance(values, dict):
        here.problem(f"expected an object or a name, not {shown(value)}")
        return None
    name = values.get("type", default)
    member = members.get(name) if isinstance(name, str) else None
    if member is None:
        place = here if isinstance(value, str) else here.at("type")
        if name is None:
            place.problem(f"a {family} needs a type; {allowed('', members)}")
        else:
            message = f"AllenNLP's {family} {shown(name)} has no counterpart here"
            place.missing(f"{message}; {_ADVICE.get(str(name)) or allowed(str(name), members)}")
        return None
    for text in member.differs:
        here.note("differs", text)
    if default is None and name != member.name:
        here.at("type").note("becomes", f"type: {member.name!r}")
    inner = {key: each for key, each in values.items() if key != "type"}
    ours = block(here, inner, member.rules, f"{family} {name!r}")
    ours = {**member.implied, **ours}
    return {"type": member.name, **with_defaults(here, ours, member.defaults)}


def with_defaults(
    here: Place, ours: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Add AllenNLP's defaults that are not those here."""
    for key, value in defaults.items():
        if key not in ours:
            here.at(key).note("added", f"{json.dumps(value)}, the default of AllenNLP")
    return {**ours, **{key: value for key, value in defaults.items() if key not in ours}}


EMPTY = "it is empty"
"""Why an empty list or object is dropped."""

NO_LIMIT = 1_000_000
"""A number that stands for "all" where ours has no word for it."""

LOGGED_ONLY = dropped("it changes what is logged only")
NO_ADDED_WORDS = only([], reason="no words are added")
