// The tour: what the papers say in six steps, each shown on the page itself.

import { $, el } from "./dom.js";
import { withTask } from "./state.js";

const STEPS = [
  ["A two-layer network takes one gradient step on its first layer; then its second layer is fitted by ridge regression. " +
    "The line is its error as the theory predicts it, and no network was trained for it. Here they come: trained networks land on the line.",
  "regression", {}, true],
  ["Two things make learning easier: structure in the data and a large step. Together they have the strength β, which α shares out: " +
    "all of it in the data at α = 0, all in the learning rate at α = 1. The same strength helps far more in the data.",
  "regression", { axis: "scaling.weighting" }],
  ["Why can it be predicted? The network errs exactly like one whose activation is a polynomial. " +
    "The stronger data and step are, the higher its degree, and it rises in steps.",
  "regression", { view: "map", layer: "degree" }],
  ["A small step teaches nothing: the network stays as good as the random features that it began with. " +
    "Only a large learning rate (top right) takes a part of their error away.",
  "regression", { view: "map", layer: "gain" }],
  ["What was learned can be seen in the singular values: noise makes a bulk, and each spike outside of it is one more polynomial degree of the input. " +
    "Press “grow the step” to see them leave.",
  "isotropic", { view: "spectrum" }],
  ["So low degrees are learned first. A degree is learned where the blue bar reaches the dashed outline of the target; " +
    "grey is what random features can do. Move the step exponent α and watch degree 2.",
  "isotropic", { view: "features" }],
];

/** The strip above the plot: an invitation, then one step at a time. */
export function fillTour(page) {
  const strip = $("tour");
  const show = (i) => {
    const [text, task, changes, simulate] = STEPS[i];
    page.open({ ...withTask(page.about, task), ...changes });
    if (simulate) page.view.simulate();
    const last = i === STEPS.length - 1;
    strip.replaceChildren(
      el("p", { "aria-live": "polite" }, el("b", {}, `${i + 1} of ${STEPS.length} `), text),
      el("button", { onclick: () => show(i - 1), disabled: i === 0 }, "Back"),
      el("button", { class: "primary", onclick: () => (last ? invite() : show(i + 1)) }, last ? "Done" : "Next"));
    strip.querySelector(".primary").focus();
  };
  const invite = () => strip.replaceChildren(
    el("p", {}, "New here? What the papers say, in six steps and two minutes."),
    el("button", { id: "tour-start", onclick: () => show(0) }, "Show me"));
  invite();
}
