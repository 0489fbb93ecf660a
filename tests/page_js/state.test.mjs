// node --test tests/page_js: state, specs, words and formulas, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inUnits } from "../../src/onegrad/page/static/box_errors.js";
import { FORMULAS, mathml } from "../../src/onegrad/page/static/formulas.js";
import { placeOf, pointOf, stepSweep, sweepOf } from "../../src/onegrad/page/static/specs.js";
import { applies, axisValues, samplesOf, setInputs, setKey, shown, written } from "../../src/onegrad/page/static/state.js";
import { doubled, headline, learnedDegrees } from "../../src/onegrad/page/static/words.js";

const at = { symbol: "β", value: 0.9 };

test("the headline speaks of the plotted quantity", () => {
  const after = { test_error: 0.97, misclassification: 0.223, rate: 10 };
  const before = { test_error: 0.83, misclassification: 0.3, rate: 0 };
  const wrong = headline({ quantity: "misclassification", name: "misclassification", after, before, at });
  assert.equal(wrong.said, "At β = 0.9 one step takes 26 % of the misclassification away:");
  assert.equal(wrong.numbers, "22.3 % with it, 30 % without.");
  const squares = headline({ quantity: "test_error", name: "test error (MSE)", after, before, at });
  assert.match(squares.said, /makes the test error 17 % larger/);
});

test("a small step without effect is given as the reason", () => {
  const after = { test_error: 0.999, rate: 1, size: 0.02 };
  const asked = { quantity: "test_error", name: "test error (MSE)", before: { test_error: 1 }, at };
  assert.match(headline({ ...asked, after }).numbers, /Why: the size of the step is 0.02/);
  assert.doesNotMatch(headline({ ...asked, after: { ...after, size: 2 } }).numbers, /Why/);
  assert.doesNotMatch(headline({ ...asked, after: { ...after, test_error: 0.5 } }).numbers, /Why/);
});

test("what twice the samples give is read off the line", () => {
  const line = { values: [1, 2, 4], parts: [{ test_error: 0.8 }, { test_error: 0.6 }, { test_error: 0.5 }] };
  const asked = { key: "training.samples", ...line, quantity: "test_error" };
  assert.equal(doubled({ ...asked, at: 2 }), " Twice the samples give 0.5.");
  assert.equal(doubled({ ...asked, at: 3 }), "");
  assert.equal(doubled({ ...asked, at: 1, key: "training.ridge" }), "");
});

test("the degrees that are learned are named", () => {
  const target = [0, 1, 0.7, 0];
  const said = learnedDegrees({ direction: "teacher", learned_coefficients: [0.1, 0.84, 0.168, 0.2], target_coefficients: target });
  assert.equal(said.said, "Along the teacher a polynomial of degree 2 is enough for what is learned:");
  assert.equal(said.numbers, "84 % of degree 1, 24 % of degree 2.");
  assert.match(learnedDegrees({ direction: "teacher", learned_coefficients: [0, 0, 0, 0], target_coefficients: target }).said, /nothing/);
});

test("a total of samples is shared out as the spec does it", () => {
  assert.equal(samplesOf({ training: { total: 2400, rate: 400 } }), 1200);
  assert.equal(samplesOf({ training: { total: 2400, rate: 0 } }), 2400);
  assert.equal(samplesOf({ training: { total: 2400, steps: 3 } }), 1200);
  const tables = { training: { total: 2400, ridge: 1 } };
  setKey(tables, "training.samples", 600);
  assert.deepEqual(tables.training, { ridge: 1, samples: 600 });
});

test("errors of classes need classes", () => {
  const applying = (labels, training = {}) => ["misclassification", "test_loss"].map((name) => applies(name, { labels, training }));
  assert.deepEqual(applying({ model: "component" }), [true, false]);
  assert.deepEqual(applying({ model: "component", values: [-1, 0, 1] }), [false, false]);
  assert.deepEqual(applying({ link: "sign" }, { loss: "hinge" }), [true, true]);
});

test("more inputs keep the ratios", () => {
  const tables = { data: { dim: 200 }, training: { samples: 200, step_samples: 400 } };
  setInputs(tables, 300);
  assert.deepEqual([tables.data.dim, tables.training.samples, tables.training.step_samples], [300, 300, 600]);
});

test("lists of rates advance with the steps", () => {
  const sweep = stepSweep({ scaling: { exponent: [0.4, 0.3] } }, [0, 1, 3]);
  assert.deepEqual(sweep, { zip: { "training.steps": [1, 3], "scaling.exponent": [[0.4], [0.4, 0.3, 0.3]] } });
});

test("no step, no effect; no number, no headline", () => {
  const none = { test_error: 1.06, rate: 0 };
  const said = headline({ quantity: "test_error", name: "test error (MSE)", after: none, before: none, at });
  assert.match(said.said, /the learning rate is 0/);
  assert.equal(said.gain, 0);
  const quantity = { quantity: "test_loss", name: "test loss", at };
  assert.equal(headline({ ...quantity, after: none, before: none }), null);
  assert.equal(headline({ ...quantity, after: { error: "no theory" }, before: none }), null);
});

test("several steps are not called one", () => {
  const said = headline({ quantity: "test_error", name: "test error (MSE)", steps: 3, at,
    after: { test_error: 0.5, rate: 1 }, before: { test_error: 1 } });
  assert.match(said.said, /3 steps take 50 %/);
  assert.equal(said.numbers, "0.5 with them, 1 without.");
});

test("what is not known well is said", () => {
  const said = headline({ quantity: "test_error", name: "test error (MSE)", at,
    after: { test_error: 0.99, rate: 1, error_estimate: 0.2 }, before: { test_error: 1 } });
  assert.match(said.numbers, /known to about 20 %/);
});

test("rank keeps strengths that are drawn, a step size replaces one set by hand", () => {
  const tables = { data: { rank: 1, strengths: "uniform" }, training: { rate: 5 } };
  setKey(tables, "data.rank", 3);
  assert.deepEqual(tables.data, { rank: 3, strengths: "uniform" });
  setKey(tables, "scaling.strength", 0.5);
  assert.deepEqual(tables.training, {});
  assert.deepEqual(tables.scaling, { strength: 0.5, weighting: 0.5 });
});

test("a slider's value and the spec's are each other's inverse", () => {
  const tables = { data: { dim: 300, weights: [0.5, 0.25, 0.25] }, training: { samples: 600 } };
  const ratio = { key: "training.samples", over: "data.dim", kind: "log" };
  assert.equal(shown(ratio, written(ratio, 1.5, tables), tables), 1.5);
  const first = { key: "data.weights", first: true, kind: "linear" };
  assert.deepEqual(written(first, 0.2, tables), [0.2, 0.4, 0.4]);
});

test("lines pass through the places of the dots", () => {
  const slider = { key: "network.width_ratio", kind: "log", low: 0.1, high: 10 };
  const dots = [0.1, 0.33, 1, 10];
  const values = axisValues(slider, [0.1, 10], "curve", {}, null, dots);
  for (const dot of dots) assert.ok(values.includes(dot));
  assert.deepEqual(values, [...values].sort((a, b) => a - b));
});

test("answers of lists that advance together find their curve", () => {
  const curves = { key: "training.optimiser", values: ["gd", "sign"], tied: { "training.rate": [1000, 0.5] } };
  const state = { curves, zip: null, tables: { data: {}, training: {}, compare: { seed: 3, accuracy: 0.003 } } };
  const sweep = sweepOf(state, { key: "training.samples", kind: "linear" }, [100, 200, 400]);
  assert.deepEqual(Object.keys(sweep), ["training.samples", "zip"]); // the zip runs fastest
  assert.deepEqual(placeOf(state, 0, 3), [0, 0]);
  assert.deepEqual(placeOf(state, 3, 3), [1, 1]);
  assert.deepEqual(pointOf(state).compare, { models: ["theory"], seed: 3, accuracy: 0.003 });
});

test("a refusal is in the unit of its slider", () => {
  const text = "training.samples = 1e9: must be a whole number from 1 to 1e+07. For example 1000";
  const said = inUnits(text, { title: "samples over inputs", over: "data.dim" }, { data: { dim: 500 } });
  assert.equal(said, "samples over inputs, at 500 inputs: must be a number from 0.002 to 20000. For example 2");
  assert.equal(inUnits(text, { title: "ridge", over: "" }, {}), text);
});

test("a little TeX becomes MathML", () => {
  assert.match(mathml("\\frac{1}{2 m̃}"), /<mfrac><mrow><mn>1<\/mn><\/mrow><mrow><mn>2<\/mn><mi>m̃<\/mi><\/mrow><\/mfrac>/);
  assert.match(mathml("h_ℓ^2 z"), /<msubsup><mi>h<\/mi><mi>ℓ<\/mi><mn>2<\/mn><\/msubsup><mi>z<\/mi>/);
  for (const { html } of Object.values(FORMULAS)) assert.ok(!/undefined|\\/.test(html), html);
});

test("the rule of the degree is an inequality", () => {
  assert.match(FORMULAS.map.html, /<mo stretchy="false">&lt;<\/mo><mi>β<\/mi><mo stretchy="false">&lt;<\/mo>/);
});
