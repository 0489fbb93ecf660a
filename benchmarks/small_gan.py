"""A small conditional GAN of Fashion-MNIST, whose samples `atypical_images` takes.

    python -m benchmarks.small_gan gan.npz --iterations 2000     # two to four CPU minutes, torch
    python -m benchmarks.atypical_images fig8a fig8b fig3a fig3b --samples gan.npz

The layers are those of the GAN that [demir2025] draws its images from, with half of the channels
and a quarter of the hidden units: uniform latents (62) and the class, two dense layers and two
transposed convolutions; as discriminator two convolutions and two dense layers; batch
normalisation, Adam with rate 2e-4 and (.5, .999), batches of 64. The source trains on all ten
classes for 50 epochs, 47,000 iterations; this one takes the four classes of its figures. Samples
are drawn in evaluation mode.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

from onegrad.data.fashion_mnist import load_fashion_mnist

_CLASSES = (0, 1, 5, 9)
_BATCH, _LATENT, _KINDS = 64, 62, 10


class Generator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Sequential(
            nn.Linear(_LATENT + _KINDS, 256), nn.BatchNorm1d(256), nn.ReLU(),
            nn.Linear(256, 64 * 49), nn.BatchNorm1d(64 * 49), nn.ReLU(),
        )  # fmt: skip
        self.image = nn.Sequential(
            nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, kind: torch.Tensor) -> torch.Tensor:
        latent = torch.rand(len(kind), _LATENT)
        return self.image(self.dense(torch.cat([latent, kind], 1)).view(-1, 64, 7, 7))


class Discriminator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(
            nn.Conv2d(1 + _KINDS, 32, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Conv2d(32, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.LeakyReLU(0.2), nn.Flatten(),
        )  # fmt: skip
        self.dense = nn.Sequential(
            nn.Linear(64 * 49, 256), nn.BatchNorm1d(256), nn.LeakyReLU(0.2), nn.Linear(256, 1)
        )

    def forward(self, x: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
        filled = kind[:, :, None, None].expand(-1, -1, 28, 28)
        return self.dense(self.image(torch.cat([x, filled], 1)))


def trained(iterations: int, seed: int) -> Generator:
    """On the training images of the four classes, scaled to [−1, 1]."""
    torch.manual_seed(seed)
    pixels, labels = (array[:60_000] for array in load_fashion_mnist())
    kept = np.isin(labels, _CLASSES)
    x = torch.from_numpy(pixels[kept].astype(np.float32) / 127.5 - 1).view(-1, 1, 28, 28)
    kinds = torch.eye(_KINDS)[torch.from_numpy(labels[kept].astype(np.int64))]
    generator, discriminator = Generator(), Discriminator()
    for module in (*generator.modules(), *discriminator.modules()):
        if isinstance(module, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            nn.init.normal_(module.weight, 0, 0.02)
            nn.init.zeros_(module.bias)
    first, second = (
        torch.optim.Adam(m.parameters(), 2e-4, (0.5, 0.999), fused=True)
        for m in (generator, discriminator)
    )
    loss = nn.BCEWithLogitsLoss()
    true, false = torch.ones(_BATCH, 1), torch.zeros(_BATCH, 1)
    for _ in range(iterations):
        rows = torch.randint(len(x), (_BATCH,))
        kind = kinds[rows]
        with torch.autocast("cpu", torch.bfloat16):
            made = generator(kind)
            real = discriminator(x[rows], kind).float()
            told = loss(real, true) + loss(discriminator(made.detach(), kind).float(), false)
        second.zero_grad()
        told.backward()
        second.step()
        discriminator.requires_grad_(False)
        with torch.autocast("cpu", torch.bfloat16):
            fooled = loss(discriminator(made, kind).float(), true)
        first.zero_grad()
        fooled.backward()
        first.step()
        discriminator.requires_grad_(True)
    return generator.eval()


@torch.no_grad()
def samples(generator: Generator, label: int, count: int) -> np.ndarray:
    """Images of a class (count × 784, bytes)."""
    images = generator(torch.eye(_KINDS)[label].expand(count, _KINDS))
    return ((images + 1) * 127.5).round().to(torch.uint8).flatten(1).numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, help="NPZ file to be written")
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--count", type=int, default=5000, help="images of each class")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    generator = trained(given.iterations, given.seed)
    np.savez(given.out, **{f"c{c}": samples(generator, c, given.count) for c in _CLASSES})


if __name__ == "__main__":
    main()
