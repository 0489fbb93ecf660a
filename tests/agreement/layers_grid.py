"""First layers by every optimiser: the matrix engine against networks. Prints the table of
notes/2026-11-layers.md.

`python -m tests.agreement.layers_grid [n] [sets] [activation …]`
"""

from __future__ import annotations

import sys

import numpy as np

from .first_layers import TESTED, cases, gaps, problem, trained

LOSSES = {"squared": "relu", "logistic": "sign"}  # and the link of its labels


def main(n: int = 500, sets: int = 16, *activations: str) -> None:
    width = (3 * n) // 5
    for activation in activations or ("tanh", "relu"):
        for name, training in cases(width).items():
            for loss, link in LOSSES.items():
                p = problem(n, activation, link=link, loss=loss, **training)
                layer = trained(p, sets=sets)
                found = layer.solved()
                (test, train), se = gaps([layer], [np.array([found.test_loss, found.train_loss])])
                cells = [f"{100 * test:+.1f} ({100 * se[0]:.1f})", f"{100 * train:+.1f} "
                         f"({100 * se[1]:.1f})"]  # fmt: skip
                if p.labels_binary:
                    wrong = layer.wrong.mean()
                    # of training sets, and of the test samples that they share
                    spread = np.sqrt(layer.wrong.var(ddof=1) / sets + wrong * (1 - wrong) / TESTED)
                    spread /= wrong
                    gap = found.misclassification / wrong - 1
                    cells.append(f"{100 * gap:+.1f} ({100 * spread:.1f})")
                off = int(abs(test) > 4 * se[0] + 0.02)
                print(f"| {n} | {activation} | {name} | {loss} | {' | '.join(cells)} |",
                      "!" * off, flush=True)  # fmt: skip


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
