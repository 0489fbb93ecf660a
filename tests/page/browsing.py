"""A small problem as a link to the page, and what one takes from it."""

import csv
import json

from tests.page.server import SPEC

CURVES = json.dumps({"key": "network.activation", "values": ["relu"]})
AXIS = "axis=network.width_ratio&range=[0.5,2]&dots=[0.5,2]"
BOTH = 'quantities=["test_error","train_error"]'
SMALL = f"#view=curve&{AXIS}&{BOTH}&curves={CURVES}" + "".join(
    f"&{table}.{key}={json.dumps(value)}"
    for table, fields in SPEC.items()
    for key, value in fields.items()
)


def ink(page, selector=".panel canvas"):
    """How many different colours the first canvas shows: one means nothing was drawn."""
    return page.evaluate(
        """(selector) => {
          const canvas = document.querySelector(selector);
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const seen = new Set();
          for (let i = 0; i < data.length; i += 4) seen.add(data[i] + 256 * data[i+1] + 65536 * data[i+2]);
          return seen.size;
        }""",  # noqa: E501
        selector,
    )


def open_preset(page, name):
    """By the menu of figures."""
    page.click("#figures")
    page.click(f"#presets [data-name='{name}']")


def download(page, button, folder):
    with page.expect_download() as caught:
        page.click(button)
    path = folder / caught.value.suggested_filename
    caught.value.save_as(path)
    return path


def table(path):
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))
