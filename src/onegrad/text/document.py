"""A whole HTML page in one file that asks nothing of the network."""

from __future__ import annotations

import html

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --quiet: #5a5a5a;
  --line: #dddddd }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --paper: #181a1b; --quiet: #a5a5a5; --line: #3a3d3f } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.7rem; line-height: 1.25 } h2 { font-size: 1.2rem; margin-top: 2.2rem }
.lead { font-size: 1.1rem } .quiet, figcaption { color: var(--quiet); font-size: .9rem }
figure { margin: 1rem 0 } img { width: 100%; height: auto; background: #fff; border-radius: 6px }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .3rem .6rem;
  border-bottom: 1px solid var(--line) } td + td, th + th { text-align: right }
@media (max-width: 30rem) { td, th { padding: .3rem .25rem; font-size: .92em } }
code { overflow-wrap: anywhere } pre { overflow-x: auto; padding: .8rem; border: 1px solid
  var(--line); border-radius: 6px }
"""


def document(title: str, body: str, style: str = "") -> str:
    """A whole page that asks for nothing from outside.

    style : rules beside the common ones
    """
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{html.escape(title)}</title>
<style>{STYLE}{style}</style>
</head>
<body>
<h1>{html.escape(title)}</h1>
{body}
</body>
</html>
"""


def as_html(markdown: str) -> str:
    """Markdown with tables as HTML; what is HTML in it is shown as text."""
    from markdown_it import MarkdownIt

    return str(MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown))
