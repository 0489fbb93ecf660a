"""The tutorial as a notebook: it runs from top to bottom, and what it shows is what we promise."""

import os
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

TUTORIAL = Path(__file__).parents[2] / "docs" / "examples" / "plot_0_tutorial.py"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    from sphinx_gallery.notebook import python_to_jupyter_cli

    folder = tmp_path_factory.mktemp("notebook")
    script = folder / "tutorial.py"
    shutil.copy(TUTORIAL, script)
    python_to_jupyter_cli([str(script)])
    found = nbformat.read(folder / "tutorial.ipynb", as_version=4)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    client = NotebookClient(found, timeout=300, resources={"metadata": {"path": str(folder)}})
    return client.execute()


def shown(notebook, kind):
    """Outputs of a kind, cell by cell."""
    return [
        output["data"][kind]
        for cell in notebook.cells if cell.cell_type == "code"
        for output in cell.outputs if kind in output.get("data", {})
    ]  # fmt: skip


def test_it_runs_and_draws(notebook):
    assert len([c for c in notebook.cells if c.cell_type == "code"]) >= 8
    assert len(shown(notebook, "image/png")) == 4


def test_objects_are_tables(notebook):
    pages = "\n".join(shown(notebook, "text/html"))
    for word in ("Problem", "Prediction by the", "Simulation, 8 repetitions"):
        assert f"<strong>{word}" in pages
    assert "enough at this size" in pages and " at 0x" not in pages


def test_nothing_is_left_of_the_progress(notebook):
    """The line is there while the sweep runs, and empty at the end."""
    cells = [c for c in notebook.cells if "og.sweep(" in c.source]
    texts = [o for o in cells[0].outputs if o.output_type == "stream"]
    assert not [t for t in texts if "rows" in t.text]
    pages = [o["data"].get("text/html", "") for o in cells[0].outputs if "data" in o]
    assert "" in pages and not [page for page in pages if " rows" in page]
