// Specs and requests of every view, from its state: what is asked for, and what "copy as spec" gives.

import { LAYERS, at, axisValues, copy, mapKeys, setKey, sliderOf, swept, taskOf, written } from "./state.js";

const SIMULATED_SEEDS = 10; // where a spec leaves their number to its precision

/** What of [compare] a prediction depends on. */
export function theoryCompare({ compare }) {
  const kept = { models: ["theory"], seed: compare.seed ?? 0 };
  for (const name of ["accuracy", "finite_size"]) if (compare[name] !== undefined) kept[name] = compare[name];
  return kept;
}

/** The present setting alone, for the theory. */
export const pointOf = (state) => ({ ...copy(state.tables), compare: theoryCompare(state.tables) });

/** The sweep of the curve view: curves, then the axis; lists that advance together go by zip. */
export function sweepOf(state, slider, xs) {
  const { curves, zip, tables } = state;
  if (zip) return { ...swept(curves), zip: copy(zip) };
  const axis = { [slider.key]: xs.map((x) => written(slider, x, tables)) };
  return copy(curves.tied ? { ...axis, zip: swept(curves) } : { ...swept(curves), ...axis });
}

/** Which curve and which of `size` places the answer number `index` of a sweep belongs to. */
export function placeOf({ curves }, index, size) {
  const count = curves.values.length;
  const within = index % (count * size);
  return curves.tied ? [within % count, Math.floor(within / count)] : [Math.floor(within / size), within % size];
}

/** The spec with a sweep; what contradicts a swept key goes, and the first point is the spec's own. */
export function withSweep(spec, sweep) {
  const { zip, ...alone } = sweep;
  for (const [key, values] of Object.entries({ ...alone, ...zip })) setKey(spec, key, copy(values[0]));
  return { ...spec, sweep };
}

/** The same, the present setting left as it is where nothing contradicts it. */
function sweepBeside(spec, sweep) {
  const { zip, ...alone } = sweep;
  const kept = {};
  for (const [key, values] of Object.entries(alone)) {
    if (values.length > 1 || key === "data.weights") kept[key] = values;
    else setKey(spec, key, copy(values[0]));
  }
  const missing = Object.entries({ ...kept, ...zip }).filter(([key]) => at(spec, key) === undefined);
  for (const [key, values] of missing) setKey(spec, key, copy(values[0]));
  const whole = { ...kept, ...(zip ? { zip } : {}) };
  return Object.keys(whole).length ? { ...spec, sweep: whole } : spec;
}

const axisOf = (about, state) => sliderOf(about, state.axis, taskOf(state.tables));

/** Where dots stand: at the places of the preset, else at some along the axis. */
export const dotPlaces = (about, state) =>
  state.dots ?? axisValues(axisOf(about, state), state.range, "dots", state.tables, state.zip);

/** The request of lines of the curve view at the places `xs`. */
export function curveMessage(about, state, xs, { coarse = false, gain = true, limit = false } = {}) {
  const spec = withSweep(pointOf(state), sweepOf(state, axisOf(about, state), xs));
  return { type: "curve", spec, coarse, gain, limit };
}

/** The experiment of the curve view. */
export function curveSpec(about, state) {
  const axis = axisOf(about, state);
  const xs = dotPlaces(about, state);
  const drawn = state.quantities.filter((quantity) => about.drawn.includes(quantity)); // by onegrad run
  const figure = { ...figureOf(state, "curve"), quantities: drawn.length ? drawn : ["test_error"] };
  const name = `${axis.title}, ${about.tasks[taskOf(state.tables)].title}`;
  return { xs, spec: { name, ...sweepBeside(copy(state.tables), sweepOf(state, axis, xs)), figure } };
}

/** The same to be simulated here: a number of seeds in any case. */
export function simulatedSpec(about, state) {
  const { xs, spec } = curveSpec(about, state);
  const compare = { ...spec.compare, seeds: Number.isFinite(spec.compare.seeds) ? spec.compare.seeds : SIMULATED_SEEDS };
  delete compare.precision;
  const whole = { ...spec, compare };
  return { xs, spec: whole.sweep ? whole : { ...whole, sweep: sweepOf(state, axisOf(about, state), xs) } };
}

/** [figure] of the preset, as long as its own view is looked at. */
function figureOf(state, view) {
  const kind = state.figure?.kind ?? "curves";
  const own = kind.includes("map") ? "map" : kind.endsWith("spectrum") ? "spectrum" : "curve";
  if (!state.figure || own !== view || state.view !== view) return {};
  const { published, ...kept } = state.figure;
  return state.published ? { ...kept, ...(published ? { published } : {}) } : kept;
}

/** The present setting and nothing else. */
export function pointSpec(state, name, figure = {}) {
  return { name, ...copy(state.tables), ...(Object.keys(figure).length ? { figure } : {}) };
}

/** Theory over the plane of the map, at the preset's places or at `size` of them along each axis. */
export function mapSweep(about, state, size) {
  const keys = mapKeys(state.tables);
  if (state.grid) return Object.fromEntries(keys.map((key) => [key, copy(state.grid[key])]));
  return Object.fromEntries(
    keys.map((key) => {
      const slider = sliderOf(about, key, taskOf(state.tables));
      return [key, axisValues(slider, null, size, state.tables).map((x) => written(slider, x, state.tables))];
    }),
  );
}

export function mapSpec(about, state, size) {
  const curves = state.grid && state.curves.values.length > 1 ? swept(state.curves) : {}; // a preset of several maps
  const sweep = { ...curves, ...mapSweep(about, state, size) };
  const models = state.grid ? state.tables.compare.models : ["theory"];
  const tables = { ...copy(state.tables), compare: { ...state.tables.compare, models } };
  const name = `map of the ${LAYERS.test_error}`;
  return { name, ...sweepBeside(tables, sweep), figure: { kind: "map", ...figureOf(state, "map") } };
}

/** Singular values: of every setting of a preset, else of the present one. */
export function spectrumSpec(about, state, matrix = "feature") {
  const figure = { kind: `${matrix}-spectrum`, ...figureOf(state, "spectrum") };
  if (!state.figure?.kind?.endsWith("spectrum")) return { ...pointSpec(state, "spectrum"), figure };
  const axis =
    state.dots && state.axis !== state.curves.key
      ? { [state.axis]: state.dots.map((x) => written(axisOf(about, state), x, state.tables)) }
      : {};
  return { name: "spectrum", ...sweepBeside(copy(state.tables), { ...swept(state.curves), ...axis }), figure };
}

/** Numbers of steps; a list of rates advances with them, and its last one goes on. */
export function stepSweep(tables, counts) {
  const steps = counts.filter((count) => count > 0);
  const key = ["training.rate", "scaling.exponent"].find((name) => Array.isArray(at(tables, name)));
  if (!key) return { "training.steps": steps };
  const given = at(tables, key);
  const lists = steps.map((count) => Array.from({ length: count }, (_, i) => given[Math.min(i, given.length - 1)]));
  return { zip: { "training.steps": steps, [key]: lists } };
}

/** Errors after one step, two, …: on fresh samples and on the same ones. */
export function batchSpec(state, options, counts, name) {
  const tables = copy(state.tables);
  for (const key of ["steps", "batch"]) delete tables.training[key];
  const sweep = { "training.batch": options, ...stepSweep(tables, counts) };
  return { name, ...tables, sweep, figure: { axes: ["training.steps"] } };
}
