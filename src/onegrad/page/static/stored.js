// A stored run: its rows as dots and lines of the curve view.

import { isTheory } from "./limits.js";
import { QUANTITIES, at, shown, sliderOf, taskOf } from "./state.js";

/** Whether the page can compute with these tables: it draws data, and never opens a file. */
export const isDrawn = (about, tables) => Object.values(about.tasks).some((task) => task.tables.data.model === tables.data.model);

/** Rows of the run that lie on the current axis and curves, each with its x and its curve. */
function rowsHere(about, state) {
  const axis = sliderOf(about, state.axis, taskOf(state.tables));
  const found = [];
  for (const row of about.stored.rows) {
    const { [state.axis]: value = null, ...others } = row.point;
    const curve = curveOf(state, others);
    if (value === null || curve < 0 || row.test_error === null) continue;
    if (Object.keys(others).every((key) => isHere(state, key, others[key])))
      found.push({ ...row, curve, x: shown(axis, value, state.tables) });
  }
  return found;
}

function curveOf(state, point) {
  const { key, values } = state.curves;
  return key in point ? values.findIndex((value) => same(value, point[key])) : 0;
}

/** A third swept key: only the rows at its current value are looked at. */
function isHere(state, key, value) {
  if (key === state.curves.key || key in (state.zip ?? {})) return true;
  return same(value, at(state.tables, key) ?? null);
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export function storedDots(about, state) {
  return rowsHere(about, state)
    .filter((row) => !isTheory(row.model))
    .map((row) => ({
      model: row.model,
      curve: row.curve,
      x: row.x,
      seeds: row.seeds,
      ...Object.fromEntries(QUANTITIES.map((q) => [q, { mean: row[q] ?? NaN, error: row[`${q}_se`] ?? NaN }])),
    }));
}

/** The theory as it was stored: what there is to draw where the page cannot compute it. */
export function storedLines(about, state) {
  const rows = rowsHere(about, state);
  const values = [...new Set(rows.map((row) => row.x))].sort((a, b) => a - b);
  return state.curves.values.map((value, i) => ({
    value,
    values,
    accurate: true,
    parts: values.map((x) => rows.find((row) => row.model === "theory" && row.curve === i && row.x === x) ?? {}),
  }));
}

/** What else there is to know of the run: keys that are neither axis nor curves, and failures. */
export function aboutStored({ stored }, { axis, curves, zip }) {
  const others = Object.entries(stored.tables.sweep).filter(
    ([key]) => ![axis, curves.key, "zip"].includes(key) && !(key in (zip ?? {})),
  );
  const failed = new Map(stored.rows.filter((row) => row.error).map((row) => [row.model, row.error]));
  return [
    "The rows of this folder.",
    ...others.map(
      ([key, values]) => `They are those at the current ${key}; stored are ${values.map((v) => JSON.stringify(v)).join(", ")}.`,
    ),
    ...[...failed].map(([model, error]) => `Failed: ${model} (${error}).`),
  ].join(" ");
}
