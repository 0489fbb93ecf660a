"""Write docs/spec.md anew from the declarations: python docs/make_spec.py."""

from pathlib import Path

from onegrad.experiments.reference import spec_reference

HEAD = """\
# Spec files

One TOML file is one experiment. Unknown keys and values out of range are refused with the key, the
value, what is allowed and the nearest known key. `onegrad show PRESET` prints a complete one.

- `name`: a text, the title of tables and figures.
- `[data]`, `[labels]`, `[network]`, `[training]`, `[scaling]` state the problem; conventions are in
  [notation.md](notation.md). η and θ come from `[scaling]`, or by hand from `training.rate` and
  `data.spread`.
- `[compare]` says what is computed on it, `[figure]` what is drawn.
- `[sweep]` lists values for any dotted key of the problem, `"network.width_ratio" = [0.3, 1, 3]`;
  several keys make a grid. A swept `width_ratio` replaces `width` and vice versa.

Activations and links: relu, tanh, sigmoid, erf, gelu, softplus, elu, sin, identity, or
`hermite(c0, c1, …)` for Σ c_j H_j; in Python any `Activation`, after `register` by its name.

Models: network, hermite, conditional-gaussian, spiked, gaussian, random-features, linear, kernel,
theory, theory-limit (the isotropic closed form in the limit of large samples).

## `--json`

`{"name": …, "rows": [{"point": {dotted keys}, "model": …, "test_error": …, "test_error_se": …,
"train_error": …, "train_error_se": …, "train_objective": …, "train_objective_se": …,
"test_difference": …, "test_difference_se": …, "train_difference": …, "train_difference_se": …,
"seeds": …, "status": "ok" | "failed", "seconds": …}, …]}`. Differences are to the network, relative
to it and paired by seed. Deterministic rows have a standard error of 0 and no seeds. A failed row
has `error`.

## Keys

"""


def page() -> str:
    return HEAD + spec_reference()


if __name__ == "__main__":
    Path(__file__).with_name("spec.md").write_text(page(), encoding="utf-8")
