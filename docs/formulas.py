"""Named equations of the pages, and the code that quotes them.

A page names an equation after its second $$, `$$ … $$ (gains)`. Code quotes "eq. gains", or
several: "eqs. gains, response and tilt".
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

CODE = Path(__file__).parents[1] / "src" / "onegrad"


def page(here: Path) -> str:
    """From each named equation of the pages to whatever quotes its name in the code."""
    quoted = quotations()
    parts = [
        "# Where each formula is computed\n",
        "From an equation of the book to the functions, classes and files of `src/onegrad` that "
        "quote its name. Made from the code when the site is built.\n",
    ]
    for path in [*sorted((here / "book").glob("*.md")), here / "learning-curves.md"]:
        text = path.read_text(encoding="utf-8")
        labels = [name for name in labels_of(text) if name in quoted]
        if labels:
            parts += [
                f"## {text.partition(chr(10))[0].lstrip('# ')}\n",
                "| equation | code |",
            ]
            parts += ["|---|---|"]
            parts += [f"| {{eq}}`{n}` | {'; '.join(quoted[n])} |" for n in labels] + [""]
    return "\n".join(parts)


def labels_of(text: str) -> list[str]:
    """Names of the equations of a page: $$ … $$ (name)."""
    return re.findall(r"\$\$ \(([a-z][a-z-]*)\)$", text, re.MULTILINE)


def names_in(text: str) -> list[str]:
    """Names in "eq. gains" and "eqs. gains, response and bulk-matrices"."""
    name, text = r"[a-z][a-z-]+", " ".join(re.sub(r"\n\s*# ", " ", text).split())
    single = re.findall(rf"\b[Ee]q\. ({name})", text)
    several = re.findall(rf"\b[Ee]qs\. ({name}(?:, {name})*) and ({name})", text)
    return [*single, *(n for first, last in several for n in [*first.split(", "), last])]


def quotations() -> dict[str, list[str]]:
    """Where the code quotes each name: `file.py`: `function`, or the file alone."""
    functions: dict[str, list[str]] = {}
    for path in sorted(CODE.rglob("*.py")):
        text, file = path.read_text(encoding="utf-8"), path.relative_to(CODE)
        if not names_in(text):
            continue
        lines, inner = text.splitlines(), set()
        for name, first, last in definitions(ast.parse(text)):
            for label in dict.fromkeys(names_in("\n".join(lines[first - 1 : last]))):
                inner.add(label)
                functions.setdefault(label, []).append(f"`{file}`: `{name}`")
        for label in dict.fromkeys(names_in(text)):
            if label not in inner:
                functions.setdefault(label, []).append(f"`{file}`")
    return functions


def definitions(tree: ast.Module) -> list[tuple[str, int, int]]:
    """Functions and methods, and what comes before the methods of a class, with their lines."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.append((node.name, node.lineno, node.end_lineno or node.lineno))
        elif isinstance(node, ast.ClassDef):
            own = [n for n in node.body if isinstance(n, ast.FunctionDef)]
            end = own[0].lineno - 1 if own else node.end_lineno or node.lineno
            found.append((node.name, node.lineno, end))
            found += [(f"{node.name}.{n.name}", n.lineno, n.end_lineno or n.lineno) for n in own]
    return found
