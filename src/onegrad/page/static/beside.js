// Beside the curve: the data in the plane of two directions, and what the network has learned of
// them with and without the step, at the current setting.

import { sayAtBox } from "./box_errors.js";
import { colour, css, show } from "./dom.js";
import { Panel, niceRange } from "./plot.js";
import { pointOf } from "./specs.js";
import { classesOf, curveHere, taskOf, valueOf } from "./state.js";
import { doubled, headline } from "./words.js";

export class Beside {
  constructor(page) {
    this.page = page;
    this.data = new Panel(page.panels, {
      title: "the data: samples and their labels",
      small: true,
      xLabel: "",
      yLabel: "",
      draw: (u, pen) => this.drawData(pen),
    });
    this.learned = new Panel(page.panels, {
      title: "what is learned, with and without the step",
      small: true,
      xLabel: "",
      yLabel: "mean output",
      tip: (index) => this.tip(index),
      say: page.say,
    });
    this.show(false);
  }

  /** Ask for the pictures at the current setting; while a slider moves, one after the other. */
  refresh(coarse) {
    const { page } = this;
    if (coarse && this.asked) {
      this.again = true;
      return;
    }
    Object.assign(this, { asked: true, again: false });
    const come = () => {
      this.asked = false;
      if (this.again) this.refresh(true);
    };
    const { direction, component } = page.state;
    page.link.ask(
      "picture",
      { type: "picture", spec: pointOf(page.state), coarse, direction, component },
      {
        done: ([after, before, data, errors, without]) => {
          this.take(after, before, data);
          page.answer(this.words(errors, without, coarse));
          come();
        },
        error: (text) => {
          this.show(false);
          page.answer(null);
          sayAtBox(text, page.state);
          come();
        }, // the axis' own value, perhaps
      },
    );
  }

  take(after, before, data) {
    const known = !after.error && !before.error;
    this.show(!data.error, known);
    if (known) this.paintLearned(after, before);
    if (!data.error) this.paintData(data);
  }

  show(data, learned = data) {
    this.data.node.hidden = !data;
    this.learned.node.hidden = !learned;
    this.page.panels.classList.toggle("alone", !data && !learned);
  }

  /** The headline's question, answered for the current setting by the quantity that is plotted. */
  words(after, before, draft) {
    const { page } = this;
    const { state, about } = page;
    const axis = page.slider(state.axis);
    const [quantity] = state.quantities;
    const said = headline({
      quantity, draft, after, before,
      name: about.quantities[quantity],
      at: { symbol: axis.symbol, value: valueOf(axis, state.tables) },
      steps: state.tables.training.steps ?? 1,
      activation: state.curves.key === "network.activation" && state.curves.values.length > 1 ? state.tables.network.activation : "",
    });
    const line = page.view.lines?.[Math.max(0, curveHere(state))];
    if (said && line) said.numbers += doubled({ key: axis.key, ...line, quantity, at: valueOf(axis, state.tables) });
    return said;
  }

  paintData(data) {
    this.points = data;
    const reach = 1.05 * Math.max(...data.x.map(Math.abs), ...data.y.map(Math.abs));
    this.data.rename([`along ${data.names[0]}`, data.names[1]]);
    this.data.show(
      [
        [-reach, reach],
        [null, null],
      ],
      { series: [{ label: "", stroke: "transparent" }], x: [-reach, reach], y: [-reach, reach], yLog: false },
    );
    this.data.redraw();
  }

  drawData(pen) {
    const { x, y, label } = this.points;
    const size = Math.max(...label.map(Math.abs)) || 1;
    const { tables } = this.page.state;
    const several = taskOf(tables) === "classification" && classesOf(tables) > 2 && !tables.labels.values; // a colour each
    const [low, high, none] = [colour(this.page.about, 0), colour(this.page.about, 1), css("--soft")];
    const { ctx, scale } = pen;
    x.forEach((value, i) => {
      const u = label[i] / size;
      ctx.fillStyle = several ? colour(this.page.about, label[i]) : u === 0 ? none : u < 0 ? low : high;
      ctx.globalAlpha = several ? 0.8 : 0.3 + 0.7 * Math.min(1, Math.sqrt(Math.abs(u)));
      ctx.beginPath();
      ctx.arc(pen.x(value), pen.y(y[i]), (1.5 + 1.3 * Math.sqrt(several ? 0.6 : Math.abs(u))) * scale, 0, 7);
      ctx.fill();
    });
    ctx.globalAlpha = 1;
  }

  /** The colour of the curve at this setting. */
  ink() {
    return colour(this.page.about, Math.max(0, curveHere(this.page.state)));
  }

  paintLearned(after, before) {
    Object.assign(this, { after, before });
    const values = [after.target, before.learned, after.learned];
    const ink = this.ink();
    const series = [
      { label: "target", stroke: css("--ink"), dash: [2, 3], width: 1.3 },
      { label: "without", stroke: ink, dash: [6, 4], width: 1.6 },
      { label: "with", stroke: ink, width: 2.2 },
    ];
    this.learned.rename([
      `position along ${after.direction.replace("spike", "spike of component").replace(/\.\d+$/, "")}`,
      "mean output",
    ]);
    const { y } = niceRange(values.flat());
    this.learned.show([after.t, ...values], { series, y: [Math.min(y[0], ...values.flat()), y[1]], yLog: false });
  }

  tip(i) {
    const ink = this.ink();
    return [
      { text: `at ${show(this.after.t[i], 2)}`, bold: true },
      { text: `target ${show(this.after.target[i], 3)}` },
      { colour: ink, text: `with the step ${show(this.after.learned[i], 3)}` },
      { colour: ink, text: `without it ${show(this.before.learned[i], 3)}` },
    ];
  }

  destroy() {
    this.data.destroy();
    this.learned.destroy();
  }
}
