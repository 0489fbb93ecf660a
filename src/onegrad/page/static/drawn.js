// View "spectrum" where limits take seconds, or are not known: the singular values of one network
// that is drawn, and the limiting density when it comes.

import { colour, css, el, show } from "./dom.js";
import { curveSelect, placeSelect } from "./setting.js";
import { spectrumSpec } from "./specs.js";
import { Panel, legendBlock, legendLine, legendMark } from "./plot.js";

const MATRICES = { features: "features σ(XŴᵀ)/√m", weights: "weights Ŵ" };
const NAMED = 5; // predicted spikes with a name

export class DrawnSpectrum {
  constructor(page) {
    this.page = page;
    page.legend.replaceChildren();
    this.facts = el("span", { id: "spectrum-facts" });
    page.options.replaceChildren(
      ...curveSelect(page),
      ...placeSelect(page),
      this.facts,
      el("button", { id: "go-isotropic", onclick: () => page.task("isotropic") }, "Spikes against the step, on isotropic data"),
    );
    this.panels = Object.fromEntries(
      Object.entries(MATRICES).map(([name, text]) => [
        name,
        new Panel(page.panels, {
          title: `singular values of the ${text}`,
          xLabel: "singular value",
          yLabel: "density",
          under: (u, pen) => this.paintHistogram(pen, name),
          draw: (u, pen) => this.paintSpikes(pen, name),
          tip: (index, x) => [{ text: `singular value ${show(x, 3)}`, bold: true }],
          say: page.say,
        }),
      ]),
    );
  }

  refresh() {
    if (this.page.running.simulation) this.page.stop();
    this.page.later(() => this.simulate());
  }

  simulate() {
    const { page } = this;
    const { compare, ...problem } = page.state.tables;
    this.facts.textContent = "A network is drawn and trained, and its limits computed …";
    const spec = { ...problem, compare: { seed: compare.seed ?? 0 } };
    const started = performance.now();
    page.link.ask("simulation", { type: "draw", spec }, {
      done: ([drawn]) => {
        if (drawn.error) return page.refuse(drawn.error);
        this.drawn = drawn;
        if (page.view !== this) return;
        this.paint();
        page.measure("drawn spectrum", started);
        page.settled("accurate", { methods: ["one network, drawn and trained: onegrad spectrum"] });
      },
      error: (text) => page.refuse(text),
    });
  }

  tell() {
    const { weights, features, note } = this.drawn;
    const count = ({ spikes, counted }, what) => counted
      ? `${spikes.length} outlier${spikes.length === 1 ? "" : "s"} of the ${what}`
      : `outliers of the ${what} are not counted: the edge of the bulk is not known`;
    const why = note ? ` No limits: ${note}.` : "";
    this.facts.textContent = `One network: ${count(features, "features")}; ${count(weights, "weights")}.${why}`;
  }

  paint() {
    const { drawn, page } = this;
    const limit = drawn.weights.limit ?? drawn.features.limit;
    for (const [name, panel] of Object.entries(this.panels)) {
      const part = drawn[name];
      const law = part.limit;
      const reach = Math.max(part.top, ...[...part.spikes, ...(law?.spikes ?? [])].map((s) => 1.15 * s));
      const tall = 1.2 * Math.max(...part.heights.slice(1));
      const data = law
        ? [law.values, law.density.map((d) => Math.min(d, tall))]
        : [
            [0, reach],
            [null, null],
          ];
      panel.show(data, {
        series: [{ label: "limiting density", stroke: law ? colour(page.about, 1) : "transparent", width: 1.8 }],
        x: [0, reach],
        y: [0, tall],
        yLog: false,
      });
      panel.redraw();
    }
    this.tell();
    page.legend.replaceChildren(
      legendBlock("one trained network", colour(page.about, 0), 0.35),
      legendLine("without the step", css("--ink")),
      ...(limit
        ? [
            legendLine("limiting density", colour(page.about, 1)),
            legendMark("spike, predicted, with its largest cosine", "D", colour(page.about, 1), false),
          ]
        : []),
      legendMark("outside of the bulk: a spike of this network", "o", colour(page.about, 1), true),
    );
  }

  paintHistogram(pen, name) {
    const part = this.drawn[name];
    const { ctx } = pen;
    ctx.save();
    ctx.globalAlpha = 0.35;
    ctx.fillStyle = colour(this.page.about, 0);
    part.heights.forEach((height, i) => {
      const [a, b] = [pen.x(part.bins[i]), pen.x(part.bins[i + 1])];
      ctx.fillRect(a, pen.y(height), b - a, pen.y(0) - pen.y(height));
    });
    ctx.globalAlpha = 1;
    ctx.strokeStyle = css("--ink");
    ctx.lineWidth = 1.3 * pen.scale;
    ctx.beginPath();
    part.before.forEach((height, i) => {
      const y = Math.max(pen.y(height), pen.box.top); // what was a bulk may be a line beside the new one
      ctx.lineTo(pen.x(part.bins[i]), y);
      ctx.lineTo(pen.x(part.bins[i + 1]), y);
    });
    ctx.stroke();
    ctx.restore();
  }

  paintSpikes(pen, name) {
    const part = this.drawn[name];
    const at = pen.box.top + 0.93 * pen.box.height;
    for (const value of part.spikes) pen.mark("o", pen.x(value), at, colour(this.page.about, 1), true);
    const { spikes = [], along = [], doubts = [] } = this.drawn[name].limit ?? {};
    spikes.forEach((value, j) => {
      pen.mark("D", pen.x(value), at - 14 * pen.scale, colour(this.page.about, 1), false);
      if (along[j] && j < NAMED) this.nameSpike(pen, value, [...along[j], doubts[j]], j);
    });
  }

  /** What a predicted spike looks at, names of near ones below each other. */
  nameSpike(pen, value, [name, cosine, doubt], j) {
    const { ctx, box, scale } = pen;
    const x = pen.x(value);
    const right = x > box.left + 0.6 * box.width;
    const top = box.top + (0.3 + 0.1 * j) * box.height;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour(this.page.about, 1);
    ctx.lineWidth = scale;
    ctx.setLineDash([2 * scale, 3 * scale]);
    ctx.beginPath();
    ctx.moveTo(x, box.top + 0.87 * box.height);
    ctx.lineTo(x, top);
    ctx.stroke();
    ctx.font = `${12 * scale}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textAlign = right ? "right" : "left";
    ctx.fillText(
      `${name} ${show(cosine, 2)}${doubt ? " (varies by draw)" : ""}`,
      x + (right ? -5 : 5) * scale,
      top + 10 * scale,
    );
    ctx.restore();
  }

  spec() {
    return spectrumSpec(this.page.about, this.page.state);
  }

  table() {
    const rows = [["matrix", "what", "singular_value", "density"]];
    for (const name of Object.keys(MATRICES)) {
      const part = this.drawn?.[name];
      part?.heights.forEach((height, i) =>
        rows.push([name, "histogram", part.bins[i], height], [name, "histogram without the step", part.bins[i], part.before[i]]),
      );
      const law = part?.limit;
      law?.values.forEach((value, i) => rows.push([name, "bulk", value, law.density[i]]));
      law?.spikes.forEach((value) => rows.push([name, "spike predicted", value, ""]));
      part?.spikes.forEach((value) => rows.push([name, "spike found", value, ""]));
    }
    return rows;
  }

  destroy() {
    for (const panel of Object.values(this.panels)) panel.destroy();
  }
}
