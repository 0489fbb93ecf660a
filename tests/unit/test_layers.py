"""Imports go one way, and theory and network meet only in experiments."""

import ast
from pathlib import Path

import pytest

import onegrad

ROOT = Path(onegrad.__file__).parent
# From the ground up: a module may import its own layer and those before it.
LAYERS = [
    "errors", "backend", "hermite", "activation", "pair_moments", "sections", "randomness", "data",
    "problem", "threads", "network", "equivalents", "theory", "experiments", "figures", "tables",
    "bench", "estimators", "report", "explorer", "cli", "__main__",
]  # fmt: skip
STRANGERS = [("theory", "network"), ("theory", "equivalents"), ("network", "theory")]


def layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("onegrad."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "onegrad":
            names |= {alias.name for alias in node.names if alias.name in LAYERS}
        elif isinstance(node, ast.Import):
            names |= {a.name.split(".")[1] for a in node.names if a.name.startswith("onegrad.")}
    return names


MODULES = [p for p in sorted(ROOT.rglob("*.py")) if p != ROOT / "__init__.py"]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path):
    own = LAYERS.index(layer(path))
    for name in imported(path):
        assert LAYERS.index(name) <= own, f"{path.name} imports {name}, which stands above it"
        assert (layer(path), name) not in STRANGERS


def test_the_rule_can_fail(tmp_path):
    """Negative control: an upward import is seen."""
    bad = tmp_path / "bad.py"
    bad.write_text("from onegrad.cli import main\nimport onegrad.theory.isotropic\n")
    assert imported(bad) == {"cli", "theory"}
    assert LAYERS.index("cli") > LAYERS.index("data")


def test_public_names_exist():
    for name in onegrad.__all__:
        assert getattr(onegrad, name) is not None
    with pytest.raises(AttributeError):
        _ = onegrad.nonsense
