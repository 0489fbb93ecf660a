"""A batch and its products with weight matrices."""

from __future__ import annotations

from onegrad.compute.backend import Array, namespace, read_only
from onegrad.compute.backend import product as multiply
from onegrad.data.population import Batch


class Inputs:
    """A batch together with its products X·Wᵀ, each computed once for all models.

    The last two products are kept: those with the initial and with the trained weights. Unless
    `shared`, no product is asked for twice.
    """

    def __init__(self, batch: Batch, shared: bool = True) -> None:
        self.batch = batch
        self.shared = shared
        self._products: list[tuple[Array, Array]] = []

    def preactivation(self, weights: Array) -> Array:
        """XWᵀ (m × k); the caller must not change it."""
        for i, (known, product) in enumerate(self._products):
            if known is weights:
                self._products.append(self._products.pop(i))
                return product
        del self._products[:-1]
        product = read_only(multiply(self.batch.x, weights.T))
        self._products.append((weights, product))
        return product

    def keep_only(self, weights: Array) -> None:
        """Free the products with all other weights."""
        self._products = [pair for pair in self._products if pair[0] is weights]

    def workspace(self, weights: Array) -> tuple[Array, Array]:
        """XWᵀ to read, and an array of its shape to write to: the same one unless shared."""
        if self.shared:
            product = self.preactivation(weights)
            return product, namespace(product).empty_like(product)
        product = multiply(self.batch.x, weights.T)
        return product, product
