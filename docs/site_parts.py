"""Two pieces of the site: formulas, which KaTeX draws in the browser, and citations."""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from sphinx.util.docutils import SphinxRole


class Cite(SphinxRole):
    """{cite}`demir2025`: a link to the list of references."""

    def run(self):
        builder = self.env._app.builder if hasattr(self.env, "_app") else self.env.app.builder
        page = builder.get_relative_uri(self.env.docname, "generated/references")
        links = []
        for key in self.text.split(","):
            key = key.strip()
            uri = f"{page}#{key}"
            links += [nodes.Text("; ")] if links else []
            links.append(nodes.reference("", key, internal=True, refuri=uri))
        return [nodes.inline("", "[", classes=["cite"]), *links, nodes.Text("]")], []


def _inline(self, node):
    self.body.append(f'<span class="tex">{escape(node.astext())}</span>')
    raise nodes.SkipNode


def _block(self, node):
    """A displayed formula with its number and its name, which is also the anchor."""
    source = node.astext()
    tag = re.search(r"\\tag\{([^}]*)\}", source)
    number = node.get("number") or (tag[1] if tag else "")
    text = re.sub(r"\\tag\{[^}]*\}", "", source).strip().rstrip(",")
    anchor = f' id="equation-{nodes.make_id(node["label"])}"' if node.get("label") else ""
    name = f"<small>{escape(node['label'])}</small>" if node.get("label") else ""
    shown = f'<span class="eqno">({escape(str(number))}){name}</span>' if number else ""
    self.body.append(
        f'<div class="formula"{anchor}><div class="tex display">{escape(text)}</div>{shown}</div>\n'
    )
    raise nodes.SkipNode


def _name_far_equations(app, tree, document) -> None:
    """An equation of another page is referred to by its name: numbers begin anew on each page."""
    for link in tree.findall(nodes.reference):
        page, mark, name = link.get("refuri", "").partition("#equation-")
        if mark and page and page != app.builder.get_relative_uri(document, document):
            link.clear()
            link += nodes.Text(name)


def render_math(app) -> None:
    """Formulas are drawn in the browser by KaTeX, which lies in _static: nothing comes from
    outside."""
    app.add_html_math_renderer("katex", (_inline, None), (_block, None))
    app.config.html_math_renderer = "katex"
    app.connect("doctree-resolved", _name_far_equations)
