"""All rows of an experiment, and the ways to look at them: print, plot, export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onegrad.results.frames import export, to_pandas, to_xarray
from onegrad.results.rows import Row
from onegrad.results.summaries import Groups, Summary, grouped, number_or_none, summaries
from onegrad.results.verdict import verdicts
from onegrad.text.display import count_of, html_table, plots, text_table, value_text

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True)
class Results:
    """All rows of an experiment, point by point.

    spectra : rows of singular values, where the experiment draws some; `export` and frames have
        both
    provenance : versions, seeds and spec of the run that was stored last; empty in memory
    """

    name: str
    rows: tuple[Row, ...] = ()
    spectra: tuple[Row, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        return "\n".join([self._headline(), text_table(*self._table())])

    def _repr_html_(self) -> str:
        return html_table(self._headline(), *self._table())

    def _headline(self) -> str:
        points = len({row.number for row in self.rows})
        models = len({row.model for row in self.rows})
        failed = sum(row.status != "ok" for row in self.rows)
        counts = [count_of(points, "point"), count_of(models, "model")]
        counts += [f"{len(self.rows)} rows" + f" ({failed} failed)" * bool(failed)]
        if self.spectra:
            counts.append(f"{len(self.spectra)} spectr{'a' if len(self.spectra) > 1 else 'um'}")
        return f'Results "{self.name}": {", ".join(counts)}'

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """One line for each point and model: the errors with their standard errors."""
        summaries = self.summaries()
        keys = list(dict.fromkeys(key for s in summaries for key in s.point))
        names = [key.rpartition(".")[2] for key in keys]
        header = [*names, "model", "test error", "train error", "seeds"]
        lines = [
            [*(value_text(s.point.get(k)) for k in keys), s.model, str(s.test_error),
             str(s.train_error), str(s.seeds or "–")]
            for s in summaries
        ]  # fmt: skip
        return header, lines

    def groups(self) -> Groups:
        """The rows of each (number of the point, model)."""
        return grouped(self.rows)

    def summaries(self) -> list[Summary]:
        """Means with standard errors, one for each point and model."""
        return summaries(self.rows)

    def as_json(self) -> dict[str, Any]:
        rows = [s.as_json() for s in self.summaries()]
        found = {
            "name": self.name,
            "rows": rows,
            "verdict": [v.as_json() for v in verdicts(self.rows)],
        }
        if self.spectra:
            found["spectra"] = [
                {"point": row.point, **{k: number_or_none(v) for k, v in
                                        row.spectrum_columns().items()}}
                for row in self.spectra
            ]  # fmt: skip
        return found

    def plot(self, *quantities: str, x: str | None = None, ax: Any = None) -> Any:
        """Errors against a swept key: dots with error bars, equivalent models, theory lines.

        quantities : a panel for each of test_error (the default), train_error, train_objective,
            misclassification, test_loss, train_loss, calibration
        x : the swept key along the axis; the numeric one with the most values unless given
        ax : where to draw, for one quantity
        Returns the matplotlib axes, one or an array of them.
        """
        return plots().plot_results(self, quantities, x, ax)

    def to_pandas(self) -> pd.DataFrame:
        """One line per row: swept keys, model, seed, errors, seconds, status."""
        return to_pandas((*self.rows, *self.spectra))

    def to_xarray(self) -> xr.Dataset:
        """The errors with one labelled dimension per swept key, then model and seed.

        Keys that do not form a grid, those swept together for instance, share the dimension
        `point` and are its coordinates. Theories stand at seed 0; what is missing or failed is NaN.
        """
        dataset = to_xarray((*self.rows, *self.spectra), self.name)
        return dataset.assign_attrs(self.provenance)

    def export(self, path: str | Path) -> Path:
        """Write all rows to a .csv, .parquet or .nc (NetCDF) file; versions, seeds and spec are the
        attributes of the latter, and stand beside the others as .json."""
        return export((*self.rows, *self.spectra), path, self.name, self.provenance)
