"""Tables of a spec as the text of a TOML file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onegrad.errors import SpecError


def to_toml(tables: Mapping[str, Any]) -> str:
    """The text that `onegrad run` reads back as the same tables.

    >>> print(to_toml({"name": "a", "sweep": {"network.width": [1, 2]}}), end="")
    name = "a"
    <BLANKLINE>
    [sweep]
    "network.width" = [1, 2]
    """
    return "\n".join(_lines(tables, ())).lstrip("\n") + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    """A table's own keys, then the tables in it."""
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping) and value}
    own = {k: v for k, v in table.items() if not isinstance(v, Mapping) and v is not None}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in own.items()]
    if path and (own or not inner):
        lines = ["", f"[{'.'.join(path)}]", *lines]
    for name, value in inner.items():
        lines += _lines(value, (*path, _key(name)))
    return lines


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("_", "").isalnum() else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    raise SpecError.of("spec", value, "has no form in TOML", "Use texts, numbers and lists")


def _text(text: str) -> str:
    """JSON's escapes are TOML's, except for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
