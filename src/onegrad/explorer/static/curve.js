// View "curve": errors against one setting; lines are theory, dots are trained networks.

import { colour, css, el, show } from "./dom.js";
import { report } from "./link.js";
import { Panel, legendLine, legendMark, niceRange } from "./plot.js";
import { QUANTITIES, axisValues, shown, sweepSpec, taskOf, valueOf, written } from "./state.js";
import { storedDots, storedLines } from "./stored.js";

export const title = "Curve";
export const sentence = (page) => {
  const axis = page.slider(page.state.axis);
  return `How the error changes with the ${axis.title}: the line is the theory, which trains nothing; ` +
    "every dot is the average of networks that were trained by one gradient step.";
};

const NAMES = { test_error: "test error (MSE)", train_error: "training error (MSE)", train_objective: "training objective" };

export class Curve {
  constructor(page) {
    this.page = page;
    this.lines = []; // one entry per curve: {xs, parts, accurate}
    this.build();
  }

  build() {
    const { page } = this;
    const axis = page.slider(page.state.axis);
    this.axis = page.state.axis;
    const pick = el("select", { id: "axis", onchange: (event) => {
      page.state.axis = event.target.value;
      page.state.range = page.state.dots = page.state.zip = null;
      page.pressed(null);
      page.rebuild();
    } });
    const axes = page.sliders();
    for (const slider of axes.includes(axis) ? axes : [axis, ...axes]) pick.append(el("option", { value: slider.key, selected: slider.key === axis.key }, `${slider.title}  ${slider.symbol}`));
    page.options.replaceChildren(el("label", {}, "against", pick));
    for (const [name, text] of Object.entries(NAMES)) {
      const box = el("input", { type: "checkbox", checked: page.state.quantities.includes(name), onchange: () => {
        const chosen = QUANTITIES.filter((q) => (q === name ? box.checked : page.state.quantities.includes(q)));
        if (!chosen.length) { box.checked = true; return; }
        page.state.quantities = chosen;
        page.rebuild();
      } });
      page.options.append(el("label", {}, box, text.replace(" (MSE)", "")));
    }
    this.panels = page.state.quantities.map((quantity) => [quantity, new Panel(page.panels, {
      title: NAMES[quantity], yLabel: NAMES[quantity], xLabel: `${axis.title} ${axis.symbol}`, xLog: this.isLog(axis), xAxis: axis.kind === "whole" ? { incrs: [1, 2, 5, 10] } : {},
      draw: (u, pen) => this.drawDots(pen, quantity),
      tip: (index) => this.tip(index, quantity), say: page.say,
    })]);
  }

  isLog(axis) {
    const [low, high] = this.page.state.range ?? [axis.low, axis.high];
    return axis.kind === "log" && low > 0 && high / low > 4;
  }

  /** Ask for the lines: coarse at once, accurate when the sliders rest. */
  refresh(started) {
    const { page } = this;
    const { state } = page;
    if (!page.isDrawn()) return this.showStored();
    const axis = page.slider(state.axis);
    const xs = axisValues(axis, state.range, "curve", state.tables, state.zip);
    const spec = sweepSpec(state, axis, xs, { compare: { models: ["theory"], seed: state.tables.compare.seed ?? 0 } });
    const size = xs.length;
    this.xs = xs;
    this.values = state.zip ? xs : xs.map((x) => shown(axis, written(axis, x, state.tables), state.tables));
    this.checkDots();
    const ask = (coarse) => {
      const lines = state.curves.values.map((value) => ({ value, parts: new Array(size), left: size, accurate: !coarse }));
      page.link.ask("theory", { type: "curve", spec, coarse }, {
        part: (index, value) => {
          const line = lines[Math.floor(index / size)];
          line.parts[index % size] = value;
          if (--line.left === 0) this.take(lines, line, started, coarse);
        },
        done: (parts) => {
          page.settled(coarse ? "coarse" : "accurate", report(parts));
          if (coarse) page.later(() => ask(false));
        },
        error: (text) => page.refuse(text),
      });
    };
    ask(true);
  }

  /** A run on data that the page cannot draw: everything is as it was stored. */
  showStored() {
    this.lines = storedLines(this.page.about, this.page.state);
    this.paint();
    this.page.settled("accurate", { methods: ["theory as stored"] });
  }

  /** A whole line has come: draw it. */
  take(lines, line, started, coarse) {
    if (this.lines.length !== lines.length) this.lines = lines.map((l) => ({ value: l.value, parts: [], accurate: false }));
    this.lines[lines.indexOf(line)] = { ...line, values: this.values };
    this.paint();
    if (line === lines[0]) this.page.measure(coarse ? "first curve" : "accurate curve", started);
  }

  paint() {
    const lines = this.lines.filter((line) => line.parts.length);
    if (!lines.length) return;
    const xs = lines[0].values;
    const dots = this.visible();
    for (const [quantity, panel] of this.panels) {
      const ys = lines.map((line) => line.parts.map((part) => part?.[quantity] ?? null));
      const high = Math.max(...ys.flat()) || Infinity;
      const seen = [...ys.flat(), ...dots.flatMap((dot) => {
        const { mean, error } = dot[quantity];
        // a polynomial of too high a degree can be off by powers of ten: it must not rule the axis
        if (dot.model !== "network" && mean > 5 * high) return [];
        return [mean + (error || 0), mean - (error || 0) > 0 ? mean - (error || 0) : mean];
      })];
      const series = this.lines.map((line, i) => ({ label: String(line.value), stroke: colour(this.page.about, i), width: 2, dash: line.accurate ? undefined : [7, 4] }));
      const reach = [Math.min(xs[0], ...dots.map((d) => d.x)), Math.max(xs[xs.length - 1], ...dots.map((d) => d.x))];
      panel.show([xs, ...ys], { series: series.filter((_, i) => this.lines[i].parts.length), x: padded(reach, panel.options.xLog), ...niceRange(seen.filter((v) => v !== null)) });
    }
    this.legend();
  }

  legend() {
    const { page } = this;
    const { key, values } = page.state.curves;
    const label = (value) => (typeof value === "string" ? value : `${key.split(".")[1]} = ${typeof value === "number" ? show(value) : value}`);
    const models = [...new Set(this.visible().map((dot) => dot.model))];
    const grey = css("--soft");
    page.legend.replaceChildren(
      ...values.map((value, i) => legendLine(`theory, ${label(value)}`, colour(page.about, i))),
      ...models.map((model) => legendMark(model, page.about.marks[model] ?? "o", grey, model === "network")));
  }

  // --- dots ---------------------------------------------------------------------------------

  /** Dots belong to the settings they were simulated at; others are put away. */
  checkDots() {
    const now = this.setting();
    const { runs } = this.page;
    if (runs.setting && runs.setting !== now) { runs.dots.clear(); runs.setting = null; this.page.stop(); }
  }

  setting() {
    const { state } = this.page;
    const { tables, axis, curves, zip } = state;
    return JSON.stringify([fixed(state, tables), axis, curves, zip, tables.compare.seed]);
  }

  simulate() {
    const { page } = this;
    const { spec, xs } = curveSpec(page);
    const axis = page.slider(page.state.axis);
    const values = page.state.zip ? xs : xs.map((x) => shown(axis, written(axis, x, page.state.tables), page.state.tables));
    const perSeed = page.state.curves.values.length * xs.length;
    const total = perSeed * spec.compare.seeds;
    const { runs } = page;
    runs.dots.clear();
    runs.setting = this.setting();
    this.paint();
    let come = 0;
    page.progress(0, total);
    page.link.ask("simulation", { type: "simulate", spec }, {
      part: (index, rows) => {
        const where = index % perSeed;
        page.progress(++come, total);
        if (rows.error) return page.refuse(rows.error);
        for (const row of rows) {
          if (row.status !== "ok") { page.refuse(`${row.model}: ${row.error}`); continue; }
          add(runs.dots, Math.floor(where / xs.length), values[where % xs.length], row);
        }
        page.soon ??= requestAnimationFrame(() => { page.soon = null; if (page.view instanceof Curve) page.view.paint(); });
      },
      done: () => page.progress(null),
      error: (text) => { page.progress(null); page.refuse(text); },
    });
  }

  /** Means and standard errors of what has come so far, and the dots of a stored run. */
  visible() {
    const dots = [...this.page.runs.dots.values()].map((dot) => ({ ...dot, ...Object.fromEntries(QUANTITIES.map((q) => [q, estimate(dot[q])])) }));
    const { about, state, storedState } = this.page;
    if (!about.stored) return dots;
    const faded = fixed(state, state.tables) !== fixed(state, storedState.tables);
    return [...dots, ...storedDots(about, state).map((dot) => ({ ...dot, faded }))];
  }

  /** A thin line where the axis' own slider stands. */
  drawHere({ ctx, box, x, scale }) {
    const value = valueOf(this.page.slider(this.axis), this.page.state.tables);
    if (value === null || this.page.state.zip || !this.page.isDrawn()) return;
    const px = x(value);
    if (!(px >= box.left && px <= box.left + box.width)) return;
    ctx.strokeStyle = css("--soft");
    ctx.lineWidth = scale;
    ctx.setLineDash([2 * scale, 4 * scale]);
    ctx.beginPath();
    ctx.moveTo(px, box.top);
    ctx.lineTo(px, box.top + box.height);
    ctx.stroke();
    ctx.setLineDash([]);
  }

  drawDots(pen, quantity) {
    this.drawHere(pen);
    for (const dot of this.visible()) {
      const { mean, error } = dot[quantity];
      if (!Number.isFinite(mean)) continue;
      const ink = colour(this.page.about, dot.curve);
      pen.ctx.globalAlpha = dot.faded ? 0.35 : 1;
      // the other models share the network's draws: their own bars would mislead
      if (dot.model === "network" && error > 0) pen.bar(pen.x(dot.x), pen.y(Math.max(mean - error, mean * 1e-3)), pen.y(mean + error), ink);
      pen.mark(this.page.about.marks[dot.model] ?? "o", pen.x(dot.x), pen.y(mean), ink, dot.model === "network");
      pen.ctx.globalAlpha = 1;
    }
  }

  tip(index, quantity) {
    const lines = this.lines.filter((line) => line.parts.length);
    if (!lines.length) return [];
    const axis = this.page.slider(this.axis);
    const x = lines[0].values[index];
    const gap = Math.min(...lines[0].values.map((v) => (v === x ? Infinity : Math.abs(v - x))));
    const near = this.visible().filter((dot) => Math.abs(dot.x - x) < 0.75 * gap);
    return [
      { text: `${axis.symbol} = ${show(x)}`, bold: true },
      ...this.lines.map((line, i) => ({ colour: colour(this.page.about, i), text: `${line.value}: ${show(line.parts[index]?.[quantity])}${line.accurate ? "" : " (coarse)"}` })),
      ...near.map((dot) => ({ colour: colour(this.page.about, dot.curve), text: `${dot.model} at ${show(dot.x)}: ${show(dot[quantity].mean)} ± ${show(dot[quantity].error, 2)}  (${dot.seeds ?? dot.rows} seeds)` })),
    ];
  }

  table() {
    const axis = this.page.slider(this.axis);
    const column = axis.over ? `${axis.key}/${axis.over}` : axis.first ? `${axis.key}[0]` : axis.key;
    const rows = [[column, this.page.state.curves.key, "model", "seeds", ...QUANTITIES.flatMap((q) => [q, `${q}_se`])]];
    for (const line of this.lines) {
      line.parts.forEach((part, i) => rows.push([line.values[i], line.value, line.accurate ? "theory" : "theory (coarse)", 0, ...QUANTITIES.flatMap((q) => [part[q] ?? "", 0])]));
    }
    for (const dot of this.visible()) {
      rows.push([dot.x, this.page.state.curves.values[dot.curve], dot.model, dot.seeds ?? dot.rows, ...QUANTITIES.flatMap((q) => [dot[q].mean, dot[q].error].map((v) => (Number.isFinite(v) ? v : "")))]);
    }
    return rows;
  }

  destroy() { for (const [, panel] of this.panels) panel.destroy(); }
}

/** The experiment of this view: what is simulated, and what "copy as spec" gives. */
export function curveSpec(page) {
  const { state } = page;
  const axis = page.slider(state.axis);
  const xs = state.dots ?? axisValues(axis, state.range, "dots", state.tables, state.zip);
  const name = `${axis.title}, ${page.about.tasks[taskOf(state.tables)].title}`;
  const spec = { name, ...sweepSpec(state, axis, xs), figure: { quantities: state.quantities } };
  return { xs, spec };
}

/** The settings of `tables` that are the same all over the plot of `state`, as text. */
function fixed({ axis, curves }, { compare, ...problem }) {
  const rest = Object.entries(problem).flatMap(([table, keys]) => Object.entries(keys).map(([name, value]) => [`${table}.${name}`, value]));
  return JSON.stringify(rest.filter(([key]) => key !== axis && key !== curves.key).sort());
}

function add(dots, curve, x, row) {
  const key = `${row.model} ${curve} ${x}`;
  const dot = dots.get(key) ?? { model: row.model, curve, x, rows: 0, test_error: [], train_error: [], train_objective: [] };
  dot.rows += 1;
  for (const quantity of QUANTITIES) dot[quantity].push(row[quantity]);
  dots.set(key, dot);
}

const padded = ([low, high], log) => (log ? [low / 1.04, high * 1.04] : [low - 0.015 * (high - low), high + 0.015 * (high - low)]);

export function estimate(values) {
  const mean = values.reduce((sum, v) => sum + v, 0) / values.length;
  const square = values.reduce((sum, v) => sum + (v - mean) ** 2, 0);
  return { mean, error: values.length > 1 ? Math.sqrt(square / (values.length - 1) / values.length) : NaN };
}
