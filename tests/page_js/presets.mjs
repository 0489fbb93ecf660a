// Reads what the page knows, writes what it would ask and copy for every preset: stdin to stdout.
import { readFileSync } from "node:fs";
import { curveMessage, curveSpec, mapSpec, batchSpec, placeOf, pointOf, pointSpec, spectrumSpec, mapSweep, withSweep }
  from "../../src/onegrad/page/static/specs.js";
import { axisValues, fromHash, fromTables, learnNames, sliderOf, taskOf, toHash } from "../../src/onegrad/page/static/state.js";

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
  const { counts, versus } = about.steps;
  const copied = {
    curve: () => curveSpec(about, state).spec,
    map: () => mapSpec(about, state, 9),
    spectrum: () => spectrumSpec(about, state),
    steps: () => batchSpec(state, versus.batch, counts, "steps"),
  }[state.view]();
  const slider = sliderOf(about, state.axis, taskOf(state.tables));
  const xs = axisValues(slider, state.range, "curve", state.tables, state.zip, state.dots);
  const asked = state.view === "map" ? { type: "map", spec: withSweep(pointOf(state), mapSweep(about, state, 17)) }
    : curveMessage(about, state, xs);
  const count = state.curves.values.length * xs.length;
  const places = Array.from({ length: count }, (_, i) => placeOf(state, i, xs.length));
  return { view: state.view, copied, asked, places, xs, state, point: pointSpec(state, "here"), headline: pointOf(state) };
}
