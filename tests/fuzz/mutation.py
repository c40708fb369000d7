"""Random changes of valid input: of JSON values, of lines of text, of bytes."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

_TOKENS = [
    b"",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n",
    b"\n\n",
    b"\t",
    b" ",
    b'"',
    b"'",
    b"\\",
    b"\\ud800",
    b"(",
    b")",
    b"((",
    b"*)",
    b"(0",
    b"|",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"#",
    b"-",
    b"*",
    b"_",
    b"-1",
    b"0",
    b"1e999",
    b"NaN",
    b"null",
    b"true",
    b"B-PER",
    b"I-",
    b"V",
    b"-DOCSTART- -X- -X- O",
    b"#begin document (a); part 000",
    b"#end document",
    b"99999999999999999999",
    "é".encode(),
    "\u2028".encode(),
    "\u0000\u200b".encode(),
    "\U0001d518".encode(),
    b"\xed\xa0\x80",
    b"x" * 5000,
]
"""What parsers of text stumble over."""

_VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**62,
    -(2**63),
    2**70,
    0.5,
    -0.5,
    1e308,
    "",
    " ",
    "nonsense",
    "adam",
    "lstm",
    "mini",
    "scalar_mix",
    "/",
    "~nobody/x",
    "a\x00b",
    "é",
    "(",
    "*",
    "x" * 3000,
    [],
    {},
    [None],
    [[]],
    [1, 2],
    [[1, 2**40]],
    {"type": None},
    {"type": "adam"},
    {"type": "lstm", "hidden_size": 2},
    {"steps": 1},
    {"": 0},
]
"""What a config may hold by mistake."""


def mutated_json(value: Any, chance: Random) -> Any:
    """Return a copy with one to three values removed, renamed, replaced, moved or repeated."""
    copy = deepcopy(value)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        places = list(_places(copy))
        if places:
            _mutate_place(*chance.choice(places), chance=chance, places=places)
    return copy


def _mutate_place(node: Any, key: Any, *, chance: Random, places: list[tuple[Any, Any]]) -> None:
    match chance.randrange(6):
        case 0:
            del node[key]
        case 1 if isinstance(node, dict):
            value = node.pop(key)
            node[chance.choice([f"{key}s", key[:-1], "type", key.upper(), "sed"])] = value
        case 1:
            node.insert(key, node[key])
        case 2:
            other, other_key = chance.choice(places)
            if other_key in other if isinstance(other, dict) else other_key < len(other):
                node[key] = deepcopy(other[other_key])
        case 3:
            node[key] = [node[key]]
        case _:
            node[key] = deepcopy(chance.choice(_VALUES))


def _places(value: Any) -> list[tuple[Any, Any]]:
    """List all values below one, each as what holds it and its key there."""
    match value:
        case dict():
            keys: list[Any] = list(value)
        case list():
            keys = list(range(len(value)))
        case _:
            return []
    return [place for key in keys for place in [(value, key), *_places(value[key])]]


def mutated_bytes(content: bytes, chance: Random) -> bytes:
    """Return a copy with one to four bytes or pieces changed, added, removed or moved."""
    for _ in range(chance.randint(1, 4)):
        content = chance.choice(_BYTE_EDITS)(content, chance)
    return content


def mutated_text(content: bytes, chance: Random) -> bytes:
    """Return a copy with one to three lines or cells changed, and sometimes bytes too."""
    for _ in range(chance.randint(1, 3)):
        lines = content.split(b"\n")
        content = b"\n".join(chance.choice(_LINE_EDITS)(lines, chance))
    return mutated_bytes(content, chance) if chance.random() < 0.3 else content


def _flip_bit(content: bytes, chance: Random) -> bytes:
    if not content:
        return content
    place = chance.randrange(len(content))
    return (
        content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]
    )


def _insert_token(content: bytes, chance: Random) -> bytes:
    place = chance.randint(0, len(content))
    return content[:place] + chance.choice(_TOKENS) + content[place:]


def _remove_piece(content: bytes, chance: Random) -> bytes:
    start, end = _piece(content, chance)
    return content[:start] + content[end:]


def _repeat_piece(content: bytes, chance: Random) -> bytes:
    start, end = _piece(content, chance)
    return content[:end] + content[start:end] + content[end:]


def _truncate(content: bytes, chance: Random) -> bytes:
    return content[: chance.randint(0, len(content))]


def _piece(content: bytes, chance: Random) -> tuple[int, int]:
    start = chance.randint(0, len(content))
    return start, min(len(content), start + chance.choice([1, 2, 8, 64, 512]))


def _change_line(lines: list[bytes], chance: Random) -> list[bytes]:
    place = chance.randrange(len(lines))
    edit = chance.choice(
        [
            lambda line: [],
            lambda line: [line, line],
            lambda line: [b""],
            lambda line: [b"", line],
            lambda line: [line + b"\r"],
            lambda line: [line.replace(b"\t", b" ")],
            lambda line: [line.replace(b" ", b"\t")],
            lambda line: [line.replace(b",", b";")],
            lambda line: [line.lower()],
            lambda line: [line[::-1]],
        ]
    )
    return [*lines[:place], *edit(lines[place]), *lines[place + 1 :]]


def _move_line(lines: list[bytes], chance: Random) -> list[bytes]:
    lines.insert(chance.randint(0, len(lines) - 1), lines.pop(chance.randrange(len(lines))))
    return lines


def _change_cell(lines: list[bytes], chance: Random) -> list[bytes]:
    place = chance.randrange(len(lines))
    separator = chance.choice([b"\t", b" ", b",", b"###"])
    cells = lines[place].split(separator)
    cell = chance.randrange(len(cells))
    match chance.randrange(4):
        case 0:
            del cells[cell]
        case 1:
            cells.insert(cell, cells[chance.randrange(len(cells))])
        case _:
            cells[cell] = chance.choice(_TOKENS)
    lines[place] = separator.join(cells)
    return lines


_BYTE_EDITS: list[Callable[[bytes, Random], bytes]] = [
    _flip_bit,
    _flip_bit,
    _insert_token,
    _insert_token,
    _remove_piece,
    _repeat_piece,
    _truncate,
]
_LINE_EDITS: list[Callable[[list[bytes], Random], list[bytes]]] = [
    _change_line,
    _move_line,
    _change_cell,
    _change_cell,
    _change_cell,
]
