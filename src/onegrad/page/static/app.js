// The page: holds the state, the connection and the view, and lets them hear of each other.

import "./ratio.js";
import * as curve from "./curve.js";
import * as features from "./features.js";
import * as map from "./map.js";
import * as neurons from "./neurons.js";
import * as spectrum from "./spectrum.js";
import * as start from "./start.js";
import * as steps from "./steps.js";
import { buildControls, buildRun, refreshControls } from "./controls.js";
import { clearErrors, sayAtBox } from "./box_errors.js";
import { $, el, show } from "./dom.js";
import { copyText, saveCsv, savePng, showText } from "./download.js";
import { FORMULAS } from "./formulas.js";
import { Link } from "./link.js";
import { fillPresets } from "./presets.js";
import { isDrawn } from "./stored.js";
import { useTheme } from "./theme.js";
import {
  VIEWS,
  alsoSet,
  changeTask,
  learnNames,
  copy,
  fromHash,
  fromTables,
  sliderOf,
  slidersOf,
  startState,
  swept,
  taskOf,
  toHash,
} from "./state.js";

const KINDS = {
  start: [start, start.Start],
  curve: [curve, curve.Curve],
  map: [map, map.Map2D],
  spectrum: [spectrum, spectrum.View],
  features: [features, features.Features],
  neurons: [neurons, neurons.Neurons],
  steps: [steps, steps.Steps],
};
const UNREADABLE = "This link cannot be read; perhaps a part of it is missing.";
const DOWNLOADS = ["download-png", "download-csv"];
const REST = 180; // ms without a move before the accurate numbers are asked for
const ADDRESS = 400; // ms between two changes of the address: each costs the browser more than the move of a slider

const page = {
  pace: Infinity, // ms of a point of a draft, once it is known
  running: { theory: null, simulation: null },
  runs: { dots: new Map(), setting: null }, // what was simulated, whichever view is looked at
  options: $("options"),
  legend: $("legend"),
  panels: $("panels"),
  slider: (key) => sliderOf(page.about, key, taskOf(page.state.tables)),
  sliders: () => slidersOf(page.about, page.state.tables),
  isDrawn: () => isDrawn(page.about, page.state.tables),
  /** The headline's question, answered for this setting: what one step does to the error. */
  answer(found) {
    $("answer").hidden = !found;
    $("answer").classList.toggle("draft", Boolean(found?.draft));
    $("answer").replaceChildren(
      ...(found ? [el("b", {}, found.said), ` ${found.numbers}`, found.draft ? el("i", {}, " a draft, being refined") : ""] : []),
    );
    document.body.dataset.gain = found?.gain ?? "";
  },
  say: (text) => ($("readout").textContent = text),

  /** The state has changed, perhaps by a slider that is moving: show it, ask for it, put it into the URL. */
  changed(kind, moving = false) {
    const started = performance.now();
    $("alert").hidden = true;
    clearErrors();
    if (kind !== "models" && kind !== "view") page.state.published = null; // it belongs to other settings
    if (moving) page.writeUrlSoon();
    else {
      page.pace = Infinity; // another kind of problem, perhaps
      page.writeUrl();
    }
    if (kind === "models") return; // asks for nothing before "simulate"
    page.pressed(null);
    if (kind === "labels") page.fill(); // with other labels some settings went
    if (kind === "curves" || kind === "task" || kind === "labels") return page.rebuild(started);
    clearTimeout(page.resting);
    refreshControls($("controls"), page.about, page.state);
    page.sayAlso();
    page.ask(started);
  },

  /** Build the view anew: another view, axis or set of curves. */
  rebuild(started = performance.now()) {
    clearTimeout(page.resting);
    page.link.drop("theory");
    page.link.drop("picture");
    page.view?.destroy();
    page.panels.replaceChildren();
    page.answer(null);
    const drawn = page.isDrawn();
    if (!drawn) page.state.view = "curve"; // the others compute
    const [module, View] = KINDS[page.state.view];
    $("sentence").textContent = module.sentence(page);
    for (const tab of $("tabs").children) {
      const mine = tab.id === `tab-${page.state.view}`;
      tab.setAttribute("aria-selected", mine);
      if (mine) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
      tab.tabIndex = mine ? 0 : -1;
      tab.disabled = !drawn && !mine;
    }
    page.panels.setAttribute("aria-labelledby", `tab-${page.state.view}`);
    document.body.dataset.view = page.state.view;
    showFormula(page.state.view);
    $("run").replaceChildren();
    if (drawn) {
      buildRun($("run"), page.state, {
        changed: page.changed,
        simulate: () => {
          $("alert").hidden = true;
          page.view.simulate();
        },
      });
    }
    page.view = new View(page);
    page.writeUrl();
    page.ask(started);
  },

  /** Until the answer comes the plot is that of the settings before: not to be taken home. */
  ask(started = performance.now()) {
    document.body.dataset.quality = "asked";
    $("status").textContent = "computing …";
    for (const id of DOWNLOADS) $(id).disabled = true;
    page.view.refresh(started);
  },

  /** What belongs to the numbers and has no control. */
  sayAlso() {
    const rows = alsoSet(page.about, page.state);
    $("also").hidden = !rows.length;
    $("also").replaceChildren("Also set: ", ...rows.flatMap((row, i) => [i ? ", " : "", el("code", {}, row)]), ".");
  },

  task(name, changes = {}) {
    page.push = true;
    page.state = { ...changeTask(page.about, page.state, name), ...changes };
    page.fill();
    page.changed("task");
  },

  fill() {
    buildControls($("controls"), page.about, page.state, page);
    page.sayAlso();
  },

  stop() {
    page.link.stop("simulate");
  },

  later(ask) {
    page.resting = setTimeout(ask, REST);
  },

  measure(name, started) {
    performance.measure(`onegrad: ${name}`, { start: started, end: performance.now() });
    page.took = performance.now() - started;
  },

  /** What stands below the plot once the numbers are there. */
  settled(quality, { methods = [], worst = 0, failed } = {}, more = "") {
    methods = [...new Set(methods.map((name) => name.replace(/, regime.*/, "")))];
    page.methods = methods.join(" and ");
    const took = page.took ? `, ${Math.round(page.took)} ms` : "";
    const how = quality === "coarse" && !more ? "coarse nodes, refining…" : worst ? `to about ${show(100 * worst, 1)} %` : "";
    const told = [methods.join(" and "), [how, more].filter(Boolean).join(", ")].filter(Boolean).join(": ");
    $("status").textContent = told + (quality ? took : "");
    document.body.dataset.quality = quality;
    for (const id of DOWNLOADS) $(id).disabled = quality === "";
    if (failed) page.refuse(failed);
  },

  warn(text) {
    $("alert").textContent = text;
    $("alert").hidden = false;
  },

  /** Why there are no numbers: at the box that caused it, or below the plot. */
  refuse(text) {
    if (!sayAtBox(text, page.state)) page.warn(text);
    $("status").textContent = "";
    document.body.dataset.quality = "refused";
  },

  /** What is being computed: a bar, and the button that ends it. */
  work(channel, come, total) {
    if (!(channel in page.running)) return;
    page.running[channel] = come === null ? null : [come, total];
    document.body.dataset.simulating = Boolean(page.running.simulation);
    const shown = page.running.simulation ?? page.running.theory;
    $("working").hidden = !shown;
    if (!shown) return;
    $("progress").removeAttribute("value"); // how much there is to come is known with the first answers
    if (shown[1]) $("progress").value = shown[0] / shown[1];
    $("progress").title = shown[1] ? `${shown[0]} of ${shown[1]}` : "";
  },

  writeUrl() {
    clearTimeout(page.writing);
    page.written = performance.now();
    const address = location.pathname + toHash(page.state); // the token is in a cookie now
    if (page.push && address !== location.pathname + location.hash) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    page.push = false; // sliders change the entry of the history that they stand in
  },

  /** While a slider moves: at once, or soon if it was written a moment ago. */
  writeUrlSoon() {
    clearTimeout(page.writing);
    const wait = page.written + ADDRESS - performance.now();
    if (wait > 0) page.writing = setTimeout(page.writeUrl, wait);
    else page.writeUrl();
  },

  open(state, name = null) {
    page.state = state;
    page.fill();
    page.stop();
    $("alert").hidden = true;
    page.rebuild();
    page.pressed(name);
  },

  /** Mark the preset that is shown, if it still is, and say what it is. */
  pressed(name) {
    if (!name && !$("figure").textContent) return;
    $("figure").textContent = "";
    for (const button of $("presets").querySelectorAll("button")) {
      const mine = button.dataset.name === name;
      button.setAttribute("aria-pressed", mine);
      if (mine) $("figure").textContent = button.title;
    }
  },
};

function showFormula(view) {
  const { html, more, cite } = FORMULAS[view] ?? FORMULAS.curve;
  $("formula-body").innerHTML = html; // our own MathML, no text from outside
  $("formula-body").append(el("p", {}, more), ...cite.map((key) => el("p", { class: "cite" }, page.about.citations[key])));
}

function fillTabs() {
  $("tabs").replaceChildren(
    ...VIEWS.map((name) =>
      el(
        "button",
        {
          id: `tab-${name}`,
          role: "tab",
          "aria-controls": "panels",
          onclick: () => {
            page.state.view = name;
            page.push = true;
            $("alert").hidden = true;
            page.rebuild();
          },
          onkeydown: (event) => {
            const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
            if (!move) return;
            const next = VIEWS[(VIEWS.indexOf(name) + move + VIEWS.length) % VIEWS.length];
            $(`tab-${next}`).click();
            $(`tab-${next}`).focus();
          },
        },
        KINDS[name][0].title,
      ),
    ),
  );
}

$("stop").onclick = () => {
  page.stop();
  if (!page.running.theory) return;
  clearTimeout(page.resting);
  page.link.stop("curve");
  $("status").textContent = "Stopped: the plot is a draft, or that of the settings before.";
  document.body.dataset.quality = "stopped";
};

// --- what one takes home --------------------------------------------------------------------

$("share").onclick = async () => {
  const text = `onegrad explore "${toHash(page.state)}"`; // neither this computer's address nor its token
  const done = await copyText(text);
  const help = 'Whoever has onegrad (pip install "onegrad[explore]") runs this line and sees the same. Where the page is open ' +
    "already, put what is between the quotes behind its address.";
  showText(done ? "Copied: a link to this view" : "A link to this view", help, text);
};
$("copy-spec").onclick = () => {
  const spec = page.view.spec();
  page.link.ask(
    "spec",
    { type: "spec", spec },
    {
      done: (text) =>
        copyText(text).then((done) =>
          showText(
            done ? "Copied: this as a spec" : "This as a spec",
            "Save it as experiment.toml; onegrad run experiment.toml computes, stores and draws it.",
            text,
          ),
        ),
      error: (text) => page.refuse(text),
    },
  );
};
const fileName = () => `onegrad-${page.state.view}`;
$("download-csv").onclick = () => saveCsv(`${fileName()}.csv`, page.view.table());
$("download-png").onclick = () =>
  savePng(`${fileName()}.png`, {
    title: page.state.view === "curve" ? page.view.spec().name : KINDS[page.state.view][0].title,
    caption: `${caption()} onegrad explore "${toHash(page.state)}"`,
    panels: page.panels,
    legend: page.legend,
  });

/** The settings in one line, for pictures. */
function caption() {
  const { tables } = page.state;
  const keys = page.state.view === "curve" ? [page.state.axis, ...Object.keys(swept(page.state.curves))] : [];
  const activation = keys.includes("network.activation") ? "" : `, ${tables.network.activation}`;
  const parts = page
    .sliders()
    .filter((slider) => !keys.includes(slider.key))
    .map((slider) => [slider.symbol, slider.key.split(".")])
    .map(([symbol, [table, name]]) => [symbol, tables[table]?.[name]]);
  const shown = parts
    .filter(([, value]) => value !== undefined)
    .map(
      ([symbol, value]) =>
        `${symbol.replace("/n", "")} = ${Array.isArray(value) ? value.map((v) => show(v)).join("/") : show(value)}`,
    );
  const also = alsoSet(page.about, page.state).map((row) => `; ${row}`);
  const what = `${page.view.caption?.() ?? ""}${page.about.tasks[taskOf(tables)].title}${activation}; ${shown.join(", ")}${also.join("")}`;
  return `${what}. Theory: ${page.methods}. onegrad ${page.about.version}.`;
}

// --- start ------------------------------------------------------------------------------------

useTheme($("theme"), () => {
  if (page.view) page.rebuild();
});
page.link = new Link({
  hello(about) {
    const first = !page.about;
    page.about = about;
    learnNames(about);
    $("offline").hidden = true;
    if (!first) return page.ask();
    if (about.stored) page.storedState = fromTables(about, about.stored.tables, false);
    fillTabs();
    fillPresets(page);
    const asked = location.hash.length > 1;
    const linked = fromHash(about, location.hash);
    if (linked) return page.open(linked);
    if (about.stored) page.open(copy(page.storedState), "stored");
    else page.open({ ...startState(about), view: "start" });
    if (asked) page.warn(UNREADABLE);
  },
  lost() {
    $("offline").hidden = false;
    for (const channel of Object.keys(page.running)) page.work(channel, null);
  },
  work: page.work,
});
addEventListener("hashchange", () => {
  if (!page.about || location.hash === toHash(page.state)) return;
  const state = fromHash(page.about, location.hash);
  if (!state) {
    page.writeUrl();
    page.warn(UNREADABLE);
  } else if (toHash(state) !== toHash(page.state)) page.open(state);
});
