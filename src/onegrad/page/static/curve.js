// View "curve": errors against one setting; lines are theory, dots are trained networks.

import { Beside } from "./beside.js";
import { colour, css, el, show } from "./dom.js";
import { checkDots, dotText, drawDots, drawPublished, publishedDots, simulate, visibleDots } from "./dots.js";
import { LIMIT, drawLimit } from "./limits.js";
import { report } from "./link.js";
import { Panel, legendLine, legendMark, niceRange } from "./plot.js";
import { curveMessage, curveSpec, placeOf } from "./specs.js";
import { QUANTITIES, applies, axisValues, shown, taskOf, valueOf, written } from "./state.js";
import { storedLines } from "./stored.js";

export const title = "Curve";
export const sentence = (page) => {
  const axis = page.slider(page.state.axis);
  return (
    `How the error changes with the ${axis.title}: lines are the theory, for which no network was trained, with the gradient step and ` +
    "(dashed) without it. Press Simulate: every dot is an average of trained networks."
  );
};

const DRAFT = { time: 200, fewest: 5 }; // ms that a draft should take while a slider moves, points of it

export class Curve {
  constructor(page) {
    this.page = page;
    this.lines = []; // one entry per curve: {value, values, parts, without, accurate}
    this.build();
  }

  build() {
    const { page } = this;
    const axis = page.slider(page.state.axis);
    const names = page.about.quantities;
    this.axis = page.state.axis;
    const pick = el("select", {
      id: "axis",
      onchange: (event) => {
        page.state.axis = event.target.value;
        page.state.range = page.state.dots = page.state.zip = null;
        page.pressed(null);
        page.rebuild();
      },
    });
    const axes = page.sliders();
    for (const slider of axes.includes(axis) ? axes : [axis, ...axes])
      pick.append(el("option", { value: slider.key, selected: slider.key === axis.key }, `${slider.title}  ${slider.symbol}`));
    page.options.replaceChildren(el("label", {}, "against", pick));
    for (const [name, text] of Object.entries(names)) {
      if (!applies(name, page.state.tables) && !page.state.quantities.includes(name)) continue;
      const box = el("input", {
        type: "checkbox",
        value: name,
        checked: page.state.quantities.includes(name),
        onchange: () => {
          const chosen = QUANTITIES.filter((q) => (q === name ? box.checked : page.state.quantities.includes(q)));
          if (!chosen.length) {
            box.checked = true;
            return;
          }
          page.state.quantities = chosen;
          page.rebuild();
        },
      });
      page.options.append(el("label", {}, box, text.replace(" (MSE)", "")));
    }
    if (page.isDrawn() && taskOf(page.state.tables) === "isotropic") page.options.append(this.limitBox());
    this.panels = page.state.quantities.map((quantity) => [
      quantity,
      new Panel(page.panels, {
        title: names[quantity],
        yLabel: names[quantity],
        xLabel: `${axis.title} ${axis.symbol}`,
        xLog: this.isLog(axis),
        xAxis: axis.kind === "whole" ? { incrs: [1, 2, 5, 10] } : {},
        draw: (u, pen) => {
          this.drawUnder(pen, quantity);
          drawDots(page, pen, visibleDots(page), quantity);
        },
        tip: (index) => this.tip(index, quantity),
        say: page.say,
      }),
    ]);
    page.panels.classList.toggle("solo", this.panels.length === 1);
    if (page.isDrawn()) this.beside = new Beside(page);
  }

  limitBox() {
    const { compare } = this.page.state.tables;
    const box = el("input", {
      type: "checkbox",
      id: "limit",
      checked: compare.models.includes(LIMIT),
      onchange: () => {
        compare.models = [...compare.models.filter((name) => name !== LIMIT), ...(box.checked ? [LIMIT] : [])];
        this.page.rebuild();
      },
    });
    return el("label", {}, box, "limit of large n");
  }

  isLog(axis) {
    const [low, high] = this.page.state.range ?? [axis.low, axis.high];
    return axis.kind === "log" && low > 0 && high / low > 4;
  }

  /** Ask for the lines: a draft at once, all points when the sliders rest, then accurate ones. */
  refresh(started) {
    const { page } = this;
    const { state } = page;
    if (!page.isDrawn()) return this.showStored();
    if (this.lines.length && this.lines.every((line) => line.accurate)) this.ghost = this.lines; // to compare with
    const axis = page.slider(state.axis);
    const all = axisValues(axis, state.range, "curve", state.tables, state.zip, state.dots);
    checkDots(page);
    const limit = state.tables.compare.models.includes(LIMIT);
    // a thinned draft leaves the lines without the step for later: it has to follow the slider
    const message = (xs, coarse) => curveMessage(page.about, state, xs, { coarse, limit, gain: xs.length === all.length });
    const ask = (xs, coarse) => {
      const values = state.zip ? xs : xs.map((x) => shown(axis, written(axis, x, state.tables), state.tables));
      const size = xs.length;
      const lines = state.curves.values.map((value) => ({
        value,
        values,
        parts: [],
        without: [],
        limits: [],
        left: size,
        accurate: !coarse,
        thin: size < all.length,
      }));
      const count = size * lines.length;
      const kinds = size === all.length ? ["parts", "without", "limits"] : ["parts", "limits"];
      const sent = performance.now();
      page.link.ask("theory", message(xs, coarse), {
        part: (index, value) => {
          const [curve, place] = placeOf(state, index, size);
          const line = lines[curve];
          const kind = kinds[Math.floor(index / count)];
          line[kind][place] = value;
          if (kind !== "parts" || --line.left) return;
          if (coarse && line === lines[0]) page.pace = (performance.now() - sent) / size;
          this.take(lines, line, started, coarse);
        },
        draft: () => {
          this.finish(lines);
          if (!slow()) this.beside.refresh(true);
        },
        done: (parts) => {
          this.finish(lines);
          const whole = size === all.length;
          page.settled(!coarse && whole ? "accurate" : "coarse", report(parts.slice(0, 2 * count)), whole ? "" : "more points follow");
          if (coarse && !whole && !slow()) return ask(all, true);
          this.beside.refresh(coarse);
          if (coarse || !whole) page.later(() => ask(coarse && slow() ? few : all, false));
        },
        error: (text) => page.refuse(text),
      });
    };
    const most = Math.max(DRAFT.fewest, Math.round(DRAFT.time / page.pace));
    const few = state.zip || axis.kind === "whole" ? all : thinned(all, most);
    // where the theory is slow a few accurate points come before all of them
    const slow = () => few.length < all.length && page.pace * all.length > DRAFT.time;
    ask(page.link.knows(message(all, true)) ? all : few, true);
  }

  /** All of a request has come, also what is without the step. */
  finish(lines) {
    this.lines = [...lines];
    this.paint();
  }

  /** A run on data that the page cannot draw: everything is as it was stored. */
  showStored() {
    this.lines = storedLines(this.page.about, this.page.state);
    this.paint();
    this.page.settled("accurate", { methods: ["theory as stored"] });
  }

  /** A whole line has come: draw it; the one without the step stays as it was until it comes. */
  take(lines, line, started, coarse) {
    if (this.lines.length !== lines.length)
      this.lines = lines.map((l) => ({ value: l.value, parts: [], without: [], accurate: false }));
    const index = lines.indexOf(line);
    const old = this.lines[index];
    const same = JSON.stringify(old.values) === JSON.stringify(line.values);
    this.lines[index] = { ...line, without: line.without.length ? line.without : same ? old.without : [] };
    this.paint();
    if (line === lines[0]) this.page.measure(coarse ? "first curve" : "accurate curve", started);
  }

  paint() {
    const lines = this.lines.filter((line) => line.parts.length);
    if (!lines.length) return;
    const { about } = this.page;
    const xs = lines[0].values;
    const dots = visibleDots(this.page);
    this.constantShown = false;
    for (const [quantity, panel] of this.panels) {
      const of = (parts) => xs.map((_, i) => parts?.[i]?.[quantity] ?? null);
      const ys = lines.map((line) => of(line.parts));
      const series = lines.map((line) => ({
        label: String(line.value),
        stroke: colour(about, this.lines.indexOf(line)),
        width: line.accurate ? 2.2 : 1.6,
        smooth: true,
      }));
      for (const line of distinct(lines, quantity)) {
        ys.push(of(line.without));
        series.push({
          label: "without",
          stroke: colour(about, this.lines.indexOf(line)),
          width: 1.6,
          dash: [7, 5],
          smooth: true,
        });
      }
      const high = Math.max(...ys.flat()) || Infinity;
      for (const line of this.ghosts(xs, quantity, ys)) {
        ys.push(line);
        series.push({ label: "before", stroke: css("--line"), width: 1.4, smooth: true });
      }
      const constant = this.constant(lines[0], quantity);
      const fits = constant.some((v) => v !== null && v < 2.5 * high);
      if (fits) {
        this.constantShown = true;
        ys.push(constant);
        series.push({ label: "best constant", stroke: css("--soft"), width: 1, dash: [1.5, 2.5] });
      }
      const more = [
        ...lines.flatMap((line) => (line.limits ?? []).map((part) => part?.[quantity] ?? null)),
        ...publishedDots(this.page, quantity).map((dot) => dot.value),
      ];
      const seen = [
        ...ys.flat(),
        ...more,
        ...dots.flatMap((dot) => {
          const { mean, error } = dot[quantity];
          // a polynomial of too high a degree can be off by powers of ten: it must not rule the axis
          if (dot.model !== "network" && mean > 5 * high) return [];
          return [mean + (error || 0), mean - (error || 0) > 0 ? mean - (error || 0) : mean];
        }),
      ];
      const reach = [Math.min(xs[0], ...dots.map((d) => d.x)), Math.max(xs[xs.length - 1], ...dots.map((d) => d.x))];
      panel.show([xs, ...ys], { series, x: padded(reach, panel.options.xLog), ...niceRange(seen.filter((v) => v !== null)) });
    }
    this.legend();
  }

  /** The lines of the settings before, on the same places, where they differ. */
  ghosts(xs, quantity, ys) {
    const lines = (this.ghost ?? []).filter((line) => JSON.stringify(line.values) === JSON.stringify(xs));
    const found = lines.map((line) => xs.map((_, i) => line.parts[i]?.[quantity] ?? null));
    return found.filter((line, k) => JSON.stringify(line) !== JSON.stringify(ys[k]));
  }

  /** What the best constant costs along the axis, where it is comparable. */
  constant(line, quantity) {
    const value = { test_error: (part) => part.label_variance, relative_error: (part) => (part.label_variance ? 1 : null) }[
      quantity
    ];
    return line.values.map((_, i) => (value && line.parts[i] ? (value(line.parts[i]) ?? null) : null));
  }

  legend() {
    const { page } = this;
    const { key, values } = page.state.curves;
    const label = (value) =>
      typeof value === "string" ? value : `${key.split(".")[1]} = ${typeof value === "number" ? show(value) : value}`;
    const models = [...new Set(visibleDots(page).map((dot) => dot.model))];
    const grey = css("--soft");
    const compared = this.lines.some((line) => line.without?.length);
    page.legend.replaceChildren(
      ...values.map((value, i) => legendLine(`theory, ${label(value)}`, colour(page.about, i))),
      ...(compared ? [legendLine("theory without the step", values.length > 1 ? grey : colour(page.about, 0), [5, 4])] : []),
      ...(this.constantShown ? [legendLine("best constant, Var y", grey, [1.5, 2.5])] : []),
      ...(this.lines.some((line) => line.limits?.length)
        ? [legendLine("limit of large n", values.length > 1 ? grey : colour(page.about, 0), [7, 2, 2, 2])]
        : []),
      ...(page.state.quantities.some((q) => publishedDots(page, q).length) ? [legendMark("published figure", "x", grey)] : []),
      ...models.map((model) => legendMark(model, page.about.marks[model] ?? "o", grey, model === "network")),
    );
  }

  simulate() {
    simulate(this.page, () => {
      if (this.page.view instanceof Curve) this.page.view.paint();
    });
  }

  /** What lies below the dots: the slider's place, limits, points of the published figure. */
  drawUnder(pen, quantity) {
    this.drawHere(pen);
    this.lines.forEach((line, i) => {
      if (line.limits?.length) drawLimit(pen, this.axis, line.values, line.limits, quantity, colour(this.page.about, i));
    });
    drawPublished(this.page, pen, quantity);
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

  tip(index, quantity) {
    const lines = this.lines.filter((line) => line.parts.length);
    if (!lines.length) return [];
    const axis = this.page.slider(this.axis);
    const x = lines[0].values[index];
    const gap = Math.min(...lines[0].values.map((v) => (v === x ? Infinity : Math.abs(v - x))));
    const near = visibleDots(this.page).filter((dot) => Math.abs(dot.x - x) < 0.75 * gap);
    const text = (line) => {
      const before = line.without?.[index]?.[quantity];
      const without = before === undefined ? "" : `, without the step ${show(before)}`;
      return `${line.value}: ${show(line.parts[index]?.[quantity])}${without}${line.accurate ? "" : " (coarse)"}`;
    };
    return [
      { text: `${axis.symbol} = ${show(x)}`, bold: true },
      ...lines.map((line) => ({ colour: colour(this.page.about, this.lines.indexOf(line)), text: text(line) })),
      ...near.map((dot) => ({ colour: colour(this.page.about, dot.curve), text: dotText(dot, quantity) })),
    ];
  }

  table() {
    const axis = this.page.slider(this.axis);
    const column = axis.over ? `${axis.key}/${axis.over}` : axis.first ? `${axis.key}[0]` : axis.key;
    const rows = [[column, this.page.state.curves.key, "model", "seeds", ...QUANTITIES.flatMap((q) => [q, `${q}_se`])]];
    const number = (v) => (Number.isFinite(v) ? v : "");
    for (const line of this.lines) {
      const kind = line.accurate ? "" : " (coarse)";
      const put = (model, parts) =>
        parts.forEach((part, i) =>
          rows.push([
            line.values[i],
            line.value,
            model + kind,
            0,
            ...QUANTITIES.flatMap((q) => [number(part[q]), number(part[q]) === "" ? "" : 0]),
          ]),
        );
      put("theory", line.parts);
      put("theory without the step", line.without ?? []);
    }
    for (const dot of visibleDots(this.page)) {
      rows.push([
        dot.x,
        this.page.state.curves.values[dot.curve],
        dot.model,
        dot.seeds ?? dot.rows,
        ...QUANTITIES.flatMap((q) => [number(dot[q].mean), number(dot[q].error)]),
      ]);
    }
    return rows;
  }

  spec() {
    return curveSpec(this.page.about, this.page.state).spec;
  }

  destroy() {
    for (const [, panel] of this.panels) panel.destroy();
    this.beside?.destroy();
    this.page.panels.classList.remove("solo", "alone");
  }
}

/** Lines whose course without the step differs from those before: curves by step size share one. */
function distinct(lines, quantity) {
  const seen = new Set();
  return lines.filter((line) => {
    const text = JSON.stringify(line.without?.map((part) => part?.[quantity]));
    const known = seen.has(text) || !line.without?.some((part) => Number.isFinite(part?.[quantity]));
    seen.add(text);
    return !known;
  });
}

/** Some of the values, the first and the last among them. */
const thinned = (values, count) =>
  values.length <= count
    ? values
    : Array.from({ length: count }, (_, i) => values[Math.round((i * (values.length - 1)) / (count - 1))]);

const padded = ([low, high], log) =>
  log ? [low / 1.04, high * 1.04] : [low - 0.015 * (high - low), high + 0.015 * (high - low)];
