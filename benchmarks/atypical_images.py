"""Fashion-MNIST figures with other images than the published data set: what their errors rest on.

    python -m benchmarks.atypical_images                        # Figs. 8a and 8b, some minutes
    python -m benchmarks.atypical_images fig3b --share 0.1
    python -m benchmarks.atypical_images --samples gan.npz      # of a generator of one's own

Networks and Hermite models at some of the published points: with all real images; without the share
of each class that lies furthest towards the other class; with the source's printed traces and
distance of the means; or with the images of an NPZ file, one array (N × 784, bytes) for each class
under the name c0, c1, …. For each model the deviation from the published points in percent, mean
over points, with the standard deviation between data sets in brackets.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import onegrad as og
from onegrad.data.fashion_mnist import FashionMnist, load_fashion_mnist
from onegrad.data.images import ImagePopulation
from onegrad.spec.experiment import Experiment
from onegrad.spec.published import PublishedPoint, published_figure

_MODELS = ("network", "hermite")
Classes = tuple[np.ndarray, np.ndarray]


def typical(first: np.ndarray, second: np.ndarray, share: float) -> Classes:
    """Without the share of each class with the lowest score uᵀx for its own side, where u is
    Fisher's direction (Σ̄ + I)⁻¹(μ₁ − μ₂) of the images as the figures scale them (θ = n)."""
    images = ImagePopulation.of(first, second, "common", "covariance")
    dim = first.shape[1]
    x = [np.sqrt(dim) * images.structure(np.arange(c, len(images), 2)) for c in (0, 1)]
    covariance = (np.cov(x[0].T) + np.cov(x[1].T)) / 2 + np.eye(dim)
    u = np.linalg.solve(covariance, x[0].mean(axis=0) - x[1].mean(axis=0))
    scores = x[0] @ u, -x[1] @ u
    kept = [s >= np.quantile(s, share) for s in scores]
    return first[: len(x[0])][kept[0]], second[: len(x[1])][kept[1]]


def with_statistics(
    first: np.ndarray, second: np.ndarray, traces: tuple[float, float], distance: float
) -> Classes:
    """Each class shrunk about its mean to its trace, the means moved along their line; pixels in
    [0, 1], not cut to it."""
    x = [first / 255, second / 255]
    own = [part.mean(axis=0) for part in x]
    middle = (own[0] + own[1]) / 2
    longer = distance / float(np.linalg.norm(own[0] - middle))
    scaled = [
        (part - mean) * np.sqrt(trace / part.var(axis=0).sum()) + middle + longer * (mean - middle)
        for part, mean, trace in zip(x, own, traces, strict=True)
    ]
    return scaled[0], scaled[1]


def data_of(original: FashionMnist, images: Classes) -> FashionMnist:
    """The figure's data with these images in place of the published ones."""
    counts = [0] * 10
    for label, part in zip(original.classes, images, strict=True):
        counts[label] = len(part)
    labels = np.repeat(original.classes, [len(part) for part in images])
    both = np.concatenate(images), labels
    members = {"per_class": tuple(counts), "images": lambda self: both}
    chosen: type[FashionMnist] = type("ChosenImages", (FashionMnist,), members)
    return chosen(**original.model_dump(exclude={"path"}))


def deviations(
    experiment: Experiment, images: Classes, ratios: Sequence[float], seeds: int
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Activation, model and ours over published minus one: a row for each point, a column for each
    data set."""
    figure = published_figure(experiment.figure.published)
    found: dict[tuple[str, str], list[np.ndarray]] = {}
    for point in experiment.points:
        if point.settings["network.width_ratio"] not in ratios:
            continue
        problem = point.problem
        problem = problem.model_copy(update={"data": data_of(problem.data, images)})
        here: list[PublishedPoint] = [p for p in figure.points if p.at(point.settings)]
        done = og.simulate(problem, _MODELS, seeds=seeds, degree=4)
        for model in _MODELS:
            values = [r.test_error for r in done.results.rows if r.model == model]
            for published in (p for p in here if p.model == model):
                key = point.settings["network.activation"], model
                found.setdefault(key, []).append(np.array(values) / published.value - 1)
    for (activation, model), rows in found.items():
        yield activation, model, np.array(rows)


def report(name: str, title: str, images: Classes, given: argparse.Namespace) -> None:
    experiment = Experiment.read(f"demir2025/{name}")
    data = data_of(experiment.points[0].problem.data, images)
    found = data.both_classes().statistics
    unit = 255 if images[0].dtype == np.uint8 else 1
    traces = ", ".join(f"{t / unit**2:.2f}" for t in found.traces)
    print(f"{name}, {title}: traces {traces}, mean to average {found.distance / unit:.3f}")
    parts: dict[str, list[np.ndarray]] = {}
    for activation, model, rows in deviations(experiment, images, given.ratios, given.seeds):
        parts.setdefault(model, []).append(rows)
        print(f"  {activation:8} {model:8} {_text(rows)}", flush=True)
    for model, rows in parts.items():
        print(f"  {'mean':8} {model:8} {_text(np.concatenate(rows))}", flush=True)


def _text(rows: np.ndarray) -> str:
    mean = 100 * rows.mean(axis=0)
    return f"{mean.mean():+6.1f} ({mean.std(ddof=1):.1f}) %"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("figures", nargs="*", default=["fig8a", "fig8b"])
    parser.add_argument("--share", type=float, default=0.05, help="of each class, left out")
    parser.add_argument("--samples", type=Path, help="NPZ file of other images")
    parser.add_argument("--seeds", type=int, default=4, help="data sets")
    parser.add_argument("--ratios", type=float, nargs="+", default=[0.7, 1.0, 2.0, 5.0])
    given = parser.parse_args()
    pixels, labels = load_fashion_mnist()
    for name in given.figures:
        classes = Experiment.read(f"demir2025/{name}").points[0].problem.data.classes
        if given.samples:
            file = np.load(given.samples)
            report(
                name, str(given.samples), (file[f"c{classes[0]}"], file[f"c{classes[1]}"]), given
            )
            continue
        first, second = (pixels[labels == c] for c in classes)
        report(name, "all real images", (first, second), given)
        kept = typical(first, second, given.share)
        report(name, f"without {100 * given.share:g} % of each class", kept, given)
        printed = published_figure(f"demir2025/{name}").gan
        if "distance" in printed:
            scaled = with_statistics(first, second, printed["traces"], printed["distance"])
            report(name, "with the printed traces and distance", scaled, given)


if __name__ == "__main__":
    main()
