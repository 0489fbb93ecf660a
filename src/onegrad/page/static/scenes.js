// The words of the story, and a scene of curves with its sliders.

import { between, draw, positionOf, rowAt, say, valueAt } from "./chart.js";

/** A word with its definition: shown when it is pointed at or has the focus. */
const term = (word, meaning) => `<dfn tabindex="0" data-tip="${meaning}" aria-label="${word}: ${meaning}">${word}</dfn>`;

const STEP = term("step", "one step of gradient descent on the squared error, for the weights of the first layer only");
const NEURONS = term("neurons", "each has n weights and gives σ(w·x), one feature of the input");
const READOUT = term("second layer", "the weights a of f(x) = Σ aᵢ σ(wᵢ·x), fitted by ridge regression on new samples");
const TEACHER = term("teacher", "the direction of the input that the labels depend on");
const RIDGE = term("ridge λ", "the penalty λ|a|² on the weights of the second layer");
const VAR = term("Var y", "the variance of the labels: the error of the best constant");
const STRENGTH = term("strength β", "the exponent of the step: η = m^(β/2) for m samples, so β = 1 is as large as √m");
const SPIKE = term("spike", "a singular value outside of the bulk that random weights give");
const SIZE = term("size of the step", "what the step adds to a neuron's input, over what was there before: near 0 nothing changes");

export const WORDS = {
  step: {
    title: "What one step does",
    text: `<p>A network with two layers meets labels that depend on one direction, the ${TEACHER}: a line plus a parabola. Its
      ${NEURONS} are random, so nearly orthogonal to the teacher: with 300 inputs almost every direction is. Then the first layer
      makes one ${STEP} of gradient descent, and the ${READOUT} is fitted.</p>`,
  },
  degrees: {
    title: "Low degrees come first",
    text: `<p>Here the labels have degrees 1, 2 and 3. The line is learned without any step. In the limit of large networks
      degree 2 begins when the ${STRENGTH} passes ½, degree 3 at ⅔, the next at ¾. Real networks are blurred: at n = 100 degree 2
      creeps in from the start; at n = 3000 it waits, and a little of degree 3 comes after ⅔.</p>`,
    ask: "At which β does degree 3 begin when n = 3000, and does it at n = 300?",
  },
  spikes: {
    title: "What was learned stands out",
    text: `<p>Singular values of the features of random neurons form a bulk. The step adds one direction to all weights; the
      activation makes one ${SPIKE} of it for each degree. Dots are the spikes of one trained network of 300 inputs, each found
      without knowing the theory.</p>`,
    ask: "Where does the second spike appear, and does it need more samples?",
  },
  published: {
    title: "The theory meets the published networks",
    text: `<p>Crosses are what Demir and Dogan published: errors of networks that they trained, on data of two clouds. Lines are
      the theory, in units of ${VAR}. They drew one data set for the whole figure, which moves a whole curve up or down. At
      the dashed line a network is as good as the best constant: tanh is always worse here, relu where the network is
      narrow.</p>`,
    ask: "Which activation is never worse than a constant?",
  },
  nothing: {
    title: "Why the step does nothing there",
    text: `<p>In that figure the strength β is shared: θ = n^(β(1−α)) stretches the data, η = n^(βα) is the learning rate. The
      labels depend on a random direction, not on the stretched one. The ${SIZE} is written below: with half of the strength in
      the step (α = ½) it is near zero for every β, so the lines with and without the step lie on each other. Labels shrink as
      the data are stretched, so the plain error falls along β; in units of ${VAR} hardly anything is learned. Put all of the
      strength into the step (α = 1), and the lines part. Put all of it into the data (α = 0), and the error falls too, but with
      and without the step alike: there the data help, not the step.</p>`,
    ask: "From which size of the step on do the two lines part?",
  },
  widths: {
    title: "Wider is not always better",
    text: `<p>No step at all here. When the width k meets the number of samples m, the fit has just enough freedom to repeat every
      noisy label, and the error explodes; beyond, it falls again. A larger ${RIDGE} takes the peak away.</p>`,
    ask: "Which ridge is best at k = m?",
  },
  samples: {
    title: "More samples, or a step?",
    text: `<p>Both networks get the same samples in all. One spends all of them on its second layer (dashed): more samples help
      it slowly, because random neurons hardly see the parabola. The other spends half of them on a ${STEP}, and with a large one
      it learns most of the parabola with the rest.</p>`,
    ask: "Can more samples replace the step?",
  },
};

const made = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};

/** What the scene says at a place: the effect of the step, or its lines. */
export function sayScene(scene, positions, here) {
  const at = positionOf(scene.x, here);
  const [i, j, u] = between(at, scene.x.values.length);
  const read = (grid) => {
    const row = rowAt(grid, positions, scene.y.log);
    return row[i] === null || row[j] === null ? (row[u < 0.5 ? i : j] ?? null) : row[i] + (row[j] - row[i]) * u;
  };
  const where = `At ${scene.x.symbol} = ${say(here)}`;
  const facts = (scene.facts ?? []).map(({ name, y }) => `${name} ${say(read(y))}`).join(", ");
  if (scene.gain) {
    const [after, before] = scene.gain.map((k) => read(scene.lines[k].y));
    const gain = 1 - after / before;
    const did = Math.abs(gain) < 0.005 ? "the step changes less than 0.5 %"
      : `the step ${gain > 0 ? `takes ${Math.round(100 * gain)} %` : `adds ${Math.round(-100 * gain)} %`} ${gain > 0 ? "away" : ""}`.trim();
    return { said: `${where} ${did}`, numbers: `${scene.what} ${say(after)} with it, ${say(before)} without${facts ? `; ${facts}` : ""}.` };
  }
  const values = scene.lines.filter(({ colour }) => colour >= 0).map(({ label, y }) => [label, read(y)]);
  const listed = values.filter(([, v]) => v !== null).map(([label, v]) => `${label} ${say(v)}`);
  return { said: where, numbers: `${listed.join(", ") || "nothing stands out"}${facts ? `; ${facts}` : ""}.` };
}

/** Build a scene of curves into `parent`. */
export function curveScene(parent, scene) {
  const said = made("p", { class: "answer", "aria-live": "polite" });
  const name = `${scene.y.title} against ${scene.x.title}; arrow keys move the reading line`;
  const canvas = made("canvas", { role: "img", tabindex: 0, "aria-label": name });
  const legend = made("p", { class: "legend" });
  const controls = made("div", { class: "sliders" });
  const last = scene.x.values.length - 1;
  let place = scene.here === undefined ? 0.62 * last : positionOf(scene.x, scene.here);
  const sliders = scene.sliders.map((slider, k) => {
    const id = `${scene.id}-slider-${k}`;
    const max = slider.values.length - 1; // it stops at the computed values only
    const input = made("input", { type: "range", id, min: 0, max, step: 1, value: slider.start, list: `${id}-marks` });
    const value = made("output", { for: id });
    const marks = made("datalist", { id: `${id}-marks` }, ...slider.values.map((_, i) => made("option", { value: i })));
    input.oninput = paint;
    controls.append(made("label", { class: "slide", for: id }, `${slider.title} ${slider.symbol} = `, value), input, marks);
    return { slider, input, value };
  });
  parent.append(said, controls, legend, canvas);
  const x = { ...ends(scene.x), title: `${scene.x.title} ${scene.x.symbol}` };
  let scales = null;

  function paint() {
    const positions = sliders.map(({ input }) => Number(input.value));
    for (const { slider, input, value } of sliders) {
      value.textContent = say(valueAt(slider, Number(input.value)));
      input.setAttribute("aria-valuetext", value.textContent);
    }
    const here = valueAt(scene.x, place);
    const words = sayScene(scene, positions, here);
    said.replaceChildren(made("b", {}, `${words.said}: `), words.numbers);
    const dots = (scene.dots ?? []).map((group) => ({ ...group, alpha: nearness(group.at, positions) })).filter(({ alpha }) => alpha > 0);
    const lines = scene.lines.map((line) => ({ ...line, x: scene.x.values, y: rowAt(line.y, positions, scene.y.log) }));
    scales = draw(canvas, { x, y: scene.y, lines, dots, marks: scene.marks ?? [], here });
    const shown = [...scene.lines, ...uniqueLabels(scene.dots ?? [])];
    legend.replaceChildren(...shown.map(({ label, colour, dash, mean, cross }) => made("span", {
      class: mean ? (cross ? "cross" : "dot") : dash ? "dash" : "line", style: `--mine: var(${colour < 0 ? "--soft" : `--c${colour % 6}`})`,
    }, label)));
  }
  const move = (event) => {
    if (!scales || (event.type === "pointermove" && !event.buttons && event.pointerType !== "mouse")) return;
    const u = (event.offsetX - scales.box.left) / (scales.box.right - scales.box.left);
    const { low, high, log } = x;
    const value = log ? low * (high / low) ** u : low + (high - low) * u;
    place = positionOf(scene.x, Math.min(high, Math.max(low, value)));
    paint();
  };
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerdown", move);
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 0.25, ArrowLeft: -0.25, Home: -1e9, End: 1e9 }[event.key];
    if (!step) return;
    event.preventDefault();
    place = Math.min(last, Math.max(0, place + step));
    paint();
  });
  new ResizeObserver(paint).observe(canvas);
  return { paint };
}

const ends = ({ values, log }) => ({ low: Math.min(...values), high: Math.max(...values), log });

const uniqueLabels = (dots) => dots.filter(({ label }, i) => dots.findIndex((other) => other.label === label) === i);

/** Dots belong to one value of each slider: they fade as the sliders leave it. */
export function nearness(at, positions) {
  const far = Math.max(...positions.map((position, k) => Math.abs(position - (at[k] ?? position))));
  return Math.max(0, 1 - 2.5 * far);
}
