// Sentences with numbers in them: what one step does to the plotted quantity.

import { show } from "./dom.js";

const SMALL = 0.5; // steps of this size, in units of one that changes neurons altogether, are called small
const SEEN = 0.005; // relative changes below this are called "next to nothing"

const percent = (x) => `${show(100 * x, 3)} %`;
const shares = ["misclassification"]; // quantities that are written in percent

/**
 * The answer to "what does one step do here?", or null where it is not known.
 *
 * after, before : what the theory says with and without the step; at : the axis' symbol and value
 * Returns {said, numbers, gain, draft}: the sentence, its numbers, 1 − after/before.
 */
export function headline({ quantity, name, after, before, at, steps = 1, activation = "", draft = false }) {
  const [end, start] = [after?.[quantity], before?.[quantity]];
  if (after?.error || before?.error || !Number.isFinite(end) || !Number.isFinite(start) || !(start > 0)) return null;
  const here = at.value === null || !at.symbol ? "Here" : `At ${at.symbol} = ${show(at.value, 3)}`;
  const what = name.replace(" (MSE)", "");
  if (after.rate === 0) {
    const numbers = `no step is made, and the ${what} is ${number(quantity, end)}.`;
    return { said: `${here} the learning rate is 0:`, numbers, gain: 0, draft };
  }
  const gain = 1 - end / start;
  const one = steps === 1;
  const who = one ? "one step" : `${steps} steps`;
  const said = gain > SEEN ? `${who} ${one ? "takes" : "take"} ${Math.round(100 * gain)} % of the ${what} away`
    : gain < -SEEN ? `${who} ${one ? "makes" : "make"} the ${what} ${Math.round(-100 * gain)} % larger`
      : `${who} ${one ? "changes" : "change"} the ${what} by less than 0.5 %`;
  const constant = { test_error: after.label_variance, relative_error: after.label_variance ? 1 : undefined }[quantity];
  const listed = [`${number(quantity, end)} with ${one ? "it" : "them"}`, `${number(quantity, start)} without`];
  if (Number.isFinite(constant)) listed.push(`${number(quantity, constant)} for the best constant`);
  const known = Math.max(after.error_estimate ?? 0, before.error_estimate ?? 0);
  const why = Math.abs(gain) <= SEEN && after.size !== null && after.size < SMALL
    ? ` Why: the size of the step is ${show(after.size, 2)}, what it adds to a neuron's input over what was there before.` : "";
  const doubt = !draft && known > Math.max(0.03, Math.abs(gain)) ? ` Both are known to about ${percent(known)} only.` : "";
  return { said: `${here} ${said}:`, numbers: `${listed.join(", ")}${activation ? ` (${activation})` : ""}.${why}${doubt}`, gain, draft };
}

/** Which degrees of the labels along a direction are learned, and how much of each. */
export function learnedDegrees({ direction, learned_coefficients: learned, target_coefficients: target }) {
  const size = Math.sqrt(target.slice(1).reduce((sum, c) => sum + c * c, 0));
  const all = target.map((c, degree) => [degree, learned[degree] / c, c]);
  const known = all.filter(([degree, , c]) => degree && Math.abs(c) > 0.05 * size);
  const along = `Along ${direction === "teacher" ? "the teacher" : direction}`;
  if (!known.length) return { said: `${along} the labels have nothing to be learned.`, numbers: "" };
  const enough = Math.max(0, ...known.filter(([, share]) => share > 0.05).map(([degree]) => degree));
  const listed = known.map(([degree, share]) => `${Math.round(100 * share)} % of degree ${degree}`);
  const said = enough ? `${along} a polynomial of degree ${enough} is enough for what is learned:` : `${along} nothing is learned:`;
  return { said, numbers: `${listed.join(", ")}.` };
}

/** What twice the samples give, read off the line; "" where it does not reach so far. */
export function doubled({ key, values, parts, quantity, at }) {
  if (!["training.samples", "training.total"].includes(key)) return "";
  const i = values.findIndex((x) => x >= 2 * at * (1 - 1e-9));
  const [a, b] = [parts[i - 1]?.[quantity], parts[i]?.[quantity]];
  if (i < 1 || !Number.isFinite(a) || !Number.isFinite(b)) return "";
  const u = Math.log((2 * at) / values[i - 1]) / Math.log(values[i] / values[i - 1]);
  return ` Twice the samples give ${number(quantity, a + (b - a) * u)}.`;
}

const number = (quantity, x) => (shares.includes(quantity) ? percent(x) : show(x, 3));
