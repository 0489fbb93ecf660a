// The menu of figures: those of the papers by source, each with its number and a small picture.

import { $, colour, css, el, rem } from "./dom.js";
import { copy, fromTables } from "./state.js";
import { aboutStored } from "./stored.js";

/** Fill the menu and let its button open it. */
export function fillPresets(page) {
  const nodes = [];
  if (page.about.stored) {
    nodes.push(
      group("Stored run", [
        card(page, {
          name: "stored",
          number: "stored run",
          title: page.about.stored.name,
          help: aboutStored(page.about, page.storedState),
          open: () => copy(page.storedState),
        }),
      ]),
    );
  }
  for (const { source, presets } of page.about.presets) {
    nodes.push(
      group(
        source,
        presets.map((preset) =>
          card(page, {
            ...preset,
            number: numberOf(preset.name),
            help: helpOf(preset, source),
            open: () => fromPreset(page.about, preset),
          }),
        ),
      ),
    );
  }
  $("presets").replaceChildren(...nodes);
  $("figures").onclick = () => toggle(page, $("presets").hidden);
  $("presets").onkeydown = (event) => {
    if (event.key === "Escape") {
      toggle(page, false);
      $("figures").focus();
    }
  };
  addEventListener("pointerdown", (event) => {
    if (!event.target.closest("#presets, #figures")) toggle(page, false);
  });
}

export const fromPreset = (about, preset) => ({
  ...fromTables(about, preset.tables),
  published: preset.published?.length ? preset.name : null,
});

function toggle(page, open) {
  $("presets").hidden = !open;
  $("figures").setAttribute("aria-expanded", open);
  if (open) for (const canvas of $("presets").querySelectorAll("canvas")) canvas.paint();
}

const group = (title, cards) => el("section", {}, el("h2", {}, title), el("div", { class: "cards" }, ...cards));

function card(page, { name, number, title, help, open, tables, published }) {
  const size = 5 * rem();
  const canvas = el("canvas", { width: size * 1.5 * devicePixelRatio, height: size * devicePixelRatio, "aria-hidden": "true" });
  canvas.paint = () => thumbnail(canvas, page.about, tables, published);
  return el(
    "button",
    {
      "data-name": name,
      title: help,
      onclick: () => {
        toggle(page, false);
        openOr(page, open, name);
      },
    },
    canvas,
    el("b", {}, number),
    el("span", {}, title),
  );
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

/** The published points as lines, or what kind of figure it is. */
function thumbnail(canvas, about, tables, published = []) {
  const ctx = canvas.getContext("2d");
  const { width, height } = canvas;
  ctx.clearRect(0, 0, width, height);
  ctx.lineWidth = 2 * devicePixelRatio;
  const kind = tables?.figure?.kind ?? "curve";
  const place = (x, y) => [width * (0.06 + 0.88 * x), height * (0.94 - 0.86 * y)];
  const line = (points, ink) => {
    ctx.strokeStyle = ink;
    ctx.beginPath();
    points.forEach(([x, y], i) => ctx[i ? "lineTo" : "moveTo"](...place(x, y)));
    ctx.stroke();
  };
  if (kind.includes("map")) {
    for (let i = 0; i < 6; i++)
      for (let j = 0; j < 4; j++) {
        ctx.fillStyle = colour(about, 0);
        ctx.globalAlpha = 0.12 + 0.8 * (((i / 5) * (j + 1)) / 4);
        ctx.fillRect((width * i) / 6, height - (height * (j + 1)) / 4, width / 6 + 1, height / 4 + 1);
      }
    ctx.globalAlpha = 1;
  } else if (kind.includes("spectrum")) {
    line(
      Array.from({ length: 30 }, (_, i) => [(0.6 * i) / 29, 0.75 * Math.sqrt(Math.max(0, 1 - ((i - 14.5) / 14.5) ** 2))]),
      css("--ink"),
    );
    for (const x of [0.76, 0.92])
      line(
        [
          [x, 0],
          [x, 0.5],
        ],
        colour(about, 1),
      );
  } else if (published.length) {
    curvesOf(published).forEach((points, i) => line(points, colour(about, i)));
  } else {
    const count = Math.min(
      3,
      Math.max(
        ...Object.entries(tables?.sweep ?? {}).map(([key, values]) =>
          key === "zip" || typeof values[0] === "number" ? 1 : values.length,
        ),
        1,
      ),
    );
    for (let c = 0; c < count; c++)
      line(
        Array.from({ length: 20 }, (_, i) => [i / 19, 0.85 - 0.2 * c - (0.5 - 0.1 * c) * (i / 19) ** (0.6 + 0.3 * c)]),
        colour(about, c),
      );
  }
}

/** Points by activation, their places and values between 0 and 1. */
function curvesOf(published) {
  const axis = Object.keys(published[0].point).find((key) => key !== "network.activation");
  const unit = (values) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return (v) => (v - low) / (high - low || 1);
  };
  const [x, y] = [unit(published.map((p) => p.point[axis])), unit(published.map((p) => p.value))];
  const names = [...new Set(published.map((p) => p.point["network.activation"]))];
  return names.map((name) =>
    published
      .filter((p) => p.point["network.activation"] === name)
      .map((p) => [x(p.point[axis]), y(p.value)])
      .sort((a, b) => a[0] - b[0]),
  );
}
