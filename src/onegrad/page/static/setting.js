// Which of a preset's settings a view shows that has room for one only.

import { el, show } from "./dom.js";
import { curveHere, setKey, takeCurve, valueOf, written } from "./state.js";

const MOST = 12; // places along the axis that are worth a list

const word = (value) => (typeof value === "number" ? show(value) : Array.isArray(value) ? value.flat().join(", ") : String(value));

function choice(label, id, values, here, take) {
  const options = values.map((value, i) => el("option", { value: i, selected: i === here }, word(value)));
  if (here < 0) options.unshift(el("option", { value: "", selected: true, disabled: true }, "another value"));
  return el("label", {}, label, el("select", { id, onchange: (event) => take(Number(event.target.value)) }, ...options));
}

/** A list of the curves, where there are several. */
export function curveSelect(page) {
  const { curves } = page.state;
  if (curves.values.length < 2) return [];
  const name = page.about.labels[curves.key] ?? curves.key;
  return [choice(name, "curve-select", curves.values, curveHere(page.state), (i) => {
    takeCurve(page.state, i);
    page.changed("curves");
  })];
}

/** The same of the places of a preset along its axis. */
export function placeSelect(page) {
  const { state } = page;
  const { dots, axis, tables } = state;
  if (!dots || dots.length < 2 || dots.length > MOST || state.zip || axis === state.curves.key) return [];
  const slider = page.slider(axis);
  const now = valueOf(slider, tables);
  const here = dots.findIndex((x) => Math.abs(x - now) <= 1e-9 * Math.max(1, Math.abs(x)));
  return [choice(`${slider.title} ${slider.symbol}`, "place-select", dots, here, (i) => {
    setKey(tables, axis, written(slider, dots[i], tables));
    page.changed("curves");
  })];
}
