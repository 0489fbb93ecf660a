// Interpolation and the words of the scenes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { mixed, positionOf, rowAt, tangents, valueAt } from "../../src/onegrad/page/static/chart.js";
import { WORDS, nearness, sayScene } from "../../src/onegrad/page/static/scenes.js";
import { cosineAt, stateAt, turnAt, wordsOf } from "../../src/onegrad/page/static/step_scene.js";

const STORY = new URL("../../src/onegrad/page/static/story.json", import.meta.url);
const { scenes } = JSON.parse(readFileSync(STORY, "utf8"));

test("between rows numbers are mixed, missing ones are not invented", () => {
  assert.equal(mixed(1, 3, 0.25), 1.5);
  assert.equal(mixed(null, 3, 0.25), null);
  assert.equal(mixed(null, 3, 0.75), 3);
  assert.deepEqual(rowAt([[0, 0], [2, 4]], [0.5]), [1, 2]);
  assert.deepEqual(rowAt([[[0], [2]], [[4], [6]]], [0.5, 0.5]), [3]);
});

test("a slider's value and its position are each other's inverse", () => {
  for (const slider of [{ values: [1, 10, 1000], log: true }, { values: [0, 50, 400], log: false }]) {
    for (const position of [0, 0.3, 1, 1.7, 2]) {
      assert.ok(Math.abs(positionOf(slider, valueAt(slider, position)) - position) < 1e-9);
    }
  }
});

test("smooth lines have no overshoot at a peak", () => {
  assert.equal(tangents([[0, 0], [1, 5], [2, 0]])[1], 0);
});

test("every scene has words and a question, the first one offers what to do next", () => {
  for (const scene of scenes) {
    assert.ok(WORDS[scene.id].title && WORDS[scene.id].text);
    if (scene.kind === "curves") {
      assert.ok(WORDS[scene.id].ask);
      const said = sayScene(scene, scene.sliders.map(({ start }) => start), scene.here ?? scene.x.values[3]);
      assert.ok(said.said && said.numbers, scene.id);
    }
  }
  const [step] = scenes;
  assert.match(wordsOf(step, 11.1, true).said, /takes 38 % of the test error away/);
  assert.match(wordsOf(step, 0.13, true).said, /less than 1 %/);
  assert.match(wordsOf(step, 0.13, true).next, /degree 2 begins/);
  assert.equal(wordsOf(step, 11.1, false).said, "Before the step");
});

test("at the rows of the first scene its state is the row", () => {
  const [step] = scenes;
  for (const row of [step.rows[0], step.rows[1], step.rows[9], step.rows[step.rows.length - 1]]) {
    assert.ok(Math.abs(stateAt(step, row.rate).test_error - row.test_error) < 1e-12);
    assert.deepEqual(stateAt(step, row.rate).spikes, row.spikes);
  }
});

test("a neuron without a step does not turn", () => {
  const neuron = [0.1, 0.2, 1, 0.05, 0.3, 1];
  assert.equal(turnAt(neuron, 0), 0);
  assert.equal(cosineAt(neuron, 0), 0.1);
});

test("dots belong to their value of the slider", () => {
  assert.equal(nearness([1], [1]), 1);
  assert.equal(nearness([1], [1.5]), 0);
});
