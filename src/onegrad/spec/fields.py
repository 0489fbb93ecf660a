"""Declared, validated, frozen settings: one pydantic class per table of a spec file.

A range is declared once, beside its field; the reader of spec files, the command line and the
page all take it from there. Whatever is wrong comes out as one SpecError that lists every key.
"""

from __future__ import annotations

import re
import tomllib
import types
from collections.abc import Iterable, Iterator, Mapping
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from onegrad.errors import MISSING, MOST_PROBLEMS, Problematic, SpecError, did_you_mean


def is_number(value: object) -> TypeGuard[int | float]:
    """Text and true/false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> object:
    """Text and true/false are not numbers, even if Python would convert them."""
    if isinstance(value, bool | str):
        raise ValueError("must be a number")
    return value


_MOST_TEXT = 1_000_000  # characters of a spec file: a list of 100,000 values has fewer
# a key of ten parts and more: ours have three, and the parser's memory grows with their square
_DEEP_KEY = re.compile(
    r"""(?m)(?:^|[\[{,])[ \t]*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){9}"""
)
Real = Annotated[float, BeforeValidator(_number)]
Whole = Annotated[int, BeforeValidator(_number)]
Count = Annotated[int, BeforeValidator(_number), Field(ge=1, le=10_000_000)]


class _OurNames(type(BaseModel)):  # type: ignore[misc]
    """Of a class of settings: completion and `help` name what is ours, not pydantic's."""

    def __dir__(cls) -> list[str]:
        return _ours(type.__dir__(cls))


def _ours(names: Iterable[str]) -> list[str]:
    """Without what pydantic and Python add to every class of settings."""
    added = {*type.__dir__(BaseModel), "table", "only_in_python"}
    own = {name for name in names if not name.startswith("__")} - added
    return sorted(own | {"__class__", "__doc__", "__init__", "__module__"})


if TYPE_CHECKING:  # pydantic's metaclass has no public name
    Base = BaseModel
else:

    class Base(BaseModel, metaclass=_OurNames):
        """What `dir` lists of a table is ours."""


class Section(Base):
    """A frozen table of settings that refuses unknown keys, NaN and infinity.

    table : name of the table in a spec file, the first part of its keys in messages
    only_in_python : cannot be written in a spec file
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        defer_build=True,  # build a table's validators at its first use, for a quick start
    )
    table: ClassVar[str] = ""
    only_in_python: ClassVar[bool] = False

    def __init__(self, /, *unnamed: Any, **settings: Any) -> None:  # a key may be called self
        """From settings by name; whatever is wrong with them is one SpecError."""
        if unnamed:
            fields = {n: f for n, f in type(self).model_fields.items() if n != "model"}
            names, kind = list(fields), type(unnamed[0])
            fits = [n for n, field in fields.items() if kind in _members(field.annotation)]
            raise SpecError.of(
                self.table or "spec", unnamed[0], f"takes settings by name: {', '.join(names)}",
                f"For example {type(self).__name__}({(fits or names)[0]}={_brief(unnamed[0])})",
            )  # fmt: skip
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise advice(error, type(self)) from None

    @classmethod
    def _sign(cls) -> None:
        cls.__signature__ = Signature([
            Parameter(name, Parameter.KEYWORD_ONLY, default=_shown_default(field))
            for name, field in cls.model_fields.items()
            if name != "model"
        ])  # fmt: skip

    @classmethod
    def model_rebuild(cls, **options: Any) -> bool | None:
        """Validators that were deferred; pydantic then writes a signature of its own."""
        done = super().model_rebuild(**options)
        cls._sign()
        return done

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Signature and docstring list the settings, with meaning and default."""
        cls._sign()
        lines = [_described(n, field) for n, field in cls.model_fields.items() if field.description]
        if "__doc__" in cls.__dict__ and cls.__doc__ and lines:
            cls.__doc__ = "\n".join(
                [cls.__doc__.rstrip(), "", "    Settings", "    --------", *lines]
            )

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """The settings that are not at their default."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if name != "model" and (field.is_required() or value != _default(field)):
                yield name, _shown(value)

    def __str__(self) -> str:
        return repr(self)

    def summary(self) -> str:
        """All settings that have a value: `dim = 200, weights = (0.5, 0.5), rank = 1`."""
        values = {name: getattr(self, name) for name in type(self).model_fields if name != "model"}
        given = {k: v for k, v in values.items() if isinstance(v, str | tuple) or _is_set(v)}
        model = [str(getattr(self, "model", ""))] * ("model" in type(self).model_fields)
        return ", ".join([*model, *(f"{k} = {_shown(v)}" for k, v in given.items())])

    def __dir__(self) -> list[str]:
        return _ours(super().__dir__())


def _brief(value: object) -> str:
    return repr(value) if isinstance(value, int | float | str) else "…"


class _Word(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _shown(value: Any) -> Any:
    """Activations by their names, arrays by their shapes."""
    if hasattr(value, "shape"):
        return _Word(f"<array {value.shape}>")
    if isinstance(value, tuple):
        return tuple(_shown(part) for part in value)
    name = getattr(value, "name", None)
    return name if isinstance(name, str) and callable(value) else value


def _is_set(value: Any) -> bool:
    return value is not None and (not isinstance(value, int | float) or value != 0)


def _default(field: FieldInfo) -> Any:
    return field.get_default(call_default_factory=True)


def _shown_default(field: FieldInfo) -> Any:
    return Parameter.empty if field.is_required() else _shown(_default(field))


def _described(name: str, field: FieldInfo) -> str:
    """`dim : number of inputs n` and the default, a line of a docstring."""
    default = (
        ""
        if field.is_required() or _default(field) is None
        else f"; {_shown(_default(field))!r} unless given"
    )
    return f"    {name} : {field.description}{default}"


def read_toml(path: str | Path) -> dict[str, Any]:
    """The contents of a spec file, or a SpecError that says why it cannot be read."""
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_MOST_TEXT)
    except FileNotFoundError:
        here = [p.name for p in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        raise SpecError.of(
            "spec", str(path), "no such file", did_you_mean(path.name, here)
            or "Give the path of a TOML file",
        ) from None  # fmt: skip
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the path
        raise SpecError.of(
            "spec", str(path), f"cannot be read ({error})", "Give a readable TOML file in UTF-8"
        ) from None
    if len(text) == _MOST_TEXT:
        raise SpecError.of(
            "spec", str(path), f"has {_MOST_TEXT:,} characters and more", "Give a spec file"
        )
    try:
        return parse_toml(text)
    except ValueError as error:
        raise SpecError.of(
            "spec", str(path), f"is not valid TOML: {error}",
            'Texts need quotes, lists need [ ], and tables are named like [data]',
        ) from None  # fmt: skip


def parse_toml(text: str) -> dict[str, Any]:
    """TOML, or a ValueError that says what is wrong; also where Python's own limits are met."""
    if _DEEP_KEY.search(text):
        raise ValueError("a key has ten parts and more between dots")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("brackets are nested too deeply") from None


# --- from pydantic's errors to advice ---------------------------------------------------


def advice(error: ValidationError, root: type[Section]) -> SpecError:
    """The problems that pydantic found, each with its key, value, range and a suggestion."""
    seen: dict[str, Problematic] = {}
    problems = error.errors(include_url=False)
    for item in problems[:MOST_PROBLEMS]:
        inner = item.get("ctx", {}).get("error")
        # raised by one of our checks or by an inner table: keep its message
        known = inner.problems if isinstance(inner, SpecError) else (_explain(dict(item), root),)
        for problem in known:
            seen.setdefault(problem.key, problem)
    return SpecError(seen.values(), len(problems[MOST_PROBLEMS:]))


def home(key: str, table: str = "") -> str:
    """Where a key that stands in no table, or not rightly in this one, belongs: to another model of
    the table, or in another table; "" where nobody has it."""
    sections = [c for c in _sections(Section) if c.table and key in c.model_fields]
    models = {_tag(c) for c in sections if c.table == table and "model" in c.model_fields}
    if models:
        return "It belongs to model = " + " or ".join(f'"{one}"' for one in sorted(models))
    tables = sorted({c.table for c in sections} - {table})
    return "It belongs in " + " or ".join(f"[{one}]" for one in tables) if tables else ""


def _sections(root: type[Section]) -> Iterator[type[Section]]:
    for section in root.__subclasses__():
        yield section
        yield from _sections(section)


def _explain(item: dict[str, Any], root: type[Section]) -> Problematic:
    """What pydantic has against a field of this very section, as advice."""
    field, path = _locate(root, item["loc"])
    key = ".".join(part for part in (root.table, path) if part) or "spec"
    kind, value = item["type"], item.get("input")
    if kind == "extra_forbidden":
        known = list(root.model_fields)
        where = f"[{root.table}]" if root.table else "a spec"
        return Problematic(
            key, value, f"is not a known key; {where} takes {', '.join(known)}",
            home(path, root.table) or did_you_mean(path, known),
        )  # fmt: skip
    if kind == "missing":
        what = f"is needed: {allowed(field)}" if allowed(field) else "is needed"
        table = field is not None and not allowed(field)
        table_hint = f"Add a [{key}] table, in Python {key}=…" if table else ""
        return Problematic(key, MISSING, what, _example(field) or table_hint)
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return Problematic(key, value, "must be a table of settings", f"Write [{key}] and its keys")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        given = item.get("ctx", {}).get("tag", MISSING)
        choices = _members(field.annotation) if field else []
        words = [_tag(m) for m in choices if not m.only_in_python]
        options = ", ".join(f'"{word}"' for word in words)
        return Problematic(
            f"{key}.model", given, f"must be one of {options}", did_you_mean(given, words)
        )
    what = allowed(field) or item["msg"]
    if kind in ("too_long", "too_short"):
        limits = item.get("ctx", {})
        least, most = limits.get("min_length"), limits.get("max_length")
        what += f", at {'most' if least is None else 'least'} {most if least is None else least}"
    return Problematic(key, value, what, _suggest(value, field))


def _locate(root: type[Section], loc: tuple[str | int, ...]) -> tuple[FieldInfo | None, str]:
    """The field that a pydantic location points at, and its place within the section."""
    field: FieldInfo | None = None
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif field is None:
            path, field = part, root.model_fields.get(part)
        # later names are branches of a union, not parts of the key
    return field, path


def _members(annotation: Any) -> list[Any]:
    if get_origin(annotation) in (Union, types.UnionType):
        return [m for part in get_args(annotation) for m in _members(part)]
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    return [annotation]


def _tag(model: type[BaseModel]) -> str:
    """The value of `model` that names one of several kinds of section."""
    return str(get_args(model.model_fields["model"].annotation)[0])


def allowed(field: FieldInfo | None) -> str:
    """What a field takes, as a sentence: used in errors, in help texts and on the page."""
    if field is None:
        return ""
    options = [o for t in _members(field.annotation) for o in get_args(t) if isinstance(o, str)]
    ranges = _in_words(bounds(field))
    numeric = any(t in (int, float) for t in _members(field.annotation))
    pieces = ["true, false"] if bool in _members(field.annotation) else []
    if numeric or ranges:
        whole = int in _members(field.annotation) and float not in _members(field.annotation)
        number = f"a {'whole ' if whole else ''}number {ranges}".strip()
        lists = any(get_origin(t) is tuple for t in _members(field.annotation))
        pieces.append(f"{number}, or a list of such" if lists else number)
    elif limits := _limits(_item_metadata(field.annotation)):
        pieces.append(f"a list of numbers {_in_words(limits)}")
    if options:
        pieces.append("one of " + ", ".join(f'"{o}"' for o in options))
    if not pieces and field.description:
        pieces.append(field.description)
    return "must be " + " or ".join(pieces) if pieces else ""


def bounds(field: FieldInfo) -> dict[str, float]:
    """The declared limits of a numeric field: any of gt, ge, lt, le."""
    return _limits([*field.metadata, *_inner_metadata(field.annotation)])


def _limits(metadata: list[Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for meta in metadata:
        for name in ("gt", "ge", "lt", "le"):
            if getattr(meta, name, None) is not None:
                found[name] = getattr(meta, name)
    return found


def _inner_metadata(annotation: Any) -> list[Any]:
    """Limits declared on a member of a union, as in `Count | None`."""
    if get_origin(annotation) in (Union, types.UnionType):
        return [m for part in get_args(annotation) for m in _inner_metadata(part)]
    if get_origin(annotation) is Annotated:
        inner = get_args(annotation)[1:]
        return [m for i in inner for m in (i.metadata if isinstance(i, FieldInfo) else [i])]
    return []


def _item_metadata(annotation: Any) -> list[Any]:
    """Limits declared on the entries of a list, or of its rows."""
    parts = get_args(annotation)
    if get_origin(annotation) is tuple:
        return [m for part in parts for m in _inner_metadata(part) + _item_metadata(part)]
    if get_origin(annotation) in (Union, types.UnionType):
        return [m for part in parts for m in _item_metadata(part)]
    return []


def _in_words(limits: Mapping[str, float]) -> str:
    low, high = limits.get("ge", limits.get("gt")), limits.get("le", limits.get("lt"))
    above = "above" if "gt" in limits else "from"
    below = "below" if "lt" in limits else "to"
    if low is not None and high is not None:
        return f"{above} {low:g} {below} {high:g}"
    if low is not None:
        return f"above {low:g}" if "gt" in limits else f"of at least {low:g}"
    return f"{'below' if 'lt' in limits else 'of at most'} {high:g}" if high is not None else ""


def _example(field: FieldInfo | None) -> str:
    if field is None or not field.examples:
        return ""
    shown = field.examples[0]
    return f'For example "{shown}"' if isinstance(shown, str) else f"For example {shown}"


def _suggest(value: object, field: FieldInfo | None) -> str:
    if field is not None and isinstance(value, str):
        options = [o for t in _members(field.annotation) for o in get_args(t) if isinstance(o, str)]
        if near := did_you_mean(value, options):
            return near
    return _example(field)


def override(spec: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of a nested spec with one dotted key set; rivals of the key are dropped."""
    copy = {k: dict(v) if isinstance(v, Mapping) else v for k, v in spec.items()}
    table, _, name = key.rpartition(".")
    if not table:
        copy[name] = value
        return copy
    inner = copy.setdefault(table, {})
    if not isinstance(inner, dict):
        raise SpecError.of(table, inner, "must be a table", f"Write [{table}]")
    for rivals in RIVALS:
        if key in rivals:
            for rival in rivals - {key}:
                inner.pop(rival.rpartition(".")[2], None)
    inner[name] = value
    return copy


RIVALS = (
    frozenset({"network.width", "network.width_ratio"}),
    frozenset({"data.rank", "data.ranks"}),
    frozenset({"training.samples", "training.total"}),
)
