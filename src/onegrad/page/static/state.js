// What the page shows: the tables of a spec, and how to look at it. All of it is in the URL.

export const VIEWS = ["start", "curve", "map", "features", "spectrum", "neurons", "steps"];
const TABLES = ["data", "labels", "network", "training", "scaling", "compare"];
export const QUANTITIES = []; // those that the server names
export const LAYERS = {
  test_error: "test error",
  train_error: "training error",
  degree: "polynomial degree",
  gain: "gain over random features",
};
export const VERSUS = { batch: "fresh against the same samples", optimiser: "optimisers, first step of equal length" };
export const MEASURES = {
  test_error: "test error (MSE)",
  train_error: "training error (MSE)",
  alignment: "alignment with the teacher",
};
const SIZES = { curve: 19, dots: 7 }; // every dot stands at a point of its line

export const copy = (value) => JSON.parse(JSON.stringify(value));

export function learnNames(about) {
  QUANTITIES.splice(0, Infinity, ...Object.keys(about.quantities));
}

// How to look at it, unless something else is chosen; left out of links.
const PLAIN = { layer: "test_error", direction: "teacher", component: 0, versus: "batch", measure: "test_error", followed: 0 };

export function startState(about) {
  return withTask(about, Object.keys(about.tasks)[0]);
}

/** A fresh state of a task, at its own settings. */
export function withTask(about, name) {
  const task = about.tasks[name];
  return {
    view: "curve",
    tables: copy(task.tables),
    axis: task.axis,
    range: null,
    dots: null,
    curves: { key: "network.activation", values: [...(task.activations ?? [task.tables.network.activation])] },
    zip: null,
    published: null,
    quantities: [...(task.quantities ?? ["test_error"])],
    ...PLAIN,
    grid: null,
    figure: null,
  };
}

/** Another task with the same sizes, activation and ridge where they make sense. */
export function changeTask(about, state, name) {
  const next = withTask(about, name);
  next.view = state.view === "start" ? "curve" : state.view;
  const activation = state.tables.network.activation;
  next.tables.network.activation = activation;
  next.curves.values = state.curves.key === "network.activation" ? [...state.curves.values] : [activation];
  if (state.tables.data.model === next.tables.data.model) {
    for (const table of ["data", "training", "scaling"]) next.tables[table] = copy(state.tables[table]);
    next.tables.network = copy(state.tables.network);
    next.axis = state.axis;
    if (name === "classification") next.tables.data.rank = Math.min(Math.max(next.tables.data.rank ?? 1, 1), 2);
  }
  return next;
}

export const isIsotropic = (tables) => tables.data.model === "isotropic";

export function taskOf(tables) {
  if (isIsotropic(tables)) return tables.labels?.model === "multi-index" ? "multi-index" : "isotropic";
  return tables.labels?.model === "component" ? "classification" : "regression";
}

/**
 * A preset as a state whose own view has exactly its points.
 *
 * Throws where the page has no way to hold what is swept: nothing is left out in silence. Of a
 * stored run (`strict` false) the rows at the present value of a third key are shown.
 */
export function fromTables(about, tables, strict = true) {
  const task = taskOf(tables);
  const state = withTask(about, task);
  state.tables = {};
  for (const table of TABLES) if (tables[table]) state.tables[table] = copy(tables[table]);
  state.tables.labels ??= {};
  state.tables.compare = { models: ["network", "theory"], seeds: 10, ...state.tables.compare };
  const { zip, ...separate } = copy(tables.sweep ?? {});
  state.view = viewOf(tables);
  state.figure = tables.figure ? copy(tables.figure) : null;
  if (tables.figure?.quantities) state.quantities = [...tables.figure.quantities];
  else if (!applies(state.quantities[0], state.tables)) state.quantities = ["test_error"];
  if (state.view === "map") {
    const keys = mapKeys(tables);
    if (!keys.every((key) => separate[key])) throw new Error(`the page draws maps over ${keys.join(" and ")}`);
    state.grid = Object.fromEntries(keys.map((key) => [key, separate[key]]));
    for (const key of keys) delete separate[key];
    Object.assign(state, curvesOf(state, separate, zip, strict));
    return state;
  }
  const sweep = { ...zip, ...separate };
  const numeric = Object.keys(sweep).filter((key) => key === "data.weights" || typeof sweep[key][0] === "number");
  const first = tables.figure?.axes?.[0];
  numeric.sort((a, b) => (b === first) - (a === first) || sweep[b].length - sweep[a].length);
  const axis = numeric.find((key) => sliderOf(about, key, task));
  if (axis) {
    const slider = sliderOf(about, axis, task);
    state.axis = axis;
    state.dots = sweep[axis].map((value) => shown(slider, value, state.tables));
    if (zip?.[axis]) state.zip = zip;
    if (state.dots.length > 1) state.range = [Math.min(...state.dots), Math.max(...state.dots)];
    if (axis === "training.rate" || state.view === "spectrum") setLast(state.tables, axis, sweep[axis]); // a step is to be seen
    delete separate[axis];
  }
  Object.assign(state, curvesOf(state, separate, state.zip ? undefined : zip, strict));
  if (state.curves.key === "training.rate" || state.view === "spectrum") {
    for (const [key, values] of Object.entries(swept(state.curves))) setLast(state.tables, key, values);
  }
  if (state.curves.key === state.axis) state.axis = "network.width_ratio"; // a list of exponents is no axis
  return state;
}

/** Whether a quantity says something here: errors of classes for labels ±1, losses that are not squared. */
export function applies(name, { labels, training }) {
  if (name.endsWith("_loss")) return (training.loss ?? "squared") !== "squared";
  if (name !== "misclassification") return true;
  if (labels?.model === "component") return (labels.values ?? [1]).every((value) => Math.abs(value) === 1);
  return ["sign", "xor"].includes(labels?.link);
}

const setLast = (tables, key, values) => setKey(tables, key, copy(values[values.length - 1]));

/** In which view a spec shows what its author drew. */
function viewOf({ sweep, figure }) {
  if (figure?.kind?.endsWith("spectrum")) return "spectrum";
  if (figure?.kind?.includes("map")) return "map";
  return sweep?.["training.steps"] && sweep["training.batch"] ? "steps" : "curve";
}

/** Along which settings the map runs. */
export function mapKeys(tables) {
  if (!isIsotropic(tables)) return ["scaling.weighting", "scaling.strength"];
  return [tables.network.convention === "isotropic" ? "scaling.exponent" : "training.rate", "network.width_ratio"];
}

/** What tells curves apart: one swept key, or several that advance together. */
function curvesOf(state, separate, zip, strict) {
  const groups = [...Object.entries(separate).map(([key, values]) => ({ [key]: values })), ...(zip ? [zip] : [])];
  if (groups.length > 1 && strict) throw new Error(`the page has no room for a third sweep (${groups.flatMap(Object.keys).join(", ")})`);
  if (!groups.length) return { curves: { key: "network.activation", values: [state.tables.network.activation ?? "relu"] } };
  const [[key, values], ...others] = Object.entries(groups[0]);
  return { curves: { key, values, ...(others.length ? { tied: Object.fromEntries(others) } : {}) } };
}

/** The lists that tell curves apart, by key. */
export const swept = ({ key, values, tied }) => ({ [key]: values, ...tied });

/** Which of the curves has the present setting; -1 for none. */
export const curveHere = ({ tables, curves }) =>
  curves.values.findIndex((value) => JSON.stringify(value) === JSON.stringify(at(tables, curves.key)));

/** Take the setting of curve i. */
export function takeCurve(state, i) {
  for (const [key, values] of Object.entries(swept(state.curves))) setKey(state.tables, key, copy(values[i]));
}

export function sliderOf(about, key, task) {
  const all = about.sliders.filter((slider) => slider.key === key);
  return all.find((slider) => slider.values || slider.tasks.includes(task)) ?? all[0];
}

// --- one setting --------------------------------------------------------------------------

/** A spec's value in the units of its slider. */
export function shown(slider, value, tables) {
  if (slider.first) return Array.isArray(value) ? value[0] : value;
  if (slider.over) return value / at(tables, slider.over);
  return value;
}

/** The other way round: what stands in the spec for a slider at x. */
export function written(slider, x, tables) {
  if (slider.over) return Math.max(1, Math.round(x * at(tables, slider.over)));
  if (slider.first) {
    const old = at(tables, slider.key);
    const rest = Array.isArray(old) && old.length > 1 ? old.slice(1) : [0.5];
    const sum = rest.reduce((total, w) => total + w, 0);
    return [x, ...rest.map((w) => clean((sum > 0 ? w / sum : 1 / rest.length) * (1 - x)))];
  }
  if (slider.kind === "whole" || slider.key === "data.dim") return Math.round(x);
  return x;
}

export const at = (tables, key) => key.split(".").reduce((table, name) => table?.[name], tables);
const tidy = (x) => Number(x.toPrecision(4));
const clean = (x) => Number(x.toPrecision(12)); // without the dust of binary fractions

/** Samples of the readout: of a total what the steps leave, as the spec shares it out. */
export function samplesOf({ training }) {
  const { samples, total, steps = 1, batch = "fresh", rate } = training;
  if (!total || rate === 0) return total ?? samples;
  const batches = batch === "fresh" ? steps : 1;
  return total - batches * Math.max(1, Math.floor(total / (2 * batches)));
}

/** The value that a slider shows, or null where the spec does not have it. */
export function valueOf(slider, tables) {
  if (slider.key === "network.width_ratio" && tables.network.width) return tables.network.width / samplesOf(tables);
  const value = at(tables, slider.key) ?? slider.default;
  return value === null ? null : shown(slider, value, tables);
}

/** Set a key; whatever says the same thing in another way goes. */
export function setKey(tables, key, value) {
  const [table, name] = key.split(".");
  tables[table] = { ...(tables[table] ?? {}), [name]: value };
  if (key === "network.width_ratio") delete tables.network.width;
  if (key === "network.width") delete tables.network.width_ratio;
  if (key === "training.rate" || key === "data.spread") delete tables.scaling;
  if (key === "training.samples") delete tables.training.total;
  if (key === "training.total") for (const part of ["samples", "step_samples"]) delete tables.training[part];
  if (table === "scaling") {
    delete tables.training.rate;
    delete tables.data.spread;
    if (name === "strength") tables.scaling.weighting ??= 0.5;
    if (name === "weighting") tables.scaling.strength ??= 0.74;
    if (name === "constant") tables.scaling.exponent ??= 0.3;
  }
  if (key === "data.rank") {
    delete tables.data.ranks;
    if (Array.isArray(tables.data.strengths)) delete tables.data.strengths; // one number for each of the former spikes
  }
}

/** Choose an option; what comes with another one goes, what comes with this one comes. */
export function pick(tables, { key, companions }, option) {
  const drop = (name) => delete tables[name.split(".")[0]]?.[name.split(".")[1]];
  for (const mine of Object.values(companions)) Object.keys(mine).forEach(drop);
  if (option === "") return drop(key);
  setKey(tables, key, option);
  for (const [name, value] of Object.entries(companions[option] ?? {})) setKey(tables, name, copy(value));
}

/** Components of the mixture: two unless the spec says otherwise. */
export const classesOf = (tables) => tables.data.weights?.length ?? 2;

/** So many components of equal weight, a class each; what only ±1 labels or other components have goes. */
export function setClasses(tables, count) {
  setKey(tables, "data.weights", Array(count).fill(clean(1 / count)));
  for (const name of ["ranks", "strengths"]) delete tables.data[name];
  delete tables.labels.values;
  if (count === 2) return;
  delete tables.labels.flip;
  if (tables.training.loss === "logistic") delete tables.labels.noise;
  else for (const name of ["loss", "delta"]) delete tables.training[name];
  if (tables.data.alignment < -1 / (count - 1)) tables.data.alignment = 0;
}

/** Another number of inputs at the same m/n: the samples follow. */
export function setInputs(tables, inputs) {
  const ratio = inputs / tables.data.dim;
  if (!(ratio > 0 && ratio < Infinity)) return setKey(tables, "data.dim", inputs); // refused in a moment
  for (const size of ["samples", "step_samples", "total"]) {
    if (tables.training[size]) tables.training[size] = Math.max(1, Math.round(tables.training[size] * ratio));
  }
  setKey(tables, "data.dim", inputs);
}

// --- axes ---------------------------------------------------------------------------------

/** Values of an axis between two ends, in the slider's units: 19 for a line, 7 of them for dots. */
export function axisValues(slider, range, kind, tables, zip = null, dots = null) {
  const listed = zip?.[slider.key] ?? slider.values;
  if (listed) return listed.map((v) => shown(slider, v, tables));
  if (kind === "curve" && dots?.length > 1) return withDots(axisValues(slider, range, "curve", tables), dots, slider);
  const [low, high] = range ?? [slider.low, slider.high];
  if (slider.kind === "whole") {
    const values = [];
    for (let v = Math.ceil(low); v <= high; v++) values.push(v);
    return values;
  }
  const count = typeof kind === "number" ? kind : SIZES[kind];
  const log = slider.kind === "log" && low > 0;
  const values = [];
  for (let i = 0; i < count; i++) {
    const u = i / (count - 1);
    values.push(tidy(log ? low * (high / low) ** u : low + (high - low) * u));
  }
  const specs = values.map((v) => JSON.stringify(written(slider, v, tables)));
  return values.filter((v, i) => specs.indexOf(specs[i]) === i);
}

/** Points of a line, those of its dots among them: a line is exact where it is compared. */
function withDots(values, dots, slider) {
  const f = slider.kind === "log" && Math.min(...values, ...dots) > 0 ? Math.log : (x) => x;
  const gap = Math.abs(f(values[1] ?? values[0]) - f(values[0]));
  const between = values.filter((v) => dots.every((dot) => Math.abs(f(v) - f(dot)) > 0.4 * gap));
  return [...new Set([...between, ...dots])].sort((a, b) => a - b);
}

// --- the URL ------------------------------------------------------------------------------

export function toHash(state) {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (name === "tables" || value === null || PLAIN[name] === value) continue;
    fields.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  for (const table of TABLES) {
    for (const [key, value] of Object.entries(state.tables[table] ?? {})) fields.set(`${table}.${key}`, JSON.stringify(value));
  }
  return "#" + fields.toString();
}

/** The state of a link, or null if there is none or it cannot be read. */
export function fromHash(about, hash) {
  if (hash.length < 2 || hash.length > 8000) return null;
  try {
    const state = startState(about);
    const tables = {};
    for (const [name, text] of new URLSearchParams(hash.slice(1))) {
      const [table, key] = name.split(".");
      if (key && TABLES.includes(table)) (tables[table] ??= {})[key] = JSON.parse(text);
      else if (typeof state[name] === "string" || name === "published") state[name] = text;
      else if (Object.hasOwn(state, name) && name !== "tables") state[name] = JSON.parse(text);
      else return null; // nothing that this page knows
    }
    if (Object.keys(tables).length) state.tables = { labels: {}, ...tables };
    return isReadable(about, state) ? state : null;
  } catch {
    return null;
  }
}

/** Whether the page can work with a state; what is wrong in its numbers is for the server to say. */
function isReadable(about, state) {
  const { tables, axis, range, dots, curves, zip } = state;
  const numbers = (list) => Array.isArray(list) && list.length > 0 && list.every(Number.isFinite);
  const lists = (object) =>
    Object.keys(object).length > 0 && Object.values(object).every((v) => Array.isArray(v) && v.length > 0);
  const { compare } = tables;
  return (
    namesAreKnown(state) &&
    Number.isFinite(tables.data.dim ?? 1) &&
    typeof tables.network.activation === "string" &&
    Number.isFinite(tables.training.samples ?? tables.training.total) &&
    Array.isArray(compare.models) &&
    (compare.seeds === "auto" || Number.isFinite(compare.seeds)) &&
    sliderOf(about, axis, taskOf(tables)) !== undefined &&
    (range === null || (numbers(range) && range.length === 2 && range[0] < range[1])) &&
    (dots === null || numbers(dots)) &&
    typeof curves.key === "string" &&
    curves.key.includes(".") &&
    lists(swept(curves)) &&
    (zip === null || lists(zip)) &&
    (state.grid === null || lists(state.grid)) &&
    (state.figure === null || typeof state.figure === "object")
  );
}

function namesAreKnown({ view, quantities, layer, component, versus, measure, followed }) {
  const known = Array.isArray(quantities) && quantities.length > 0 && quantities.every((item) => QUANTITIES.includes(item));
  return (
    known &&
    VIEWS.includes(view) &&
    Object.hasOwn(LAYERS, layer) &&
    Object.hasOwn(VERSUS, versus) &&
    Object.hasOwn(MEASURES, measure) &&
    Number.isInteger(followed) &&
    followed >= 0 &&
    Number.isInteger(component)
  );
}

// --- what the page has no control for ----------------------------------------------------------

/** Sliders of this task; of settings that say the same in two ways the one that the spec has. */
export function slidersOf(about, tables) {
  const task = taskOf(tables);
  const hand = tables.training?.rate !== undefined || tables.data.spread !== undefined;
  const other = (key) => (key === "training.samples" ? at(tables, "training.total") !== undefined : hand && key.startsWith("scaling."));
  return about.sliders.filter(
    ({ tasks, key, by_hand }) => tasks.includes(task) && (by_hand ? at(tables, key) !== undefined : !other(key)),
  );
}

const SAID = [
  "data.model",
  "labels.model",
  "network.convention",
  "network.width",
  "compare.models",
  "compare.seeds",
  "compare.seed",
];

/** Settings without a control, as `key = value`: they are part of every number on the page. */
export function alsoSet(about, { tables }) {
  const task = taskOf(tables);
  const shownKeys = new Set([...SAID, ...slidersOf(about, tables).map(({ key }) => key)]);
  for (const { key, tasks } of about.pickers) if (tasks.includes(task)) shownKeys.add(key);
  const rows = [];
  for (const table of TABLES) {
    for (const [name, value] of Object.entries(tables[table] ?? {})) {
      const key = `${table}.${name}`;
      if (!shownKeys.has(key) && value !== null) rows.push(`${key} = ${JSON.stringify(value)}`);
    }
  }
  return rows;
}
