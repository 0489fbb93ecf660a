// The menu of figures: those of the papers by source, each with its number and a small picture.

import { colours } from "./colours.js";
import { $, colour, css, el, rem } from "./dom.js";
import { copy, fromTables } from "./state.js";
import { aboutStored } from "./stored.js";

/** Fill the menu and let its button open it; the pictures come from a file, as the theory has them. */
export function fillPresets(page) {
  const groups = page.about.presets.map(({ source, presets }) => group(source, presets.map((preset) => card(page, {
    ...preset, number: numberOf(preset.name), help: helpOf(preset, source), open: () => fromPreset(page.about, preset),
  }))));
  if (page.about.stored) {
    groups.unshift(group("Stored run", [card(page, {
      name: "stored", number: "stored run", title: page.about.stored.name, help: aboutStored(page.about, page.storedState),
      open: () => copy(page.storedState),
    })]));
  }
  $("presets").replaceChildren(...groups);
  $("figures").onclick = () => toggle(page, $("presets").hidden);
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || $("presets").hidden) return;
    toggle(page, false);
    $("figures").focus();
  });
  for (const event of ["pointerdown", "focusin"]) {
    addEventListener(event, ({ target }) => target.closest?.("#presets, #figures") || $("presets").hidden || toggle(page, false));
  }
}

export const fromPreset = (about, preset) => ({
  ...fromTables(about, preset.tables),
  published: preset.published?.length ? preset.name : null,
});

async function toggle(page, open) {
  $("presets").hidden = !open;
  $("figures").setAttribute("aria-expanded", open);
  if (!open) return;
  toggle.pictures ??= await (await fetch("thumbnails.json")).json();
  for (const canvas of $("presets").querySelectorAll("canvas")) draw(canvas, page.about, toggle.pictures[canvas.dataset.of] ?? {});
}

const group = (title, cards) => el("section", {}, el("h2", {}, title), el("div", { class: "cards" }, ...cards));

function card(page, { name, number, title, help, open }) {
  const size = 5 * rem() * devicePixelRatio;
  const canvas = el("canvas", { width: 1.5 * size, height: size, "aria-hidden": "true", "data-of": name });
  const onclick = () => {
    toggle(page, false);
    openOr(page, open, name);
  };
  return el("button", { "data-name": name, title: help, onclick }, canvas, el("b", {}, number), el("span", {}, title));
}

/** Open it, or say why the page cannot show it. */
function openOr(page, open, name) {
  try {
    const state = open();
    page.push = true;
    page.open(state, name);
  } catch (error) {
    page.warn(`${name} cannot be shown here: ${error.message}. onegrad run ${name} computes and draws it.`);
  }
}

/** demir2025/fig1a is its Figure 1a; the other sources' figures have names. */
function numberOf(name) {
  const last = name.split("/").pop();
  return last.startsWith("fig") ? `Figure ${last.slice(3)}` : last.replaceAll("-", " ");
}

function helpOf(preset, source) {
  const more =
    preset.tables.figure?.kind === "difference-map"
      ? `. The page shows the error itself; the difference to simulated models comes with onegrad run ${preset.name}`
      : "";
  const points = preset.published.length
    ? ` Crosses are the points of the published figure${preset.one_data_set ? ", all of one data set" : ""}.`
    : "";
  const number = numberOf(preset.name);
  return `${preset.title.startsWith(number) ? "" : `${number}: `}${preset.title}, ${source}${more}.${points}`;
}

/** A small picture: lines, stems and cells whose places are numbers from 0 to 99. */
function draw(canvas, about, { lines = [], stems = [], cells = [] }) {
  const ctx = canvas.getContext("2d");
  const { width, height } = canvas;
  ctx.clearRect(0, 0, width, height);
  ctx.lineWidth = 2 * devicePixelRatio;
  const line = (points, ink) => {
    ctx.strokeStyle = ink;
    ctx.beginPath();
    for (const [x, y] of points) ctx.lineTo(width * (0.05 + 0.009 * x), height * (0.95 - 0.009 * y));
    ctx.stroke();
  };
  const scale = colours("test_error", cells.flat());
  cells.forEach((column, i) => column.forEach((value, j) => {
    const [w, h] = [width / cells.length, height / column.length];
    ctx.fillStyle = scale.of(value);
    ctx.fillRect(i * w, height - (j + 1) * h, w + 1, h + 1);
  }));
  lines.forEach((points, i) => line(points, stems.length ? css("--ink") : colour(about, i)));
  for (const x of stems) line([[x, 0], [x, 60]], colour(about, 1));
}
