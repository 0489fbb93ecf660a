"""House rules that can be counted: parameters of a function, names of classes and files."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onegrad

ROOT = Path(onegrad.__file__).parent
MOST_PARAMETERS = 7

Function = ast.FunctionDef | ast.AsyncFunctionDef


def parameters(function: Function) -> int:
    """Those that a caller may give; *args and **kwargs are one each, self and cls none."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    own = names[:1] in (["self"], ["cls"])
    more = [function.args.vararg, function.args.kwarg]
    return len(names) + len(function.args.kwonlyargs) + sum(a is not None for a in more) - own


def functions(tree: ast.AST, where: str) -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(tree):
        name = f"{where}.{getattr(node, 'name', '')}"
        if isinstance(node, Function):
            yield name, node
        yield from functions(node, name if hasattr(node, "name") else where)


def long_lists(root: Path = ROOT) -> set[str]:
    """Functions with too many parameters; commands and scikit-learn's constructors are exempt."""
    found = set()
    for path in root.rglob("*.py"):
        place = path.relative_to(root)
        for name, function in functions(ast.parse(path.read_text(encoding="utf-8")), place.stem):
            exempt = place.parts[0] == "cli" or (
                place.parts[:2] == ("tabular", "estimators") and function.name == "__init__"
            )
            if parameters(function) > MOST_PARAMETERS and not exempt:
                found.add(name)
    return found


def repeated_classes(root: Path = ROOT) -> set[str]:
    """ "room.Class" for classes of one name in one room: a folder at the top with all below it."""
    names = Counter(
        f"{path.relative_to(root).parts[0] if path.parent != root else 'top'}.{node.name}"
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    return {name for name, count in names.items() if count > 1}


def repeated_files(root: Path = ROOT) -> set[str]:
    """ "room.file" likewise."""
    names = Counter(
        f"{path.relative_to(root).parts[0] if path.parent != root else 'top'}.{path.stem}"
        for path in root.rglob("*.py")
        if path.stem != "__init__"
    )
    return {name for name, count in names.items() if count > 1}


def test_functions_take_at_most_seven_parameters():
    assert long_lists() == set()


def test_class_names_are_unique_within_a_room():
    assert repeated_classes() == set()


def test_file_names_do_not_repeat():
    assert repeated_files() == set()


def test_what_breaks_a_rule_is_seen(tmp_path):
    """Negative controls, and what is exempt."""
    many = "def f(a, b, c, d, e, f, g, *, h): ..."
    method = "class A:\n    def __init__(self, a, b, c, d, e, f, g, **h): ..."
    for room in ("theory", "theory/nodes", "cli", "tabular/estimators"):
        (tmp_path / room).mkdir(parents=True)
    (tmp_path / "theory" / "one.py").write_text(many)
    (tmp_path / "theory" / "nodes" / "two.py").write_text(method)
    (tmp_path / "cli" / "three.py").write_text(many)
    (tmp_path / "tabular" / "estimators" / "four.py").write_text(method)
    assert long_lists(tmp_path) == {"one.f", "two.A.__init__"}
    assert repeated_classes(tmp_path) == repeated_files(tmp_path) == set()
    (tmp_path / "theory" / "four.py").write_text("class A: ...\ndef f(a, b, c, d, e, f, g): ...")
    assert repeated_classes(tmp_path) == {"theory.A"}
    assert repeated_files(tmp_path) == set()
    (tmp_path / "theory" / "nodes" / "four.py").write_text("")
    assert repeated_files(tmp_path) == {"theory.four"}
    assert "four.f" not in long_lists(tmp_path)
