"""The built-in experiments by name, and how a spec is found: a preset, a file or a mapping."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from onegrad.errors import SpecError, did_you_mean
from onegrad.spec.fields import read_toml

Spec = str | Path | Mapping[str, Any]

SOURCES = {
    "": "Start here",
    "demir2025": "Demir & Dogan 2025: mixtures with structure, and Fashion-MNIST",
    "moniri2024": "Moniri, Lee, Hassani, Dobriban 2024: isotropic data",
    "cui2024": "Cui et al. 2024: isotropic data, maximal step",
    "ours": "Ours",
}
# Names of the first version, and what they are now.
RENAMED = {
    "alignment": "demir2025/fig2a", "beyond-linear": "moniri2024/beyond-linear",
    "double-descent": "moniri2024/double-descent", "error-map": "demir2025/fig4a",
    "fashion-0-1": "demir2025/fig3a", "fashion-5-9": "demir2025/fig3b",
    "fashion-means-0-1": "demir2025/fig8a", "fashion-means-5-9": "demir2025/fig8b",
    "fashion-rate": "demir2025/fig7b", "feature-spectrum": "moniri2024/feature-spectrum",
    "finite-size": "ours/finite-size", "linear-gap-map": "ours/best-linear-map",
    "mixture-ratio": "demir2025/fig2b", "rank": "demir2025/fig2c",
    "setting-1": "moniri2024/setting-1", "setting-2": "moniri2024/setting-2",
    "staircase": "moniri2024/staircase", "strength": "demir2025/fig1c",
    "strength-rate": "demir2025/fig5c", "strength-spread": "demir2025/fig5a",
    "three-components": "ours/three-components", "training-error": "demir2025/fig6",
    "weight-spectrum": "moniri2024/weight-spectrum", "weighting": "demir2025/fig1b",
    "width": "demir2025/fig1a",
}  # fmt: skip


def preset_path(name: str) -> Path:
    return Path(str(resources.files("onegrad.spec.presets") / f"{name}.toml"))


def preset_names() -> list[str]:
    """quickstart first, then source by source, figures in their order."""
    folder = preset_path("x").parent
    found = [p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.toml")]
    rank = {source: i for i, source in enumerate(SOURCES)}
    return sorted(found, key=lambda name: (rank[name.rpartition("/")[0]], _natural(name)))


def _natural(name: str) -> list[tuple[int, str]]:
    """Figure 10 after figure 9."""
    return [(int(d or 0), t) for d, t in re.findall(r"(\d*)(\D*)", name)]


def known_tables(spec: str | Path) -> dict[str, Any]:
    """The tables of a preset, or of a TOML file."""
    if not isinstance(spec, str | os.PathLike):
        raise SpecError.of(
            "problem", spec, "must be a Problem, a preset's name, the path of a TOML file, or a "
            "mapping of tables", 'For example "quickstart"',
        )  # fmt: skip
    if str(spec) in preset_names():
        return read_toml(preset_path(str(spec)))
    try:
        return read_toml(spec)
    except SpecError as error:
        if Path(spec).suffix != ".toml" and not Path(spec).exists():
            raise unknown(str(spec)) from None
        raise error


def unknown(name: str) -> SpecError:
    """What to say about a name that is no file and no preset."""
    if name in RENAMED:
        return SpecError.of(
            "spec", name, "is the name of a preset of the first version",
            f"It is {RENAMED[name]} now: onegrad run {RENAMED[name]}",
        )  # fmt: skip
    known = preset_names()
    named = [full for full in known if full.rpartition("/")[2] == name]
    near = f'Did you mean "{named[0]}"?' if named else did_you_mean(name, known)
    advice = " ".join(filter(None, (near, "All presets: onegrad list")))
    return SpecError.of("spec", name, "no such file or preset", advice)


def read_spec(spec: Spec) -> Mapping[str, Any]:
    """The tables of a preset, of a TOML file, or of the mapping itself."""
    return spec if isinstance(spec, Mapping) else known_tables(spec)
