"""Imports go one way: between rooms and between files."""

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import onegrad

ROOT = Path(onegrad.__file__).parent
# From the ground up: a module may import its own room and those before it.
ROOMS = [
    "errors", "compute", "text", "gaussian", "spec.fields", "spec.presets.names", "data",
    "spec.tables", "degree.rule", "problem", "simulate.network", "simulate.risk", "simulate.models",
    "simulate.memory", "theory", "simulate.control_variates", "validate.published", "spec",
    "results", "validate.reproduced", "simulate", "predict", "degree", "spectrum", "runs", "figures", "bench", "tabular", "validate",
    "page", "cli", "__main__",
]  # fmt: skip
STRANGERS = [("theory", "simulate"), ("simulate", "theory")]

Graph = Mapping[str, set[str]]


def name_of(path: Path, root: Path = ROOT) -> str:
    """Dotted name below the package; a folder's own name for its __init__.py."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Every module below the package by its dotted name, the package itself left out."""
    return {
        name_of(p, root): p
        for p in sorted(root.rglob("*.py"))
        if p.parent != root or p.stem != "__init__"
    }


def imported(path: Path, known: Iterable[str]) -> set[str]:
    """The modules among `known` that a file imports, at its top or inside its functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "onegrad":
            parent = node.module.partition(".")[2]
            whole = {f"{parent}.{alias.name}".lstrip(".") for alias in node.names} & {*known}
            names |= whole
            if parent and len(whole) < len(node.names):
                names.add(parent)
        elif isinstance(node, ast.Import):
            names |= {a.name.partition(".")[2] for a in node.names if a.name.startswith("onegrad.")}
    return names & {*known}


@cache
def graph_of(root: Path = ROOT) -> dict[str, set[str]]:
    known = modules(root)
    return {name: imported(path, known) - {name} for name, path in known.items()}


def place(name: str) -> int:
    """Where a module stands: by the longest entry of ROOMS that holds it."""
    holders = [room for room in ROOMS if f"{name}.".startswith(f"{room}.")]
    return ROOMS.index(max(holders, key=len))


def upwards(graph: Graph) -> set[str]:
    """What is imported from a room above, or across a border that nothing may cross."""
    bad = set()
    for name, targets in graph.items():
        for target in targets:
            folders = name.partition(".")[0], target.partition(".")[0]
            if place(target) > place(name) or folders in STRANGERS:
                bad.add(f"{name} imports {target}")
    return bad


def cycles(graph: Graph) -> list[set[str]]:
    """Groups of nodes that reach each other, each of two or more."""
    reach = {node: set(targets) for node, targets in graph.items()}
    for middle in graph:
        for targets in reach.values():
            if middle in targets:
                targets |= reach[middle]
    groups = {frozenset({n, *(t for t in reach[n] if n in reach.get(t, ()))}) for n in graph}
    return sorted((set(group) for group in groups if len(group) > 1), key=sorted)


def test_every_room_has_its_place():
    assert all(place(name) >= 0 for name in modules())


def test_rooms_import_downwards_only():
    assert upwards(graph_of()) == set()


def test_no_two_files_import_each_other():
    assert cycles(graph_of()) == []


def package(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_an_upward_import_is_seen(tmp_path):
    """Negative control, in every form that an import may have."""
    forms = (
        "from onegrad.cli.commands import main", "import onegrad.cli.commands",
        "from onegrad.cli import commands", "def late():\n    from onegrad.cli import commands",
    )  # fmt: skip
    for i, form in enumerate(forms):
        root = package(tmp_path / str(i), {"cli/commands": "", "data/labels": form})
        assert upwards(graph_of(root)) == {"data.labels imports cli.commands"}
    root = package(
        tmp_path, {"theory/errors": "from onegrad import simulate", "simulate/__init__": ""}
    )
    assert "theory.errors imports simulate" in upwards(graph_of(root))


def test_a_cycle_is_seen(tmp_path):
    """Negative control: three files in a circle,."""
    root = package(tmp_path / "files", {
        "data/a": "from onegrad.data.b import x", "data/b": "from onegrad.data import c",
        "data/c": "import onegrad.data.a", "data/d": "import onegrad.data.a",
    })  # fmt: skip
    assert cycles(graph_of(root)) == [{"data.a", "data.b", "data.c"}]
