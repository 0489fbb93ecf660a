"""Documentation that follows the code, and references that exist."""

import ast
import re
import runpy
from pathlib import Path

from onegrad.spec.citations import bibliography

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
_EQUATIONS = re.compile(r"\beqs?\.\s+(\(\d+\)(?:\s*(?:[–-]|,|and)\s*\(\d+\))*)")
_SECTIONS = re.compile(r"docs/([\w-]+\.md),\s+sections?\s+(\d+)(?:[–-](\d+))?")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def cited(text: str) -> set[str]:
    """Keys in brackets, as in [demir2025, Thm. 1; moniri2024], and in Sphinx's {cite}."""
    return set(re.findall(r"(?:\[|\{cite\}`|[;,] ?)([a-z]+(?:19|20)\d\d)\b", text))


def numbered(page: str) -> set[int]:
    """Equations of a page: those with a tag, or with a number at the end of their line."""
    found = re.findall(r"\\tag\{(\d+)\}|\s{2,}\((\d+)\)$", page, re.MULTILINE)
    return {int(tag or plain) for tag, plain in found}


def sections(page: str) -> set[int]:
    return {int(number) for number in re.findall(r"^## (\d+)\.", page, re.MULTILINE)}


def quoted(text: str) -> set[tuple[str, int]]:
    """(page, equation) of every "eq. (5)" and "eqs. (8)–(11)" of a source file.

    The page is the one named just before, or else the one that the file names for all its
    numbers, or else docs/theory.md.
    """
    own = re.search(r"numbers\s+are\s+those\s+of\s+docs/([\w-]+\.md)", text)
    found = set()
    for match in _EQUATIONS.finditer(text):
        named = re.search(r"docs/([\w-]+\.md),?\s+$", text[: match.start()])
        page = (named or own or ["", "theory.md"])[1]
        last = 0
        for joint, number in re.findall(r"([–-]?)\s*\((\d+)\)", match[1]):
            first = last + 1 if joint else int(number)
            last = int(number)
            found |= {(page, i) for i in range(first, last + 1)}
    return found


def missing(text: str) -> set[tuple[str, int]]:
    """Equations and sections that a source file quotes and the pages do not have."""
    pages = {path.name: read(path) for path in (ROOT / "docs").glob("*.md")}
    bad = {(page, n) for page, n in quoted(text) if n not in numbered(pages.get(page, ""))}
    for page, first, last in _SECTIONS.findall(text):
        wanted = range(int(first), int(last or first) + 1)
        bad |= {(page, n) for n in wanted if n not in sections(pages.get(page, ""))}
    return bad


def test_the_spec_reference_is_up_to_date():
    page = runpy.run_path(str(ROOT / "docs" / "make_spec.py"))["page"]()
    assert read(ROOT / "docs" / "spec.md") == page, "run: python docs/make_spec.py"


def test_cited_keys_exist():
    known, seen = set(bibliography()), set()
    for path in [*SOURCES, *(ROOT / "docs").glob("*.md")]:
        keys = cited(read(path))
        assert keys <= known, f"{path.name} cites {keys - known}"
        seen |= keys
    assert len(seen) > 5
    assert not cited("as in [demir2025, Thm. 1; nobody2024]") <= known  # negative control


def test_quoted_equations_and_sections_exist():
    for path in SOURCES:
        assert not missing(read(path)), f"{path.name} quotes what is not there"
    assert len({page for path in SOURCES for page, _ in quoted(read(path))}) > 1


def test_a_wrong_number_is_seen():
    """Negative controls, and how the forms are read."""
    assert quoted("eqs. (8)–(10), (25) and\n(3)") == {("theory.md", n) for n in (8, 9, 10, 25, 3)}
    assert quoted("Equation numbers are those of docs/real-data.md. See eq. (2)") == {
        ("real-data.md", 2)
    }
    assert quoted("[demir2025, eq. 5]") == set()
    assert missing("(docs/theory.md eq. (19))") == set()
    assert missing("(docs/theory.md, eq. (190))") == {("theory.md", 190)}
    assert missing("eqs. (35)–(40)") == {("theory.md", 40)}
    assert missing("Equation numbers are those of docs/real-data.md: eq. (19)") == {
        ("real-data.md", 19)
    }
    assert missing("docs/theory.md, sections 10–11") == {("theory.md", 11)}


def test_links_between_pages_exist():
    """Pages that are made when the site is built are checked there (tests/site)."""
    made = {f"auto_examples/{p.stem}.rst" for p in (ROOT / "docs" / "examples").glob("plot_*.py")}
    for path in [
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs").glob("*/*.md"),
    ]:
        if "generated" in path.parts:
            continue
        for target in re.findall(r"\]\(([^)#:]+)\)", read(path)):
            if target in made or target.startswith("auto_examples/images/"):
                continue
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_the_walk_through_names_what_exists():
    text = read(ROOT / "CONTRIBUTING.md")
    names = set(re.findall(r"`([\w/.-]+\.(?:py|toml|md)|[\w/]+/)`", text))
    assert len(names) > 20
    for name in names:
        places = (ROOT / name, ROOT / "src" / "onegrad" / name)
        assert any(place.exists() for place in places), f"CONTRIBUTING.md names {name}"
    code = "\n".join(map(read, SOURCES))
    for name in set(re.findall(r"`([A-Z]\w+|[a-z_]+_[a-z_]+)`", text)):
        assert re.search(rf"\b{name}\b", code), f"CONTRIBUTING.md names {name}"


# --- from a formula to its function ---------------------------------------------------------


def formulas(text: str) -> list[tuple[dict[str, set[int]], list[tuple[str, str]]]]:
    """Lines of docs/formulas.md: equations by page, and (file, function)."""
    found = []
    for line in text.splitlines():
        functions = re.findall(r"`([\w/]+\.py)`: `([\w.]+)`", line)
        if not functions:
            continue
        equations: dict[str, set[int]] = {}
        for page, numbers in re.findall(r"\]\(([\w-]+\.md)\) ((?:\(\d+\)(?:–|, )?)+)", line):
            equations[page] = {n for _, n in quoted(f"docs/{page} eqs. {numbers.rstrip(', ')}")}
        found.append((equations, functions))
    return found


def defined(file: str, name: str) -> bool:
    """Whether the file below src/onegrad defines the function, class or method."""
    path = ROOT / "src" / "onegrad" / file
    body = ast.parse(read(path)).body if path.exists() else []
    for part in name.split("."):
        match = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part
        ]
        if not match:
            return False
        body = match[0].body
    return True


def test_every_formula_has_its_function():
    """Names and equations exist, and each of the theory is here or quoted; wrong ones are seen."""
    lines = formulas(read(ROOT / "docs" / "formulas.md"))
    assert len(lines) > 50
    named: dict[str, set[int]] = {}
    for equations, functions in lines:
        assert [one for one in functions if not defined(*one)] == []
        for page, numbers in equations.items():
            named.setdefault(page, set()).update(numbers)
    for page, numbers in named.items():
        assert numbers <= numbered(read(ROOT / "docs" / page)), page
    for page, number in set().union(*(quoted(read(path)) for path in SOURCES)):
        named.setdefault(page, set()).add(number)
    for page in ("theory.md", "finite-size.md", "losses.md", "layers.md"):
        assert numbered(read(ROOT / "docs" / page)) - named[page] == set(), page
    wrong = "| x | [theory](theory.md) (8)–(11), (99) | `theory/fixed_point.py`: `solve_nothing` |"
    (equations, [function]) = formulas(wrong)[0]
    assert equations == {"theory.md": {8, 9, 10, 11, 99}} and not defined(*function)
    assert defined("problem.py", "Problem.rates") and not defined("problem.py", "Problem.nothing")


def test_files_named_in_the_docs_exist():
    """`theory/fixed_point.py` and the like: from the root, from the package or as a name in it."""
    known = {path.name for path in [*SOURCES, *(ROOT / "tests").rglob("*.py")]}
    bad = []
    for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "README.md"]:
        if {"_build", "generated", "gallery"} & set(page.parts):
            continue
        for name in re.findall(r"`([\w/.-]+\.py)`", read(page)):
            places = (ROOT / name, ROOT / "src" / "onegrad" / name)
            if not any(place.exists() for place in places) and ("/" in name or name not in known):
                bad.append((page.name, name))
    assert bad == []
