// View "steps": error and learned polynomial after one step, two, … five; on fresh samples against the
// same ones, or by one optimiser against the others.

import { colour, css, el, show } from "./dom.js";
import { report } from "./link.js";
import { Panel, legendLine, legendMark, niceRange } from "./plot.js";
import { batchSpec, pointOf } from "./specs.js";
import { MEASURES, VERSUS, copy } from "./state.js";

export const title = "Steps";
export const sentence = (page) => {
  const { versus } = page.state;
  const what =
    versus === "batch"
      ? "How the error goes on from step to step: when every step has fresh samples, and when all steps share theirs."
      : "The same number of steps by other optimisers, at rates at which the first one moves the weights equally far.";
  return `${what} Lines are the theory, dots are trained networks.`;
};

const NAMES = {
  fresh: "fresh samples",
  same: "the same samples",
  gd: "gradient descent",
  kfac: "K-FAC",
  sign: "sign",
  adam: "Adam",
  muon: "Muon",
};
const DEGREES = [1, 2, 3];
const SHOWN = [0, 1, 2, 5]; // steps after which the function is drawn

export class Steps {
  constructor(page) {
    this.page = page;
    this.cells = new Map(); // "option steps" -> what is known of it
    this.build();
  }

  get options() {
    return this.page.about.steps.versus[this.page.state.versus];
  }
  get counts() {
    return this.page.about.steps.counts;
  }
  get followed() {
    return this.options[Math.min(this.page.state.followed, this.options.length - 1)];
  }

  build() {
    const { page } = this;
    const { state } = page;
    const select = (id, values, chosen, name, change) =>
      el(
        "select",
        { id, onchange: (event) => change(event.target.value) },
        ...values.map((value) => el("option", { value, selected: value === chosen }, name(value))),
      );
    page.options.replaceChildren(
      el(
        "label",
        {},
        "compare",
        select(
          "versus",
          Object.keys(VERSUS),
          state.versus,
          (v) => VERSUS[v],
          (v) => {
            Object.assign(state, { versus: v, followed: 0 });
            page.rebuild();
          },
        ),
      ),
      el(
        "label",
        {},
        "by",
        select(
          "measure",
          Object.keys(MEASURES),
          state.measure,
          (v) => MEASURES[v],
          (v) => {
            state.measure = v;
            page.rebuild();
          },
        ),
      ),
      el(
        "label",
        {},
        "learned with",
        select(
          "followed",
          this.options,
          this.followed,
          (v) => NAMES[v],
          (v) => {
            state.followed = this.options.indexOf(v);
            page.rebuild();
          },
        ),
      ),
    );
    const xAxis = { splits: () => this.counts, space: 10 };
    this.errors = new Panel(page.panels, {
      title: `${MEASURES[state.measure]} step by step`,
      xLabel: "steps on the first layer",
      yLabel: MEASURES[state.measure],
      xAxis,
      draw: (u, pen) => this.drawDots(pen),
      tip: (index) => this.tip(index),
      say: page.say,
    });
    this.bars = new Panel(page.panels, {
      title: `what ${NAMES[this.followed]} teach${this.options.length > 2 ? "es" : ""}, degree by degree`,
      small: true,
      xLabel: "steps",
      yLabel: "coefficient",
      xAxis,
      draw: (u, pen) => this.drawDegrees(pen),
      tip: (index) => this.degreeTip(index),
      say: page.say,
    });
    this.shape = new Panel(page.panels, {
      title: `the function after ${SHOWN.join(", ").replace(/, (\d+)$/, " and $1")} steps`,
      small: true,
      xLabel: "",
      yLabel: "mean output",
    });
    page.panels.classList.add("solo");
    this.showLearned(false);
  }

  showLearned(known) {
    this.bars.node.hidden = this.shape.node.hidden = !known;
    this.page.panels.classList.toggle("alone", !known);
  }

  refresh(started) {
    const { page } = this;
    const { direction, component, versus } = page.state;
    const spec = pointOf(page.state);
    const { options } = this;
    const ask = (coarse) => {
      let first = true;
      page.link.ask(
        "theory",
        { type: "steps", spec, coarse, versus, direction, component },
        {
          part: (index, value) => {
            if (first && coarse) this.cells.clear(); // those of other settings stayed until now
            first = false;
            const count = this.counts[Math.floor(index / options.length) % this.counts.length]; // networks, then theory
            const place = `${options[index % options.length]} ${count}`;
            this.cells.set(place, { ...this.cells.get(place), ...value });
            this.soon ??= requestAnimationFrame(() => {
              this.soon = null;
              if (page.view === this) this.paint();
            });
          },
          done: (parts) => {
            this.paint();
            page.answer(this.words(coarse));
            page.measure(coarse ? "first steps" : "accurate steps", started);
            const networks = parts.find((part) => part.networks)?.networks;
            const methods = [`theory of one first layer as drawn and trained, ${networks} network${networks === 1 ? "" : "s"}`];
            page.settled(coarse ? "coarse" : "accurate", { ...report(parts), methods });
            if (coarse) page.later(() => ask(false));
          },
          error: (text) => page.refuse(text),
        },
      );
    };
    ask(true);
  }

  /** Where the error is least, in words. */
  words(draft) {
    const listed = this.options.flatMap((option) =>
      this.counts.map((steps) => ({ option, steps, error: this.at(option, steps)?.theory_test ?? Infinity })),
    );
    const best = listed.reduce((a, b) => (b.error < a.error ? b : a));
    const last = this.counts[this.counts.length - 1];
    const none = this.at(this.options[0], 0)?.theory_test;
    const one = this.at(this.options[0], 1)?.theory_test;
    if (!Number.isFinite(best.error) || !none || !one) return null;
    if (best.steps === 0) {
      const numbers = `${show(none, 3)} without any, ${show(one, 3)} after one.`;
      return { said: "Every step makes the error larger here:", numbers, draft };
    }
    if (best.error > 0.99 * none) {
      const numbers = `${show(best.error, 3)} at best, ${show(none, 3)} without any.`;
      return { said: "Steps take less than 1 % away here:", numbers, draft };
    }
    const many = this.options.length > 2;
    const how = best.steps > 1 || many ? ` (${NAMES[best.option]})` : "";
    const after = best.steps > 1 ? `, ${show(one, 2)} after one${many ? " of gradient descent" : ""}` : "";
    const over =
      best.steps < last && this.options.every((option) => (this.at(option, last)?.theory_test ?? 0) > 1.1 * best.error);
    return {
      said: `The error is least after ${best.steps} step${best.steps === 1 ? "" : "s"}${how}:`,
      numbers: `${show(best.error, 2)}; ${show(none, 2)} without any${after}.${over ? " More steps of this size overshoot." : ""}`,
      draft,
    };
  }

  at(option, steps) {
    return this.cells.get(`${option} ${steps}`);
  }

  /** A quantity of the networks, or of the theory: without a draw where there is one. */
  value(cell, theory) {
    const { measure } = this.page.state;
    if (!cell || cell.error) return null;
    if (!theory || measure === "alignment") return cell[measure] ?? null;
    return cell[measure === "test_error" ? "theory_test" : "theory_train"] ?? null;
  }

  paint() {
    const { page, counts, options } = this;
    const { measure } = page.state;
    const line = (option) => counts.map((steps) => this.value(this.at(option, steps), true));
    const ys = options.map(line);
    const series = options.map((option, i) => ({ label: option, stroke: colour(page.about, i), width: 2 }));
    const variance = this.at(options[0], 0)?.label_variance;
    if (measure === "test_error" && variance < 2.5 * Math.max(...ys.flat())) {
      ys.push(counts.map(() => variance));
      series.push({ label: "best constant", stroke: css("--soft"), width: 1, dash: [1.5, 2.5] });
    }
    const dots = [...this.cells.values()].map((cell) => this.value(cell, false));
    const { y, yLog } =
      measure === "alignment" ? { y: [0, 1.02], yLog: false } : niceRange([...ys.flat(), ...dots].filter((v) => v !== null));
    const x = [counts[0] - 0.15, counts[counts.length - 1] + 0.15];
    this.errors.show([counts, ...ys], { series, x, y, yLog });
    this.errors.redraw();
    page.legend.replaceChildren(
      ...options.map((option, i) => legendLine(NAMES[option], colour(page.about, i))),
      ...(series.length > options.length ? [legendLine("best constant, Var y", css("--soft"), [1.5, 2.5])] : []),
      ...(measure === "alignment" ? [] : [legendMark("trained networks", "o", css("--soft"), true)]),
    );
    this.paintLearned(x);
  }

  paintLearned(x) {
    const { page, counts, followed } = this;
    const cells = counts.map((steps) => this.at(followed, steps));
    const known = cells.find((cell) => cell?.coefficients);
    this.showLearned(Boolean(known));
    if (!known) return;
    const lines = DEGREES.map((degree) => cells.map((cell) => cell?.coefficients?.[degree] ?? null));
    const targets = DEGREES.map((degree) => counts.map(() => known.target_coefficients[degree]));
    const { y } = niceRange(
      [...lines, ...targets]
        .flat()
        .filter((v) => v !== null)
        .concat(0),
    );
    this.bars.show([counts, ...lines, ...targets], {
      series: [
        ...DEGREES.map((degree, i) => ({ label: `degree ${degree}`, stroke: shade(page, i), width: 2 })),
        ...DEGREES.map((_, i) => ({ label: "target", stroke: shade(page, i), width: 1, dash: [2, 3] })),
      ],
      x,
      y,
      yLog: false,
    });
    this.bars.redraw();
    const drawn = SHOWN.filter((steps) => this.at(followed, steps)?.learned);
    const values = [known.target, ...drawn.map((steps) => this.at(followed, steps).learned)];
    this.shape.rename([
      `position along ${known.direction.replace("spike", "spike of component").replace(/\.\d+$/, "")}`,
      "mean output",
    ]);
    const range = niceRange(values.flat()).y;
    this.shape.show([known.t, ...values], {
      series: [
        { label: "target", stroke: css("--ink"), dash: [2, 3], width: 1.3 },
        ...drawn.map((steps) => ({
          label: `${steps}`,
          stroke: faded(page, this.options.indexOf(followed), steps / counts[counts.length - 1]),
          width: 1.8,
        })),
      ],
      y: [Math.min(range[0], ...values.flat()), range[1]],
      yLog: false,
    });
  }

  drawDots(pen) {
    if (this.page.state.measure === "alignment") return;
    this.options.forEach((option, i) => {
      for (const steps of this.counts) {
        const cell = this.at(option, steps);
        const value = this.value(cell, false);
        if (value === null) continue;
        const ink = colour(this.page.about, i);
        const error = this.page.state.measure === "test_error" ? cell.test_error_se : null;
        if (error > 0) pen.bar(pen.x(steps), pen.y(Math.max(value - error, 1e-3 * value)), pen.y(value + error), ink);
        pen.mark("o", pen.x(steps), pen.y(value), ink, true);
      }
    });
  }

  /** The degree above its line, each at another place. */
  drawDegrees(pen) {
    const { ctx, scale, box } = pen;
    ctx.font = `${12 * scale}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textAlign = "center";
    ctx.save();
    DEGREES.forEach((degree, i) => {
      const steps = this.counts[this.counts.length - 2 - i];
      const value = this.at(this.followed, steps)?.coefficients?.[degree];
      if (value === undefined) return;
      const said = [box.width > 260 * scale ? `degree ${degree}` : `${degree}`, pen.x(steps), pen.y(value) - 5 * scale];
      Object.assign(ctx, {
        fillStyle: shade(this.page, i),
        strokeStyle: css("--panel"),
        lineWidth: 4 * scale,
        lineJoin: "round",
      });
      ctx.strokeText(...said); // a rim, so that lines do not run through the words
      ctx.fillText(...said);
    });
    ctx.restore();
  }

  tip(index) {
    const steps = this.counts[index];
    const { page } = this;
    const text = (option) => {
      const cell = this.at(option, steps);
      if (!cell) return `${NAMES[option]}: coming`;
      if (cell.error) return `${NAMES[option]}: ${cell.error}`;
      const theory = show(this.value(cell, true));
      if (page.state.measure === "alignment") return `${NAMES[option]}: ${theory}`;
      const error = page.state.measure === "test_error" && cell.test_error_se ? ` ± ${show(cell.test_error_se, 2)}` : "";
      const networks = cell.networks === 1 ? "one network" : `${cell.networks} networks`;
      const how = cell.drawn ? "" : " without a draw";
      return `${NAMES[option]}: theory ${theory}${how}; ${networks} ${show(this.value(cell, false))}${error}`;
    };
    return [
      { text: `${steps} step${steps === 1 ? "" : "s"}`, bold: true },
      ...this.options.map((option, i) => ({ colour: colour(page.about, i), text: text(option) })),
    ];
  }

  degreeTip(index) {
    const steps = this.counts[index];
    const cell = this.at(this.followed, steps);
    if (!cell?.coefficients) return [];
    return [
      { text: `${steps} step${steps === 1 ? "" : "s"}`, bold: true },
      ...DEGREES.map((degree, i) => ({
        colour: shade(this.page, i),
        text: `degree ${degree}: ${show(cell.coefficients[degree], 3)} of ${show(cell.target_coefficients[degree], 3)}`,
      })),
    ];
  }

  caption() {
    return `${VERSUS[this.page.state.versus]}; `;
  }

  /** The same as a sweep; optimisers with the rates that were found. */
  spec() {
    const batch = `${MEASURES.test_error} after some steps: ${VERSUS.batch}`;
    if (this.page.state.versus === "batch") return batchSpec(this.page.state, this.options, this.counts, batch);
    const tables = copy(this.page.state.tables);
    const steps = { "training.steps": this.counts.filter((count) => count > 0) };
    const name = `${MEASURES.test_error} after some steps: ${VERSUS[this.page.state.versus]}`;
    const figure = { axes: ["training.steps"] };
    for (const key of ["steps", "batch"]) delete tables.training[key];
    const cells = this.options.map((option) => this.at(option, 1));
    for (const key of ["optimiser", "damping"]) delete tables.training[key];
    if (cells.some((cell) => !cell || cell.error))
      return { name, ...tables, sweep: { "training.optimiser": this.options, ...steps }, figure };
    delete tables.scaling;
    if (cells[0].spread) tables.data.spread = cells[0].spread;
    tables.training.rate = cells[0].rate;
    return {
      name,
      ...tables,
      sweep: { ...steps, zip: { "training.optimiser": this.options, "training.rate": cells.map((cell) => cell.rate) } },
      figure,
    };
  }

  table() {
    const degrees = [0, ...DEGREES];
    const rows = [
      [
        this.page.state.versus,
        "steps",
        "networks",
        "test_error",
        "test_error_se",
        "train_error",
        "theory_test_error",
        "theory_train_error",
        "alignment",
        "rate",
        ...degrees.map((j) => `learned_${j}`),
        ...degrees.map((j) => `target_${j}`),
      ],
    ];
    for (const option of this.options) {
      for (const steps of this.counts) {
        const cell = this.at(option, steps);
        if (!cell || cell.error) continue;
        rows.push([
          option,
          steps,
          cell.networks,
          cell.test_error,
          cell.test_error_se ?? "",
          cell.train_error,
          cell.theory_test ?? "",
          cell.theory_train ?? "",
          cell.alignment ?? "",
          cell.rate,
          ...degrees.map((j) => cell.coefficients?.[j] ?? ""),
          ...degrees.map((j) => cell.target_coefficients?.[j] ?? ""),
        ]);
      }
    }
    return rows;
  }

  destroy() {
    for (const panel of [this.errors, this.bars, this.shape]) panel.destroy();
    this.page.panels.classList.remove("solo", "alone");
  }
}

/** A colour for each degree, apart from those of the curves. */
const shade = (page, i) => colour(page.about, [3, 5, 6][i]);

/** The curve's colour, weaker the fewer steps. */
function faded(page, i, u) {
  const ink = document.createElement("canvas").getContext("2d");
  ink.fillStyle = colour(page.about, i);
  const [r, g, b] = ink.fillStyle.match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
  return `rgb(${r} ${g} ${b} / ${Math.round(35 + 65 * u)}%)`;
}
