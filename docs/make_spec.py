"""Write docs/spec.md anew from the declarations: python docs/make_spec.py."""

from pathlib import Path

from onegrad.experiments.reference import spec_reference

HEAD = """\
# Spec files

One TOML file is one experiment. Unknown keys and values out of range are refused with the key, the
value, what is allowed and the nearest known key. `onegrad show PRESET` prints a complete one.

- `name`: a text, the title of tables and figures.
- `[data]`, `[labels]`, `[network]`, `[training]`, `[scaling]` state the problem; conventions are
  in [notation.md](notation.md). η and θ come from `[scaling]`, or by hand from `training.rate`
  and `data.spread`.
- `[compare]` says what is computed on it, `[figure]` what is drawn.
- `[sweep]` lists values for any dotted key of the problem, `"network.width_ratio" = [0.3, 1, 3]`;
  several keys make a grid. A swept `width_ratio` replaces `width` and vice versa.
- `[sweep.together]` lists values that advance together, as `zip` does: `"data.dim" = [200, 400]`
  with `"training.samples" = [300, 600]` makes two points, not four. The lists have the same
  length; with keys in `[sweep]` they make one direction of the grid.

On the command line `--set key=value` changes any of these (repeatable; values as in TOML, a bare
word is a text): `--set compare.seeds=5 --set network.activation=tanh --set 'sweep.data.rank=[1,
2]'`. A key set by hand is no longer swept. `onegrad run --quick` cuts n to 100, or its largest
value to 200 where it is swept (m and k in proportion), each list to three values or two names,
and the seeds to three; it says so in the title and writes to a folder of its own. What is set by
`--set` has the last word.

Activations and links: relu, tanh, sigmoid, erf, gelu, softplus, elu, sin, identity, or
`hermite(c0, c1, …)` for Σ c_j H_j; in Python any `Activation`, after `register` by its name.

Models: network, hermite, conditional-gaussian, spiked, gaussian, random-features, linear, kernel,
theory, theory-limit (the isotropic closed form in the limit of large samples), surrogate (theory of
a Gaussian mixture fitted to images, arrays or files: [real-data.md](real-data.md)).

## `--json`

`{"name": …, "rows": [{"point": {dotted keys}, "model": …, "test_error": …, "test_error_se": …,
"train_error": …, "train_error_se": …, "train_objective": …, "train_objective_se": …,
"test_difference": …, "test_difference_se": …, "train_difference": …, "train_difference_se": …,
"seeds": …, "status": "ok" | "failed", "seconds": …}, …], "verdict": [{"model": …, "quantity": …,
"largest": {"point": …, "difference": …, "difference_se": …, "standard_errors": …}, "surest": {…},
"points": …}, …]}`. Differences are to the network, relative to it and paired by seed; the verdict
has the largest ones. Deterministic rows have a standard error of 0 and no seeds. A failed row has
`error`.

## Files

`run` writes to its folder `figure.png`, `figure.pdf`, the numbers drawn as `figure.csv`, the
object above as `results.json`, and every row in `results.sqlite`. `onegrad export FOLDER --format
csv|parquet|netcdf` writes the rows for other programs; in Python `load(FOLDER)`, or what `run`
returns, has `to_pandas()`, `to_xarray()` and `export(PATH)`. In xarray and NetCDF every swept key
is a labelled dimension, beside `model` and `seed`; keys that form no grid, such as those of
`[sweep.together]`, are coordinates of one dimension `point`. Theories stand at seed 0. All but
CSV need `pip install 'onegrad[frames]'`.

## Figures

- `curves`: the first of `figure.axes` is horizontal, colour tells the other keys, the mark tells
  the model; a panel for each of `figure.quantities`.
- `map`: the first of `figure.quantities` over two keys, a row of panels per model, one colour
  scale.
- `difference-map`: each model minus `figure.reference`, in percent of it, paired by seed. With
  the default reference it shows how good the equivalents are; with `reference = "linear"`, what
  the step gains.
- `weight-spectrum`, `feature-spectrum`: singular values of one draw, limiting density, spikes.

## Keys

"""


def page() -> str:
    return HEAD + spec_reference()


if __name__ == "__main__":
    Path(__file__).with_name("spec.md").write_text(page(), encoding="utf-8")
