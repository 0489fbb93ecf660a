// View "start": one network, one slider, one button. Its numbers are those of the story's first scene.

import { el } from "./dom.js";
import { pointSpec } from "./specs.js";
import { copy } from "./state.js";
import { stepScene } from "./step_scene.js";

export const title = "One step";
export const sentence = () => "A network, one slider and one button: take the step, and see what it changes.";

let known = null; // the scene, once it has been read

export class Start {
  constructor(page) {
    this.page = page;
    page.options.replaceChildren();
    page.legend.replaceChildren();
    this.home = el("div", { class: "start" });
    page.panels.append(this.home);
    page.panels.classList.add("alone-start");
  }

  async refresh() {
    const { page } = this;
    known ??= (await (await fetch("story.json")).json()).scenes[0];
    if (page.view !== this || this.home.firstChild) return;
    const sizes = `${known.inputs} inputs, ${known.width} neurons, ${known.samples} samples`;
    const about = `${sizes}; labels: a line and a parabola along one direction. Dots are means of ten trained networks.`;
    this.scene = stepScene(this.home, known);
    const all = el("button", { id: "all-settings", onclick: () => this.go() }, "All settings of this network");
    const story = el("a", { class: "button", href: "story.html" }, "Go on: seven scenes");
    this.home.append(el("p", { class: "buttons" }, all, " ", story), el("p", { class: "help" }, about));
    page.settled("accurate", { methods: ["computed beforehand"] });
  }

  rate() {
    const place = Number(document.getElementById("step-rate").value) / 1000;
    const rates = known.rows.slice(1).map((row) => row.rate);
    return rates[0] * (rates[rates.length - 1] / rates[0]) ** place;
  }

  /** The same network at this learning rate, with every control. */
  tables() {
    const { about } = this.page;
    const tables = copy(about.tasks[Object.keys(about.tasks)[0]].tables);
    if (known) tables.scaling.exponent = Number((Math.log(this.rate()) / Math.log(known.samples)).toFixed(3));
    return tables;
  }

  go() {
    const tables = this.tables();
    this.page.task(Object.keys(this.page.about.tasks)[0], { view: "curve", tables });
  }

  spec() {
    return pointSpec({ tables: this.tables() }, "one step");
  }

  table() {
    return [["learning_rate", "test_error"], ...known.rows.map(({ rate, test_error }) => [rate, test_error])];
  }

  destroy() {
    this.home.remove();
    this.page.panels.classList.remove("alone-start");
  }
}
