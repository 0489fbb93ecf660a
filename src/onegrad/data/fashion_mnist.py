"""Fashion-MNIST: from a directory, the Debian package or a download, checked by its contents."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from onegrad.data.formats import parse_idx, read_bytes
from onegrad.data.images import Images
from onegrad.errors import SpecError

# SHA-256 of the decompressed files: distributors compress them anew.
FILES = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}


def _installed() -> Path:
    """Where Debian's package puts the files: below a folder of XDG_DATA_DIRS."""
    folders = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    places = [Path(folder) / "datasets" / "fashion-mnist" for folder in folders.split(":")]
    return next((place for place in places if place.is_dir()), places[-1])


DEBIAN = _installed()
SOURCE = "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/"
_ADVICE = (
    "Install Debian's package dataset-fashion-mnist, or put the four files of "
    "github.com/zalandoresearch/fashion-mnist into a directory and name it: data.path"
)


class FashionMnist(Images):
    """Two classes of Fashion-MNIST, 28 × 28 pixels, 7000 images of each.

    From `path` if given, else from the Debian package's directory, else downloaded once.
    """

    model: Literal["fashion-mnist"] = "fashion-mnist"
    per_class: ClassVar[tuple[int, ...]] = (7000,) * 10
    pixels: ClassVar[int] = 784
    path: Path | None = Field(
        default=None, description="directory of the four IDX files, compressed or not; found by "
        "itself or downloaded unless given", examples=["fashion-mnist"],
    )  # fmt: skip

    @model_validator(mode="after")
    def _directory(self) -> FashionMnist:
        if self.path is not None:
            _ = [_local(self.path, name) for name in FILES]
        return self

    def images(self) -> tuple[np.ndarray, np.ndarray]:
        return load_fashion_mnist(self.path)


@lru_cache(maxsize=1)
def load_fashion_mnist(path: Path | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All 70,000 images (N × 784 bytes) and labels, training images first; 0.4 s, 55 MB."""
    if path is None and _is_complete(DEBIAN):
        path = DEBIAN
    arrays = {}
    for name, digest in FILES.items():
        file = _local(path, name) if path is not None else _downloaded(name)
        raw = read_bytes(file)
        if hashlib.sha256(raw).hexdigest() != digest:
            raise SpecError.of(
                "data.path", str(file.parent), f"{file.name} is not the published file of "
                f"Fashion-MNIST: its SHA-256 does not begin with {digest[:8]} once decompressed",
                "Delete it and fetch it again: it is damaged, or it is another data set",
            )  # fmt: skip
        arrays[name] = parse_idx(raw, str(file))
    train, train_labels, test, test_labels = arrays.values()
    pixels = np.concatenate([train, test]).reshape(-1, FashionMnist.pixels)
    return pixels, np.concatenate([train_labels, test_labels])


def _is_complete(folder: Path) -> bool:
    return all((folder / f"{name}.gz").is_file() for name in FILES)


def _local(folder: Path, name: str) -> Path:
    for candidate in (folder / f"{name}.gz", folder / name):
        if candidate.is_file():
            return candidate
    what = "lacks the file" if folder.is_dir() else "is not a directory that has"
    raise SpecError.of("data.path", str(folder), f"{what} {name}.gz", _ADVICE)


def _downloaded(name: str) -> Path:
    """The file from pooch's cache, downloaded if it is not there yet."""
    import pooch

    pooch.get_logger().setLevel("ERROR")
    folder = pooch.os_cache("onegrad") / "fashion-mnist"
    try:
        # no hash of the compressed file: the contents are checked when they are read
        fetched = pooch.retrieve(
            f"{SOURCE}{name}.gz", known_hash=None, fname=f"{name}.gz", path=folder
        )
    except Exception as error:
        raise SpecError.of(
            "data.path", None, "Fashion-MNIST is not at hand, and it could not be downloaded "
            f"({type(error).__name__})", _ADVICE,
        ) from None  # fmt: skip
    return Path(fetched)
