// The first scene: a network, one slider, one button. Take the step, and see what it changes.

import { draw, fresh, ink, mixed, say } from "./chart.js";

const SECONDS = 1.4; // of the step, when it is taken

/** Everything that changes at learning rate `rate`, from the rows of the scene. */
export function stateAt({ rows }, rate) {
  let i = rows.findIndex((row) => row.rate > rate) - 1;
  if (i === -2) i = rows.length - 2;
  i = Math.max(i, 0);
  const [a, b] = [rows[i], rows[i + 1]];
  const u = i === 0 ? rate / b.rate : Math.log(rate / a.rate) / Math.log(b.rate / a.rate);
  const share = Math.min(Math.max(u, 0), 1);
  const count = Math.max(a.spikes.length, b.spikes.length);
  const spikes = Array.from({ length: count }, (_, j) => mixed(a.spikes[j] ?? null, b.spikes[j] ?? null, share));
  return {
    rate,
    test_error: mixed(a.test_error, b.test_error, share),
    size: mixed(a.size, b.size, share),
    learned: a.learned.map((v, k) => mixed(v, b.learned[k], share)),
    spikes: spikes.filter((v) => v !== null),
  };
}

/** Cosine of a neuron with the teacher after a step: [w·t, g·t, |w|², w·g, |g|²]. */
export function cosineAt([wt, gt, ww, wg, gg], rate) {
  return (wt + rate * gt) / Math.sqrt(ww + 2 * rate * wg + rate * rate * gg);
}

/** By how much a neuron turns, in degrees. */
export function turnAt([, , ww, wg, gg], rate) {
  const cosine = (ww + rate * wg) / Math.sqrt(ww * (ww + 2 * rate * wg + rate * rate * gg));
  return (180 / Math.PI) * Math.acos(Math.min(1, Math.max(-1, cosine)));
}

/** The learning rate from which on a second spike stands out, between two rows. */
export function secondSpike({ rows }) {
  const i = rows.findIndex(({ spikes }) => spikes.length > 1);
  return Math.sqrt(rows[i - 1].rate * rows[i].rate);
}

/** What is to be said at this moment, and what to try next. */
export function wordsOf(scene, rate, taken) {
  const none = scene.rows[0].test_error;
  const of = `the best constant leaves ${say(scene.label_variance)}`;
  if (!taken) {
    return { said: "Before the step", numbers: `the test error is ${say(none)} (${of}): along the teacher a line is learned.`,
      next: "Next: take the step." };
  }
  const now = stateAt(scene, rate);
  const gain = Math.round(100 * (1 - now.test_error / none));
  const turns = scene.neurons.map((neuron) => turnAt(neuron, rate));
  const turn = turns.reduce((sum, v) => sum + v, 0) / turns.length;
  const said = gain >= 1 ? `The step takes ${gain} % of the test error away` : "The step changes less than 1 % of the test error";
  const count = now.spikes.length;
  const stand = `${count || "no"} spike${count === 1 ? "" : "s"} stand${count === 1 ? "s" : ""} out`;
  const numbers = `${say(now.test_error)} instead of ${say(none)}. Neurons turn by ${say(turn, 2)}° on average, and ${stand}.`;
  const second = scene.borders[0].rate;
  const more = secondSpike(scene);
  const next = rate < second ? `Next: make the step larger than η = ${say(second)}, where degree 2 begins.`
    : rate < more ? `Next: make it larger than η = ${say(more, 2)}, where a second spike leaves the bulk.`
      : "Next: make the step small, and see it do nothing; or go on below.";
  return { said, numbers, next };
}

const node = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

/** Build the scene into `parent`; returns {paint}, to be called when colours or sizes change. */
export function stepScene(parent, scene) {
  parent.classList.add("step-scene");
  const rates = scene.rows.slice(1).map((row) => row.rate);
  const [low, high] = [rates[0], rates[rates.length - 1]];
  const toRate = (u) => low * (high / low) ** u;
  const toPlace = (rate) => Math.log(rate / low) / Math.log(high / low);
  const begin = Math.round(1000 * toPlace(scene.start));
  const slider = node("input", { type: "range", min: 0, max: 1000, step: 5, id: "step-rate", value: begin });
  const value = node("output", { for: "step-rate" });
  const button = node("button", { class: "primary", id: "take-step", type: "button" }, "Take the step");
  const border = node("div", { class: "borders" }, ...scene.borders.map(({ rate, degree }) => {
    const mark = node("span", {}, degree === 2 ? "degree 2" : String(degree));
    mark.style.left = `${100 * toPlace(rate)}%`;
    return mark;
  }));
  const said = node("p", { class: "answer", id: "step-said", "aria-live": "polite" });
  const next = node("p", { class: "next", id: "step-next" });
  const picture = (name, title) => {
    const canvas = node("canvas", { role: "img", "aria-label": title });
    return [canvas, node("figure", { class: `picture ${name}` }, node("figcaption", {}, title), canvas)];
  };
  const [network, networkBox] = picture("network", `${scene.neurons.length} of its ${scene.width} neurons, teacher upwards`);
  const [shape, shapeBox] = picture("shape", "what is learned; dotted: the labels, dashed: no step");
  const [spectrum, spectrumBox] = picture("spectrum", "singular values of the features");
  const [errors, errorsBox] = picture("errors", "test error: theory, and dots of trained networks");
  const slide = node("label", { class: "slide", for: "step-rate" }, "learning rate η = ", value);
  parent.append(
    said,
    node("div", { class: "take" }, button, node("div", { class: "rate" }, slide, slider, border)),
    node("div", { class: "pictures" }, networkBox, shapeBox, spectrumBox, errorsBox), next);

  let [taken, moving] = [0, null];
  const rateNow = () => toRate(Number(slider.value) / 1000);
  function paint() {
    const rate = rateNow();
    const now = stateAt(scene, taken * rate);
    const words = wordsOf(scene, rate, taken === 1);
    value.textContent = say(rate);
    slider.setAttribute("aria-valuetext", `η = ${say(rate)}`);
    said.replaceChildren(node("b", {}, `${words.said}: `), words.numbers);
    next.textContent = words.next;
    button.textContent = taken === 1 ? "Undo the step" : "Take the step";
    document.body.dataset.step = taken === 1 ? "taken" : taken ? "moving" : "before";
    drawNetwork(network, scene, taken * rate);
    drawShape(shape, scene, now);
    drawSpectrum(spectrum, scene, now);
    drawErrors(errors, scene, taken * rate, now);
  }
  function run(to) {
    cancelAnimationFrame(moving);
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const [from, start] = [taken, performance.now()];
    const frame = (time) => {
      const u = calm ? 1 : Math.min(1, Math.max(0, (time - start) / 1000 / SECONDS));
      taken = from + (to - from) * (u < 1 ? u * u * (3 - 2 * u) : 1);
      paint();
      if (u < 1) moving = requestAnimationFrame(frame);
    };
    moving = requestAnimationFrame(frame);
  }
  button.onclick = () => run(taken === 1 ? 0 : 1);
  slider.oninput = () => {
    cancelAnimationFrame(moving);
    if (taken > 0) taken = 1;
    paint();
  };
  new ResizeObserver(paint).observe(parent);
  return { paint };
}

/** Inputs, neurons as needles whose angle is that with the teacher, and the readout. */
function drawNetwork(canvas, scene, rate) {
  const { ctx, width, height } = fresh(canvas);
  const radius = Math.min(0.32 * width, 0.42 * height);
  const [cx, cy] = [0.5 * width, 0.5 * height];
  const [left, right] = [Math.max(16, cx - radius - 0.17 * width), Math.min(width - 20, cx + radius + 0.17 * width)];
  const soft = ink("--soft");
  ctx.strokeStyle = ink("--line");
  ctx.lineWidth = 1;
  for (let i = 0; i < 7; i++) {
    const y = cy + (i - 3) * 0.22 * radius;
    line(ctx, left, y, cx - radius * Math.cos((i - 3) * 0.3), cy + radius * Math.sin((i - 3) * 0.3));
    line(ctx, cx + radius * Math.cos((i - 3) * 0.3), cy + radius * Math.sin((i - 3) * 0.3), right, cy);
    circle(ctx, left, y, 4, soft);
  }
  circle(ctx, right, cy, 8, ink("--ink"));
  ctx.fillStyle = soft;
  ctx.textAlign = "center";
  ctx.fillText("x", left, cy - 0.66 * radius - 12);
  ctx.fillText("f(x)", right, cy - 16);
  ctx.fillStyle = ink("--panel");
  ctx.beginPath();
  ctx.arc(cx, cy, radius, 0, 7);
  ctx.fill();
  ctx.strokeStyle = ink("--line");
  ctx.stroke();
  scene.neurons.forEach((neuron, i) => {
    const cosine = cosineAt(neuron, rate);
    const sine = (i % 2 ? 1 : -1) * Math.sqrt(Math.max(0, 1 - cosine * cosine));
    ctx.strokeStyle = ink(neuron[5] > 0 ? "--c0" : "--c1");
    ctx.lineWidth = 1.5;
    ctx.globalAlpha = 0.8;
    line(ctx, cx, cy, cx + radius * sine, cy - radius * cosine);
  });
  ctx.globalAlpha = 1;
  ctx.fillStyle = ctx.strokeStyle = ink("--ink");
  ctx.lineWidth = 2;
  line(ctx, cx, cy - radius, cx, cy - radius - 14);
  ctx.fillText("teacher", cx + 32, cy - radius - 4);
}

function line(ctx, a, b, c, d) {
  ctx.beginPath();
  ctx.moveTo(a, b);
  ctx.lineTo(c, d);
  ctx.stroke();
}

function circle(ctx, x, y, radius, colour) {
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, 7);
  ctx.fill();
}

function drawShape(canvas, scene, now) {
  const all = [...scene.target, ...scene.rows.flatMap((row) => row.learned)];
  draw(canvas, {
    x: { low: -3, high: 3, title: "position along the teacher" },
    y: { low: Math.min(...all), high: Math.max(...all), title: "mean output" },
    lines: [
      { x: scene.t, y: scene.target, colour: -1, dash: [2, 3] },
      { x: scene.t, y: scene.rows[0].learned, colour: 0, dash: true },
      { x: scene.t, y: now.learned, colour: 0 },
    ],
  });
}

function drawSpectrum(canvas, scene, now) {
  const { values, density, edge } = scene.bulk;
  const most = Math.max(...scene.rows.flatMap((row) => row.spikes), edge);
  const tall = Math.max(...density.filter((_, i) => values[i] > 0.05 * edge));
  draw(canvas, {
    x: { low: 0.1 * edge, high: 1.3 * most, log: true, title: "singular value" },
    y: { low: 0, high: 1.3 * tall, title: "density of the bulk, and spikes", bare: true },
    areas: [areaAbove(values, density, 0.1 * edge)],
    stems: now.spikes.map((x) => ({ x, text: say(x) })),
  });
}

/** The part of a density that a logarithmic axis shows. */
function areaAbove(values, density, low) {
  const from = values.findIndex((v) => v >= low);
  return { x: values.slice(from), y: density.slice(from) };
}

function drawErrors(canvas, scene, rate, now) {
  const { rows, dots } = scene;
  const shown = rows.slice(1);
  const none = dots.rate.indexOf(0);
  const keep = (list) => list.filter((_, i) => i !== none);
  const low = shown[0].rate;
  draw(canvas, {
    x: { low, high: shown[shown.length - 1].rate, log: true, title: "learning rate η of the step" },
    y: { low: 0.5, high: Math.max(...rows.map((row) => row.test_error)) * 1.06, title: "test error" },
    lines: [
      { x: shown.map((row) => row.rate), y: shown.map((row) => row.test_error), colour: 0 },
      { x: [low, shown[shown.length - 1].rate], y: [rows[0].test_error, rows[0].test_error], colour: 0, dash: true },
    ],
    marks: scene.borders.map(({ rate: x, degree }) => ({ x, text: String(degree) })),
    dots: [
      { x: keep(dots.rate), mean: keep(dots.mean), se: keep(dots.se), colour: 0 },
      { x: [Math.max(rate, low)], mean: [now.test_error], colour: 1 },
    ],
    here: rate > low ? rate : null,
  });
}
