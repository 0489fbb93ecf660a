// The settings beside the plot, built from what the server says about each key.

import { clearWrong, markWrong } from "./box_errors.js";
import { el, show } from "./dom.js";
import { isTheory } from "./limits.js";
import { isDrawn } from "./stored.js";
import { classesOf, pick, setClasses, setInputs, setKey, sliderOf, slidersOf, swept, taskOf, valueOf, written } from "./state.js";

const GROUPS = [
  ["the step", ["scaling.", "training.rate", "data.spread"]],
  ["network and training", ["network.", "training."]],
  ["data and labels", ["data.", "labels."]],
];
const groupOf = (key) => GROUPS.find(([, prefixes]) => prefixes.some((prefix) => key.startsWith(prefix)))[0];
const MODELS = {
  regression: ["network", "hermite", "conditional-gaussian", "random-features", "linear"],
  classification: ["network", "hermite", "conditional-gaussian", "random-features", "linear"],
  "multi-index": ["network", "hermite", "random-features", "linear"],
  isotropic: ["network", "spiked", "hermite", "random-features", "linear"],
};

const STORED =
  "The page computes only with data that it draws itself. These come from a file, so it shows what the run has stored.";
const SEEDS = 100;
const HINT = "Point at a setting, or go there by Tab, to read what it means.";

/**
 * Fill the panel. `changed(kind)` is called with "value" while a slider moves, "task" when
 * another task is picked, "labels" when settings go with others.
 */
export function buildControls(panel, about, state, { changed, task }) {
  const current = taskOf(state.tables);
  const tasks = el("select", { id: "task", "aria-label": "task", onchange: (event) => task(event.target.value) });
  const drawn = isDrawn(about, state.tables);
  if (!drawn) tasks.append(el("option", { selected: true, disabled: true }, `stored run on ${state.tables.data.model}`));
  for (const [name, info] of Object.entries(about.tasks)) {
    tasks.append(el("option", { value: name, selected: drawn && name === current }, info.title));
  }
  const groups = [
    el(
      "fieldset",
      {},
      el("legend", {}, "task"),
      el("div", { class: "control only" }, tasks),
      el("p", { class: "help" }, drawn ? about.tasks[current].about : STORED),
    ),
  ];
  if (!drawn) return panel.replaceChildren(...groups);
  for (const [title] of GROUPS) {
    const mine = (item) => item.tasks.includes(current) && groupOf(item.key) === title;
    const rows = [
      ...about.pickers.filter(mine).map((picker) => pickerRow(about, state, picker, changed)),
      ...slidersOf(about, state.tables).filter(mine).map((slider) => sliderRow(about, state, slider, changed)),
    ];
    groups.push(el("fieldset", {}, el("legend", {}, title), ...rows));
  }
  const hint = el("p", { class: "hint", "aria-hidden": true }, HINT);
  panel.replaceChildren(...groups, hint);
  for (const row of panel.querySelectorAll("[data-help]")) {
    for (const event of ["focusin", "pointerenter"]) row.addEventListener(event, () => (hint.textContent = row.dataset.help));
  }
}

function pickerRow(about, state, picker, changed) {
  if (picker.key === "network.activation") return activationRow(state, picker, changed);
  if (picker.key === "data.weights") return classesRow(state, picker, changed);
  const id = `pick-${picker.key.replace(".", "-")}`;
  const [table, name] = picker.key.split(".");
  const value = state.tables[table]?.[name] ?? picker.default ?? "";
  const curves = swept(state.curves)[picker.key]; // a curve for each of several options
  const several = curves?.length > 1 ? `${curves.join(", ")}: one curve each` : null;
  const shown = several ?? (Array.isArray(value) ? `a polynomial of ${value.length} directions` : value);
  const options = picker.options.includes(shown) ? [...picker.options] : [shown, ...picker.options];
  const select = el("select", {
    id,
    onchange: (event) => {
      pick(state.tables, picker, event.target.value);
      if (several) state.curves = { key: "network.activation", values: [state.tables.network.activation] };
      if (picker.key === "training.loss") state.quantities = forLoss(state);
      const others = several || ["training.loss", "labels.link"].includes(picker.key); // other curves or quantities
      changed(others && state.view === "curve" ? "curves" : "value");
    },
  });
  if (picker.default === null && value !== "") options.unshift("");
  for (const option of options) {
    const name = option || "flat";
    const disabled = !picker.options.includes(option) && option !== "";
    select.append(el("option", { value: option, selected: option === shown, disabled }, name));
  }
  return el(
    "div",
    { class: "control wide", "data-pick": picker.key, "data-help": picker.help },
    el("label", { htmlFor: id }, picker.title),
    select,
  );
}

/** What is worth plotting of a loss: errors of classes where labels are ±1, else the loss itself. */
function forLoss({ tables, quantities }) {
  const errors = quantities.filter((quantity) => !quantity.endsWith("_loss"));
  if ((tables.training.loss ?? "squared") === "squared") return errors.length ? errors : ["test_error"];
  return tables.labels?.model === "component" ? ["misclassification", "test_loss"] : ["test_loss"];
}

/** How many components, each a class of its own. */
function classesRow(state, picker, changed) {
  const now = String(classesOf(state.tables));
  const options = picker.options.includes(now) ? picker.options : [now, ...picker.options];
  const select = el("select", {
    id: "pick-classes",
    onchange: (event) => {
      setClasses(state.tables, Number(event.target.value));
      if (state.curves.key === picker.key || state.zip) state.zip = state.dots = state.range = null;
      if (state.curves.key === picker.key)
        state.curves = { key: "network.activation", values: [state.tables.network.activation] };
      changed("labels");
      document.getElementById("pick-classes")?.focus(); // a new one stands in its place
    },
  });
  for (const option of options) select.append(el("option", { value: option, selected: option === now }, option));
  return el(
    "div",
    { class: "control wide", "data-pick": "classes", "data-help": picker.help },
    el("label", { htmlFor: "pick-classes" }, picker.title),
    select,
  );
}

/** Activations are boxes: each one ticked is a curve. */
function activationRow(state, picker, changed) {
  const chips = el("div", { class: "chips", role: "group", "aria-label": "activations, one curve each" });
  const chosen = state.curves.key === picker.key ? state.curves.values : [state.tables.network.activation];
  const options = [...new Set([...chosen, ...picker.options])].sort();
  for (const option of options) {
    const box = el("input", {
      type: "checkbox",
      value: option,
      checked: chosen.includes(option),
      onchange: () => {
        const ticked = [...chips.querySelectorAll("input:checked")].map((input) => input.value);
        if (!ticked.length) {
          box.checked = true;
          return;
        }
        // the one ticked last leads only if nothing else is left
        const kept = chosen.filter((name) => ticked.includes(name));
        const values = [...kept, ...ticked.filter((name) => !kept.includes(name))];
        state.curves = { key: picker.key, values };
        state.tables.network.activation = values[0];
        changed("curves");
      },
    });
    chips.append(el("label", {}, box, option));
  }
  return el(
    "div",
    { "data-help": picker.help },
    el("p", { class: "help" }, "activation σ: one curve for each that is ticked"),
    chips,
  );
}

/** Position 0…1000 of the range input for a value, and back. */
const place = (slider, x) => {
  const { low, high } = slider;
  const u = slider.kind === "log" ? Math.log(Math.max(x, low) / low) / Math.log(high / low) : (x - low) / (high - low);
  return Math.round(1000 * Math.min(1, Math.max(0, u)));
};
const value = (slider, position) => {
  const u = position / 1000;
  const { low, high } = slider;
  return slider.kind === "log" ? low * (high / low) ** u : low + (high - low) * u;
};

/** A value as it stands in a number box, which takes nothing that is none. */
const typed = (x) => (Number.isFinite(x) ? show(x) : "");

function sliderRow(about, state, slider, changed) {
  const id = `slide-${slider.key.replace(".", "-")}`;
  const whole = slider.kind === "whole";
  const now = valueOf(slider, state.tables);
  const help = slider.over ? `${slider.help} (${slider.key})` : `${slider.help} (${slider.key} ${slider.allowed})`;
  const number = el("input", { type: "number", step: "any", "aria-label": `${slider.title}, typed`, value: typed(now) });
  const range = el("input", {
    type: "range",
    id,
    "aria-description": help,
    "aria-valuetext": now === null ? "not set" : show(now),
    min: whole ? slider.low : 0,
    max: whole ? slider.high : 1000,
    step: whole ? 1 : 5,
  });
  range.value = now === null ? range.min : whole ? now : place(slider, now);
  const set = (x, moving = false) => {
    const next = written(slider, x, state.tables);
    if (slider.key === "data.dim") setInputs(state.tables, next);
    else setKey(state.tables, slider.key, next);
    if (state.curves.key === slider.key) state.curves = { key: "network.activation", values: [state.tables.network.activation] };
    if (slider.key in (state.zip ?? {})) state.zip = state.dots = state.range = null;
    range.setAttribute("aria-valuetext", show(valueOf(slider, state.tables)));
    changed("value", moving);
  };
  range.addEventListener("input", () => {
    const x = whole ? Number(range.value) : value(slider, Number(range.value));
    const clean = whole ? x : Number(x.toPrecision(slider.kind === "log" ? 2 : 3));
    number.value = show(clean);
    set(clean, true);
  });
  const row = el(
    "div",
    { class: "control", "data-key": slider.key, "data-over": slider.over, "data-title": slider.title, "data-help": help },
    el("label", { htmlFor: id }, el("i", {}, slider.symbol), slider.title),
    number,
    range,
  );
  number.addEventListener("change", () => {
    const x = Number(number.value);
    if (number.value === "" || !Number.isFinite(x)) return markWrong(number, row, `${slider.title}: must be a number`);
    if (whole && !Number.isInteger(x)) return markWrong(number, row, `${slider.title}: must be a whole number`);
    if (slider.over && x <= 0) return markWrong(number, row, `${slider.title}: must be a number above 0`);
    clearWrong(number, row);
    range.value = whole ? x : place(slider, x);
    set(x);
  });
  return row;
}

/** Show what the state says again, without building the panel anew (the size of m follows n). */
export function refreshControls(panel, about, state) {
  for (const row of panel.querySelectorAll("[data-key]")) {
    const slider = sliderOf(about, row.dataset.key, taskOf(state.tables));
    const now = valueOf(slider, state.tables);
    const [number, range] = row.querySelectorAll("input");
    if (now === null || document.activeElement === number || document.activeElement === range) continue;
    number.value = typed(now);
    range.value = slider.kind === "whole" ? now : place(slider, now);
    range.setAttribute("aria-valuetext", show(now));
  }
}

/** The bar above the plot: simulate, how often, which models. */
export function buildRun(bar, state, { changed, simulate }) {
  if (["start", "map", "features", "neurons", "steps"].includes(state.view)) return bar.replaceChildren();
  const once = state.view === "spectrum";
  const { compare } = state.tables;
  const task = taskOf(state.tables);
  const chips = el("div", { class: "chips", role: "group", "aria-label": "models to simulate" });
  for (const model of new Set([...MODELS[task], ...compare.models.filter((name) => !isTheory(name))])) {
    chips.append(
      el(
        "label",
        {},
        el("input", {
          type: "checkbox",
          value: model,
          checked: compare.models.includes(model),
          onchange: () => {
            const ticked = [...chips.querySelectorAll("input:checked")].map((input) => input.value);
            compare.models = [...ticked, ...compare.models.filter(isTheory)];
            changed("models");
          },
        }),
        model,
      ),
    );
  }
  const seeds = el("input", {
    type: "number",
    id: "seeds",
    min: 1,
    max: SEEDS,
    value: compare.seeds,
    onchange: () => {
      const wanted = Number(seeds.value);
      const right = seeds.value !== "" && Number.isInteger(wanted) && wanted >= 1 && wanted <= SEEDS;
      const simulate = bar.querySelector("#simulate");
      if (right) clearWrong(seeds, bar);
      else markWrong(seeds, bar, `seeds: must be a whole number from 1 to ${SEEDS}`);
      simulate.disabled = !right;
      if (!right) return;
      compare.seeds = wanted;
      changed("models");
    },
  });
  bar.replaceChildren(
    ...[
      el("button", { class: "primary", id: "simulate", onclick: simulate }, once ? "▶ Draw one network" : "▶ Simulate"),
      once ? null : el("label", {}, "seeds", seeds),
      once ? null : chips,
    ].filter(Boolean),
  );
}
