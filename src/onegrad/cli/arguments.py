"""Arguments that several commands take, and the objects that they stand for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer


def complete_preset(incomplete: str) -> list[str]:
    """Names of presets, for the shell's completion."""
    from onegrad.spec.presets import preset_names

    return [name for name in preset_names() if name.startswith(incomplete)]


Spec = Annotated[
    str,
    typer.Argument(
        help="a TOML spec file, or the name of a preset", autocompletion=complete_preset
    ),
]
Preset = Annotated[str, typer.Argument(help="name of a preset", autocompletion=complete_preset)]
Quick = Annotated[
    bool, typer.Option("--quick", help="few points and seeds; sizes and theory as they are")
]
Engine = Annotated[
    str | None, typer.Option(help="local or dask; no number depends on it", show_default="local")
]
Workers = Annotated[
    int | None,
    typer.Option(help="processes on this machine", show_default="as many as it has cores"),
]
Scheduler = Annotated[
    str | None, typer.Option(help="address of a dask scheduler, tcp://host:8786 (else one is made)")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="change a key of the spec; repeatable"),
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object instead of a table")]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="start without a question, however long it takes")
]
Why = Annotated[bool, typer.Option("--why", help="also how the numbers were computed")]
Method = Annotated[
    str,
    typer.Option(
        help="auto, conditional, layer, isotropic, isotropic-limit; for real data "
        "semi-parametric or surrogate"
    ),
]
Accuracy = Annotated[
    float | None,
    typer.Option(help="relative accuracy of the numerics", show_default="compare.accuracy"),
]
Overlaps = Annotated[
    str, typer.Option(help="auto, typical (at this n) or drawn (of the spec's seed)")
]
FiniteSize = Annotated[
    bool | None,
    typer.Option(
        "--finite-size/--no-finite-size",
        help="theory with its 1/n correction, or the limit of large sizes",
        show_default="compare.finite_size",
    ),
]

_LONG = 2 * 3600.0  # seconds above which a terminal is asked
_DAYS = 24 * 3600.0  # seconds above which nothing starts without an answer


def agreement(yes: bool) -> Callable[[Any], None]:
    """Says what a long run costs before it starts; asks in a terminal, and
    starts nothing that takes days where nobody can answer, unless --yes was given."""

    def agree(cost: Any) -> None:
        if not cost.worth_saying:
            return
        print(f"onegrad: {cost}.", file=sys.stderr)
        if yes or not (cost.seconds > _LONG or not cost.fits):
            return
        if sys.stdin.isatty() and sys.stderr.isatty():
            typer.confirm("Start?", abort=True, err=True)
        elif cost.seconds > _DAYS:
            print("onegrad: a run of days starts with --yes.", file=sys.stderr)
            raise typer.Exit(2)

    return agree


def with_finite_size(changes: list[str] | None, finite_size: bool | None) -> list[str]:
    """Changes of a spec from the command line, --finite-size and --no-finite-size included."""
    if finite_size is None:
        return changes or []
    return [*(changes or []), f"compare.finite_size={str(finite_size).lower()}"]
