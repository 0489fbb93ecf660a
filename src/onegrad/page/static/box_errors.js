// What is wrong, said at the box that caused it; it goes when the box is mended.

import { $, el, show } from "./dom.js";
import { at } from "./state.js";

/** Put a refusal of the server at the control of its key, in the control's unit; false where there is none. */
export function sayAtBox(text, { tables }) {
  const key = /^([a-z_]+\.[a-z_]+)[ :=[]/.exec(text)?.[1];
  const row = key && document.querySelector(`#controls [data-key="${key}"], #controls [data-pick="${key}"]`);
  if (!row) return false;
  markWrong(boxOf(row), row, inUnits(text, row.dataset, tables));
  return true;
}

const boxOf = (row) => row.querySelector("input[type=number], select");

/** A refusal in the unit of its slider: of samples over inputs, where the server speaks of samples. */
export function inUnits(text, { title, over }, tables) {
  if (!over) return text;
  const unit = at(tables, over);
  const said = text.replace(/^.*?: /, "").replace(/\d[\d.]*(e\+?\d+)?/gi, (number) => show(Number(number) / unit, 3));
  return `${title}, at ${show(unit)} inputs: ${said.replace("a whole number", "a number")}`;
}

/** Mark one box, and say what it takes. */
export function markWrong(box, row, text) {
  clearWrong(box, row);
  const id = `wrong-${box.id || row.dataset.key.replace(".", "-")}`;
  box.setAttribute("aria-invalid", "true");
  box.setAttribute("aria-describedby", id);
  row.append(el("p", { class: "wrong", id, role: "alert" }, text));
  $("readout").textContent = text;
}

export function clearWrong(box, row) {
  box.removeAttribute("aria-invalid");
  box.removeAttribute("aria-describedby");
  row.querySelector(".wrong")?.remove();
}

/** All boxes of the settings are as if nothing had been wrong. */
export function clearErrors() {
  for (const note of document.querySelectorAll("#controls .wrong")) {
    const row = note.parentElement;
    clearWrong(boxOf(row), row);
  }
}
