"""How the site is built: `make docs`. Everything it shows is made here, and nothing comes from
outside: KaTeX lies beside the pages, examples are run, pages about code come from the code."""

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402
import matplotlib  # noqa: E402
from site_parts import Cite, render_math  # noqa: E402
from sphinx_gallery.sorting import FileNameSortKey  # noqa: E402

import onegrad  # noqa: E402

matplotlib.use("agg")
shutil.rmtree(HERE / "examples" / "results", ignore_errors=True)  # rows of an earlier build
generate.write_all(HERE)

project = "onegrad"
author = "The onegrad authors"
copyright = author
version = release = onegrad.__version__

extensions = [
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
]
plot_formats = [("png", 120)]
plot_html_show_formats = plot_html_show_source_link = False
exclude_patterns = ["_build", "examples"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = "onegrad"
html_static_path = ["_static", "generated/thumbnails"]
html_extra_path = ["generated/site"]  # the story: one file that needs no server
html_css_files = ["katex/katex.min.css", "site.css"]
html_js_files = ["katex/katex.min.js", "formulas.js"]
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
alone = ("index", "install", "generated/presets", "auto_examples/plot_0_tutorial")
html_sidebars = {page: [] for page in alone}
html_theme_options = {
    "logo": {"text": "onegrad"},
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 7,
}

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": FileNameSortKey,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "abort_on_example_error": True,
    "write_computation_times": False,
    "ignore_repr_types": r"matplotlib|ndarray",
    "capture_repr": ("_repr_html_", "__repr__"),
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
}


def setup(app):
    app.add_role("cite", Cite())
    render_math(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
