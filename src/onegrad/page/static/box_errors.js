// What is wrong, said at the box that caused it; it goes when the box is mended.

import { $, el } from "./dom.js";

/** Put a refusal of the server at the control of its key; false where there is none. */
export function sayAtBox(text) {
  const key = /^([a-z_]+\.[a-z_]+)[ :=[]/.exec(text)?.[1];
  const row = key && document.querySelector(`#controls [data-key="${key}"], #controls [data-pick="${key}"]`);
  if (!row) return false;
  markWrong(boxOf(row), row, text);
  return true;
}

const boxOf = (row) => row.querySelector("input[type=number], select");

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
