"""Documentation that follows the code, and references that exist."""

import re
import runpy
from pathlib import Path

from onegrad.experiments.citations import bibliography

ROOT = Path(__file__).parents[2]


def test_the_spec_reference_is_up_to_date():
    page = runpy.run_path(str(ROOT / "docs" / "make_spec.py"))["page"]()
    written = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
    assert written == page, "run: python docs/make_spec.py"


def test_cited_keys_exist():
    known = set(bibliography())
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md")]:
        text = path.read_text(encoding="utf-8")
        keys = set(re.findall(r"(?:\[|\{cite\}`|[;,] ?)([a-z]+(?:19|20)\d\d)\b", text))
        assert keys <= known, f"{path.name} cites {keys - known}"


def test_links_between_pages_exist():
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"
