"""Documentation that follows the code, and references that exist."""

import re
import runpy
import sys
from pathlib import Path

from onegrad.spec.citations import bibliography

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
sys.path.insert(0, str(ROOT / "docs"))
from formulas import labels_of, names_in  # noqa: E402

PAGES = [*sorted((ROOT / "docs" / "book").glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
# Equations that a chapter explains with and no function computes by itself.
EXPLAINED = {"averaged-resolvent", "next-order", "rank-one", "relative", "shared-noise"}


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def cited(text: str) -> set[str]:
    """Keys in brackets, as in [demir2025, Thm. 1; moniri2024], and in Sphinx's {cite}."""
    return set(re.findall(r"(?:\[|\{cite\}`|[;,] ?)([a-z]+(?:19|20)\d\d)\b", text))


def named() -> dict[str, Path]:
    """The page of each named equation; a name occurs once."""
    found: dict[str, Path] = {}
    for path in PAGES:
        for name in labels_of(read(path)):
            assert name not in found, f"{name} is named on {path.name} and {found[name].name}"
            found[name] = path
    return found


def test_the_spec_reference_is_up_to_date():
    page = runpy.run_path(str(ROOT / "docs" / "make_spec.py"))["page"]()
    assert read(ROOT / "docs" / "spec.md") == page, "run: python docs/make_spec.py"


def test_cited_keys_exist():
    known, seen = set(bibliography()), set()
    for path in [*SOURCES, *PAGES]:
        keys = cited(read(path))
        assert keys <= known, f"{path.name} cites {keys - known}"
        seen |= keys
    assert len(seen) > 5
    assert not cited("as in [demir2025, Thm. 1; nobody2024]") <= known  # negative control


def test_quoted_equations_exist():
    known = named()
    quoted = {name: path for path in SOURCES for name in names_in(read(path))}
    assert {name: path.name for name, path in quoted.items() if name not in known} == {}
    assert len(quoted) > 80


def test_every_equation_has_its_code():
    """What the book derives is quoted by what computes it, or is there to explain."""
    quoted = {name for path in SOURCES for name in names_in(read(path))}
    assert {name for name in named() if name not in quoted} == EXPLAINED


def test_quoted_pages_exist():
    """docs/book/….md and notes/….md in the code, the presets, tests and benchmarks."""
    files = [*SOURCES, *(ROOT / "src").rglob("*.toml")]
    files += [*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    for path in files:
        for page in re.findall(r"\b((?:docs|notes)/(?!generated)[\w/-]+\.md)", read(path)):
            assert (ROOT / page).exists(), f"{path.name} quotes {page}"


def test_a_wrong_name_is_seen():
    """Negative controls, and how the forms are read."""
    assert names_in("eq. gains and more; eqs. gains, response\n    # and tilt as well") == [
        "gains", "gains", "response", "tilt",
    ]  # fmt: skip
    assert names_in("[demir2025, eq. 5]; eqs. (8)") == []
    assert "no-such-equation" not in named()
    assert labels_of("$$ x $$ (one-name)\n$$ y $$") == ["one-name"]


def test_the_book_is_a_book():
    """At most 25,000 words, no chapter too long to read in one sitting, each with a figure."""
    chapters = {p.stem: read(p) for p in (ROOT / "docs" / "book").glob("*.md") if p.stem != "index"}
    words = {name: len(text.split()) for name, text in chapters.items()}
    assert sum(words.values()) <= 25_000 and max(words.values()) <= 3_000
    for name, text in chapters.items():
        assert ".. plot::" in text and "**Question.**" in text, name
        for part in ("## The result in one formula", "## What is known how", "## Where "):
            assert part in text, (name, part)


def test_links_between_pages_exist():
    """Pages that are made when the site is built are checked there (tests/site)."""
    made_folders = ("auto_examples/images/", "auto_examples/index", "generated/")
    made = {f"auto_examples/{p.stem}.rst" for p in (ROOT / "docs" / "examples").glob("plot_*.py")}
    for path in [
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs").glob("*/*.md"),
    ]:
        if "generated" in path.parts:
            continue
        for target in re.findall(r"\]\(([^)#:]+)\)", read(path)):
            if target in made or target.startswith(made_folders):
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
