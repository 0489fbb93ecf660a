// Reads what the page knows, writes what it would ask and copy for every preset: stdin to stdout.
import { readFileSync } from "node:fs";
import { curveMessage, curveSpec, mapSpec, batchSpec, pointOf, pointSpec, spectrumSpec, mapSweep, withSweep }
  from "../../src/onegrad/page/static/specs.js";
import { VIEWS, axisValues, fromHash, fromTables, learnNames, sliderOf, taskOf, toHash } from "../../src/onegrad/page/static/state.js";

const about = JSON.parse(readFileSync(0, "utf8"));
learnNames(about);
const found = {};
for (const { name, tables } of about.presets.flatMap((group) => group.presets)) {
  try {
    found[name] = whatItShows(fromHash(about, toHash(fromTables(about, tables)))); // by its own link
  } catch (error) {
    found[name] = { refused: error.message };
  }
}
process.stdout.write(JSON.stringify(found));

function whatItShows(state) {
  const own = state.view;
  const views = VIEWS.filter((view) => view !== "start").map((view) => [view, inView({ ...state, view })]);
  return { view: own, ...Object.fromEntries(views)[own], views: Object.fromEntries(views), state, headline: pointOf(state) };
}

/** What a view asks for, and what is copied from it. */
function inView(state) {
  const { counts, versus } = about.steps;
  const xs = axisValues(sliderOf(about, state.axis, taskOf(state.tables)), state.range, "curve", state.tables, state.zip, state.dots);
  const alone = { copied: pointSpec(state, "here"), asked: { type: "features", spec: pointOf(state) } };
  return {
    curve: () => ({ copied: curveSpec(about, state).spec, asked: curveMessage(about, state, xs) }),
    map: () => ({
      copied: mapSpec(about, state, 9),
      asked: { type: "map", spec: withSweep(pointOf(state), mapSweep(about, state, 17)) },
    }),
    spectrum: () => ({ copied: spectrumSpec(about, state), asked: { type: "spectrum", spec: pointOf(state) } }),
    steps: () => ({
      copied: batchSpec(state, versus.batch, counts, "steps"),
      asked: { type: "steps", spec: pointOf(state), versus: "batch" },
    }),
  }[state.view]?.() ?? alone;
}
