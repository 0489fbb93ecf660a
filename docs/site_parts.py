"""Two pieces of the site: formulas as MathML, which browsers draw themselves, and citations."""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from latex2mathml.converter import convert
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


def mathml(source: str, display: str = "inline") -> tuple[str, str]:
    """A formula as MathML, and its \\tag by itself."""
    tag = re.search(r"\\tag\{([^}]*)\}", source)
    text = re.sub(r"\\tag\{[^}]*\}", "", source).strip().rstrip(",")
    return convert(text, display=display), tag[1] if tag else ""


def _inline(self, node):
    self.body.append(mathml(node.astext())[0])
    raise nodes.SkipNode


def _block(self, node):
    formula, tag = mathml(node.astext(), "block")
    number = f'<span class="eqno">({escape(tag)})</span>' if tag else ""
    self.body.append(f'<div class="formula">{formula}{number}</div>\n')
    raise nodes.SkipNode


def render_math(app) -> None:
    """Formulas without JavaScript, fonts or pictures: sphinx asks this instead of MathJax."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
