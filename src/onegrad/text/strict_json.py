"""JSON as the standard has it: there are no NaN and no infinity in it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def json_text(report: Any, indent: int | None = None) -> str:
    """Numbers that are not finite as null.

    >>> json_text({"test_error": float("nan"), "seeds": [1, 2.5]})
    '{"test_error": null, "seeds": [1, 2.5]}'
    """
    return json.dumps(_finite(report), indent=indent, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
