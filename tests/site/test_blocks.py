"""Code on the pages runs, commands on them exist, and every page that is generated can be."""

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from onegrad.cli.commands import app
from onegrad.spec.presets import preset_names

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("[bh]*/*.md"))]


def blocks(path, *languages):
    """Blocks of these languages; `<!-- before: … -->` is code that readers need not see."""
    text = path.read_text(encoding="utf-8")
    names = "|".join(languages)
    found = re.findall(rf"^```(?:{names})\n(.*?)^```|<!-- before:\s(.*?)\s-->", text, re.M | re.S)
    code = [shown for shown, _ in found if shown]
    hidden = [text for _, text in found if text] if code and "python" in languages else []
    return hidden + code


@pytest.mark.parametrize("path", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_runs(path, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    namespace = {"__name__": "page"}
    try:
        for block in blocks(path, "python"):
            exec(compile(block, str(path), "exec"), namespace)
    finally:
        plt.close("all")


def test_tables_can_be_read():
    for path in PAGES:
        for block in blocks(path, "toml"):
            tomllib.loads(block)


def wrong(line):
    """What is wrong with a line of a shell block: an unknown command, option or preset."""
    words = shlex.split(line, comments=True)
    if words[:3] == ["python", "-m", "onegrad"]:
        words = ["onegrad", *words[3:]]
    if not words or words[0] != "onegrad":
        return ""
    commands = get_command(app).commands
    options = {o for p in get_command(app).params for o in p.opts}
    name = next((w for w in words[1:] if not w.startswith("-")), "")
    if name and name not in commands:
        return f"no command {name}"
    if name:
        options |= {o for p in commands[name].params for o in p.opts}
    unknown = [w for w in words if w.startswith("--") and w not in options]
    preset = words[words.index(name) + 1] if name in ("run", "show", "predict") else ""
    if preset and "." not in preset and preset.islower() and preset not in preset_names():
        return f"no preset {preset}"
    return f"no option {unknown[0]}" if unknown else ""


def test_commands_exist():
    seen = 0
    for path in PAGES:
        inline = re.findall(r"`(onegrad [a-z]+[^`]*)`", path.read_text(encoding="utf-8"))
        shell = [line for block in blocks(path, "sh") for line in block.splitlines()]
        for line in shell:
            assert not wrong(line), f"{path.name}: {line}: {wrong(line)}"
        for line in inline:
            name = line.split()[1]
            assert name in get_command(app).commands, f"{path.name}: {line}"
        seen += len(shell) + len(inline)
    assert seen > 20


def test_a_wrong_line_is_seen():
    """Negative controls."""
    assert wrong("onegrad rnu quickstart") == "no command rnu"
    assert wrong("onegrad run quickstart --fats") == "no option --fats"
    assert wrong("onegrad run quikstart") == "no preset quikstart"
    assert not wrong("onegrad run quickstart --quick   # a comment") and not wrong("make demo")


@pytest.fixture
def generate(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import generate
    import thumbnails

    monkeypatch.setattr(thumbnails, "draw_all", lambda folder: {})
    yield generate
    for name in ("generate", "thumbnails"):
        sys.modules.pop(name, None)


def test_every_public_name_has_a_page_and_a_line(generate):
    index = generate.api_index()
    for name in generate.public_names():
        assert f"(api/{name}.md)" in index
        page = generate.page_of(name)
        assert page.startswith(f"# {name}\n") and f"og.{name}" in page and len(page) > 80
        assert " at 0x" not in page, name
    assert "`plot`" in generate.page_of("Results") or "## plot" in generate.page_of("Results")


def test_every_command_and_preset_is_listed(generate, tmp_path):
    page = generate.commands()
    for name in get_command(app).commands:
        assert f"## onegrad {name}\n" in page and f"Usage: onegrad {name}" in page
    page = generate.presets(tmp_path)
    for name in preset_names():
        assert f"<code>onegrad run {name}</code>" in page
    assert page.count("minute") >= len(preset_names())
