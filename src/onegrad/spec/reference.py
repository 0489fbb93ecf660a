"""The reference of spec files, written from the declarations themselves (docs/spec.md)."""

from __future__ import annotations

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from onegrad.gaussian.activation import Activation
from onegrad.spec.experiment import TABLES
from onegrad.spec.fields import allowed


def spec_reference() -> str:
    """Markdown: one table of keys for each table of a spec, with meaning, range and default."""
    parts = []
    for table, classes in TABLES.items():
        for cls in classes:
            model = cls.model_fields.get("model")
            kind = f' with `model = "{model.default}"`' if model is not None else ""
            summary = (cls.__doc__ or "").strip().splitlines()[0]
            parts.append(f"### `[{table}]`{kind}\n\n{summary}\n")
            parts.append("| key | meaning | allowed | default |\n|---|---|---|---|")
            for name, field in cls.model_fields.items():
                if name != "model":
                    parts.append(_line(name, field))
            parts.append("")
    return "\n".join(parts)


def _line(name: str, field: FieldInfo) -> str:
    meaning = field.description or ""
    range_text = allowed(field).removeprefix("must be ")
    range_text = "" if range_text == meaning else range_text
    return f"| `{name}` | {meaning} | {range_text} | {_default(field)} |"


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined and field.default_factory is None:
        return "needed"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return ""
    if isinstance(value, Activation):
        value = value.name
    if isinstance(value, tuple):
        value = list(value)
    return f"`{value!r}`" if not isinstance(value, str) else f'`"{value}"`'
