"""Tables of a spec as the text of a TOML file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from onegrad.errors import SpecError


def to_toml(tables: Mapping[str, Any]) -> str:
    """The text that `onegrad run` reads back as the same tables; lists stand on one line.

    >>> print(to_toml({"name": "a", "sweep": {"network.width": [1, 2]}}), end="")
    name = "a"
    <BLANKLINE>
    [sweep]
    "network.width" = [1, 2]
    """
    import tomli_w

    try:
        text = tomli_w.dumps(_given(tables))
    except TypeError:
        raise SpecError.of(
            "spec", tables, "has a value that has no form in TOML", "Use texts, numbers and lists"
        ) from None
    # line breaks in texts are escaped: every other one after a bracket or a comma is of a list
    text = re.sub(r",\n\s*(?=\])", "", text)
    return re.sub(r"(?<=,)\n\s+", " ", re.sub(r"(?<=\[)\n\s+", "", text))


def _given(table: Mapping[str, Any]) -> dict[str, Any]:
    """Without keys that have no value, and tables that have no keys."""
    inner = {k: _given(v) if isinstance(v, Mapping) else v for k, v in table.items()}
    return {k: v for k, v in inner.items() if v is not None and v != {}}
