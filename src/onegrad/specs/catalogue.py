"""The built-in experiments: one TOML file for each figure, presets/<source>/<figure>.toml."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from onegrad.declared import read_toml
from onegrad.errors import SpecError, did_you_mean
from onegrad.specs.sweep import ZIP, flat

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

_SPEED = 4e10  # operations a second on the two cores that the minutes are meant for
_THEORY_SECONDS = 0.3  # of one point of a known population, on one core
_IMAGE_SECONDS = 3.0  # of one point of real images


@dataclass(frozen=True)
class Preset:
    """A line of `onegrad list`."""

    name: str
    title: str
    minutes: float


def preset_path(name: str) -> Path:
    return Path(str(resources.files("onegrad.specs") / "presets" / f"{name}.toml"))


def preset_names() -> list[str]:
    """quickstart first, then source by source, figures in their order."""
    folder = preset_path("x").parent
    found = [p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.toml")]
    rank = {source: i for i, source in enumerate(SOURCES)}
    return sorted(found, key=lambda name: (rank[name.rpartition("/")[0]], _natural(name)))


def _natural(name: str) -> list[tuple[int, str]]:
    """Figure 10 after figure 9."""
    return [(int(d or 0), t) for d, t in re.findall(r"(\d*)(\D*)", name)]


def preset_groups() -> dict[str, list[Preset]]:
    """Every preset, by where its figure comes from."""
    groups: dict[str, list[Preset]] = {}
    for name in preset_names():
        tables = read_toml(preset_path(name))
        line = Preset(name, tables["name"], estimated_minutes(tables))
        groups.setdefault(SOURCES[name.rpartition("/")[0]], []).append(line)
    return groups


def known_tables(spec: str | Path) -> dict[str, Any]:
    """The tables of a preset, or of a TOML file."""
    if str(spec) in preset_names():
        return read_toml(preset_path(str(spec)))
    try:
        return read_toml(spec)
    except SpecError as error:
        if not Path(spec).exists():
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


def estimated_minutes(tables: Mapping[str, Any]) -> float:
    """About how long a run takes on two cores: operations of the products, Gram matrices and
    solutions of all repetitions, and the seconds of the theory's points."""
    sweep = tables.get("sweep", {})
    zipped = flat(sweep.get(ZIP, {}))
    free = flat({k: v for k, v in sweep.items() if k != ZIP})
    lists = [values for key, values in free.items() if key != "network.width_ratio"]
    others = math.prod(len(values) for values in lists) * max(1, *map(len, zipped.values()), 1)
    data, network, training = (tables[name] for name in ("data", "network", "training"))
    images = data["model"] == "fashion-mnist"
    n = max(zipped.get("data.dim", [data.get("dim", 784)]))
    m = max(zipped.get("training.samples", [training["samples"]]))
    step = training.get("step_samples", m)
    ratios = free.get("network.width_ratio", [network.get("width_ratio")])
    widths = [network.get("width", 0) if r is None else r * m for r in ratios]
    models = tables.get("compare", {}).get("models", ["network"])
    simulated = [name for name in models if not name.startswith(("theory", "surrogate"))]
    seeds = tables.get("compare", {}).get("seeds", 1)
    work = sum(_repetition(n, m, step, k, len(simulated)) for k in widths) * others
    seconds = work * (seeds if isinstance(seeds, int) else 40) / _SPEED
    theories = (len(models) - len(simulated)) * others * len(widths)
    seconds += theories * (_IMAGE_SECONDS if images else _THEORY_SECONDS) / 2
    return max(0.1, seconds / 60)


def _repetition(n: float, m: float, step: float, k: float, models: int) -> float:
    """Operations of one repetition: two products of the step, then features, Gram and risk."""
    few, many = min(m, k), max(m, k)
    return 4 * n * k * step + models * (2 * n * k * m + few**2 * many + few**3 / 3 + n * k * k)
