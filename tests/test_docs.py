"""Documentation that follows the code, and references that exist."""

import re
import runpy
from pathlib import Path

from onegrad.specs.citations import bibliography

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
    assert missing("eqs. (29)–(34)") == {("theory.md", 34)}
    assert missing("Equation numbers are those of docs/real-data.md: eq. (19)") == {
        ("real-data.md", 19)
    }
    assert missing("docs/theory.md, sections 7–10") == {("theory.md", 10)}


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
