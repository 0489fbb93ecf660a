// View "spectrum": the bulk of singular values, and the spikes that the step pushes out of it.

import { colour, css, el, show } from "./dom.js";
import { DrawnSpectrum } from "./drawn.js";
import { Panel, legendBlock, legendLine, legendMark, niceRange } from "./plot.js";
import { curveSelect, placeSelect } from "./setting.js";
import { spectrumSpec } from "./specs.js";
import { axisValues, setKey, valueOf, written } from "./state.js";

export const title = "Spectrum";
export const sentence = () =>
  "Random weights give a bulk of singular values; what the gradient step has learned stands out as spikes, " +
  "one more polynomial degree each time the step is large enough. The degree ℓ is the rule for ever more inputs; " +
  "at these sizes its spike may come later.";

const MATRICES = { features: "features σ(XŴᵀ)/√m", weights: "weights Ŵ" };

/** Whether the limits are closed forms: one step of gradient descent on isotropic data. */
function inClosedForm({ data, labels, network, training }) {
  return (
    data.model === "isotropic" &&
    !data.spectrum &&
    network.convention === "isotropic" &&
    (labels?.model ?? "single-index") === "single-index" &&
    (training.steps ?? 1) === 1 &&
    (training.optimiser ?? "gd") === "gd"
  );
}

/** The limits where they come at once, one drawn network and its limits later where not; another
 * view as soon as a setting asks for it. */
export function View(page) {
  const isClosed = () => inClosedForm(page.state.tables) && page.unlimited !== JSON.stringify(page.state.tables);
  const closed = isClosed();
  const view = closed ? new Spectrum(page) : new DrawnSpectrum(page);
  const refresh = view.refresh.bind(view);
  view.refresh = (started) => (isClosed() === closed ? refresh(started) : page.rebuild(started));
  return view;
}

class Spectrum {
  constructor(page) {
    this.page = page;
    this.build();
  }

  build() {
    const { page } = this;
    page.options.replaceChildren();
    page.legend.replaceChildren();
    this.play = el("button", { id: "play", onclick: () => this.animate() }, "▶ grow the step");
    page.options.append(...curveSelect(page), ...placeSelect(page), this.play, el("span", { id: "spectrum-facts" }));
    this.panels = Object.fromEntries(
      Object.entries(MATRICES).map(([name, text]) => [
        name,
        new Panel(page.panels, {
          title: `singular values of the ${text}`,
          xLabel: "singular value",
          yLabel: "density",
          under: (u, pen) => this.drawHistogram(pen, name),
          draw: (u, pen) => this.drawSpikes(pen, name),
          tip: (index, x) => this.tip(name, x),
          say: page.say,
        }),
      ]),
    );
    this.path = new Panel(page.panels, {
      title: "where the features' spikes stand as the step grows",
      wide: true,
      low: true,
      xLabel: "step exponent τ of η = c·m^τ",
      yLabel: "singular value",
      draw: (u, pen) => this.drawNow(pen),
      tip: (index) => this.pathTip(index),
      say: page.say,
    });
  }

  refresh(started) {
    const { page } = this;
    const slider = page.slider("scaling.exponent");
    const alphas = axisValues(slider, null, 27, page.state.tables);
    const { compare, ...problem } = page.state.tables;
    const spec = { ...problem, compare: { models: ["theory"] } };
    const setting = JSON.stringify(problem);
    if (setting !== this.setting) {
      this.drawn = null;
      if (page.running.simulation) page.stop(); // it would come too late
    }
    this.setting = setting;
    // the path does not depend on the exponent itself: asked for once per setting
    const rest = JSON.stringify({
      ...problem,
      scaling: { ...problem.scaling, exponent: 0 },
      training: { ...problem.training, rate: 0 },
    });
    const wanted = rest !== this.rest;
    const scaling = { constant: problem.scaling?.constant ?? 1, exponent: problem.scaling?.exponent ?? 0.3 };
    if (wanted) {
      const { rate, ...training } = problem.training;
      spec.training = rate === undefined || rate > 0 ? problem.training : training;
      if (problem.scaling?.exponent !== undefined)
        spec.sweep = { "scaling.exponent": alphas.map((x) => written(slider, x, problem)) };
      else spec.scaling = scaling;
    }
    const path = [];
    page.link.ask(
      "theory",
      { type: "spectrum", spec, coarse: true },
      {
        part: (index, value) => {
          if (index === 0) {
            if (value.error) return;
            this.now = value;
            this.paint();
            page.measure("first spectrum", started);
          } else path[index - 1] = value;
        },
        done: ([now]) => {
          if (now.error) {
            page.unlimited = JSON.stringify(page.state.tables); // a step beyond the limits: one network is drawn
            return page.rebuild(started);
          }
          if (path.length) {
            this.rest = rest;
            this.alphas = alphas;
            this.steps = path;
            this.paintPath();
          }
          page.settled("accurate", { methods: ["limiting laws of the bulk, spikes at this step"] });
        },
        error: (text) => page.refuse(text),
      },
    );
    if (this.steps) this.path.redraw();
  }

  paint() {
    const { now, page } = this;
    for (const [name, panel] of Object.entries(this.panels)) {
      const part = now[name];
      const found = this.drawn?.[name];
      const far = Math.max(
        1.25 * part.edge,
        ...part.spikes.map((s) => 1.25 * s),
        ...(found?.spikes ?? []).map((s) => 1.25 * s),
      );
      // the axis only grows in steps, so that spikes are seen to move
      const reach = part.edge * 1.25 * 2 ** Math.max(0, Math.ceil(Math.log2(far / (1.25 * part.edge))));
      this.scale(panel, name, reach > 3.2 * part.edge);
      const tall = Math.max(...part.density.filter((_, i) => i > 3), ...(found?.heights.slice(1) ?? []));
      panel.show([part.values, part.density.map((d) => Math.min(d, 1.1 * tall))], {
        series: [{ label: "limiting density", stroke: css("--ink"), width: 1.8 }],
        x: [0, reach],
        y: [0, 1.22 * tall],
        yLog: false,
      });
      panel.redraw();
    }
    this.tell();
    page.legend.replaceChildren(
      legendLine("limiting density", css("--ink")),
      legendLine("spike, predicted", colour(page.about, 1)),
      ...(this.drawn
        ? [
            legendBlock("one trained network", colour(page.about, 0), 0.35),
            legendMark("spike found in it", "o", colour(page.about, 0), true),
          ]
        : []),
    );
  }

  /** How many spikes there are, and from which step on a second one. */
  tell() {
    const { now } = this;
    const count = now.features.spikes.length;
    const counted = `${spikes(count, "feature")}, ${spikes(now.weights.spikes.length, "weight")}`;
    const said = `η = ${show(now.rate, 3)}: ${counted}; degree ℓ = ${now.degree}${this.second ?? ""}`;
    document.getElementById("spectrum-facts").textContent = said;
  }

  /** Linear, unless spikes are far away: then compressed beyond the bulk, and named so. */
  scale(panel, name, compressed) {
    panel.rename([compressed ? "singular value (compressed scale)" : "singular value", "density"]);
    Object.assign(
      panel.options,
      compressed
        ? { xAsinh: 3, xAxis: { splits: () => this.ticks(name), filter: (u, s) => s } }
        : { xAsinh: undefined, xAxis: {} },
    );
  }

  /** Even steps over the bulk, 1-2-5 beyond. */
  ticks(name) {
    const [, high] = this.panels[name].x;
    const edge = this.now[name].edge;
    const step = edge > 4 ? 2 : edge > 1.6 ? 1 : 0.5;
    const ticks = [];
    for (let v = 0; v < Math.min(high, edge * 1.2); v += step) ticks.push(v);
    for (const v of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000])
      if (v > 1.25 * Math.max(...ticks) && v < high) ticks.push(v);
    return ticks;
  }

  paintPath() {
    const from = this.steps.findIndex((step) => step.features?.length > 1);
    const [low, high] = [from - 1, from].map((i) => show(this.alphas[i], 3));
    this.second = from > 0
      ? `. A second feature spike appears between τ = ${low} and ${high}`
      : ". No step here makes a second feature spike";
    this.tell();
    const most = Math.max(1, ...this.steps.map((step) => step.features?.length ?? 0));
    const lines = Array.from({ length: most }, (_, j) => this.steps.map((step) => step.features?.[j] ?? null));
    const edge = this.alphas.map(() => this.now.features.edge);
    const series = [
      { label: "edge of the bulk", stroke: css("--soft"), width: 1.2, dash: [5, 4] },
      ...lines.map((_, j) => ({
        label: `spike ${j + 1}`,
        stroke: colour(this.page.about, 1),
        width: 2,
        spanGaps: false,
        points: { show: true, size: 4 },
      })),
    ];
    this.path.show([this.alphas, edge, ...lines], {
      series,
      ...niceRange([...lines.flat().filter((v) => v !== null), 0.85 * this.now.features.edge]),
    });
  }

  drawSpikes(pen, name) {
    const part = this.now[name];
    const { ctx, box, scale } = pen;
    const stem = (x, ink, dash, text, j = 0) => {
      const top = box.top + (0.25 + 0.17 * j) * box.height; // labels of near spikes stand below each other
      const px = pen.x(x);
      ctx.strokeStyle = ctx.fillStyle = ink;
      ctx.lineWidth = 2.4 * scale;
      ctx.setLineDash(dash);
      ctx.beginPath();
      ctx.moveTo(px, box.top + box.height);
      ctx.lineTo(px, top);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.font = `${12.5 * scale}px ${getComputedStyle(document.body).fontFamily}`;
      const right = px > box.left + 0.8 * box.width;
      ctx.textAlign = right ? "right" : "left";
      text.forEach((line, i) => ctx.fillText(line, px + (right ? -6 : 6) * scale, top + (i + 1) * 15 * scale));
    };
    part.spikes.forEach((value, j) => {
      stem(
        value,
        colour(this.page.about, 1),
        [],
        [show(value, 3), ...(part.cosines ? [learned(part.cosines[j])] : [])],
        Math.min(j, 3),
      );
    });
    for (const value of this.drawn?.[name].spikes ?? [])
      pen.mark("o", pen.x(value), box.top + 0.96 * box.height, colour(this.page.about, 0), true);
  }

  drawHistogram(pen, name) {
    const drawn = this.drawn?.[name];
    if (!drawn) return;
    const { ctx } = pen;
    ctx.save();
    ctx.globalAlpha = 0.35;
    ctx.fillStyle = colour(this.page.about, 0);
    drawn.heights.forEach((height, i) => {
      const [a, b] = [pen.x(drawn.bins[i]), pen.x(drawn.bins[i + 1])];
      ctx.fillRect(a, pen.y(height), b - a, pen.y(0) - pen.y(height));
    });
    ctx.restore();
  }

  drawNow(pen) {
    const alpha = valueOf(this.page.slider("scaling.exponent"), this.page.state.tables);
    if (alpha === null) return;
    const { ctx, box } = pen;
    ctx.strokeStyle = colour(this.page.about, 0);
    ctx.lineWidth = 1.5 * pen.scale;
    ctx.beginPath();
    ctx.moveTo(pen.x(alpha), box.top);
    ctx.lineTo(pen.x(alpha), box.top + box.height);
    ctx.stroke();
  }

  tip(name, x) {
    const part = this.now[name];
    const near = part.spikes.findIndex((s) => Math.abs(s - x) < 0.06 * x);
    const lines = [{ text: `singular value ${show(x, 3)}`, bold: true }];
    if (near >= 0) {
      lines.push({ colour: colour(this.page.about, 1), text: `spike at ${show(part.spikes[near])}` });
      part.cosines?.[near]
        .slice(0, 5)
        .forEach((c, k) => c > 0.05 && lines.push({ text: `cosine with ${k ? `H${sub(k)}` : "the constant"}: ${show(c, 2)}` }));
      if (name === "weights") lines.push({ text: `cosine with the teacher: ${show(part.teacher_cosine, 2)}` });
    } else if (x > part.edge) lines.push({ text: `beyond the bulk, which ends at ${show(part.edge, 3)}` });
    return lines;
  }

  pathTip(index) {
    const spikes = this.steps[index].features ?? [];
    return [
      { text: `τ = ${show(this.alphas[index])}`, bold: true },
      ...spikes.map((s, j) => ({ colour: colour(this.page.about, 1), text: `spike ${j + 1}: ${show(s)}` })),
      ...(spikes.length ? [] : [{ text: "no spike" }]),
    ];
  }

  /** Let the exponent run through its range. */
  animate() {
    const { page } = this;
    if (this.running) {
      clearInterval(this.running);
      this.running = null;
      this.play.textContent = "▶ grow the step";
      return;
    }
    const slider = page.slider("scaling.exponent");
    let alpha = slider.low;
    this.play.textContent = "◼ stop";
    this.running = setInterval(() => {
      setKey(page.state.tables, "scaling.exponent", Number(alpha.toFixed(3)));
      page.changed("value");
      alpha += 0.012;
      if (alpha > slider.high) this.animate();
    }, 110);
  }

  simulate() {
    const { page } = this;
    const { compare, ...problem } = page.state.tables;
    page.link.ask(
      "simulation",
      { type: "draw", spec: { ...problem, compare: { seed: compare.seed ?? 0 } } },
      {
        part: (index, value) => {
          if (value.error) return page.refuse(value.error);
          this.drawn = value;
          if (page.view === this) this.paint();
        },
        error: (text) => page.refuse(text),
      },
    );
  }

  spec() {
    return spectrumSpec(this.page.about, this.page.state);
  }

  table() {
    const rows = [["matrix", "what", "singular_value", "density"]];
    for (const name of Object.keys(MATRICES)) {
      const part = this.now?.[name];
      part?.values.forEach((v, i) => rows.push([name, "bulk", v, part.density[i]]));
      part?.spikes.forEach((v) => rows.push([name, "spike predicted", v, ""]));
      this.drawn?.[name].spikes.forEach((v) => rows.push([name, "spike found", v, ""]));
      this.drawn?.[name].heights.forEach((h, i) => rows.push([name, "histogram", this.drawn[name].bins[i], h]));
    }
    return rows;
  }

  destroy() {
    clearInterval(this.running);
    for (const panel of [...Object.values(this.panels ?? {}), this.path]) panel?.destroy();
  }
}

const spikes = (count, of) => `${count} ${of} spike${count === 1 ? "" : "s"}`;

const sub = (k) => "₀₁₂₃₄₅₆₇₈₉"[k];

/** The polynomial that a spike is closest to. */
function learned(cosines) {
  const degrees = cosines.slice(1);
  const best = Math.max(...degrees);
  return `≈ H${sub(1 + degrees.indexOf(best))} (${show(best, 2)})`;
}
