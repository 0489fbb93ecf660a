// View "features": which polynomial of the input the network has learned, degree by degree.

import { colour, css, el, show } from "./dom.js";
import { curveSelect } from "./setting.js";
import { pointOf, pointSpec } from "./specs.js";
import { Panel, legendBlock, legendLine, niceRange } from "./plot.js";
import { learnedDegrees } from "./words.js";

export const title = "Features";
export const sentence = () =>
  "What the trained network computes along one direction, cut into polynomials: a degree is learned where its blue bar " +
  "reaches the outline of the target, and grey is what the same network can do without the step.";

export class Features {
  constructor(page) {
    this.page = page;
    this.build();
  }

  build() {
    const { page } = this;
    this.direction = el("select", {
      id: "direction",
      onchange: (event) => {
        page.state.direction = event.target.value;
        page.changed("view");
      },
    });
    this.component = el("select", {
      id: "component",
      onchange: (event) => {
        page.state.component = Number(event.target.value);
        page.changed("view");
      },
    });
    this.componentLabel = el("label", {}, "within component", this.component);
    page.options.replaceChildren(...curveSelect(page), el("label", {}, "along", this.direction), this.componentLabel);
    this.bars = new Panel(page.panels, {
      title: "coefficients by degree",
      xLabel: "degree j of the Hermite polynomial",
      yLabel: "coefficient, c·√(j!)",
      xAxis: { splits: () => [0, 1, 2, 3, 4, 5, 6, 7], space: 10 },
      draw: (u, pen) => this.drawBars(pen),
      tip: (index) => this.barTip(index),
      say: page.say,
    });
    this.shape = new Panel(page.panels, {
      title: "the function itself",
      xLabel: "position along the direction, in standard deviations",
      yLabel: "mean output",
      tip: (index) => this.shapeTip(index),
      say: page.say,
    });
  }

  refresh(started) {
    const { page } = this;
    const { direction, component } = page.state;
    const ask = (coarse) =>
      page.link.ask(
        "theory",
        { type: "features", spec: pointOf(page.state), coarse, direction, component },
        {
          done: ([after, before]) => {
            if (after.error || before.error) return page.refuse(after.error ?? before.error);
            Object.assign(this, { after, before });
            this.paint();
            page.answer({ ...learnedDegrees(after), draft: coarse });
            page.measure(coarse ? "first features" : "accurate features", started);
            const drawn = after.components > 1 && after.method.includes("drawn"); // the same at any accuracy
            page.settled(coarse && !drawn ? "coarse" : "accurate", { methods: [after.method] });
            if (coarse && !drawn) page.later(() => ask(false));
          },
          error: (text) => page.refuse(text),
        },
      );
    ask(true);
  }

  paint() {
    const { after, before, page } = this;
    const fill = (select, values, chosen, text) =>
      select.replaceChildren(...values.map((v) => el("option", { value: v, selected: v === chosen }, text(v))));
    if (document.activeElement !== this.direction)
      fill(this.direction, after.directions, after.direction, (name) =>
        name.replace("spike", "spike of component").replace(".", ", no. "),
      );
    const components = Array.from({ length: after.components }, (_, i) => i);
    if (document.activeElement !== this.component)
      fill(this.component, components, Math.min(page.state.component, after.components - 1), (i) => String(i + 1));
    this.componentLabel.hidden = after.components === 1;
    const degrees = after.learned_coefficients.map((_, j) => j);
    const all = [...after.learned_coefficients, ...before.learned_coefficients, ...after.target_coefficients, 0];
    const { y } = niceRange(all);
    const low = Math.min(0, ...all) < 0 ? y[0] : 0;
    this.bars.show([degrees, after.learned_coefficients], {
      series: [{ label: "", width: 0, stroke: "transparent" }],
      x: [-0.6, degrees.length - 0.4],
      y: [low, y[1]],
      yLog: false,
    });
    this.bars.redraw();
    const [grey, blue] = [css("--soft"), colour(page.about, 0)];
    const values = [after.target, before.learned, after.learned];
    const series = [
      { label: "target", stroke: css("--ink"), dash: [6, 4] },
      { label: "before", stroke: grey, width: 1.6 },
      { label: "after", stroke: blue, width: 2.4 },
    ];
    this.shape.show([after.t, ...values], {
      series,
      y: niceRange(values.flat()).y.map((v, i) => (i === 0 ? Math.min(v, ...values.flat()) : v)),
      yLog: false,
    });
    page.legend.replaceChildren(
      legendLine("target E[y | t]", css("--ink"), [6, 4]),
      legendBlock("learned, after the step", blue),
      legendBlock("without the step", grey, 0.6),
    );
  }

  drawBars(pen) {
    const { after, before } = this;
    const { ctx } = pen;
    const width = pen.x(1) - pen.x(0);
    const zero = pen.y(0);
    const bar = (j, value, from, to, paint) =>
      paint(pen.x(j) + from * width, Math.min(zero, pen.y(value)), (to - from) * width, Math.abs(pen.y(value) - zero));
    after.learned_coefficients.forEach((value, j) => {
      ctx.fillStyle = colour(this.page.about, 0);
      bar(j, value, -0.3, 0.06, (...box) => ctx.fillRect(...box));
      ctx.globalAlpha = 0.6;
      ctx.fillStyle = css("--soft");
      bar(j, before.learned_coefficients[j], 0.1, 0.3, (...box) => ctx.fillRect(...box));
      ctx.globalAlpha = 1;
      ctx.strokeStyle = css("--ink");
      ctx.lineWidth = 1.4 * pen.scale;
      ctx.setLineDash([5 * pen.scale, 3 * pen.scale]);
      bar(j, after.target_coefficients[j], -0.36, 0.36, (...box) => ctx.strokeRect(...box));
      ctx.setLineDash([]);
    });
    ctx.strokeStyle = css("--soft");
    ctx.lineWidth = pen.scale;
    ctx.beginPath();
    ctx.moveTo(pen.box.left, zero);
    ctx.lineTo(pen.box.left + pen.box.width, zero);
    ctx.stroke();
  }

  barTip(j) {
    const { after, before } = this;
    return [
      { text: `degree ${j}`, bold: true },
      { text: `target ${show(after.target_coefficients[j], 3)}` },
      { colour: colour(this.page.about, 0), text: `after the step ${show(after.learned_coefficients[j], 3)}` },
      { colour: css("--soft"), text: `without it ${show(before.learned_coefficients[j], 3)}` },
    ];
  }

  shapeTip(i) {
    const { after, before } = this;
    return [
      { text: `t = ${show(after.t[i], 2)}`, bold: true },
      { text: `target ${show(after.target[i], 3)}` },
      { colour: colour(this.page.about, 0), text: `after the step ${show(after.learned[i], 3)}` },
      { colour: css("--soft"), text: `without it ${show(before.learned[i], 3)}` },
    ];
  }

  /** What a picture has to say beyond the settings. */
  caption() {
    const where =
      this.after.components > 1 ? ` within component ${Math.min(this.page.state.component, this.after.components - 1) + 1}` : "";
    return `along ${this.after.direction}${where}; `;
  }

  spec() {
    return pointSpec(this.page.state, "what is learned along one direction");
  }

  table() {
    const { after, before } = this;
    const rows = [["what", "at", "target", "after_step", "without_step"]];
    after.learned_coefficients.forEach((value, j) =>
      rows.push(["coefficient", j, after.target_coefficients[j], value, before.learned_coefficients[j]]),
    );
    after.t.forEach((t, i) => rows.push(["function", t, after.target[i], after.learned[i], before.learned[i]]));
    return rows;
  }

  destroy() {
    this.bars.destroy();
    this.shape.destroy();
  }
}
