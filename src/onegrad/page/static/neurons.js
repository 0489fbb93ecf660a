// View "neurons": where each neuron of the first layer points, before and after the step.

import { colour, el, show } from "./dom.js";
import { Panel, legendMark } from "./plot.js";
import { curveSelect } from "./setting.js";
import { pointOf, pointSpec } from "./specs.js";

export const title = "Neurons";
export const sentence = () =>
  "Every dot is a neuron, at its cosines with two special directions: 0 is orthogonal to it, 1 along it. Random neurons lie " +
  "in a small cloud around 0; a step that matters pulls them out.";

const READOUT = "initial readout";

export class Neurons {
  constructor(page) {
    this.page = page;
    this.chosen = null; // names of the two directions
    this.picks = el("span");
    this.facts = el("span", { id: "neuron-facts" });
    page.options.replaceChildren(...curveSelect(page), this.picks, this.facts);
    const panel = (text, after) => new Panel(page.panels, {
      title: text, xLabel: "", yLabel: "", draw: (u, pen) => this.paintDots(pen, after),
      tip: (index, x) => [{ text: `cosine ${show(x, 2)}`, bold: true }], say: page.say,
    });
    this.panels = [panel("before the step", false), panel("after it", true)];
  }

  refresh(started) {
    const { page } = this;
    page.link.ask("theory", { type: "neurons", spec: pointOf(page.state) }, {
      done: ([found]) => {
        if (found.error) return page.refuse(found.error);
        this.found = found;
        const known = [...found.directions, READOUT];
        if (!this.chosen?.every((name) => known.includes(name))) this.chosen = known.slice(0, 2);
        this.fill(known);
        this.paint();
        page.measure("neurons", started);
        page.settled("accurate", { methods: ["onegrad neurons: one network, drawn"] });
      },
      error: (text) => page.refuse(text),
    });
  }

  fill(known) {
    const select = (k) => el("select", { id: `direction-${k}`, onchange: (event) => {
      this.chosen[k] = event.target.value;
      this.paint();
    } }, ...known.map((name) => el("option", { value: name, selected: name === this.chosen[k] }, name)));
    this.picks.replaceChildren(el("label", {}, "along", select(0)), " ", el("label", {}, "and", select(1)));
  }

  /** Values of all neurons, or of the law, along a chosen direction. */
  along(name, { cosines }, readout) {
    if (name === READOUT) return readout;
    const column = this.found.directions.indexOf(name);
    return cosines.map((row) => row[column]);
  }

  paint() {
    const { before, after, readout, directions, rms, note } = this.found;
    const [a, b] = this.chosen;
    const reach = (name) => {
      const all = [before, after].flatMap((layer) => this.along(name, layer, readout)).map(Math.abs);
      return 1.08 * Math.max(...all, 1e-6);
    };
    const named = (name) => (name === READOUT ? READOUT : `cosine with ${name}`);
    for (const panel of this.panels) {
      panel.rename([named(a), named(b)]);
      panel.show([[-reach(a), reach(a)], [null, null]], {
        series: [{ label: "", stroke: "transparent" }], x: [-reach(a), reach(a)], y: [-reach(b), reach(b)], yLog: false,
      });
      panel.redraw();
    }
    const ringed = this.found.law && !this.chosen.includes(READOUT);
    this.page.legend.replaceChildren(
      legendMark("neuron", "o", colour(this.page.about, 0), true),
      ...(ringed ? [legendMark("law of the theory", "o", colour(this.page.about, 1), false)] : []),
    );
    const listed = directions.map((name, i) => `${name} ${show(rms[0][i], 2)} → ${show(rms[rms.length - 1][i], 2)}`);
    this.facts.textContent = `Root mean square cosine: ${listed.join(", ")}.${note ? ` ${note}` : ""}`;
  }

  paintDots(pen, isAfter) {
    const { before, after, readout, law } = this.found;
    const { ctx, scale } = pen;
    const layer = isAfter ? after : before;
    const [xs, ys] = this.chosen.map((name) => this.along(name, layer, readout));
    ctx.fillStyle = colour(this.page.about, 0);
    ctx.globalAlpha = 0.5;
    xs.forEach((x, i) => {
      ctx.beginPath();
      ctx.arc(pen.x(x), pen.y(ys[i]), 2.2 * scale, 0, 7);
      ctx.fill();
    });
    ctx.globalAlpha = 1;
    if (!isAfter || !law || this.chosen.includes(READOUT)) return;
    ctx.strokeStyle = colour(this.page.about, 1);
    ctx.lineWidth = 1.4 * scale;
    const [lx, ly] = this.chosen.map((name) => this.along(name, law, []));
    const most = Math.max(...law.weights);
    lx.forEach((x, i) => {
      if (x === null || ly[i] === null) return;
      ctx.beginPath();
      ctx.arc(pen.x(x), pen.y(ly[i]), (1.5 + 7 * Math.sqrt(law.weights[i] / most)) * scale, 0, 7);
      ctx.stroke();
    });
  }

  spec() {
    return pointSpec(this.page.state, "neurons before and after the step");
  }

  table() {
    const { directions, before, after, readout } = this.found;
    const rows = [["step", "readout", ...directions]];
    before.cosines.forEach((row, i) => rows.push([0, readout[i], ...row]));
    after.cosines.forEach((row, i) => rows.push(["last", readout[i], ...row]));
    return rows;
  }

  destroy() {
    for (const panel of this.panels) panel.destroy();
  }
}
