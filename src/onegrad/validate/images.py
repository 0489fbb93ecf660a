"""What the source printed about its images, and what other images change in its figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ImageStatistics:
    """Traces of the two classes' covariances, and the distance of each class mean from the
    average of both, where it was printed."""

    traces: tuple[float, float]
    distance: float | None = None


# Printed in the notebooks [demir2025] for samples of their GAN; pixels in [0, 1].
GAN_STATISTICS = {
    "demir2025/fig3a": ImageStatistics((39.178, 23.998)),
    "demir2025/fig3b": ImageStatistics((38.812, 41.530)),
    "demir2025/fig7a": ImageStatistics((39.178, 23.998)),
    "demir2025/fig7b": ImageStatistics((39.123, 24.006)),
    "demir2025/fig8a": ImageStatistics((39.142, 24.002), 3.262),
    "demir2025/fig8b": ImageStatistics((38.757, 41.572), 3.614),
}


@dataclass(frozen=True)
class ImageTest:
    """What other images change in a figure: network over published points minus one, mean over
    points, measured (docs/reproduction.md).

    real : with all real images; `spread` is its standard deviation between data sets
    typical : without the twentieth of each class that lies furthest towards the other class
    generated : with samples of a small conditional GAN of our own
    """

    real: float
    spread: float
    typical: float
    generated: float

    def explains(self, deviation: float) -> bool:
        """Whether it is what real images were measured to do: no other size, no other sign."""
        return abs(deviation - self.real) <= 3 * self.spread


IMAGE_TESTS = {
    "demir2025/fig3b": ImageTest(0.05, 0.02, 0.05, -0.06),
    "demir2025/fig8a": ImageTest(0.68, 0.08, 0.03, -0.45),
    "demir2025/fig8b": ImageTest(0.47, 0.07, -0.09, -0.46),
}
