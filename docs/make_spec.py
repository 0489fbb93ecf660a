"""Write docs/spec.md anew from the declarations: python docs/make_spec.py."""

from pathlib import Path

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from onegrad.gaussian.activation import Activation
from onegrad.spec.experiment import TABLES
from onegrad.spec.fields import allowed

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
- `[sweep.zip]` lists values that advance together, as `zip` does: `"data.dim" = [200, 400]`
  with `"training.samples" = [300, 600]` makes two points, not four. The lists have the same
  length; with keys in `[sweep]` they make one direction of the grid.

On the command line `--set key=value` changes any of these (repeatable; values as in TOML, a bare
word is a text): `--set compare.seeds=5 --set network.activation=tanh --set 'sweep.data.rank=[1,
2]'`. A key set by hand is no longer swept. `onegrad run --quick` keeps at most
four values of each list (published ones where there are any, and every name) and five seeds, two
from n = 1500 on; sizes and theory stay as they are. It says so in the title and writes to a folder
of its own. What is set by `--set` has the last word.

Activations and links: relu, tanh, sigmoid, erf, gelu, softplus, elu, sin, identity, or
`hermite(c0, c1, …)` for Σ c_j H_j; in Python any smooth function or `Activation`, and after
`register_activation` its name.

Models: network, hermite, conditional-gaussian, spiked, gaussian, random-features, linear, kernel,
theory, theory-limit (theory without its 1/n correction:
[chance and finite size](book/chance-and-size.md)), isotropic-limit
(the isotropic closed form in the limit of large samples), surrogate (theory of a
Gaussian mixture fitted to images, arrays or files: [real data](book/real-data.md)).

## How many repetitions

`compare.seeds = "auto"` gives every point as many as it needs: rounds of repetitions, at least 8
and at most `most_seeds`, until the standard error of each model's mean test error is below
`precision` of that mean. Rounds are decided by the numbers of the seeds, not by which row came
first, so that the rows are the same on any engine and after any interruption; the JSON and
figure.csv say how many each point got. Stopping by what was seen makes error bars too small if it
is done from the second row on. With 8 as the least, and few interim analyses, it is hardly to be
seen: in 3000 trials on normal errors of each of five spreads the mean was unbiased, and off by more
than two standard errors in 5–10 % of them (4–9 % with control variates, below); 8.6 % is what 8
repetitions without any stopping rule give.

With `seeds = "auto"` the means are corrected by control variates, other teachers on the same
inputs, where the labels of all points are random: a tenth to two thirds of the repetitions are then
enough, ten at least.
`control_variates = true` does it for a given number of seeds, `false` never:
[control-variates.md](control-variates.md).

## Engines

| | where the work is done |
|---|---|
| `run` | in this process as long as there is little to do, else in one process per core |
| `--workers N` | in N processes of this machine; with 1 in this one |
| `--engine dask` | on a dask cluster of processes that is started here and ends with the run |
| `--scheduler tcp://host:8786` | on the workers of a running dask scheduler |

In Python: `og.run(spec, engine=og.Local(4))` or `engine=og.Dask("tcp://host:8786")`, into the same
folder as the command; `og.sweep(problem, {key: values})` needs no file. A script that uses
`og.Dask()` without an address needs `if __name__ == "__main__":`, as with any Python process pool.
Start dask workers with `dask worker ADDRESS --nthreads 1 --nworkers N`: a worker
process computes one thing at a time. They need the same version of onegrad.

No number depends on the engine, bit for bit, as long as the machines have the same processor and
libraries. The number of BLAS threads shows in the last bits, so it follows from the size of the
problem alone: one up to n = m = k of about 2500, all that the coordinator has above. Such large
problems stay in the coordinator's process with `local`, one repetition after the other.

Only the coordinator writes to `results.sqlite`. Work whose process was killed is done again; what
raises an error is tried once more, then stored as failed with its error, and the run goes on.
Failed rows are tried again by the next run. One run at a time writes to a folder; a second one says
so and waits. What is promised about stored rows, signals and dask's security, and what is not, is
on [one page](promises.md).

## `--json`

`{"name": …, "rows": [{"point": {dotted keys}, "model": …, "test_error": …, "test_error_se": …,
"train_error": …, "train_error_se": …, "train_objective": …, "train_objective_se": …,
"test_difference": …, "test_difference_se": …, "train_difference": …, "train_difference_se": …,
"seeds": …, "corrected": true | false, "status": "ok" | "failed", "seconds": …}, …], "verdict":
[{"model": …, "quantity": …, "largest": {"point": …, "difference": …, "difference_se": …,
"standard_errors": …}, "surest": {…}, "points": …}, …]}`. `corrected`: by control variates.
Differences are to the network, relative to it and paired by seed; the verdict has the largest ones.
Deterministic rows have a standard error of 0 and no seeds. A failed row has `error`.

Where they apply, rows also have `relative_error`, the mean test error over the mean Var y
(book/relative-error.md), `misclassification`, P(sign f(x) ≠ y) where labels are ±1, `test_loss` and
`train_loss`, of the readout's own loss, and `calibration` of the logistic one (losses.md), each
with `_se`;
rows of theories have `error_estimate`, relative, null where nothing was checked. With polynomial
models of automatic degree there may be `notes`: where the degree is capped, and where the rule's
assumption fails.

## Files

`run` writes to its folder `figure.png`, `figure.pdf`, the numbers drawn as `figure.csv`, the
object above as `results.json`, and every row in `results.sqlite`. `onegrad export FOLDER --format
csv|parquet|netcdf` writes the rows for other programs; in Python `load_results(FOLDER)`, or what
`run` returns, has `to_pandas()`, `to_xarray()` and `export(PATH)`. In xarray and NetCDF every swept
key is a labelled dimension, beside `model` and `seed`; keys that form no grid, such as those of
`[sweep.zip]`, are coordinates of one dimension `point`. Theories stand at seed 0. Where means
are corrected, tables have the columns `control_…` too: control variates, with which the corrected
means are made of the rows ([control-variates.md](control-variates.md)). All but CSV need
`pip install 'onegrad[frames]'`.

## Figures

- `curves`: the first of `figure.axes` is horizontal, colour tells the other keys, the mark tells
  the model; a panel for each of `figure.quantities`.
- `map`: the first of `figure.quantities` over two keys, a row of panels per model, one colour
  scale.
- `difference-map`: each model minus `figure.reference`, in percent of it, paired by seed. With
  the default reference it shows how good the equivalents are; with `reference = "linear"`, what
  the step gains.
- `scaling`: test errors against each of two sizes, and against both in the ratio with the most
  points, on logarithmic axes; the legend has the exponents of every model.
- `weight-spectrum`, `feature-spectrum`: singular values of one draw, limiting density, spikes;
  each is a row of model `spectrum`, beside those of `[compare]` ([spectra](book/spectra.md)).

## Keys

"""


def page() -> str:
    return HEAD + spec_reference()


def spec_reference() -> str:
    """Markdown: one table of keys for each table of a spec, with meaning, range and default."""
    parts = []
    for table, classes in TABLES.items():
        for cls in classes:
            model = cls.model_fields.get("model")
            kind = f' with `model = "{model.default}"`' if model is not None else ""
            summary = (cls.__doc__ or "").strip().splitlines()[0]
            parts.append(f"### `[{table}]`{kind}\n\n{summary}\n")
            parts.append("| key | meaning | allowed | default |\n|---|---|---|---|")
            for name, field in cls.model_fields.items():
                if name != "model":
                    parts.append(_line(name, field))
            parts.append("")
    return "\n".join(parts)


def _line(name: str, field: FieldInfo) -> str:
    meaning = field.description or ""
    range_text = allowed(field).removeprefix("must be ")
    range_text = "" if range_text == meaning else range_text
    return f"| `{name}` | {meaning} | {range_text} | {_default(field)} |"


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined and field.default_factory is None:
        return "needed"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return ""
    if isinstance(value, Activation):
        value = value.name
    if isinstance(value, tuple):
        value = list(value)
    return f"`{value!r}`" if not isinstance(value, str) else f'`"{value}"`'


if __name__ == "__main__":
    Path(__file__).with_name("spec.md").write_text(page(), encoding="utf-8")
