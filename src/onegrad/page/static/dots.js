// Dots of the curve view: trained networks as they come, those of a stored run, published points.

import { colour, show } from "./dom.js";
import { placeOf, simulatedSpec } from "./specs.js";
import { QUANTITIES, at, shown, swept, written } from "./state.js";
import { storedDots } from "./stored.js";

/** Dots belong to the settings they were simulated at; others are put away. */
export function checkDots(page) {
  const { runs } = page;
  if (runs.setting && runs.setting !== setting(page)) {
    runs.dots.clear();
    runs.setting = null;
    page.stop();
  }
}

function setting({ state }) {
  const { tables, axis, curves, zip } = state;
  return JSON.stringify([fixed(state, tables), axis, curves, zip, tables.compare.seed]);
}

/** Train networks; `paint` is called whenever some have come. */
export function simulate(page, paint) {
  const { spec, xs } = simulatedSpec(page.about, page.state);
  const axis = page.slider(page.state.axis);
  const values = page.state.zip ? xs : xs.map((x) => shown(axis, written(axis, x, page.state.tables), page.state.tables));
  const perSeed = page.state.curves.values.length * xs.length;
  const { runs } = page;
  runs.dots.clear();
  runs.setting = setting(page);
  paint();
  page.link.ask(
    "simulation",
    { type: "simulate", spec },
    {
      part: (index, rows) => {
        const [curve, place] = placeOf(page.state, index % perSeed, xs.length);
        if (rows.error) return page.refuse(rows.error);
        for (const row of rows) {
          if (row.status !== "ok") {
            page.refuse(`${row.model}: ${row.error}`);
            continue;
          }
          add(runs.dots, curve, values[place], row);
        }
        page.soon ??= requestAnimationFrame(() => {
          page.soon = null;
          paint();
        });
      },
      error: (text) => page.warn(`Not simulated. ${text}`), // beside the button, wherever the setting stands
    },
  );
}

/** Means and standard errors of what has come so far, and the dots of a stored run. */
export function visibleDots({ runs, about, state, storedState }) {
  const dots = [...runs.dots.values()].map((dot) => ({
    ...dot,
    ...Object.fromEntries(QUANTITIES.map((q) => [q, estimate(dot[q])])),
  }));
  if (!about.stored) return dots;
  const faded = fixed(state, state.tables) !== fixed(state, storedState.tables);
  return [...dots, ...storedDots(about, state).map((dot) => ({ ...dot, faded }))];
}

/** Points of the published figure whose settings these are: place, curve and value. */
export function publishedDots({ about, state, slider }, quantity) {
  if (!state.published || state.curves.key !== "network.activation") return [];
  const preset = about.presets.flatMap((group) => group.presets).find(({ name }) => name === state.published);
  const near = (a, b) => Math.abs(a - b) < 1e-3;
  return (preset?.published ?? []).flatMap(({ point, quantity: name, value, error }) => {
    const { "network.activation": activation, [state.axis]: place, ...others } = point;
    const curve = state.curves.values.indexOf(activation);
    const here = Object.entries(others).every(([key, v]) => near([at(state.tables, key)].flat()[0], v));
    return name === quantity && curve >= 0 && place !== undefined && here
      ? [{ curve, x: shown(slider(state.axis), place, state.tables), value, error }]
      : [];
  });
}

export function drawPublished(page, pen, quantity) {
  for (const { curve, x, value } of publishedDots(page, quantity))
    pen.mark("x", pen.x(x), pen.y(value), colour(page.about, curve));
}

export function drawDots(page, pen, dots, quantity) {
  for (const dot of dots) {
    const { mean, error } = dot[quantity];
    if (!Number.isFinite(mean)) continue;
    const ink = colour(page.about, dot.curve);
    pen.ctx.globalAlpha = dot.faded ? 0.35 : 1;
    // the other models share the network's draws: their own bars would mislead
    if (dot.model === "network" && error > 0)
      pen.bar(pen.x(dot.x), pen.y(Math.max(mean - error, mean * 1e-3)), pen.y(mean + error), ink);
    pen.mark(page.about.marks[dot.model] ?? "o", pen.x(dot.x), pen.y(mean), ink, dot.model === "network");
    pen.ctx.globalAlpha = 1;
  }
}

export const dotText = (dot, quantity) =>
  `${dot.model} at ${show(dot.x)}: ${show(dot[quantity].mean)} ± ${show(dot[quantity].error, 2)}  (${dot.seeds ?? dot.rows} seeds)`;

/** The settings of `tables` that are the same all over the plot of `state`, as text. */
function fixed({ axis, curves }, { compare, ...problem }) {
  const rest = Object.entries(problem).flatMap(([table, keys]) =>
    Object.entries(keys).map(([name, value]) => [`${table}.${name}`, value]),
  );
  return JSON.stringify(rest.filter(([key]) => key !== axis && !(key in swept(curves))).sort());
}

function add(dots, curve, x, row) {
  const key = `${row.model} ${curve} ${x}`;
  const dot = dots.get(key) ?? { model: row.model, curve, x, rows: 0, ...Object.fromEntries(QUANTITIES.map((q) => [q, []])) };
  dot.rows += 1;
  for (const quantity of QUANTITIES) dot[quantity].push(row[quantity] ?? NaN);
  dots.set(key, dot);
}

function estimate(values) {
  const mean = values.reduce((sum, v) => sum + v, 0) / values.length;
  const square = values.reduce((sum, v) => sum + (v - mean) ** 2, 0);
  return { mean, error: values.length > 1 ? Math.sqrt(square / (values.length - 1) / values.length) : NaN };
}
